"""The stages of a run and the way from one to the next, against a table of answers."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from answer_table import SIGNATURE, Asked, Table
from table_run import SCRIPT, Run

from torchbisect.core.build import Build
from torchbisect.core.errors import DiskFull, Exit, InputError
from torchbisect.minimizer.budget import Budget
from torchbisect.pipeline.stages import minimize
from torchbisect.probe.judge.environment_faults import Untestable

RELEASES = {"2.6.0": [], "2.7.0": ["one"], "2.8.0": ["one"], "2.9.0": []}


def test_a_run_goes_through_every_stage(run: Run) -> None:
    table = Table(RELEASES)
    result = run(table)
    assert result.code == Exit.FINISHED
    last = ["Bisect", "Confirm", "Hand over", "Report"]
    assert result.stages == ["Observe", "Localize", "Minimize", "Try other settings", "Name the pass", *last]
    report = result.report
    assert report["state"] == "complete"
    assert report["verdict"] == "mismatch"
    assert report["localization"]["backend"] == "eager"
    assert result.minimal == "print('one')\n"
    regression, fix = report["bisect"]["regression"], report["bisect"]["fix"]
    assert (regression["last_good"], regression["first_bad"]) == ("2.6.0", "2.7.0")
    assert (fix["last_bad"], fix["first_fixed"]) == ("2.8.0", "2.9.0")
    assert report["environment"]["collect_env"] == "PyTorch version: 2.8.0\n"


def test_a_known_mismatch_is_named_and_nothing_more(run: Run) -> None:
    table = Table(RELEASES)
    result = run(table, known=(SIGNATURE.fingerprint,))
    assert result.code == Exit.FINISHED
    assert result.stages == ["Observe"]
    assert (result.report["verdict"], result.report["mismatch"]["fingerprint"]) == ("mismatch", SIGNATURE.fingerprint)
    assert {asked.build for asked in table.asked} == {"2.8.0"}
    assert any("known already" in notice for notice in result.report["notices"])
    assert run(table, known=("another",)).stages[-1] == "Report"


def test_the_shrunk_script_is_run_on_both_sides_of_each_boundary(run: Run) -> None:
    result = run(Table(RELEASES))
    confirmed = [(one["build"], one["status"], one["eager"]) for one in result.report["minimal"]["confirmed"]]
    assert confirmed == [
        ("2.8.0", 0, True),
        ("2.8.0", 1, False),
        ("2.6.0", 0, False),
        ("2.7.0", 1, False),
        ("2.9.0", 0, False),
    ]


def test_the_build_that_is_asked_first_is_installed_while_the_script_is_shrunk(run: Run) -> None:
    began, shrunk = threading.Event(), threading.Event()
    ahead: list[str] = []

    def on_prefetch(build: Build, cancel: threading.Event) -> None:
        ahead.append(build.name)
        began.set()
        shrunk.wait(10)

    def on_question(asked: Asked) -> None:
        if asked.source == "print('one')\n":
            assert began.wait(10), "nothing was installed ahead"
            shrunk.set()

    result = run(Table(RELEASES, on_question=on_question, on_prefetch=on_prefetch), jobs=2, good="2.6.0")
    assert result.code == Exit.FINISHED
    assert ahead[:1] == [build for build in result.builds_asked("install") if build != "2.8.0"][:1]


def test_a_search_that_was_asked_for_installs_its_first_build_beside_the_failing_one(run: Run) -> None:
    began = threading.Event()
    ahead: list[str] = []

    def on_prefetch(build: Build, cancel: threading.Event) -> None:
        ahead.append(build.name)
        began.set()

    def on_question(asked: Asked) -> None:
        if asked.what == "install" and asked.build == "2.8.0":
            assert began.wait(10), "nothing was installed ahead"

    table = Table(RELEASES, on_question=on_question, on_prefetch=on_prefetch)
    result = run(table, command="bisect", good="2.6.0", find="regression", jobs=2)
    assert result.code == Exit.FINISHED
    # The failing build is asked again beside the others.
    installed = [build for build in result.builds_asked("install") if build != "2.8.0"]
    assert ahead[:1] == installed[:1] == ["2.7.0"]


class EndlessInstall:
    """An install ahead of its question that ends only when it is told to; ``ended`` says that it was."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.ended: list[bool] = []

    def __call__(self, build: Build, cancel: threading.Event) -> None:
        self.began.set()
        self.ended.append(cancel.wait(10))


def test_an_install_ahead_of_its_question_ends_where_there_is_no_mismatch(run: Run) -> None:
    install = EndlessInstall()

    def on_question(asked: Asked) -> None:
        assert asked.what != "observe" or install.began.wait(10)

    right = {"2.6.0": ["one"], "2.7.0": [], "2.8.0": [], "2.9.0": []}
    result = run(Table(right, on_question=on_question, on_prefetch=install), command="bisect", jobs=2)
    assert result.code == Exit.NO_MISMATCH
    assert install.ended == [True]


def test_an_install_ahead_of_its_question_ends_with_an_interrupted_run(run: Run) -> None:
    install = EndlessInstall()

    def on_question(asked: Asked) -> None:
        if asked.source == "print('one')\n":
            assert install.began.wait(10)
            raise KeyboardInterrupt

    result = run(Table(RELEASES, on_question=on_question, on_prefetch=install), jobs=2)
    assert result.code == Exit.INTERRUPTED
    assert install.ended == [True]


def test_what_a_good_end_will_be_asked_is_asked_while_it_is_asked_again(run: Run) -> None:
    """Asking again waits for the original there, which another run would only ask afterwards."""
    begun = {"ask": threading.Event(), "plain": threading.Event()}

    def on_question(asked: Asked) -> None:
        if asked.build == "2.9.0" and asked.what in begun and (asked.what == "plain" or asked.source == SCRIPT):
            begun[asked.what].set()
        if asked.build == "2.9.0" and asked.what == "confirm":
            assert all(event.wait(10) for event in begun.values())

    table = Table(RELEASES, on_question=on_question)
    result = run(table, jobs=2)
    assert result.code == Exit.FINISHED
    for what in begun:
        assert sum(asked.build == "2.9.0" and asked.what == what for asked in result.asked) == (
            2 if what == "ask" else 1
        )
    assert result.report["bisect"]["fix"]["first_fixed"] == "2.9.0"


@pytest.mark.parametrize(
    ("command", "titles"),
    [
        ("check", ["Observe", "Localize", "Name the pass", "Report"]),
        ("minimize", ["Observe", "Localize", "Minimize", "Try other settings", "Name the pass", "Report"]),
        (
            "explain",
            ["Observe", "Localize", "Minimize", "Try other settings", "Name the pass", "Explain", "Report"],
        ),
        ("bisect", ["Observe", "Bisect", "Confirm", "Report"]),
    ],
)
def test_each_command_has_its_stages(run: Run, command: str, titles: list[str]) -> None:
    assert run(Table(RELEASES), command=command).stages == titles


@pytest.mark.parametrize(("command", "asked_about"), [("check", SCRIPT), ("minimize", "print('one')\n")])
def test_other_settings_are_tried_on_the_smallest_script(run: Run, command: str, asked_about: str) -> None:
    result = run(Table(RELEASES), command=command)
    varied = {asked.source for asked in result.asked if asked.settings.dynamic is not None or asked.settings.knobs}
    assert varied == {asked_about}
    rows = [(row["backend"], row["settings"]) for row in result.report["localization"]["table"]]
    assert rows == [("eager", ""), ("eager", "dynamic=False"), ("eager", "dynamic=True")]


def test_no_mismatch_ends_the_run(run: Run) -> None:
    result = run(Table({**RELEASES, "2.8.0": []}))
    assert result.code == Exit.NO_MISMATCH
    assert result.stages == ["Observe"]
    assert result.report["verdict"] == "none"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Untestable("timed-out", "the script did not end"), "allow it more with --timeout"),
        (Untestable("no-compiler", "there is no C++ compiler"), "there is no C++ compiler"),
    ],
)
def test_a_script_that_is_no_evidence_ends_the_run_with_advice(run: Run, fault: Untestable, said: str) -> None:
    result = run(Table(RELEASES, untestable=fault))
    assert result.code == Exit.UNTESTABLE
    assert said in result.said
    assert result.report["verdict"] == "untestable"


@pytest.mark.parametrize(
    ("reason", "code"),
    [("broken-environment", Exit.MACHINE), ("lost", Exit.UNTESTABLE), ("timed-out", Exit.UNTESTABLE)],
)
def test_a_torch_that_fails_is_no_fault_of_the_script(run: Run, reason: str, code: Exit) -> None:
    """A script can end the agent too, so an agent that is lost is no proof that the machine failed."""
    result = run(Table(RELEASES, untestable=Untestable(reason, "it ended", transient=True)))
    assert result.code == code
    assert result.report["verdict"] == "untestable"


def test_the_cheapest_backend_is_written_into_the_shrunk_script(run: Run) -> None:
    script = 'import torch\n\nprint(torch.compile(lambda x: x + 1)(torch.ones(1)), "one")\n'
    result = run(Table(RELEASES, backends=("aot_eager", "aot_eager_decomp_partition", "inductor")), script=script)
    assert result.report["localization"]["backend"] == "aot_eager"
    assert "backend='aot_eager'" in result.minimal
    shrinking = [asked for asked in result.asked if asked.what == "ask" and "backend=" in asked.source]
    assert {asked.settings.backend for asked in shrinking} == {None}


def test_without_minimizing_the_builds_are_asked_with_the_script_itself(run: Run) -> None:
    result = run(Table(RELEASES), minimize=False)
    assert result.stages == ["Observe", "Localize", "Name the pass", "Bisect", "Confirm", "Report"]
    assert {asked.source for asked in result.asked if asked.what in ("ask", "confirm")} == {SCRIPT}
    assert result.report["minimal"] is None


def test_a_spent_budget_leaves_a_partial_result(run: Run) -> None:
    result = run(Table(RELEASES), budget=Budget(questions=1), command="minimize")
    assert result.code == Exit.PARTIAL
    assert result.report["state"] == "partial"
    assert [one["part"] for one in result.report["unfinished"]] == ["minimize"]


def test_a_spent_time_still_confirms_the_script_once(run: Run) -> None:
    result = run(Table(RELEASES), budget=Budget(1e-6), command="minimize")
    assert result.code == Exit.PARTIAL
    assert [one["eager"] for one in result.report["minimal"]["confirmed"]] == [True, False]


class Slow(Table):
    """A table in which a plain run takes long, and no form of a script passes under plain Python."""

    def ask(self, what: str, *rest: Any) -> bool:
        if what == "plain":
            self.plain = getattr(self, "plain", 0) + 1
            time.sleep(0.4)
            return False
        return super().ask(what, *rest)


def test_confirming_ends_with_the_budget(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimize, "standalone_candidates", lambda source, mismatch: [source] * 9)
    table = Slow(RELEASES)
    result = run(table, budget=Budget(1.0), command="minimize")
    assert result.report["minimal"]["stands_alone"] is False
    assert 2 <= table.plain <= 9, "each form takes one run or two"


def test_every_smaller_script_is_kept_where_that_was_asked_for(run: Run) -> None:
    result = run(Table(RELEASES), save_trajectory=True, command="minimize")
    steps = [path.read_text() for path in sorted((result.out / "trajectory").iterdir())]
    assert steps
    assert all("one" in step for step in steps)


def test_an_untestable_build_makes_the_range_honest(run: Run) -> None:
    """Neither side is known of a build that can't be installed, so the range that is told includes it."""
    releases = {"2.4.0": [], "2.5.0": [], "2.6.0": ["one"], "2.7.0": ["one"], "2.8.0": ["one"]}
    result = run(Table(releases, refused={"2.6.0": "no-wheel"}))
    regression = result.report["bisect"]["regression"]
    assert (regression["last_good"], regression["first_bad"]) == ("2.5.0", "2.7.0")
    assert regression["between"] == ["2.6.0"]
    assert {"build": "2.6.0", "reason": "no-wheel"} in regression["skipped"]


NIGHTLIES = {
    "2.7.0.dev20250301": [],
    "2.7.0.dev20250305": [],
    "2.7.0.dev20250309": ["one"],
    "2.7.0.dev20250313": ["one"],
}


def test_a_boundary_between_releases_is_narrowed_among_nightlies(run: Run) -> None:
    result = run(Table({**RELEASES, **NIGHTLIES}), channels=("release", "nightly"), find="regression")
    assert result.stages[5:7] == ["Bisect", "Bisect nightlies for the regression"]
    regression = result.report["bisect"]["regression"]
    assert (regression["last_good"], regression["first_bad"]) == ("2.7.0.dev20250305", "2.7.0.dev20250309")
    assert any("2.7.0" in notice for notice in result.report["bisect"]["notices"])
    assert result.report["bisect"]["channel"] == "nightly"


def test_commits_that_can_not_be_read_are_a_remark(run: Run) -> None:
    """Nothing was read back from these builds, so nothing can be said of their commits."""
    result = run(Table({**RELEASES, **NIGHTLIES}), channels=(), find="regression", git="/nowhere")
    assert result.code == Exit.FINISHED
    assert "Commits of the regression" in result.stages
    assert any("commits" in notice for notice in result.report["bisect"]["notices"])


def test_a_failing_stage_leaves_the_results_of_those_before_it(run: Run) -> None:
    def no_room(asked: Asked) -> None:
        if asked.build == "2.7.0":
            raise DiskFull("no room")

    result = run(Table(RELEASES, on_question=no_room))
    assert isinstance(result.error, DiskFull)
    report = result.report
    assert report["state"] == "partial"
    assert report["unfinished"] == [{"part": "bisect", "why": "no room"}]
    assert report["minimal"]["source"] == result.minimal
    assert report["bisect"] is None


def test_a_good_build_on_the_wrong_side_is_refused_before_any_build_is_asked(run: Run) -> None:
    result = run(Table(RELEASES), good="2.9.0", find="regression")
    assert isinstance(result.error, InputError)
    assert result.builds_asked("install") == ["2.8.0"]


@pytest.mark.parametrize("first_bad", ["2.6.0", "2.7.0"])
def test_a_named_end_is_installed_only_beside_the_boundary(run: Run, first_bad: str) -> None:
    releases = ("2.5.0", "2.6.0", "2.7.0", "2.8.0")
    result = run(Table({one: ["one"] * (one >= first_bad) for one in releases}), good="2.5.0", find="regression")
    assert result.report["bisect"]["regression"]["first_bad"] == first_bad
    assert ("2.5.0" in result.builds_asked("install")) is (first_bad == "2.6.0")

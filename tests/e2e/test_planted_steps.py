"""A pass of real torch that became slow is found among nightlies, by the time that compiling takes."""

from __future__ import annotations

import pytest
from nightly_index import NightlyIndex
from planted_steps import STEPS
from running import Tool

pytestmark = pytest.mark.long

FIRST, COUNT = 2, 4


def test_the_date_of_a_slow_pass_is_named(tool: Tool) -> None:
    step = STEPS["slow pass"]
    index = NightlyIndex(count=COUNT, changes={step.change: (FIRST, COUNT)}, roll=COUNT)
    script = tool.write(step.script)
    words = ("--channel", "nightly", "--index-url", index.start(), "--find", "regression")
    builds = ("--torch", index.date(COUNT - 1).isoformat(), "--against", index.date(0).isoformat())
    try:
        done = tool.run("bisect", *words, *builds, "--measure", step.measure, "--worse-by", step.worse_by, script)
    finally:
        index.stop()
    assert done.returncode == 0, done.stderr
    names = [index.version(number).partition("+")[0] for number in range(COUNT)]
    regression, measured = tool.report["bisect"]["regression"], tool.report["measurement"]
    assert [regression["last_good"], regression["first_bad"]] == names[FIRST - 1 : FIRST + 1], done.stderr
    answers = {row["build"]: row["answer"] for row in measured["builds"]}
    assert answers == dict(zip(names, ["not-worse", "not-worse", "worse", "worse"])), done.stderr

"""Results of the search over builds: the part ``bisect`` of ``report.json``, and the ranges that renderings show."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from torchbisect.bisect import wording


@dataclass(frozen=True)
class SkippedBuild:
    """A build that gave no evidence, and the named reason."""

    build: str
    reason: str


@dataclass(frozen=True)
class SuspectCommit:
    """A commit of a range that may have made the change.

    Attributes:
        commit: its full hash.
        title: the first line of its message.
        url: the address of the commit.
        reasons: the reasons to suspect it, each in a few words.
    """

    commit: str
    title: str
    url: str | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class CommitProof:
    """The answer of a build that has the bug, with one commit's change reverted or applied.

    Attributes:
        commit: the full hash of the commit.
        build: the build.
        reverted: the change was reverted; else it was applied.
        passes: true if the bug is gone, false if it is still there, ``None`` if that could not be shown.
        reason: the reason why it could not be shown.
    """

    commit: str
    build: str
    reverted: bool
    passes: bool | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Regression:
    """The range of builds in which the bug appeared.

    ``last_good`` is ``None`` when the oldest build that could be tested is bad; ``first_bad`` then names that build.
    Both are ``None`` when nothing is known; ``words`` then says why.

    Attributes:
        last_good: the newest build before the change that was seen to be good.
        first_bad: the oldest build after the change that was seen to be bad.
        between: builds between the two that gave no evidence. The change is in one of them or in ``first_bad``.
        skipped: every build of the search that gave no evidence, with its reason.
        exact: ``last_good`` and ``first_bad`` are neighbors in the channel.
        words: a remark of the search, in one line.
        compare: the address that shows the commits between the two.
        suspects: likely commits, the likeliest first.
        confidence: the probability that the range is right, from 0 to 1, if the script is flaky; ``None`` if every
            answer is certain.
        commit: the full hash of the commit that made the change, if testing commits found it.
        proofs: what a build with the bug does without that commit, or without each suspect that was tried.
    """

    last_good: str | None
    first_bad: str | None
    between: tuple[str, ...] = ()
    skipped: tuple[SkippedBuild, ...] = ()
    exact: bool = False
    words: str | None = None
    compare: str | None = None
    suspects: tuple[SuspectCommit, ...] = ()
    confidence: float | None = None
    commit: str | None = None
    proofs: tuple[CommitProof, ...] = ()


@dataclass(frozen=True)
class Fix:
    """The range of builds in which the bug was fixed; the mirror image of ``Regression``.

    ``first_fixed`` is ``None`` when the newest build that could be tested is bad; ``last_bad`` then names that build.
    """

    last_bad: str | None
    first_fixed: str | None
    between: tuple[str, ...] = ()
    skipped: tuple[SkippedBuild, ...] = ()
    exact: bool = False
    words: str | None = None
    compare: str | None = None
    suspects: tuple[SuspectCommit, ...] = ()
    confidence: float | None = None
    commit: str | None = None
    proofs: tuple[CommitProof, ...] = ()


@dataclass(frozen=True)
class BuildVerdict:
    """A tested build and its verdict.

    Attributes:
        build: its name.
        verdict: ``good``, ``bad`` or ``untestable``.
        reason: the named reason of an ``untestable``.
        seconds: the time that the test took, the install included.
        detail: a description of what was seen, in one line.
    """

    build: str
    verdict: str
    reason: str | None = None
    seconds: float = 0.0
    detail: str = ""


@dataclass(frozen=True)
class BisectReport:
    """The search over builds.

    Attributes:
        regression: the range in which the bug appeared; ``None`` if the search did not look for it.
        fix: the range in which the bug was fixed; ``None`` if the search did not look for it.
        tested: the tested builds, in the order of the tests.
        notices: facts about the search that its reader should know, a line each.
        left_out: builds that were never candidates, with the reason.
        listed: all builds of the channel from old to new; empty if the list is not kept.
        channel: ``release``, ``nightly`` or ``commit``.
    """

    regression: Regression | None = None
    fix: Fix | None = None
    tested: tuple[BuildVerdict, ...] = ()
    notices: tuple[str, ...] = ()
    left_out: tuple[SkippedBuild, ...] = ()
    listed: tuple[str, ...] = ()
    channel: str = "release"


@dataclass(frozen=True)
class BuildFacts:
    """Facts about a build, read back after its install or taken from its index.

    ``commit`` is the commit on main; ``git_version`` is the value of ``torch.version.git_version``.
    """

    version: str
    channel: str = "release"
    date: str | None = None
    commit: str | None = None
    git_version: str | None = None
    triton: str | None = None
    cuda: str | None = None


@dataclass(frozen=True)
class ChangeRange:
    """A change between two builds, a regression or a fix; ``before`` is the older build."""

    words: wording.BoundaryWording
    before: str | None
    after: str | None
    result: Regression | Fix


def ranges(bisect: BisectReport | None) -> tuple[ChangeRange, ...]:
    """Return the ranges that a search looked for: the regression, then the fix."""
    found = []
    if bisect and (broke := bisect.regression):
        found.append(ChangeRange(wording.REGRESSION, broke.last_good, broke.first_bad, broke))
    if bisect and (fixed := bisect.fix):
        found.append(ChangeRange(wording.FIX, fixed.last_bad, fixed.first_fixed, fixed))
    return tuple(found)


def sentence(found: ChangeRange) -> str:
    """Describe a range in one plain sentence without markup."""
    result = found.result
    if found.before is None and found.after is None and result.words:
        return result.words
    return wording.sentence(
        found.words, found.before, found.after, result.between, exact=result.exact, confidence=result.confidence
    )


def proof_sentence(proof: CommitProof) -> str:
    """Describe a proof in one plain sentence without markup."""
    result = wording.proof_result(proof.passes, proof.reason)
    return f"{wording.change_verb(proof.reverted)} {proof.commit[:10]} on {proof.build} {result}"


def verdicts_in_order(bisect: BisectReport, builds: Mapping[str, BuildFacts]) -> list[BuildVerdict]:
    """Return the tested builds, from old to new."""
    place = {name: number for number, name in enumerate(builds_in_order(bisect, builds))}
    return sorted(bisect.tested, key=lambda row: place[row.build])


def left_out(skips: Sequence[SkippedBuild]) -> list[tuple[str, str]]:
    """Return the builds left out, with the reason; adjacent builds with one reason share an entry.

    Three or more builds in an entry are written as ``1.0.0 to 1.9.1``.
    """
    groups = []
    for reason, group in itertools.groupby(skips, key=lambda skip: skip.reason):
        names = [skip.build for skip in group]
        groups.append((wording.join_names(names) if len(names) < 3 else f"{names[0]} to {names[-1]}", reason))
    return groups


def builds_in_order(bisect: BisectReport, builds: Mapping[str, BuildFacts]) -> list[str]:
    """Return all builds of a search, tested or not, from old to new.

    They have the channel's order. If builds of another channel were tested too, all are sorted by version: a nightly
    comes before the release that follows it.
    """
    listed, tested = dict.fromkeys(bisect.listed), [row.build for row in bisect.tested]
    if listed.keys() >= set(tested):
        return list(listed)
    return sorted({**listed, **dict.fromkeys(tested)}, key=lambda name: (_version(builds, name), name))


def _version(builds: Mapping[str, BuildFacts], name: str) -> Version:
    for candidate in (builds[name].version if name in builds else name, name):
        try:
            return Version(candidate)
        except InvalidVersion:
            continue
    return Version("0")

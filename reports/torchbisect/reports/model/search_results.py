"""What a search over builds came to: a part of ``report.json``. ``report`` has the whole, and hands these on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SkippedBuild:
    """A build that gave no evidence, and the named reason."""

    build: str
    reason: str


@dataclass(frozen=True)
class SuspectCommit:
    """A commit of a range that may have made the change.

    Attributes:
        commit: its full name.
        title: the first line of its message.
        url: where it can be read.
        reasons: why it is suspected, each in a few words.
    """

    commit: str
    title: str
    url: str | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Regression:
    """Where it broke.

    ``last_good`` is ``None`` when it was bad already in the oldest build that could be asked, ``first_bad`` then being
    that build. Both are ``None`` when nothing can be said; ``words`` then says why.

    Attributes:
        last_good: the newest build before the change that was seen to be good.
        first_bad: the oldest build after the change that was seen to be bad.
        between: builds between the two that gave no evidence: the change is in one of them or in ``first_bad``.
        skipped: every build of the search that gave no evidence, with its reason.
        exact: ``last_good`` and ``first_bad`` are neighbours in the channel.
        words: the searcher's own remark, one line.
        compare: the address that shows the commits between the two.
        suspects: likely commits, the likeliest first.
        confidence: how likely the range is the right one, from 0 to 1, for a script that is flaky; ``None`` where each
            answer is certain.
        commit: the full name of the one commit that made the change, where asking commits found it.
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


@dataclass(frozen=True)
class Fix:
    """Where it was mended; the mirror image of ``Regression``.

    ``first_fixed`` is ``None`` when it is still bad in the newest build that could be asked, ``last_bad`` being that
    build.
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


@dataclass(frozen=True)
class BuildVerdict:
    """A build that was asked about.

    Attributes:
        build: its name.
        verdict: ``good``, ``bad`` or ``untestable``.
        reason: the named reason of an ``untestable``.
        seconds: what it took, the install included.
        detail: one line in words: what was seen.
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
        regression: where it broke; ``None`` if that was not looked for.
        fix: where it was mended; ``None`` if that was not looked for.
        tested: the builds asked, in the order in which they were asked.
        notices: what the search met that its reader should know, a line each.
        left_out: builds that were never candidates, with the reason.
        listed: the channel's builds from old to new, asked or not; empty if that isn't kept.
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
    """What is known of a build beside its name: what was read back after the install, or what its index says.

    ``commit`` is the commit on main, ``git_version`` what ``torch.version.git_version`` says.
    """

    version: str
    channel: str = "release"
    date: str | None = None
    commit: str | None = None
    git_version: str | None = None
    triton: str | None = None
    cuda: str | None = None

"""Whether torch did it or what it stands on: where triton changed with torch, each is asked with the other's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from torchbisect.bisect.search.evidence import Boundary, BuildAnswer, BuildStatus
from torchbisect.bisect.sources.dependency_diff import VersionChange, changed_versions
from torchbisect.bisect.sources.suspects import generates_code
from torchbisect.containers.environment import Environment
from torchbisect.containers.python.variants import find_gpus
from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed
from torchbisect.pipeline.build_oracle import BuildOracle
from torchbisect.pipeline.session import Session
from torchbisect.probe.question import Question

#: What nightlies' triton was called till the end of 2025.
_ONCE = "pytorch-triton"


class Dependencies:
    """Looks at what changed beside torch between the two ends of an edge.

    Args:
        session: what the run works with.
        asker: asks, and knows what was read back from the builds.
        component: the compiler stage that localisation named.
    """

    def __init__(self, session: Session, build_oracle: BuildOracle, component: str | None) -> None:
        self._session, self._build_oracle, self._component = session, build_oracle, component

    def notices(self, boundary: Boundary[Build], question: Question) -> list[str]:
        """What changed, a line each, and of triton what the exchange came to."""
        if boundary.before is None or boundary.after is None:
            return []
        facts = [self._build_oracle.facts.get(build.name) for build in (boundary.before, boundary.after)]
        if facts[0] is None or facts[1] is None:
            return []
        changes = changed_versions(facts[0], facts[1])
        return [self._about(change, boundary.before, boundary.after, question) for change in changes]

    def _about(self, change: VersionChange, older: Build, newer: Build, question: Question) -> str:
        said = f"between {older} and {newer}, {change}"
        makers = [self._session.channels.maker(build) for build in (older, newer)]
        exchangeable = change.name == "triton" and change.before and change.after
        if not exchangeable or not all(maker.replaces_packages for maker in makers):
            return said
        if not generates_code(self._component) or not (find_gpus() or "triton" in question.signature.text.lower()):
            return f"{said}; it plays no part in what goes wrong here"
        with_newer = self._ask(older, str(change.after), question)
        with_older = self._ask(newer, str(change.before), question)
        ends = [self._build_oracle.ask(build, question).status for build in (older, newer)]
        return f"{said}: {followed(change, ends[0], ends[1], with_newer, with_older)}"

    def _ask(self, build: Build, triton: str, question: Question) -> BuildAnswer:
        """What a build shows with this triton in place of its own."""
        name = f"torch {build} with triton {triton}"
        return self._build_oracle.ask_environment("exchange", name, lambda: self._altered(build, triton), question)

    @contextmanager
    def _altered(self, build: Build, triton: str) -> Iterator[Environment]:
        maker = self._session.channels.maker(build)
        with ExitStack() as stack:
            try:
                environment = stack.enter_context(maker.with_package(build, f"triton=={triton}"))
            except InstallFailed:
                environment = stack.enter_context(maker.with_package(build, f"{_ONCE}=={triton}"))
            if environment.facts.triton != triton:
                raise InstallFailed("other-version", f"triton {triton} did not come in place of {build}'s own")
            yield environment


def followed(
    change: VersionChange, older: BuildStatus, newer: BuildStatus, with_newer: BuildAnswer, with_older: BuildAnswer
) -> str:
    """Which of the two the answer follows, in words.

    Args:
        change: what changed beside torch.
        older: what the older torch shows with its own.
        newer: what the newer one shows with its own.
        with_newer: the older torch with the newer dependency.
        with_older: the newer torch with the older one.
    """
    if (with_newer.status, with_older.status) == (newer, older):
        return f"the answer follows {change.name} and not torch"
    if (with_newer.status, with_older.status) == (older, newer):
        return f"the answer follows torch and not {change.name}"
    said = [
        f"{torch} with {change.name} {version} is {finding.status}" + (f" ({finding.reason})" if finding.reason else "")
        for torch, version, finding in (
            ("the older torch", change.after, with_newer),
            ("the newer torch", change.before, with_older),
        )
    ]
    return f"which of them did it is open: {', '.join(said)}"

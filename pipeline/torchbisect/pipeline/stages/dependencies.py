"""The dependency check: where triton changed together with torch, ask each torch with the other's triton."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from torchbisect.bisect.search.evidence import Boundary, BuildAnswer, BuildStatus
from torchbisect.bisect.sources.suspects import VersionChange, changed_versions, generates_code
from torchbisect.containers.environment import Environment
from torchbisect.containers.python.variants import find_gpus
from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed
from torchbisect.pipeline.build_oracle import BuildOracle
from torchbisect.pipeline.session import Session
from torchbisect.probe.oracle import Question

#: The name of the nightlies' triton until the end of 2025.
_OLD_NAME = "pytorch-triton"


class DependencyCheck:
    """Reports the packages that changed together with torch; ``component`` is the stage that was localized."""

    def __init__(self, session: Session, build_oracle: BuildOracle, component: str | None) -> None:
        self._session, self._build_oracle, self._component = session, build_oracle, component

    def notices(self, boundary: Boundary[Build], question: Question) -> list[str]:
        """Return one line for each package that changed; for triton with the result of the exchange."""
        if boundary.before is None or boundary.after is None:
            return []
        facts = [self._build_oracle.facts.get(build.name) for build in (boundary.before, boundary.after)]
        if facts[0] is None or facts[1] is None:
            return []
        changes = changed_versions(facts[0], facts[1])
        return [self._about(change, boundary.before, boundary.after, question) for change in changes]

    def _about(self, change: VersionChange, older: Build, newer: Build, question: Question) -> str:
        change_text = f"between {older} and {newer}, {change}"
        makers = [self._session.sources.maker(build) for build in (older, newer)]
        exchangeable = change.name == "triton" and change.before and change.after
        if not exchangeable or not all(maker.replaces_packages for maker in makers):
            return change_text
        if not generates_code(self._component) or not (find_gpus() or "triton" in question.signature.text.lower()):
            return f"{change_text}; it is unrelated to this bug"
        with_newer = self._ask(older, str(change.after), question)
        with_older = self._ask(newer, str(change.before), question)
        ends = [self._build_oracle.ask(build, question).status for build in (older, newer)]
        return f"{change_text}: {exchange_result(change, ends[0], ends[1], with_newer, with_older)}"

    def _ask(self, build: Build, triton: str, question: Question) -> BuildAnswer:
        """Return the answer of a build with this triton in place of its own."""
        name = f"torch {build} with triton {triton}"
        return self._build_oracle.ask_environment("exchange", name, lambda: self._with_triton(build, triton), question)

    @contextmanager
    def _with_triton(self, build: Build, triton: str) -> Iterator[Environment]:
        """Yield an environment of a build with this triton in place of its own."""
        maker = self._session.sources.maker(build)
        with ExitStack() as stack:
            try:
                environment = stack.enter_context(maker.with_package(build, f"triton=={triton}"))
            except InstallFailed:
                environment = stack.enter_context(maker.with_package(build, f"{_OLD_NAME}=={triton}"))
            if environment.facts.triton != triton:
                raise InstallFailed("other-version", f"triton {triton} did not come in place of {build}'s own")
            yield environment


def exchange_result(
    change: VersionChange, older: BuildStatus, newer: BuildStatus, with_newer: BuildAnswer, with_older: BuildAnswer
) -> str:
    """Return a phrase that names the package that the answer follows.

    Args:
        older: the status of the older torch with its own package; ``newer`` that of the newer torch.
        with_newer: the answer of the older torch with the newer package; ``with_older`` the opposite.
    """
    if (with_newer.status, with_older.status) == (newer, older):
        return f"the answer follows {change.name} and not torch"
    if (with_newer.status, with_older.status) == (older, newer):
        return f"the answer follows torch and not {change.name}"
    answers = [
        f"{torch} with {change.name} {version} is {finding.status}" + (f" ({finding.reason})" if finding.reason else "")
        for torch, version, finding in (
            ("the older torch", change.after, with_newer),
            ("the newer torch", change.before, with_older),
        )
    ]
    return f"which of them did it is open: {', '.join(answers)}"

"""Reading of uv's messages: what is said of which package. The tests with the real uv are in ``test_uv_errors``."""

from __future__ import annotations

import pytest

from torchbisect.containers.venv.uv_errors import error_from_uv, error_of_package
from torchbisect.core.build import Build
from torchbisect.core.errors import InputError, InstallFailed

_NO_SOLUTION = "  × No solution found when resolving dependencies:\n  ╰─▶ "

MESSAGES = {
    "Because torch==2.8.0 has no wheels with a matching Python ABI tag (e.g., `cp311`) and you require torch==2.8.0, "
    "we can conclude that your requirements are unsatisfiable.": "no-wheel",
    "Because only torch<=2.8.0 is available and torch>=2.8.0,<3 has no usable wheels, we can conclude": "no-wheel",
    "Because the current Python version (3.11.7) does not satisfy Python>=3.99 and torch==2.8.0 depends on "
    "Python>=3.99, we can conclude that torch==2.8.0 cannot be used.": "no-wheel",
    "Because torch!=2.8.0 has an invalid package format, we can conclude": "broken-wheel",
    "Because Torch has inconsistent metadata and you require it": "dependency-conflict",
    "Because Torch~=2.8 has an inconsistent metadata and you require it": "broken-wheel",
    "Because there is no version of torch==2.8.0 and you require torch==2.8.0": "no-such-build",
    "Because nosuch was not found in the package registry and torch==2.8.0 depends on nosuch": "dependency-missing",
    "Because triton==3.4.0 has no wheels with a matching platform tag and torch==2.8.0 depends": "dependency-missing",
    "Because torchvision==0.2 has no wheels with a matching platform tag": "dependency-missing",
    " has no wheels depends on Python < has an invalid package format": "dependency-missing",
    "torch has no wheels": "no-wheel",
    "": "dependency-conflict",
}  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES)
def test_what_is_said_of_which_package(message: str) -> None:
    wrapped = message.replace(" has ", "\n      has ").replace(" depends ", " depends\n  │   ")
    for text in (message, wrapped):
        error = error_from_uv(_NO_SOLUTION + text, Build("2.8.0"), None)  # type: ignore[arg-type]  # no full disk here
        assert isinstance(error, InstallFailed)
        assert error.reason == MESSAGES[message]


def test_a_package_of_the_user_is_named() -> None:
    broken = "Because einops==1.0 has an invalid package format, we can conclude"
    error = error_from_uv(broken, Build("2.8.0"), None, packages=("Einops>=1",))  # type: ignore[arg-type]
    assert isinstance(error, InstallFailed)
    assert (error.reason, "--with einops" in str(error)) == ("broken-wheel", True)
    missing = error_of_package("Because no-such was not found in the package registry", "no_such", "here")
    assert isinstance(missing, InputError)
    assert "no package no-such in here" in str(missing)

"""The Model Context Protocol server: the commands as tools for coding agents, over standard input and output.

Each tool runs one command of ``torchbisect`` in a process of its own and returns its JSON, so nothing is decided here.
Scripts come from strangers, by way of an agent: they run in containers unless the agent asks for virtual environments.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import anyio
import anyio.abc
from anyio.streams.text import TextReceiveStream
from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

from torchbisect.containers.python.module_command import module_command
from torchbisect.core.errors import Exit
from torchbisect.core.version import __version__

#: The seconds that an interrupted command has for writing what it found.
GRACE = 60.0
#: The characters of a command's messages that its result has: the last ones.
_MESSAGES = 4000

INSTRUCTIONS = """\
Decides whether torch.compile changes what a PyTorch script does, shrinks the script to a few lines, finds the release,
nightly or commit where it broke, and shows what a patch does. Verdicts come from runs, never from reading. Start with
check; minimize and bisect take minutes and report progress. exit_code says how a command ended: 0 a mismatch was found,
1 there is none, 2 wrong input, 3 a mismatch was found but a part could not finish, 4 flaky, 5 this machine failed,
6 the script cannot be tested, 130 interrupted. The same call continues what was interrupted.
"""

Script = Annotated[
    str, Field(description="A script on this machine, FILE::TEST, a notebook, a URL of a script, or OWNER/REPO#N.")
]
Source = Annotated[str, Field(description="The script's own text, instead of a path.")]
Torch = Annotated[
    str, Field(description="The build where it fails: 2.8.0, 2026-02-12 or installed. Empty: the newest release.")
]
Sandbox = Annotated[
    Literal["docker", "venv"], Field(description="docker for what a stranger wrote; venv if its author is trusted.")
]
Packages = Annotated[list[str], Field(description="Requirements that the script needs beside torch.")]
Out = Annotated[str, Field(description="The folder for the report; the same folder continues an interrupted call.")]
Build = Annotated[str, Field(description="A build: 2.7.1, or a date for a nightly.")]
Seconds = Annotated[float, Field(description="The most seconds for one run of the script; 0 for the default.", ge=0)]

server = MCPServer("torchbisect", instructions=INSTRUCTIONS, version=__version__)


@server.tool()
async def check(
    context: Context,
    script: Script = "",
    source: Source = "",
    torch: Torch = "",
    packages: Packages = [],  # noqa: B006, the schema shows the default
    sandbox: Sandbox = "docker",
    timeout: Seconds = 0,
    out: Out = "torchbisect-out",
) -> dict[str, Any]:
    """Tell whether torch.compile changes what a script does, and name the compiler stage at fault. About a minute."""
    words = _words(sandbox=sandbox, out=out, torch=torch, timeout=timeout) + _repeated("--with", packages)
    return await _asked(context, "check", words, script, source)


@server.tool()
async def minimize(
    context: Context,
    script: Script = "",
    source: Source = "",
    torch: Torch = "",
    packages: Packages = [],  # noqa: B006
    sandbox: Sandbox = "docker",
    budget: Annotated[str, Field(description="The most to spend on shrinking: 10m or 200q (questions).")] = "",
    out: Out = "torchbisect-out",
) -> dict[str, Any]:
    """Shrink a script to the fewest lines that show the same mismatch and fail by themselves under plain python."""
    words = _words(sandbox=sandbox, out=out, torch=torch, budget=budget) + _repeated("--with", packages)
    return await _asked(context, "minimize", words, script, source)


@server.tool()
async def bisect(
    context: Context,
    script: Script = "",
    source: Source = "",
    torch: Torch = "",
    good: Build = "",
    bad: Build = "",
    find: Annotated[Literal["", "regression", "fix", "both"], Field(description="What to look for.")] = "",
    channels: Annotated[list[Literal["release", "nightly", "commit"]], Field(description="Builds to search.")] = [],  # noqa: B006
    packages: Packages = [],  # noqa: B006
    sandbox: Sandbox = "docker",
    out: Out = "torchbisect-out",
) -> dict[str, Any]:
    """Find the build where a script broke, and the build where it was fixed. Each build is installed: minutes."""
    words = _words(sandbox=sandbox, out=out, torch=torch, good=good, bad=bad, find=find)
    words += _repeated("--with", packages) + _repeated("--channel", channels)
    return await _asked(context, "bisect", words, script, source)


@server.tool()
async def verify(
    context: Context,
    script: Script,
    patch: Annotated[str, Field(description="A diff on this machine, a commit, or a pull request (#161036).")],
    revert: Annotated[bool, Field(description="Take the patch back from the build instead.")] = False,
    torch: Torch = "",
    sandbox: Sandbox = "docker",
    out: Out = "torchbisect-out",
) -> dict[str, Any]:
    """Show what a patch of PyTorch's Python does to a script's mismatch: fixes it, causes it, or nothing."""
    words = _words(sandbox=sandbox, out=out, torch=torch, patch=patch) + (["--revert"] if revert else [])
    return await _asked(context, "verify", words, script, "")


@server.tool()
async def issue(
    context: Context,
    reference: Annotated[str, Field(description="OWNER/REPO#N, a URL, or a file with an issue's text.")],
    out: Out = "torchbisect-issue",
) -> dict[str, Any]:
    """Find the script in an issue's text, the torch it states, and what is missing to run it. Nothing is run."""
    return await _asked(context, "issue", ["--out", out], reference, "")


def _words(**options: object) -> list[str]:
    """Return the options that have a value, as words of a command line."""
    return [f"--{name}={value}" for name, value in options.items() if value]


def _repeated(option: str, values: Sequence[str]) -> list[str]:
    return [f"{option}={value}" for value in values]


async def _asked(context: Context, command: str, words: Sequence[str], script: str, source: str) -> dict[str, Any]:
    """Run a command, pass its messages on as progress, and return its exit code with the JSON that it printed.

    A cancelled call interrupts the command, which writes what it found; the same call continues.
    """
    if bool(script) == bool(source):
        return _result(Exit.INPUT, "", "give either script or source")
    line = module_command(sys.executable, "torchbisect", command, "--json", *words, "--", script or "-")
    async with await anyio.open_process(line, stdin=subprocess.PIPE, start_new_session=True) as process:
        printed: list[str] = []
        messages: list[str] = []
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_send, process, source)
                tasks.start_soon(_collect, process.stdout, printed)
                await _report_messages(context, process.stderr, messages)
                await process.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await _interrupt(process)
            raise
    assert process.returncode is not None
    return _result(process.returncode, "".join(printed), "".join(messages))


def _result(exit_code: int, printed: str, messages: str) -> dict[str, Any]:
    """Return a tool's result; ``report`` is the command's JSON, such as ``report.json``, where it came so far."""
    report: object = None
    with suppress(ValueError):
        report = json.loads(printed)
    meaning = next((code.name.lower() for code in Exit if code == exit_code), "failed")
    found: Mapping[str, Any] = {"exit_code": int(exit_code), "meaning": meaning, "report": report}
    return {**found, "messages": messages[-_MESSAGES:]}


async def _send(process: anyio.abc.Process, source: str) -> None:
    assert process.stdin is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it may end before it has read all
        await process.stdin.send(source.encode())
    await process.stdin.aclose()


async def _collect(stream: anyio.abc.ByteReceiveStream | None, parts: list[str]) -> None:
    assert stream is not None
    parts.extend([part async for part in TextReceiveStream(stream, errors="replace")])


async def _report_messages(context: Context, stream: anyio.abc.ByteReceiveStream | None, messages: list[str]) -> None:
    """Report each line that a command writes to standard error as progress; lines are counted."""
    assert stream is not None
    rest, count = "", 0
    async for part in TextReceiveStream(stream, errors="replace"):
        messages.append(part)
        *lines, rest = (rest + part).split("\n")
        for text in filter(None, map(str.strip, lines)):
            count += 1
            await context.report_progress(count, None, text)


async def _interrupt(process: anyio.abc.Process) -> None:
    """Interrupt a command as Ctrl-C does, and end it if it does not end by itself."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
        with anyio.move_on_after(GRACE):
            await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()

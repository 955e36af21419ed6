"""The server for coding agents, through the protocol's own client and over its standard input and output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from installed_bugs import MAXLEN, WINDOWS
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from torchbisect.cli.mcp_server import server

T = TypeVar("T")

#: Does not end by itself for ten minutes.
ENDLESS = """\
import torch, time
f = torch.compile(lambda x: x + 1, backend="eager")
f(torch.ones(1))
time.sleep(600)
"""


def asked(folder: Path, cache: Path, use: Callable[[Client], Awaitable[T]]) -> T:
    """Start a server in a folder, and return what ``use`` returns of its client."""

    async def session() -> T:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "torchbisect", "mcp"],
            cwd=str(folder),
            env={**os.environ, "TORCHBISECT_CACHE_DIR": str(cache)},  # among them where packages come from
        )
        async with Client(stdio_client(parameters)) as client:
            return await use(client)

    return anyio.run(session)


def told(result: Any) -> dict[str, Any]:
    """Return the result of a tool, which has come as text and as structured content."""
    assert not result.is_error, result.content
    found: dict[str, Any] = json.loads(result.content[0].text)
    assert result.structured_content == found
    return found


def test_each_tool_says_what_it_takes() -> None:
    tools = {tool.name: tool for tool in anyio.run(server.list_tools)}
    assert sorted(tools) == ["bisect", "check", "issue", "minimize", "verify"]
    for tool in tools.values():
        assert tool.description
        described = tool.input_schema["properties"].values()
        assert all("description" in each for each in described), tool.input_schema


@pytest.mark.slow
def test_wrong_input_is_a_result_and_no_crash(tmp_path: Path) -> None:
    async def use(client: Client) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = [
            {},
            {"script": "a.py", "source": "x"},
            {"script": "gone.py", "sandbox": "venv"},
            {"source": "x = (", "sandbox": "venv"},
            {"script": "--help", "sandbox": "venv"},
        ]
        return [told(await client.call_tool("check", call)) for call in calls]

    for found in asked(tmp_path, tmp_path / "cache", use):
        assert (found["exit_code"], found["meaning"]) == (2, "input"), found
        assert found["messages"]


@pytest.mark.slow
def test_an_issue_is_read(tmp_path: Path) -> None:
    body = "### Versions\n\nPyTorch version: 2.8.0+cu128\n\n```python\n" + MAXLEN.format(length=0) + "```\n"
    (tmp_path / "issue.md").write_text(body)

    async def use(client: Client) -> dict[str, Any]:
        return told(await client.call_tool("issue", {"reference": "issue.md"}))

    found = asked(tmp_path, tmp_path / "cache", use)
    assert found["exit_code"] == 0, found
    assert "2.8.0" in json.dumps(found["report"])


@pytest.mark.torch
@pytest.mark.e2e
@pytest.mark.long
@pytest.mark.parametrize("torch", ["installed", "2.8.0"])
def test_a_check_and_a_minimal_script(tmp_path: Path, cache: Path, torch: str) -> None:
    """A bug of every torch: the verdict, and the few lines that fail by themselves; progress came meanwhile."""
    progress: list[str] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        progress.append(message or "")

    async def use(client: Client) -> tuple[dict[str, Any], dict[str, Any]]:
        call = {"source": WINDOWS.format(step=4), "torch": torch, "sandbox": "venv"}
        checked = await client.call_tool("check", call, progress_callback=note)
        return told(checked), told(await client.call_tool("minimize", call))

    checked, shrunk = asked(tmp_path, cache, use)
    assert (checked["exit_code"], checked["report"]["verdict"]) == (0, "mismatch")
    assert any("Observe" in line for line in progress), progress
    assert shrunk["exit_code"] == 0, shrunk["messages"]
    assert shrunk["report"]["minimal"]["stands_alone"]
    assert "unfold" in (tmp_path / "torchbisect-out/minimal.py").read_text()


@pytest.mark.torch
@pytest.mark.long
def test_a_cancelled_call_interrupts_its_command(tmp_path: Path) -> None:
    async def use(client: Client) -> dict[str, Any]:
        began = anyio.Event()

        async def note(done: float, total: float | None, message: str | None) -> None:
            began.set()

        async def minimize() -> None:
            call = {"source": ENDLESS, "torch": "installed", "sandbox": "venv"}
            await client.call_tool("minimize", call, progress_callback=note)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(minimize)
            await began.wait()
            await anyio.sleep(5)
            tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            while not (tmp_path / "torchbisect-out/report.json").exists():
                await anyio.sleep(0.2)
        return told(await client.call_tool("issue", {"reference": "gone.md"}))

    assert asked(tmp_path, tmp_path / "cache", use)["meaning"] == "input"
    report = json.loads((tmp_path / "torchbisect-out/report.json").read_text())
    assert report["verdict"] == "untestable" or report["interrupted"], report

"""Commands that are typed in a stranger's folder: none of its files becomes a module of the tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from foreign_modules import fill_with_modules
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from running import COMMAND, Tool

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]

SCRIPT = "import torch\nprint(torch.compile(lambda x: x + 1, backend='eager')(torch.ones(2)))\n"


@pytest.fixture
def record(tool: Tool) -> Path:
    """Fill the folder where commands are typed with modules named as Python's own and as the installed ones.

    Return the file in which each writes if it is imported. The script lies in another folder.
    """
    record = tool.folder.with_name("imported")
    record.unlink(missing_ok=True)
    fill_with_modules(tool.folder, record)
    (tool.folder / "scripts").mkdir()
    (tool.folder / "scripts" / "repro.py").write_text(SCRIPT)
    return record


LONG = pytest.mark.long
WORDS = [
    pytest.param(("check", "scripts/repro.py"), id="check"),
    pytest.param(("check", "--torch", "2.13.0", "scripts/repro.py"), marks=LONG, id="check of a release"),
    pytest.param(("triage", "--no-bisect", "--no-minimize", "scripts"), marks=LONG, id="triage"),
    pytest.param(("cache",), id="cache"),
    pytest.param(("doctor",), id="doctor"),
]


@pytest.mark.parametrize("words", WORDS)
def test_no_file_of_the_folder_is_a_module_of_a_command(tool: Tool, record: Path, words: tuple[str, ...]) -> None:
    done = tool.run(*words)
    assert done.returncode in (0, 1), done.stderr
    assert record.read_text() == ""


@pytest.mark.long
def test_no_file_of_the_folder_is_a_module_of_the_server(tool: Tool, record: Path) -> None:
    async def session() -> Any:
        variables = {"TORCHBISECT_CACHE_DIR": str(tool.cache)}
        server = StdioServerParameters(command=str(COMMAND), args=["mcp"], cwd=str(tool.folder), env=variables)
        async with Client(stdio_client(server)) as client:
            return await client.call_tool("check", {"script": "scripts/repro.py", "sandbox": "venv"})

    result = anyio.run(session)
    assert result.structured_content["exit_code"] == 1, result.content
    assert record.read_text() == ""

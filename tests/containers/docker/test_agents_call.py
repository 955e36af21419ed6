"""A coding agent's call for a script that it does not trust: checked in a container, by way of the protocol."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from installed_bugs import MAXLEN
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from torchbisect.containers.docker.engine import NETWORK_VARIABLE
from torchbisect.containers.python.interpreter import Interpreter

pytestmark = [pytest.mark.torch, pytest.mark.e2e, pytest.mark.long]

PLACE = "/etc/torchbisect-was-here"
HOSTILE = MAXLEN.format(length=0) + f"open({PLACE!r}, 'w').write('x')\n"


def test_a_strangers_script_is_confined_unless_the_agent_says_otherwise(
    tmp_path: Path, own_image: str, interpreter: Interpreter
) -> None:
    variables = {"TORCHBISECT_CACHE_DIR": str(tmp_path), "TORCHBISECT_IMAGE": own_image, NETWORK_VARIABLE: "host"}

    async def checked() -> list[dict[str, Any]]:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "torchbisect", "mcp"],
            cwd=str(tmp_path),
            env={**os.environ, **variables},
        )
        async with Client(stdio_client(parameters)) as client:
            found = []
            for source in (MAXLEN.format(length=0), HOSTILE):
                call = {"source": source, "torch": str(interpreter.installed_torch)}
                result = await client.call_tool("check", call)
                found.append(json.loads(result.content[0].text))
            return found

    honest, hostile = anyio.run(checked)
    assert (honest["exit_code"], honest["report"]["verdict"]) == (0, "mismatch"), honest
    assert hostile["exit_code"] == 6, hostile
    assert "PermissionError" in hostile["messages"] or "Read-only file system" in hostile["messages"], hostile
    assert not Path(PLACE).exists()

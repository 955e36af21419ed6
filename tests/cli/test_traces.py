"""What torch.compile leaves behind in the place of a script; ``tests/e2e/test_doors.py`` has the minifier's."""

from __future__ import annotations

from running import Tool


def test_a_folder_without_graphs(tool: Tool) -> None:
    (tool.folder / "trace").mkdir()
    done = tool.run("check", "trace")
    assert done.returncode == 2
    assert "trace is a folder without graphs of torch.compile" in done.stderr

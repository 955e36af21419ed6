"""The documentation builds, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    options = (tmp_path / "site" / "reference" / "options" / "index.html").read_text(encoding="utf-8")
    for command_name in ("run", "check", "triage", "doctor"):
        assert f"torchbisect {command_name}" in options
    graph = (tmp_path / "site" / "architecture" / "index.html").read_text(encoding="utf-8")
    assert re.search(r"pipeline --&gt;\|\d+\| probe", graph)


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_of_a_page_at_the_root_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    assert [link for link in links if not (ROOT / link).exists()] == []

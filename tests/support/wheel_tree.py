"""Real wheels in a real package index in a folder; only torch itself is a small package."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import tarfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from packaging.utils import canonicalize_name

#: Source of the package torch in these tests: just enough for its version to be read back.
SOURCE = "__version__ = {version!r}\n\n\nclass version:\n    git_version = 'c0ffee'\n    cuda = None\n"

BUILD_SYSTEM = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
#: A build backend (PEP 517) that makes a wheel with a module whose ``SEEN`` is what the code before it put there.
BACKEND = """
import os, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name, info = f"{PROJECT}-{VERSION}-py3-none-any.whl", f"{PROJECT}-{VERSION}.dist-info"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        wheel.writestr(f"{PROJECT}.py", f"SEEN = {SEEN!r}\\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: {PROJECT}\\nVersion: {VERSION}\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""


@dataclass
class WheelTree:
    """A PEP 503 index in a folder, filled with small wheels in the real format."""

    root: Path
    links: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return (self.root / "simple").as_uri()

    @property
    def files(self) -> Path:
        return self.root / "files"

    def add(
        self,
        project: str,
        version: str,
        *,
        source: str | None = None,
        requires: tuple[str, ...] = (),
        tag: str = "py3-none-any",
        attributes: str = "",
        python: str | None = None,
        present: bool = True,
        more: dict[str, str] | None = None,
    ) -> Path:
        """Build a wheel, add it to the index and return its path; ``present=False`` lists it and removes the file.

        ``more`` has the texts of further files by their path in site-packages.
        """
        info = f"{project}-{version}.dist-info"
        metadata = [f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}"]
        metadata += [f"Requires-Dist: {one}" for one in requires]
        metadata += [f"Requires-Python: {python}"] if python else []
        text = SOURCE.format(version=version) if source is None else source
        contents = {
            f"{project}/__init__.py": text,
            **(more or {}),
            f"{info}/METADATA": "\n".join(metadata) + "\n",
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
        }
        contents[f"{info}/RECORD"] = "".join(map(_record, contents.items())) + f"{info}/RECORD,,\n"
        wheel = self.files / f"{project}-{version}-{tag}.whl"
        wheel.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, body in contents.items():
                archive.writestr(name, body)
        self.links.setdefault(project, []).append((wheel.name, attributes))
        self._write(project)
        if not present:
            wheel.unlink()
        return wheel

    def add_sdist(self, project: str, version: str, backend: str) -> Path:
        """Build a source package with a build backend of its own, whose module has ``backend`` first, and add it."""
        name = f"{project}-{version}"
        contents = {
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n",
            "pyproject.toml": BUILD_SYSTEM,
            "backend.py": f"{backend}\nPROJECT, VERSION = {project!r}, {version!r}\n{BACKEND}",
        }
        sdist = self.files / f"{name}.tar.gz"
        sdist.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(sdist, "w:gz") as packed:
            for path, text in contents.items():
                entry = tarfile.TarInfo(f"{name}/{path}")
                entry.size = len(text.encode())
                packed.addfile(entry, io.BytesIO(text.encode()))
        self.links.setdefault(project, []).append((sdist.name, ""))
        self._write(project)
        return sdist

    def _write(self, project: str) -> None:
        page = self.root / "simple" / canonicalize_name(project) / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            f'<a href="../../files/{name.replace("+", "%2B")}" {attributes}>{html.escape(name)}</a><br/>'
            for name, attributes in self.links[project]
        ]
        page.write_text("<!DOCTYPE html>\n<html><body>\n" + "\n".join(lines) + "\n</body></html>\n", encoding="utf-8")


def _record(item: tuple[str, str]) -> str:
    name, body = item
    digest = base64.urlsafe_b64encode(hashlib.sha256(body.encode()).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(body)}\n"


def with_requirements(tree: WheelTree) -> WheelTree:
    """Add the packages that every environment gets beside torch."""
    for name, versions in (("numpy", ("1.26.4", "2.1.0")), ("setuptools", ("69.5.1", "80.9.0", "82.0.0"))):
        for version in versions:
            tree.add(name, version, source=f"__version__ = {version!r}\n")
    return tree

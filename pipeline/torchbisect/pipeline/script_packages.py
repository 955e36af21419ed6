"""The packages that a script imports: those that are missing are seen before anything is installed or run.

The scan never refuses a script that works: it reads the imports that every run of the script makes, and none at all
where the script may change what can be imported.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.build import Build, Channel
from torchbisect.core.python_text import parse_python
from torchbisect.core.repro import Repro
from torchbisect.core.requirement import requirement_name
from torchbisect.pipeline.options import AUTO, Options, is_test
from torchbisect.pipeline.provider import Notify
from torchbisect.probe.module_sources import siblings

# A script or a module of it that mentions one of these may find modules where nobody else does.
_CHANGES_IMPORTS = re.compile(
    r"\bsys\s*\.\s*(?:path|modules|meta_path|path_hooks)\b|\bfrom\s+sys\s+import\b|\b(?:importlib|__import__|__path__|"
    r"subprocess|runpy|pkgutil|zipimport)\b|\bos\s*\.\s*(?:system|exec|spawn)|\b(?:site|pip)\s*\.|"
    r"(?<![.\w])(?:exec|eval|globals)\s*\("
)
#: The top-level modules of an environment with torch and what torch requires, in any release, and of Python.
_THERE = frozenset(sys.stdlib_module_names) | {
    *("torch", "torchgen", "functorch", "caffe2", "triton", "pytorch_triton", "nvidia", "cuda", "intel"),
    *("numpy", "sympy", "isympy", "mpmath", "networkx", "jinja2", "markupsafe", "filelock", "fsspec"),
    *("typing_extensions", "setuptools", "pkg_resources", "_distutils_hack", "packaging", "cmake", "lit", "optree"),
    *("distutils", "imp", "asyncore", "asynchat", "smtpd", "telnetlib", "cgi", "crypt", "pipes"),
}
#: The package of each module that has another name than its package.
_PACKAGES = {
    "absl": "absl-py",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "pymupdf",
    "git": "gitpython",
    "google": "protobuf",
    "hydra": "hydra-core",
    "jwt": "pyjwt",
    "mpl_toolkits": "matplotlib",
    "open_clip": "open-clip-torch",
    "PIL": "pillow",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "umap": "umap-learn",
    "yaml": "pyyaml",
}
_QUERY = "import sys, importlib.util as u\nprint(*[n for n in sys.argv[1:] if u.find_spec(n) is None])"
_QUERY_SECONDS = 20


def package_of(module: str) -> str:
    """Return the package that holds a top-level module: ``pillow`` for ``PIL``."""
    return _PACKAGES.get(module, module.replace("_", "-"))


def outside_imports(repro: Repro) -> tuple[str, ...]:
    """Return the top-level modules that every run of a script imports, and that are neither torch's nor beside it."""
    modules = siblings(repro.source, repro.directory)
    if any(_CHANGES_IMPORTS.search(text) for text in (repro.source, *modules.values())):
        return ()
    names: list[str] = []
    for node in parse_python(repro.source).body:  # those in a try, an if or a function may never be reached
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.append(node.module)
    files = repro.files
    paths = (os.path.join(files.folder, path) for path in files.paths) if files is not None else ()
    folders = [folder for folder in (repro.directory, *paths) if folder and os.path.isdir(folder)]
    beside = {name.partition(".")[0] for folder in folders for name in os.listdir(folder)}
    tops = dict.fromkeys(name.partition(".")[0] for name in names)
    return tuple(name for name in tops if name not in _THERE and name not in beside)


def with_found_packages(options: Options, repro: Repro, notify: Notify) -> Options:
    """Return the options with the packages of the script's imports in the place of ``--with auto``."""
    if AUTO not in options.packages:
        return options
    named = [package for package in options.packages if package != AUTO]
    known = {requirement_name(package) for package in named}
    found = [package for package in map(package_of, outside_imports(repro)) if package not in known]
    notify(f"--with auto: {', '.join(found) or 'no package is needed'}")
    return replace(options, packages=(*named, *dict.fromkeys(found)))


def missing_modules(options: Options, interpreter: Interpreter, failing: Build, repro: Repro) -> Sequence[str]:
    """Return the modules that the script imports and that its run will not find, as far as that is certain."""
    if options.test is not None or options.image is not None or is_test(options.script):
        return ()
    modules = outside_imports(repro)
    if not modules or failing.channel is not Channel.INSTALLED:
        # The packages of --with bring others along.
        return () if options.packages else modules
    if options.sandbox == "docker":
        return ()
    try:
        command = [str(interpreter.path), "-c", _QUERY, *modules]
        done = subprocess.run(command, cwd=os.sep, capture_output=True, text=True, timeout=_QUERY_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return done.stdout.split()


def advice(options: Options, failing: Build, modules: Sequence[str]) -> str:
    """Return how to make modules available to a script."""
    packages = list(dict.fromkeys(map(package_of, modules)))
    added = " ".join(f"--with {package}" for package in packages)
    if failing.channel is not Channel.INSTALLED:
        return f"add {added} (or --with auto)"
    python = [] if options.python == sys.executable else [options.python, "-m"]
    install = shlex.join([*python, "pip", "install", *packages])
    searches = options.command in ("run", "bisect") and options.bisect
    elsewhere = f", and add {added} for other builds" if searches else ""
    return f"the installed torch is used, so type {install}{elsewhere}"

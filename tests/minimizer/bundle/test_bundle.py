"""A bundled script prints what the script prints with its modules beside it."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from torchbisect.minimizer.bundle.bundle import Module, bundled

Files = dict[str, str]


def lookup(files: Files, *, packages: bool = True):
    """The modules of these files, by their dotted names."""
    found = {}
    for path, text in files.items():
        parts = path.removesuffix(".py").split("/")
        package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if package else parts)
        found[name] = Module(name, text, package)
    return found.get


def printed(text: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "<bundled>", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def printed_beside(source: str, files: Files, folder: Path) -> str:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    command = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{source}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


CASES: dict[str, tuple[str, Files]] = {
    "names and other names": (
        "from a import f, K as L\nimport a as m\nprint(f(1), L, m.f(2), m.K)",
        {"a.py": "K = 5\ndef f(x): return x + K\n"},
    ),
    "two of one name": (
        "from a import f\nfrom b import f as g\ndef h(f): return f\nprint(f(), g(), h(3))",
        {"a.py": "def f(): return inner()\ndef inner(): return 1\n", "b.py": "def inner(): return 2\nf = inner\n"},
    ),
    "the script has that name": (
        "import a\ndef f(): return 'own'\nprint(f(), a.f(), a.g())",
        {"a.py": "def f(): return 'theirs'\ndef g():\n    f = 3\n    return f, h()\ndef h(): return f()\n"},
    ),
    "a local that hides a module": (
        "import a\ndef f(a): return a.x\nclass A: x = 4\nprint(f(A), a.x)",
        {"a.py": "x = 1\n"},
    ),
    "relative, through a package": (
        "from p import Block, depth\nimport p.parts.block\nprint(Block(2).n, depth, p.parts.block.Block is Block)",
        {
            "p/__init__.py": "from .parts import *\nfrom . import sizes\ndepth = sizes.DEPTH\n",
            "p/sizes.py": "DEPTH = 3\n",
            "p/parts/__init__.py": "from .block import Block\n",
            "p/parts/block.py": "from ..sizes import DEPTH\nclass Block:\n"
            "    def __init__(self, n): self.n = n * DEPTH\n",
        },
    ),
    "a module under another name, through a package": (
        "from p import block as b\nfrom p import *\nimport p as q\nprint(b.f(), block.f(), q.block.f(), p_is())\n"
        "import collections.abc\nprint(collections.abc.Mapping.__name__)",
        {
            "p/__init__.py": "from . import block\ndef p_is(): return block.f()\n",
            "p/block.py": "import os.path as path\nfrom os import path as other\n"
            "def f(): return path is other, path.basename('a/b')\n",
        },
    ),
    "imports inside of functions": (
        "from a import f\nprint(f(2))",
        {"a.py": "def f(x):\n    from b import g\n    return g(x)\n", "b.py": "def g(x): return x * 10\n"},
    ),
    "tables that are filled": (
        "from a import make\nprint(make('b'))",
        {
            "a.py": "TABLE = {}\ndef make(name): return TABLE[name]()\ndef b(): return 'b'\nTABLE['b'] = b\n"
            "TABLE.update(c=b)\n"
        },
    ),
    "globals that change": (
        "import a\na.count()\na.count()\nprint(a.total())",
        {"a.py": "n = 0\ndef count():\n    global n\n    n += 1\ndef total(): return n\n"},
    ),
    "a class that has a field of that name": (
        "from a import A\nfrom b import size\nprint(A.size, A().get(), size)",
        {"a.py": "size = 1\nclass A:\n    size = 2\n    def get(self): return size, self.size\n", "b.py": "size = 3\n"},
    ),
    "annotations that are never looked at": (
        "from a import f\nprint(f(1))",
        {
            "a.py": "from __future__ import annotations\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
            "    from nowhere import Thing\ndef f(x: Thing) -> Thing: return x\n"
        },
    ),
    "what others have is imported once": (
        "import math\nfrom a import area\nprint(area(1), math.pi)",
        {"a.py": "import math\nfrom math import pi as PI, floor\ndef area(r): return floor(PI * r * math.pi)\n"},
    ),
    "tried imports, decorators, defaults": (
        "from a import f\nprint(f())",
        {
            "a.py": "try:\n    import nosuch\nexcept ImportError:\n    nosuch = None\n"
            "def twice(g): return lambda: g() * 2\n"
            "STEP = 4\n@twice\ndef f(x=STEP): return x if nosuch is None else 0\n"
        },
    ),
    "a main that is not run": (
        "from a import f\nif __name__ == '__main__':\n    print(f())",
        {"a.py": "def f(): return 1\nif __name__ == '__main__':\n    print('no')\n"},
    ),
    "a module handed around": (
        "import math, a\nprint(getattr(a, 'f', None) is None, a.g())",
        {"a.py": "def g(): return 1\n"},
    ),
}  # fmt: skip
OBJECTS = {"a module handed around"}


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "needed"])
@pytest.mark.parametrize("name", [name for name in CASES if name not in OBJECTS])
def test_it_prints_the_same(name: str, whole: bool, tmp_path: Path) -> None:
    source, files = CASES[name]
    text = bundled(source, lookup(files), whole=whole)
    assert text is not None
    modules = {path.partition("/")[0].removesuffix(".py") for path in files}
    assert not re.search(rf"\b(?:import|from) (?:{'|'.join(modules)})\b", text), text
    assert printed(text) == printed_beside(source, files, tmp_path), text


def test_a_module_that_is_an_object_stays_an_import() -> None:
    source, files = CASES["a module handed around"]
    text = bundled(source, lookup(files), whole=False)
    assert text is not None
    assert "import a" in text


def test_only_what_is_needed_is_taken() -> None:
    files = {"a.py": "print('imported')\ndef f(): return 1\ndef unused(): return f()\n"}
    needed = bundled("from a import f\nprint(f())", lookup(files), whole=False)
    whole = bundled("from a import f\nprint(f())", lookup(files), whole=True)
    assert needed is not None
    assert whole is not None
    assert printed(needed) == "1\n"
    assert printed(whole) == "imported\n1\n"
    assert "unused" not in needed


@pytest.mark.parametrize(
    ("source", "files"),
    [
        ("import math\nprint(math.pi)", {}),
        ("import a\n", {"a.py": "def ("}),
        ("from a import *\n", {"a.py": "from ...b import c\n"}),
    ],
)
def test_what_can_not_be_bundled(source: str, files: Files) -> None:
    assert bundled(source, lookup(files), whole=True) is None


NAMES = ("f", "g", "h", "k")


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, Files]:
    """Modules that use each other's few names in every way, and a script that prints what they come to."""
    count = draw(st.integers(1, 4))
    files: Files = {}
    offered: list[list[str]] = []
    for number in range(count + 1):
        script = number == count
        lines: list[str] = []
        callable_names: list[str] = []
        for other in range(number):
            style = draw(st.sampled_from(["from", "as", "module", "none", "star"]))
            name = draw(st.sampled_from(offered[other]))
            if style == "from" and name not in callable_names:
                lines.append(f"from m{other} import {name}")
                callable_names.append(name)
            elif style == "as":
                lines.append(f"from m{other} import {name} as {name}{other}")
                callable_names.append(f"{name}{other}")
            elif style == "module":
                lines.append(f"import m{other}")
                callable_names.append(f"m{other}.{name}")
            elif style == "star" and not set(offered[other]) & set(callable_names):
                lines.append(f"from m{other} import *")
                callable_names += offered[other]
        own = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
        own = [name for name in own if name not in callable_names] or [f"only{number}"]
        for name in own:
            parameter = draw(st.sampled_from([*NAMES, "x"]))
            inner = draw(st.sampled_from([called for called in callable_names if called != parameter] or [""]))
            value = f"{inner}(1)" if inner and not inner.startswith(f"{parameter}.") else "0"
            lines.append(f"def {name}({parameter}=2): return [{number}, {name!r}, {parameter}, {value}]")
            callable_names.append(name)
        if script:
            lines += [f"print({name}())" for name in callable_names]
        else:
            files[f"m{number}.py"] = "\n".join(lines) + "\n"
            offered.append(sorted({name for name in callable_names if "." not in name}))
    return "\n".join(lines), files


@settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(programs(), st.booleans())
def test_any_program_prints_the_same(program: tuple[str, Files], whole: bool) -> None:
    source, files = program
    text = bundled(source, lookup(files), whole=whole)
    modules = {path.removesuffix(".py"): body for path, body in files.items()}
    loader = f"""
import sys, types
texts = {modules!r}
for name, body in texts.items():
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(body, module.__dict__)
"""
    before = dict(sys.modules)
    try:
        expected = printed(loader + source)
    finally:
        for name in sys.modules.keys() - before.keys():
            del sys.modules[name]
    if text is None:
        assert "import" not in source
    else:
        assert printed(text) == expected, text


@pytest.mark.slow
def test_it_does_not_depend_on_hash_order() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_bundle as t\n"
        "print(*(t.bundled(s, t.lookup(f), whole=w) for s, f in t.CASES.values() for w in (True, False)))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parent)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(3)
    }
    assert len(texts) == 1

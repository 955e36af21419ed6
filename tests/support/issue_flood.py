"""Two hundred issues with the expected result of each: recorded forms, with small scripts of our own.

Most have no script. Of the scripts, most have no mismatch and some fail without ``torch.compile`` too. The rest show a
few bugs, each in several variants.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BODIES = Path(__file__).parents[1] / "triage" / "issues" / "issue_bodies"
COUNT = 200

BodyForm = Callable[[str, int], str]


@dataclass(frozen=True)
class RecordedIssue:
    """An issue and its expected result.

    Attributes:
        data: the issue in the form of GitHub's API.
        state: its final state.
        bug: the name of its bug, the same for duplicates; empty for none.
    """

    data: dict[str, Any]
    state: str
    bug: str = ""

    @property
    def name(self) -> str:
        """The name of the issue in the database."""
        return f"someone/project#{self.data['number']}"


def flood() -> list[RecordedIssue]:
    """Return all issues, with the kinds mixed, in the same order in every run."""
    kinds = [list(_with_bugs()), list(_agreeing()), list(_failing_in_eager())]
    runnable = [one for row in itertools.zip_longest(*kinds) for one in row if one is not None]
    without_script = list(itertools.islice(_without_script(), COUNT - len(runnable)))
    # Issues with a script are spread evenly among those without.
    step = len(without_script) / len(runnable)
    order = sorted(
        [(number * step, *one) for number, one in enumerate(runnable)]
        + [(number + 0.5, *one) for number, one in enumerate(without_script)],
        key=lambda entry: entry[0],
    )
    return [
        RecordedIssue(_issue(number, title, body), state, bug)
        for number, (_, title, body, state, bug) in enumerate(order, 1001)
    ]


def as_lines(issues: list[RecordedIssue]) -> str:
    """Return the issues as JSON lines."""
    return "".join(json.dumps(one.data) + "\n" for one in issues)


def _issue(number: int, title: str, body: str) -> dict[str, Any]:
    url = f"https://github.com/someone/project/issues/{number}"
    return {"number": number, "title": title, "body": body, "html_url": url, "user": {"login": f"user{number}"}}


# Forms of bodies, with and without GitHub's issue form.


def _form(script: str, number: int) -> str:
    return (
        f"### 🐛 Describe the bug\n\nSince we upgraded, job {number} gives something else. To reproduce:\n\n"
        f"```python\n{script}```\n\n### Error logs\n\n```\nW0312 10:00:00.000000 91 torch/_dynamo: x\n```\n\n"
        "### Versions\n\nPyTorch version: 2.13.0+cpu\nPython version: 3.11.7 (main)\n"
    )


def _folded(script: str, number: int) -> str:
    return f"Run {number} fails.\n\n<details><summary>repro</summary>\n\n```py\n{script}```\n\n</details>\n"


def _unmarked(script: str, number: int) -> str:
    return f"Number {number}. The following script\n\n```\n{script}```\n\ngives another result than eager.\n"


def _indented(script: str, number: int) -> str:
    lines = "".join(f"    {line}\n" if line else "\n" for line in script.split("\n"))
    return f"Minimal example ({number}):\n\n{lines}\nThanks!\n"


_FORMS: tuple[BodyForm, ...] = (_form, _folded, _unmarked, _indented)

# Scripts. With the ``eager`` backend each takes a fraction of a second.

_AROUND = (
    "x = torch.ones({n})\n",
    "torch.manual_seed({n})\nx = torch.randn({n})\nscale = 0.5\n",
    "def helper(values):\n    return sorted(values)\n\n\nhelper([3, 1])\nx = torch.arange({n}, dtype=torch.float32)\n",
)


def _script(function: str, number: int, compile_options: str = 'backend="eager"') -> str:
    around = _AROUND[number % len(_AROUND)].format(n=number % 5 + 2)
    return f"import torch\n\n\n{function}\n\n{around}out = torch.compile(f, {compile_options})(x)\nprint(out.shape)\n"


_BUGS = {
    # A bug of torch up to 2.14: a compiled deque with maxlen=0 keeps an appended item.
    "deque": (
        "import collections\n\n\ndef f(x):\n    kept = collections.deque([1.0, 2.0], maxlen=0)\n"
        "    kept.append(0.5)\n    return x.sin() * len(kept)\n",
        4,
    ),
    # Code that behaves differently under compilation, as in some libraries.
    "scaled": ("def f(x):\n    y = x.cos()\n    return y * 2 if torch.compiler.is_compiling() else y\n", 3),
    "rounded": ("def f(x):\n    y = x.floor()\n    return y.exp() if torch.compiler.is_compiling() else y\n", 2),
    "refused": (
        "def f(x):\n    torch._dynamo.graph_break()\n    return x.tanh()\n",
        2,
    ),
    "aborted": (
        "import os\n\n\ndef backend(graph, inputs):\n    os.abort()\n\n\ndef f(x):\n    return x.abs()\n",
        2,
    ),
    "doubled": (
        "def backend(graph, inputs):\n    return lambda *values: [2 * value for value in graph(*values)]\n\n\n"
        "def f(x):\n    return x.sigmoid()\n",
        2,
    ),
    "detached": ("def f(x):\n    return x.detach() if torch.compiler.is_compiling() else x * 3\n", 1),
}


def _with_bugs() -> Iterator[tuple[str, str, str, str]]:
    for bug, (function, times) in _BUGS.items():
        compile_options = "backend=backend" if "def backend" in function else 'backend="eager"'
        compile_options += ", fullgraph=True" if "graph_break" in function else ""
        for number in range(times):
            script = _script(function, number, compile_options)
            yield f"wrong result, variant {number} of {bug}", _FORMS[number % 4](script, number), "mismatch", bug


def _agreeing() -> Iterator[tuple[str, str, str, str]]:
    methods = ("sin", "cos", "exp", "tanh", "abs", "neg", "square")
    for number in range(28):
        first, second = methods[number % 7], methods[(number * 3 + 1) % 7]
        function = f"def f(x):\n    y = x.{first}()\n    return y.{second}() + {number}\n"
        script = _script(function, number, f'backend="{"aot_eager" if number % 4 == 0 else "eager"}"')
        yield f"slow or wrong {first}", _FORMS[number % 4](script, number), "none", ""


def _failing_in_eager() -> Iterator[tuple[str, str, str, str]]:
    for number in range(8):
        function = f"def f(x):\n    return x.reshape({number + 40}, -1) + 1\n"
        # An error of what is compiled is the same in both runs; one before it leaves nothing to compare.
        before, state = ("", "none") if number % 2 else ("torch.ones(2).reshape(3)\n", "untestable")
        script = _script(f"{before}{function}", number)
        yield "shape error under compile", _FORMS[number % 4](script, number), state, ""


def _without_script() -> Iterator[tuple[str, str, str, str]]:
    """Yield issues without a script: recorded bodies first, then very short ones."""
    for path in sorted(BODIES.glob("*.md")):
        first, _, body = path.read_text(encoding="utf-8").partition("\n")
        if '"missing"' in first:
            yield path.stem, body, "nothing-to-run", ""
    complete = _script("def f(x):\n    return x + 1\n", 1)
    for number in itertools.count():
        cut = complete.replace("return x + 1", "...  # the model")
        bodies = (
            f"torch.compile is {number % 7 + 2} times slower for us since the upgrade. Any idea?",
            f"### 🐛 Describe the bug\n\n_No response_\n\n### Versions\n\nPyTorch version: 2.{number % 14}.0\n",
            f'```\nTraceback (most recent call last):\n  File "train.py", line {number}, in <module>\n'
            "torch._dynamo.exc.Unsupported: builtin: any\n```\n",
            f"See https://colab.research.google.com/notebook{number}.ipynb for the code.",
            f"```python\nmodel = load_my_model({number})\nopt = torch.compile(model)\nopt(batch)\n```\n",
            f"```python\n{cut.replace('x = torch', f'y{number} = torch')}```\nmodel left out, it is {number} files",
            f"```bash\npip install torch\npython train.py --compile --seed {number}\n```\n",
            f"```python\nimport torch\nx = torch.ones({number % 5 + 1})\nprint(x + 1)\n```\nworks, compiled it doesn't",
        )
        yield f"torch.compile problem {number}", bodies[number % len(bodies)], "nothing-to-run", ""

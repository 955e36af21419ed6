"""Properties of every reduction and of every pass, over random programs and random oracles."""

from __future__ import annotations

import ast
import itertools
import json
import os
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from torchbisect.core.python_text import parse_python
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.interestingness import InterestingnessTest
from torchbisect.minimizer.minimize import SCHEDULE, Budget, minimize
from torchbisect.minimizer.search import MAX_GROWTH, ReductionSearch, sort_key
from torchbisect.minimizer.syntax.canonical_names import canonical_text
from torchbisect.minimizer.syntax.edits import Edit, apply, copied, tidy
from torchbisect.minimizer.syntax.tree import count_nodes, format_script, text_of

EXAMPLES = max(3, settings.default.max_examples // 13)
"""Number of examples of tests in which each example is a whole reduction."""

NAMES = ("alpha", "beta", "gamma", "delta", "omega")
_names = st.sampled_from(NAMES)
_atoms = st.one_of(
    _names, st.integers(0, 40).map(str), st.sampled_from(["'text'", "1.5", "None", "True", "f'{alpha}!'"])
)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda pair: f"({pair[0]} + {pair[1]})"),
        pairs.map(lambda pair: f"[{pair[0]}, {pair[1]}]"),
        pairs.map(lambda pair: f"({pair[0]}, {pair[1]})[0]"),
        pairs.map(lambda pair: f"{{'k': {pair[0]}, 'l': {pair[1]}}}"),
        pairs.map(lambda pair: f"({pair[0]} if {pair[1]} else 3)"),
        pairs.map(lambda pair: f"max({pair[0]}, key={pair[1]})"),
        st.tuples(_names, inner).map(lambda pair: f"[{pair[1]} for {pair[0]} in range(3) if {pair[0]}]"),
        st.tuples(_names, inner).map(lambda pair: f"(lambda {pair[0]}=1, *args: {pair[1]})"),
        st.tuples(_names, inner).map(lambda pair: f"({pair[0]} := {pair[1]})"),
        st.tuples(_names, inner).map(lambda pair: f"{pair[0]}.attribute[{pair[1]}:, ...]"),
        st.tuples(_names, inner).map(lambda pair: f"torch.compile({pair[0]}, backend='eager')({pair[1]})"),
    )


expressions = st.recursive(_atoms, _compound, max_leaves=4)


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))


def _class(part: tuple[str, str, str]) -> str:
    name, value, body = part
    method = f"    def forward(self, x):\n{_indented(body)}\n        return self.field"
    return f"class {name.title()}(Base):\n    field: int = {value}\n{method}"


def _match(part: tuple[str, str, str]) -> str:
    name, value, body = part
    return f"match {value}:\n    case [{name}, *_]:\n{_indented(body)}\n    case _:\n        pass"


def _blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=3).map(lambda parts: _indented("\n".join(parts)))
    one, two = st.tuples(expressions, body), st.tuples(body, body)
    named = st.tuples(_names, expressions, body)
    return st.one_of(
        one.map(lambda pair: f"if {pair[0]}:\n{pair[1]}\nelse:\n    pass"),
        one.map(lambda pair: f"while {pair[0]}:\n{pair[1]}\n    break"),
        two.map(lambda pair: f"try:\n{pair[0]}\nexcept ValueError as error:\n{pair[1]}\nfinally:\n    pass"),
        named.map(lambda part: f"for {part[0]}, rest in enumerate({part[1]}):\n{part[2]}\n    continue"),
        named.map(lambda part: f"with open({part[1]}) as {part[0]}:\n{part[2]}"),
        named.map(lambda part: f"@decorate\ndef {part[0]}(a, /, b: int = {part[1]}, *, c=3, **d):\n{part[2]}"),
        named.map(lambda part: f"def {part[0]}():\n    nonlocal_ = {part[1]}\n{part[2]}\n    return nonlocal_, 1"),
        named.map(lambda part: f"async def {part[0]}():\n    await {part[1]}\n{part[2]}"),
        named.map(_class),
        named.map(_match),
    )  # fmt: skip


_lines = st.one_of(
    st.tuples(_names, expressions).map(lambda pair: f"{pair[0]} = {pair[1]}"),
    st.tuples(_names, expressions).map(lambda pair: f"{pair[0]}: int = {pair[1]}"),
    st.tuples(_names, expressions).map(lambda pair: f"{pair[0]} += {pair[1]}"),
    st.tuples(_names, _names, expressions).map(lambda part: f"{part[0]}, {part[1]} = {part[2]}, 2"),
    expressions.map(lambda text: f"assert {text}, 'message'"),
    expressions.map(lambda text: f"print({text})"),
    _names.map(lambda name: f"del {name}"),
    st.sampled_from(
        ["import torch", "import torch.nn as nn, os", "from torch.nn import functional as F", "global_ = 0"]
    ),
)
statements = st.recursive(_lines, _blocks, max_leaves=4)


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "program", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


programs = (
    st.lists(statements, min_size=1, max_size=4).map("\n".join).filter(lambda text: len(text) < 500).filter(_parses)
)


def keeps(words: frozenset[str]) -> Callable[[str], bool]:
    """Return an oracle that answers yes while every one of these names is in the text."""

    def oracle(text: str) -> bool:
        there = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        return words <= there

    return oracle


def by_chance(salt: int, share: int) -> Callable[[str], bool]:
    """Return an oracle that says yes to about one text in ``share``, always to the same ones."""
    return lambda text: zlib.crc32(f"{salt}:{ast.dump(ast.parse(text))}".encode()) % share == 0


oracles = st.one_of(
    st.frozensets(st.sampled_from((*NAMES, "torch", "open")), max_size=3).map(keeps),
    st.tuples(st.integers(0, 99), st.integers(2, 5)).map(lambda pair: by_chance(*pair)),
)


def whatever_the_names(oracle: Callable[[str], bool]) -> Callable[[str], bool]:
    """Return an oracle that answers alike for texts that differ in names only, as a script and its compiler do."""
    return lambda text: oracle(canonical_text(text))


def verdict(same: bool) -> Verdict:
    """Return an oracle's answer as the probe gives it."""
    return Verdict(Answer.SAME if same else Answer.NONE)


class Asked:
    """Oracle that records its questions; it always says yes to the whole program."""

    def __init__(self, program: str, oracle: Callable[[str], bool]) -> None:
        self.whole = text_of(tidy(parse_python(program)))
        self.oracle = oracle
        self.texts: list[str] = []

    def __call__(self, text: str) -> Verdict:
        self.texts.append(text)
        return verdict(self.is_interesting(text))

    def is_interesting(self, text: str) -> bool:
        return text_of(parse_python(text)) == self.whole or self.oracle(text)


@settings(max_examples=EXAMPLES)
@given(programs, oracles)
def test_the_result_is_interesting_and_never_larger(program: str, oracle: Callable[[str], bool]) -> None:
    asked = Asked(program, oracle)
    best: list[str] = []
    result = minimize(program, asked, on_best=best.append, budget=Budget(questions=400))
    assert asked.is_interesting(result.source)
    assert result.nodes <= result.original_nodes
    assert result.source == format_script(parse_python(best[-1]))
    sizes = [sort_key(parse_python(text), text_of(parse_python(text))).nodes for text in best]
    assert all(later <= earlier + MAX_GROWTH for earlier, later in itertools.pairwise(sizes))


@settings(max_examples=EXAMPLES)
@given(programs, oracles)
def test_no_candidate_is_asked_twice_and_all_are_valid_python(program: str, oracle: Callable[[str], bool]) -> None:
    asked = Asked(program, oracle)
    minimize(program, asked, budget=Budget(questions=400))
    assert len(asked.texts) == len(set(asked.texts))
    assert all(_parses(text) for text in asked.texts)


_ONCE_IN_TWO_STEPS = """\
for delta, rest in enumerate((alpha if (alpha + alpha) else 3)):
    alpha = (lambda beta=1, *args: alpha)
    continue
if (lambda alpha=1, *args: alpha):
    async def alpha():
        await (lambda alpha=1, *args: (None if gamma else 3))
        gamma += delta
else:
    pass
"""


@pytest.mark.slow
@example(_ONCE_IN_TWO_STEPS, by_chance(8, 2))
@settings(max_examples=EXAMPLES)
@given(programs, oracles.map(whatever_the_names))
def test_a_second_reduction_changes_nothing(program: str, oracle: Callable[[str], bool]) -> None:
    first = minimize(program, Asked(program, oracle))
    second = minimize(first.source, Asked(first.source, oracle))
    assert second.source == first.source


@settings(max_examples=EXAMPLES)
@given(programs, oracles, st.integers(0, 30))
def test_the_budget_is_respected_and_the_best_candidate_kept(
    program: str, oracle: Callable[[str], bool], questions: int
) -> None:
    asked = Asked(program, oracle)
    result = minimize(program, asked, budget=Budget(questions=questions))
    assert result.asked <= questions
    assert asked.is_interesting(result.source)


@settings(max_examples=EXAMPLES)
@given(programs, oracles, st.integers(1, 12))
def test_an_exception_of_the_oracle_propagates_and_the_best_candidate_is_kept(
    program: str, oracle: Callable[[str], bool], last: int
) -> None:
    asked = Asked(program, oracle)
    best: list[str] = []

    def interrupted(text: str) -> Verdict:
        if len(asked.texts) >= last:
            raise KeyboardInterrupt
        return asked(text)

    try:
        minimize(program, interrupted, on_best=best.append)
    except KeyboardInterrupt:
        assert len(asked.texts) == last
    assert all(asked.is_interesting(text) for text in best)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(programs, oracles)
def test_a_replay_asks_the_same_questions_in_the_same_order(program: str, oracle: Callable[[str], bool]) -> None:
    one, other = Asked(program, oracle), Asked(program, oracle)
    minimize(program, one, budget=Budget(questions=200))
    minimize(program, other, budget=Budget(questions=200))
    assert one.texts == other.texts


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(programs, oracles)
def test_expected_candidates_come_next_and_reading_them_changes_nothing(
    program: str, oracle: Callable[[str], bool]
) -> None:
    plain, reading = Asked(program, oracle), Asked(program, oracle)
    expected: list[list[str]] = []

    def expect(texts: Iterable[str]) -> None:
        expected.append(list(itertools.islice(texts, 1)))

    first = minimize(program, plain, budget=Budget(questions=200))
    second = minimize(program, reading, budget=Budget(questions=200), expect=expect)
    assert (second.source, reading.texts) == (first.source, plain.texts)
    for text, then, following in zip(reading.texts, expected, reading.texts[1:], strict=False):
        if then and not reading.is_interesting(text):
            assert following == then[0]


_HASHED = """
import json, sys, zlib
from torchbisect.minimizer.minimize import Budget, minimize
from torchbisect.core.verdict import Answer, Verdict
program, asked = sys.stdin.read(), []
def ask(text):
    asked.append(text)
    return Verdict(Answer.SAME if len(asked) == 1 or zlib.crc32(text.encode()) % 3 == 0 else Answer.NONE)
minimize(program, ask, budget=Budget(questions=300))
json.dump(asked, sys.stdout)
"""

_PROGRAM = """
import torch, os
import torch.nn.functional as F
class Config:
    width: int = 4
    depth = 2
class Net(torch.nn.Module):
    def __init__(self, width, unused=None):
        super().__init__()
        self.lin = torch.nn.Linear(width, width)
    def forward(self, x, scale=2.0):
        return F.relu(self.lin(x)) * scale, x
def helper(model, x):
    for step in range(3):
        y, z = model(x)
    return y + 1
config = Config()
model = torch.compile(Net(config.width), backend="eager")
a, b = torch.randn(8, config.width), {"k": 1, "l": [2, 3]}
with torch.no_grad():
    print(helper(model, a), b["k"])
"""


@pytest.mark.slow
def test_the_questions_do_not_depend_on_hash_order() -> None:
    asked = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", _HASHED], input=_PROGRAM, capture_output=True, text=True, env=environment, check=True
        )
        asked.append(json.loads(done.stdout))
    assert asked[0] == asked[1]
    assert len(asked[0]) > 30


@pytest.mark.parametrize("name", list(SCHEDULE.passes))
def test_a_pass_ends_on_every_syntax_and_leaves_valid_python(name: str) -> None:
    run = SCHEDULE.passes[name]

    @settings(max_examples=EXAMPLES)
    @given(programs, oracles)
    def check(program: str, oracle: Callable[[str], bool]) -> None:
        asked = Asked(program, oracle)
        search = ReductionSearch(
            tidy(parse_python(program)), InterestingnessTest(asked, Budget(questions=300), lambda progress: None)
        )
        before = search.key
        run(search)
        assert search.key.nodes <= before.nodes + (name == "idioms.inputs") * 99
        assert asked.is_interesting(search.text)
        assert _parses(search.text)

    check()


@pytest.mark.slow
@settings(max_examples=3 * EXAMPLES)
@given(programs)
def test_a_copy_and_the_formatted_text_have_the_same_tree(program: str) -> None:
    tree = tidy(parse_python(program))
    assert ast.dump(copied(tree)) == ast.dump(tree) == ast.dump(apply(tree, []))
    assert ast.dump(parse_python(format_script(tree))) == ast.dump(parse_python(text_of(tree)))
    assert count_nodes(tree) == len(list(ast.walk(tree)))


@pytest.mark.parametrize("part", ["x", "1.5", "f'{x}'"])
def test_the_replacement_of_a_part_of_an_f_string_is_in_braces(part: str) -> None:
    tree = parse_python("keep(f'{kind.name}{number:>3}')")
    string = next(node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr))
    edited = apply(tree, [Edit.of(string.values[0], parse_python(part).body[0].value)])
    assert ast.dump(parse_python(text_of(edited))) == ast.dump(
        parse_python(f"keep(f'{{{part.replace(chr(39), chr(34))}}}{{number:>3}}')")
    )


def test_a_field_named_like_a_library_function_can_be_removed() -> None:
    """``torch.compile`` is not a use of a field ``compile``."""
    source = """\
import torch
from dataclasses import dataclass

@dataclass
class Config:
    compile: bool = True
    width: int = 4

@torch.compile(backend='eager')
def f(x):
    y = torch.zeros(1)
    y[:] = x
    assert y.requires_grad

config = Config()
if config.compile:
    f(torch.ones(1, requires_grad=True))
"""

    def ask(text: str) -> Verdict:
        """Say yes while the compiled function is called and its assertion is reached."""
        tree = ast.parse(text)
        called = any(isinstance(node, ast.Call) and ast.unparse(node.func) == "f" for node in ast.walk(tree))
        whole = all(part in text for part in ("@torch.compile(backend='eager')\ndef f(x", "[:] = x", "assert y.req"))
        return Verdict(Answer.SAME if called and whole and "import torch" in text else Answer.NONE)

    assert "Config" not in minimize(source, ask).source

"""Recognition of torch's names: every way to import them is followed, and no other name is taken for one."""

from __future__ import annotations

import ast
import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.minimizer.syntax.names import SHORT_NAMES, all_names, fresh_name, short_name
from torchbisect.minimizer.syntax.torch_names import TENSOR_CONSTRUCTORS, TorchNames

identifiers = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: not keyword.iskeyword(name) and name not in ("torch", "re", "regex", "builtins", "functools")
)
# Words of torch's own names, as parts of a user's names.
lookalikes = st.tuples(
    st.sampled_from(["", "re", "pre_", "is_"]),
    st.sampled_from(["compile", "script", "trace", "export", "optimize", "jit"]),
    st.sampled_from(["d", "r", "_it", "ion", "s"]),
).map("".join)
COMPILERS = ("torch.compile", "torch._dynamo.optimize", "torch.export.export", "torch.jit.script", "torch.jit.trace")


def imported(path: str, alias: str) -> list[tuple[str, str]]:
    """Every way to import a dotted path, each with the expression that then names it."""
    module, _, name = path.rpartition(".")
    parent, _, last = module.rpartition(".")
    ways = [
        (f"import {module}", path),
        (f"import {module} as {alias}", f"{alias}.{name}"),
        (f"from {module} import {name}", name),
        (f"from {module} import {name} as {alias}", alias),
    ]
    if parent:
        ways += [(f"from {parent} import {last}", f"{last}.{name}")]
        ways += [(f"from {parent} import {last} as {alias}", f"{alias}.{name}")]
    return ways


def named(text: str) -> ast.expr:
    """The tree of an expression."""
    return ast.parse(text, mode="eval").body


@given(st.sampled_from(COMPILERS), identifiers, st.integers(0, 5), st.booleans())
def test_a_compiler_is_recognized_by_every_import(path: str, alias: str, number: int, inside: bool) -> None:
    ways = imported(path, alias)
    statement, name = ways[number % len(ways)]
    script = f"def main():\n    {statement}\n    g = {name}(f)" if inside else f"{statement}\ng = {name}(f)"
    names = TorchNames.of(ast.parse(script))
    assert names.full_name(named(name)) == path
    assert names.is_compiler(named(name))
    assert names.is_compiler_related(named(name))
    assert names.mentions_compiler(ast.parse(script))
    assert names.is_compile(named(f"{name}(f)")) == names.names_compile(named(name)) == (path == "torch.compile")
    assert names.is_partial_compile(named(f"functools.partial({name}, x=1)")) is False
    with_partial = TorchNames.of(ast.parse(f"{statement}\nimport functools"))
    assert with_partial.is_partial_compile(named(f"functools.partial({name}, x=1)")) == (path == "torch.compile")


@given(identifiers, st.sampled_from(["", "()", "(backend='eager')", "(f, dynamic=True)"]), st.booleans())
def test_a_decorator_is_recognized_with_and_without_arguments(alias: str, arguments: str, direct: bool) -> None:
    statement = f"from torch import compile as {alias}" if direct else f"import torch as {alias}"
    name = alias if direct else f"{alias}.compile"
    tree = ast.parse(f"{statement}\n@{name}{arguments}\ndef f(x):\n    return x")
    decorator = tree.body[-1].decorator_list[0]
    assert TorchNames.of(tree).is_compile(decorator)
    assert TorchNames.of(tree).mentions_compile(decorator)


@given(identifiers)
def test_partial_of_compile_is_recognized_under_any_name(alias: str) -> None:
    tree = ast.parse(f"import torch\nfrom functools import partial as {alias}\ng = {alias}(torch.compile, mode='x')")
    names = TorchNames.of(tree)
    assert names.is_partial_compile(tree.body[-1].value)
    assert not names.is_compile(tree.body[-1].value)
    assert names.mentions_compiler(tree.body[-1].value)


@given(identifiers)
def test_the_method_of_a_module_is_recognized(name: str) -> None:
    call = named(f"{name}.compile(mode='default')")
    assert TorchNames.of(ast.parse("import torch")).is_compile(call)
    assert not TorchNames.of(ast.parse("class A:\n    def compile(self): ...")).is_compile(call)
    assert not TorchNames.of(ast.parse(f"import {name}")).is_compile(call)


@given(st.one_of(identifiers, lookalikes), st.one_of(identifiers, lookalikes))
def test_a_name_that_merely_sounds_alike_is_not_torchs(name: str, other: str) -> None:
    tree = ast.parse(f"import torch, helpers\n{name} = helpers.{other}\n{name}.{other} = {name}({other})")
    names = TorchNames.of(tree)
    mine = [node for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute))]
    assert not any(names.is_compiler(node) or names.is_compiler_related(node) for node in mine)
    assert not any(names.in_torch(node) for node in mine)


@pytest.mark.parametrize("text", ["re.compile('x')", "compile('x', 'y', 'exec')", "config.compile", "optimizer.step()"])
def test_other_things_called_compile_are_not_torchs(text: str) -> None:
    names = TorchNames.of(ast.parse(f"import re, torch\n{text}"))
    assert not names.mentions_compiler(named(text))
    assert not names.mentions_compile(named(text))


@given(st.sampled_from(sorted(TENSOR_CONSTRUCTORS)), identifiers, st.integers(0, 3))
def test_a_constructor_is_recognized_by_every_import(name: str, alias: str, number: int) -> None:
    statement, text = imported(f"torch.{name}", alias)[number]
    names = TorchNames.of(ast.parse(statement))
    assert names.constructor(named(text)) == name
    assert names.constructor(named(f"numpy.{name}")) is None
    assert names.constructor(named(f"torch.nn.{name}")) is None


@pytest.mark.torch
def test_the_constructors_are_torchs() -> None:
    torch = pytest.importorskip("torch")
    for name, constructor in TENSOR_CONSTRUCTORS.items():
        assert callable(getattr(torch, name))
        if constructor.takes_sizes:
            assert getattr(torch, name)(2, 3).shape == (2, 3)


@given(identifiers, st.sets(identifiers, max_size=6))
def test_a_fresh_name_clashes_with_none(name: str, taken: set[str]) -> None:
    taken |= {f"{name}{number}" for number in range(2, 5)}
    assert fresh_name(name, taken) not in taken
    assert fresh_name(name, set()) == name
    assert fresh_name(name, {*taken, name}) == f"{name}{next(n for n in range(2, 99) if f'{name}{n}' not in taken)}"


@given(st.sets(st.sampled_from([*SHORT_NAMES, "x2", "x3"])))
def test_a_short_name_is_a_letter_while_one_is_left(taken: set[str]) -> None:
    name = short_name(taken)
    assert name not in taken
    assert name in SHORT_NAMES or set(SHORT_NAMES) <= taken


def test_all_names_of_a_tree_but_for_one_definition() -> None:
    tree = ast.parse("import a.b as c\nfrom d import e\ndef f(g, *h, i=j):\n    k.l = m\nn(o=p)")
    assert all_names(tree) == {"a", "c", "e", "f", "g", "h", "i", "j", "k", "m", "n", "p"}
    assert all_names(tree, but=tree.body[2]) == {"a", "c", "e", "n", "p"}

"""Classes, modules and layers give way to functions and tensors."""

from __future__ import annotations

import pytest
from pass_runner import after

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.passes import flatten_classes
from torchbisect.minimizer.syntax.construction import with_constructors
from torchbisect.minimizer.syntax.tree import text_of


@pytest.mark.parametrize(
    ("step", "program", "words", "left"),
    [
        (
            "flatten_classes.classes",
            "class A:\n    class B:\n        class C:\n            n = 1\n        def f(self):\n"
            "            return self.C.n\n    def g(self):\n        return self.B().f()\nkeep(A().g(), A.B.C)",
            ["keep"],
            "class C:\n    n = 1\n\nclass B:\n\n    def f(self):\n        return C.n\n\n"
            "class A:\n\n    def g(self):\n        return B().f()\nkeep(A().g(), C)",
        ),
        (
            "flatten_classes.classes",
            "class A(M):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n"
            "    def one(self):\n        return 1\n    def two(self):\n        return 2\n"
            "class B(A):\n    def __init__(self, n):\n        super().__init__(n)\n        self.m = n\n"
            "    def two(self):\n        return 3\nkeep(B(1).two())",
            ["keep", "one(self)"],
            "class B(M):\n\n    def one(self):\n        return 1\n\n    def __init__(self, n):\n"
            "        super().__init__()\n        self.m = n\n\n    def two(self):\n        return 3\nkeep(B(1).two())",
        ),
        (
            "flatten_classes.classes",
            "class A(M):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n"
            "class B(A):\n    def __init__(self, m):\n        super().__init__(m)\n        self.m = 2\nkeep(B(1).n)",
            ["keep", "self.n = m"],
            "class B(M):\n\n    def __init__(self, m):\n        super().__init__()\n        self.n = m\n"
            "        self.m = 2\nkeep(B(1).n)",
        ),
        (
            "flatten_classes.classes",
            "class A:\n    n = 1\nclass B(A):\n    pass\nkeep(B().n)",
            ["keep"],
            "n = 1\nkeep(A().n)",
        ),
    ],
)
def test_classes_give_way(step: str, program: str, words: list[str], left: str) -> None:
    assert left in after(step, program, *words)


def test_a_module_becomes_a_function() -> None:
    program = """
class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = torch.ones(width)
        self.register_buffer("b", torch.zeros(width))
    def double(self, x):
        return x * 2
    def forward(self, x):
        return self.double(x) * self.w + self.b
model = Net(4)
keep(model(x))
"""
    text = after("flatten_classes.objects", program, "keep", "double")
    assert "class" not in text
    assert "self" not in text
    assert "def model(x):" in text
    assert "w = torch.ones(4)" in text
    assert "b = torch.zeros(4)" in text


def test_an_object_that_is_made_part_by_part_gets_a_constructor() -> None:
    program = """
class Inner(torch.nn.Module):
    def __init__(self, width):
        raise ValueError(width)
    def forward(self, x):
        return x * self.w
class Net(torch.nn.Module):
    def forward(self, x):
        return self.inner(x) + self.b * self.size
inner = Inner.__new__(Inner)
torch.nn.Module.__init__(inner)
w = torch.ones(4)
inner.register_parameter("w", torch.nn.Parameter(w))
net = Net.__new__(Net)
torch.nn.Module.__init__(net)
object.__setattr__(net, "size", 3)
net.register_buffer("b", torch.zeros(4))
net.add_module("inner", inner)
keep(net(x))
"""
    text = text_of(with_constructors(parse_python(program)))
    assert "__new__" not in text
    assert "super().__init__()\n        self.register_parameter('w', torch.nn.Parameter(w))" in text
    assert "raise" not in text
    text = after("flatten_classes.objects", program, "keep", "torch.nn.Parameter(", "inner(x)")
    assert "class" not in text
    assert "size = 3" in text
    assert "b = torch.zeros(4)" in text


def test_a_class_that_calls_its_methods_when_it_is_made_is_taken_apart() -> None:
    program = """
class Run:
    def __init__(self):
        def size():
            return 3
        self.size = size()
        self.step = self.build()
    def build(self):
        class Log:
            def __init__(self, size):
                self.size = size
            def keep(self):
                return self.size
        return lambda: Log(self.size).keep()
    def go(self):
        return self.step()
Run().go()
"""
    # As far as the class goes; the one inside is made in one place too, and would follow.
    text = text_of(next(flatten_classes.taken_apart(parse_python(program))))
    assert "class Run" not in text
    assert "self.size = size" in text
    ran: dict[str, object] = {}
    exec(text + "\nseen = go()", ran)
    assert ran["seen"] == 3


def test_a_method_that_returns_its_object_is_called_on_its_own() -> None:
    program = """
class Calibrator:
    def __init__(self, model):
        self.model = model
    def attach(self):
        keep(self.model)
        return self
found = Calibrator(net).attach()
last(found.model)
"""
    text = after("flatten_classes.objects", program, "keep", "last")
    assert text == "def attach():\n    keep(model)\nmodel = net\nattach()\nlast(model)"


def test_special_methods_of_an_object_that_is_taken_apart_are_called_by_name() -> None:
    program = (
        "class A:\n    def __init__(self, x):\n        self.x = x\n"
        "    def __getitem__(self, k):\n        return self.x[k]\n"
        "    def __len__(self):\n        return 2\n    def __contains__(self, k):\n        return k in self.x\n"
        "a = A(f())\nkeep(a['b'], len(a), 1 in a, len(b))\n"
    )
    (apart,) = flatten_classes.taken_apart(parse_python(program))
    assert text_of(apart).endswith("keep(__getitem__('b'), __len__(), __contains__(1), len(b))")


@pytest.mark.parametrize(
    ("program", "left"),
    [
        (
            "class A:\n    @torch.compile(backend='eager')\n    def f(self, x):\n        return x + self.n\n"
            "a = A()\nkeep(a.f(1))",
            "@torch.compile(backend='eager')\ndef f(x):\n    return x + n\nkeep(f(1))",
        ),
        (
            "class A:\n    n = 1\n    @cached_property\n    def f(self):\n        return self.g + 1\n"
            "    @property\n    def g(self):\n        return self.n\na = A()\nkeep(a.f)",
            "n = 1\n\ndef f():\n    return g() + 1\n\ndef g():\n    return n\nkeep(f())",
        ),
        (
            "class A:\n    n = 1\n    @staticmethod\n    def f(x):\n        return x\n    @classmethod\n"
            "    def g(cls, x):\n        return cls.f(x) + cls.n\na = A()\nkeep(a.g(2))",
            "def f(x):\n    return x\n\ndef g(x):\n    return f(x) + n\nn = 1\nkeep(g(2))",
        ),
    ],
)
def test_methods_with_decorators_become_functions(program: str, left: str) -> None:
    (apart,) = flatten_classes.taken_apart(parse_python(program))
    text = text_of(apart)
    assert all(line in text.splitlines() for line in left.splitlines()), text


def test_a_class_that_takes_no_arguments_stays_where_it_is_given_one() -> None:
    assert not list(flatten_classes.taken_apart(parse_python("class A(B):\n    pass\na = A(1)")))


def test_a_property_that_is_set_stays_one() -> None:
    getter = "    @property\n    def f(self):\n        return 1\n"
    setter = "    @f.setter\n    def f(self, x):\n        pass\n"
    assert not list(flatten_classes.taken_apart(parse_python(f"class A:\n{getter}{setter}a = A()")))


COUNTER = """
class Counter:
    def __init__(self):
        self.count = 0
        self.scale = 2
    def step(self, x):
        self.count += x
        return self.count * self.scale
"""
IN_A_FUNCTION = """
def run():
    counter = Counter()
    return [counter.step(2), counter.step(3), counter.count]
seen = run()
"""
ELSEWHERE = """
counter = Counter()
def add(x, scale=5):
    counter.count += x * scale
    counter.scale = 1
add(1)
seen = [counter.step(2), counter.step(3), counter.count]
"""


@pytest.mark.parametrize(
    ("uses", "declared"),
    [
        ("counter = Counter()\nseen = [counter.step(2), counter.step(3), counter.count]", "    global count\n"),
        (IN_A_FUNCTION, "        nonlocal count\n"),
    ],
    ids=["module", "function"],
)
def test_an_attribute_that_a_method_sets_is_declared(uses: str, declared: str) -> None:
    text = text_of(next(flatten_classes.taken_apart(parse_python(COUNTER + uses))))
    assert "class" not in text
    assert declared in text
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    exec(COUNTER + uses, before)
    exec(text, after)
    assert after["seen"] == before["seen"]


def test_an_attribute_that_has_the_name_of_a_parameter_where_it_is_set_stays_one() -> None:
    assert not list(flatten_classes.taken_apart(parse_python(COUNTER + ELSEWHERE)))


def test_a_value_that_is_read_of_the_class_becomes_a_name() -> None:
    program = "class A:\n    n = f()\n    def __init__(self):\n        self.m = [self.n]\na = A()\nkeep(a.m, A.n)"
    assert after("flatten_classes.objects", program, "keep", "[", "f()") == "n = f()\nm = [n]\nkeep(m, n)"


def test_a_method_that_is_read_of_the_class_needs_its_object() -> None:
    program = "class A:\n    def f(self):\n        return 1\na = A()\nkeep(A.f(a))"
    assert after("flatten_classes.objects", program, "keep", "return 1").startswith("class A:")


def test_an_object_that_is_made_in_a_condition_is_taken_apart() -> None:
    program = """
class Model(nn.Module):
    def predict(self):
        return keep(1)
if torch.compile(Model().predict)().item():
    raise ValueError
"""
    text = after("flatten_classes.objects", program, "keep", "compile", "item", "raise")
    assert "class" not in text
    assert "if torch.compile(predict)().item():" in text

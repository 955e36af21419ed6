# torch: 2.8.0
from __future__ import annotations
import operator
from functools import reduce
from typing import Callable, Generic, NamedTuple, Protocol, TypeVar, Union
import torch
from torch import Tensor, nn

T = TypeVar("T")


class Leaf(NamedTuple):
    value: float


class Branch(NamedTuple):
    left: Tree
    right: Tree
    kind: str = "sum"


Tree = Union[Leaf, Branch]


class Algebra(Protocol[T]):
    def leaf(self, value: float) -> T: ...
    def join(self, kind: str, left: T, right: T) -> T: ...


class Depth:
    def leaf(self, value):
        return 1

    def join(self, kind, left, right):
        return 1 + max(left, right)


class Emit(nn.Module):
    ops: dict[str, Callable] = {"sum": operator.add, "mul": operator.mul}

    def __init__(self, width):
        super().__init__()
        self.embed = nn.Linear(1, width)
        self.names = []

    def leaf(self, value):
        return torch.tanh(self.embed(torch.tensor([value])))

    def join(self, kind, left, right):
        def combine(a, b):
            return self.ops[kind](a, b)

        scale = 1.0 / len(combine.__name__)
        return combine(left, right) * scale


def fold(tree, algebra):
    if isinstance(tree, Leaf):
        return algebra.leaf(tree.value)
    return algebra.join(tree.kind, fold(tree.left, algebra), fold(tree.right, algebra))


class Box(Generic[T]):
    def __init__(self, item: T) -> None:
        self.item = item

    def map(self, f):
        return Box(f(self.item))

    def __rshift__(self, f):
        return self.map(f)


def build(depth, seed=1):
    if depth == 0:
        return Leaf(seed / 7)
    return Branch(build(depth - 1, seed * 2), build(depth - 1, seed * 2 + 1), ("sum", "mul")[depth % 2])


def total(tree):
    stack, out = [tree], 0.0
    while stack:
        node = stack.pop()
        match node:
            case Leaf(value):
                out += value
            case Branch(left, right):
                stack += [left, right]
    return out


def main():
    torch.manual_seed(0)
    tree = build(2)
    emit = Emit(3)
    folded = torch.compile(lambda t: fold(t, emit), backend="eager")
    scores = [(Box(tree) >> folded).item for _ in range(2)]
    optimizer = torch.optim.Adam(emit.parameters(), 1e-2)
    loss = reduce(torch.add, scores).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(fold(tree, Depth()), round(total(tree), 3), float(loss))


if __name__ == "__main__":
    main()

"""What a call can reach: its arguments, objects and globals."""

from __future__ import annotations

import functools
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torchbisect.probe.agent.capture.reachable import call_inputs  # noqa: E402

journal: list[int] = []


class Writer:
    def write(self) -> None:
        journal.append(1)


class Renderer:
    def __init__(self) -> None:
        self.writer = Writer()

    def __call__(self, image: int) -> None:
        self.writer.write()


def draw(renderer: Renderer, image: int) -> None:
    renderer(image)


def reached(target: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    return dict(call_inputs(target, args, kwargs, is_own=lambda kind: kind.__module__ == __name__))


def test_a_callable_object_reaches_its_attributes_by_itself() -> None:
    renderer = Renderer()
    assert reached(renderer, 3) == {"argument image": 3, "self": renderer, "global journal": journal}


@pytest.mark.parametrize(
    "partial", [functools.partial(draw, image=3), functools.partial(functools.partial(draw), image=3)]
)
def test_a_partial_call_reaches_what_the_whole_call_does(partial: Any) -> None:
    renderer = Renderer()
    whole = {"argument renderer": renderer, "argument image": 3, "global journal": journal}
    assert reached(partial, renderer) == reached(draw, renderer, 3) == whole


def test_a_method_of_an_object_reaches_the_containers_that_it_names() -> None:
    assert reached(Writer().write)["global journal"] is journal
    assert reached(lambda writer: writer.write(), Writer())["global journal"] is journal


@pytest.mark.parametrize("content", [[0] * 100, [torch.zeros(100, 100)]])
def test_a_large_container_is_reached_only_by_what_names_it(
    content: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "journal", content)
    assert "global journal" in reached(Writer().write)
    assert "global journal" not in reached(lambda writer: writer, Writer())

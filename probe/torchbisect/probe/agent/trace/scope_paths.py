"""Write a module or parameter as its path from a name in scope, such as ``self.model.body[0].weight``."""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterator, Optional, Tuple

import torch

from .value_source import Expression

MAX_ROOTS = 40


def path_expression(value: Any, frame: Any, without: Collection[str] = ()) -> Optional[Expression]:
    """Return the shortest path to a module or parameter from a name of the frame that is none of ``without``."""
    if not isinstance(value, (torch.nn.Module, torch.nn.Parameter)):
        return None
    found = [
        _joined(text, path)
        for text, root in _roots(frame, without)
        for path, part in _parts(root, value)
        if part is value and (path or "." in text)
    ]
    return Expression(min(found, key=len), True) if found else None


def _roots(frame: Any, without: Collection[str]) -> Iterator[Tuple[str, torch.nn.Module]]:
    """Yield the modules that names in scope, or attributes of what they name, stand for."""
    scopes: Tuple[Dict[str, Any], ...] = (frame.f_locals, frame.f_globals)
    names = [(name, held) for scope in scopes for name, held in list(scope.items()) if name not in without]
    for name, held in names[:MAX_ROOTS]:
        if isinstance(held, torch.nn.Module):
            yield name, held
        elif type(held).__module__ == "__main__":
            for attribute, part in list(getattr(held, "__dict__", {}).items()):
                if isinstance(part, torch.nn.Module) and attribute.isidentifier():
                    yield "{}.{}".format(name, attribute), part


def _parts(root: torch.nn.Module, value: Any) -> Iterator[Tuple[str, Any]]:
    yield from root.named_modules() if isinstance(value, torch.nn.Module) else root.named_parameters()


def _joined(root: str, path: str) -> str:
    for name in filter(None, path.split(".")):
        root += "[{}]".format(name) if name.isdigit() else ".{}".format(name)
    return root

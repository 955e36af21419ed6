"""Write a live module: by a constructor that is seen to make the same, else part by part."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch

from torchbisect.api.script.definitions import NotWritable, is_installed
from torchbisect.api.script.writer import ScriptWriter
from torchbisect.probe.agent.capture.snapshot import Snapshot

_HOOKS = {
    "_forward_hooks": "register_forward_hook",
    "_forward_pre_hooks": "register_forward_pre_hook",
    "_backward_hooks": "register_full_backward_hook",
    "_backward_pre_hooks": "register_full_backward_pre_hook",
}
_PARTS = ("_parameters", "_buffers", "_modules")
# Attributes of a module that torch.compile sets.
_OF_THE_COMPILER = ("_compiled_call_impl", "_is_torch_compile")


class ModelWriter(ScriptWriter):
    """Writer of the statements that make values, modules too."""

    def module(self, module: torch.nn.Module, name: str) -> str:
        """Write a module and return its name."""
        return write_module(self, module, name)


def write_module(writer: ScriptWriter, module: torch.nn.Module, name: str) -> str:
    """Write the statements that make a module, and return its name. Raises ``NotWritable`` if there are none."""
    plain = type(module).__name__.lower()
    name = writer.name_for(module, plain if name in ("value", "self", "owner") else name)
    writer.remember(name, module)
    made = _of_parts(writer, module) or _constructed(writer, module)
    if made is None:
        _write_parts(writer, module, name)
    else:
        writer.add(f"{name} = {made}")
        _write_state(writer, module, name)
    for path, part in module.named_modules():
        owner = f"{name}.get_submodule({path!r})" if path else name
        for held, register in _HOOKS.items():
            for hook in getattr(part, held, {}).values():
                writer.add(f"{owner}.{register}({writer.expression(hook, 'hook')})")
    return name


def _of_parts(writer: ScriptWriter, module: torch.nn.Module) -> str | None:
    """Return an expression for a container of numbered modules; ``None`` for any other module."""
    kind = type(module)
    if kind in (torch.nn.Sequential, torch.nn.ModuleList) and list(module._modules) == [
        str(number) for number in range(len(module._modules))
    ]:
        parts = [writer.expression(part, kind.__name__.lower()) for part in module.children()]
        inner = ", ".join(parts)
        return f"torch.nn.{kind.__name__}({inner if kind is torch.nn.Sequential else f'[{inner}]'})"
    return None


def _constructed(writer: ScriptWriter, module: torch.nn.Module) -> str | None:
    """Return the call of a constructor that makes a module like this one, tensors apart; ``None`` if none is known."""
    kind = type(module)
    if kind.__module__.startswith("torch.nn.") and not module._modules:
        text = f"torch.nn.{module!r}"
        return text if _makes(lambda: eval(text, {"torch": torch}), module) else None
    if is_installed(kind):
        return None
    try:
        parameters = list(inspect.signature(kind).parameters.values())
    except (TypeError, ValueError):
        return None
    given = {}
    for parameter in parameters:
        if hasattr(module, parameter.name):
            given[parameter.name] = getattr(module, parameter.name)
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            return None
    if any(isinstance(item, torch.nn.Module | torch.Tensor) for item in given.values()):
        return None
    if not _makes(lambda: kind(**given), module):
        return None
    words = [f"{key}={writer.expression(value, key)}" for key, value in given.items()]
    return f"{writer.expression(kind)}({', '.join(words)})"


def _makes(construct: Any, module: torch.nn.Module) -> bool:
    """Return True if a constructor makes a module of the same structure, attributes and shapes."""
    try:
        with torch.random.fork_rng(devices=[]):
            made = construct()
        return list(_structure(made)) == list(_structure(module))
    except Exception:
        return False


def _structure(module: torch.nn.Module) -> Iterator[Any]:
    yield [(path, type(part)) for path, part in module.named_modules()]
    yield [(path, item.shape) for path, item in module.state_dict().items()]
    snapshot = Snapshot(lambda _: True)
    for path, node in snapshot.node(module)[2]:
        yield (path, node if node[0] != "T" else "T") if path.rpartition(".")[2] != "training" else path


def _write_state(writer: ScriptWriter, module: torch.nn.Module, name: str) -> None:
    """Write what a constructor does not set: dtypes, values, modes. The parts of a container have written theirs."""
    if all(writer.is_written(part) for part in module.children()) and module._modules:
        return
    dtypes = {item.dtype for item in module.parameters() if item.is_floating_point()}
    if len(dtypes) == 1 and dtypes != {torch.get_default_dtype()}:
        writer.add(f"{name}.to({next(iter(dtypes))})")
    state = module.state_dict()
    if state:
        kept = writer.keep(name, {path: item.detach() for path, item in state.items()})
        writer.add(f"{name}.load_state_dict({kept})")
    if state and not any(item.requires_grad for item in module.parameters()):
        writer.add(f"{name}.requires_grad_(False)")
    else:
        for path, item in module.named_parameters():
            if not item.requires_grad:
                writer.add(f"{name}.get_parameter({path!r}).requires_grad_(False)")
    for path, item in module.named_parameters():
        if item.grad is not None:
            writer.add(f"{name}.get_parameter({path!r}).grad = {writer.expression(item.grad, 'grad')}")
    if not any(part.training for part in module.modules()):
        writer.add(f"{name}.eval()")
    elif not all(part.training for part in module.modules()):
        for path, part in module.named_modules():
            writer.add(f"{name}.get_submodule({path!r}).training = {part.training}")


def _write_parts(writer: ScriptWriter, module: torch.nn.Module, name: str) -> None:
    """Write a module without its constructor: an empty one, and then each of its parts and attributes."""
    if is_installed(type(module)) and not type(module).__module__.startswith("torch"):
        raise NotWritable(f"{name} is a {type(module).__module__}.{type(module).__qualname__}")
    owner = writer.expression(type(module))
    writer.add(f"{name} = {owner}.__new__({owner})")
    writer.add(f"torch.nn.Module.__init__({name})")
    fresh = torch.nn.Module().__dict__
    for attribute, value in module.__dict__.items():
        is_internal = attribute in fresh and attribute != "training"
        if not is_internal and attribute not in _OF_THE_COMPILER:
            writer.add(f"{name}.{attribute} = {writer.expression(value, attribute)}")
    for attribute, item in module._parameters.items():
        writer.add(f"{name}.register_parameter({attribute!r}, {writer.expression(item, attribute)})")
    for attribute, item in module._buffers.items():
        kept = "" if attribute not in module._non_persistent_buffers_set else ", persistent=False"
        writer.add(f"{name}.register_buffer({attribute!r}, {writer.expression(item, attribute)}{kept})")
    for attribute, part in module._modules.items():
        writer.add(f"{name}.add_module({attribute!r}, {writer.expression(part, attribute)})")

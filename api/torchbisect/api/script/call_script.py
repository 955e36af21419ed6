"""Write one call of a compiled callable as a script that makes the same call."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from torchbisect.api.script.compiler_flags import changed_flags
from torchbisect.api.script.modules import ModelWriter
from torchbisect.api.script.recorded_call import RecordedCall
from torchbisect.api.script.writer import ScriptWriter
from torchbisect.probe.agent.capture.reachable import call_inputs, tensors_in_value

STATE_FILE = "repro.pt"
SCRIPT_FILE = "repro.py"
_BACKWARD = """\
leaves = torch.utils._pytree.tree_flatten(output)[0]
sum(leaf.sum() for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad).backward()"""


@dataclass(frozen=True)
class CallScript:
    """A script, and the tensors of the file beside it, if it needs one."""

    source: str
    tensors: dict[str, Any]

    def save(self, folder: Path) -> Path:
        """Write the script and its file into a folder, which is made; return the script's path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / SCRIPT_FILE
        path.write_text(self.source, encoding="utf-8")
        if self.tensors:
            torch.save(self.tensors, folder / STATE_FILE)
        return path


def write_call(call: RecordedCall, *, seed: int = 0, backward: bool = False, title: str = "") -> CallScript:
    """Return a script that makes a call, with the state as it is now: before the call.

    Args:
        call: the call.
        seed: of the random generators, in the script.
        backward: run a backward from the sum of the outputs after it.
        title: one line about the script.

    Raises ``NotWritable`` if a value can't be written.
    """
    writer = ModelWriter("state")
    writer.expect(
        tensor
        for name, value in call_inputs(call.target, call.args, call.kwargs)
        for _, tensor in tensors_in_value(name, value)
    )
    target = writer.expression(call.target, "model")
    names = _argument_names(call)
    words = [_argument(writer, name, value) for name, value in zip(names, call.args)]
    words += [f"{key}={_argument(writer, key, value)}" for key, value in call.kwargs.items()]
    options = ", ".join(_options(writer, call.options))
    compiled = writer.name_for(call, "compiled")
    writer.add(f"{compiled} = torch.compile({target}{', ' + options if options else ''})")
    line = f"output = {compiled}({', '.join(words)})"
    for context in reversed(list(_contexts())):
        line = f"with {context}:\n" + "\n".join("    " + part for part in line.splitlines())
    writer.add(line + (f"\n{_BACKWARD}" if backward else ""))
    head, _, rest = writer.text.partition("\n\n")
    setup = [*changed_flags(), f"torch.manual_seed({seed})"]
    if writer.tensors:
        head += "\nimport pathlib"
        setup.append(f'state = torch.load(pathlib.Path(__file__).with_name("{STATE_FILE}"))')
    opening = [f'"""{title}"""', ""] if title else []
    return CallScript("\n".join([*opening, head, "", *setup, rest]), dict(writer.tensors))


def _argument(writer: ScriptWriter, name: str, value: Any) -> str:
    """Return the expression of an argument, bound to the parameter's name unless it is short."""
    text = writer.expression(value, name)
    if len(text) > 40 and not text.isidentifier():
        own = writer.name_for(value, name)
        writer.add(f"{own} = {text}")
        return own
    return text


def _argument_names(call: RecordedCall) -> list[str]:
    function = call.target.forward if isinstance(call.target, torch.nn.Module) else call.target
    with contextlib.suppress(TypeError, ValueError):
        found = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        return [*found, *(f"argument{number}" for number in range(len(found), len(call.args)))]
    return [f"argument{number}" for number in range(len(call.args))]


def _options(writer: ScriptWriter, options: dict[str, Any]) -> Iterator[str]:
    """Yield the options of ``torch.compile`` as they are written."""
    for name, value in options.items():
        shown = "fullgraph" if name == "nopython" else name
        if shown in ("backend", "mode", "dynamic", "fullgraph", "options") and value is not None:
            yield f"{shown}={writer.expression(value, shown)}"


def _contexts() -> Iterator[str]:
    if torch.is_inference_mode_enabled():
        yield "torch.inference_mode()"
    elif not torch.is_grad_enabled():
        yield "torch.no_grad()"
    if torch.is_autocast_enabled("cpu"):
        yield f'torch.autocast("cpu", {torch.get_autocast_dtype("cpu")})'

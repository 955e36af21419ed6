"""A trace in the place of a script: its graphs are written as scripts, and run until one shows a mismatch."""

from __future__ import annotations

from dataclasses import replace

from torchbisect.containers.store.disk import writable_directory
from torchbisect.core.command_line import say
from torchbisect.core.errors import InputError
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.traces.find import MOST_GRAPHS, Graph, find_graphs
from torchbisect.pipeline.traces.graph_inputs import NotInTrace
from torchbisect.pipeline.traces.graph_script import graph_script
from torchbisect.reports import files

#: The errors of reading a graph that is not as torch writes it.
_MALFORMED = (SyntaxError, ValueError, TypeError, LookupError, AttributeError, StopIteration, RecursionError)


def with_graphs(options: Options) -> tuple[Options, ...]:
    """Write the graphs of a trace as scripts, and return the options to run each; empty for what is no trace.

    The trace gives the torch if none was typed. Raises ``InputError`` if no graph of it can be written.
    """
    if options.script is None or options.module or str(options.script) == "-":
        return ()
    graphs = find_graphs(options.script, lambda text: say(text, "note: "))
    if not graphs:
        return ()
    texts = _scripts(graphs)
    if len(texts) > MOST_GRAPHS:
        say(f"{options.script} has {len(texts)} graphs; the first {MOST_GRAPHS} are tried", "note: ")
    folder = writable_directory(options.out, option="--out")
    torch = None if options.torch or options.bad else graphs[0].torch or None
    shared = replace(options, torch=options.torch or torch, nearest=options.nearest or torch is not None)
    made = []
    for number, text in enumerate(texts[:MOST_GRAPHS], 1):
        path = folder / ("repro.py" if number == 1 else f"repro-{number}.py")
        files.replace_text(path, text)
        made.append(replace(shared, script=path, workdir=options.out))
    return tuple(made)


def _scripts(graphs: list[Graph]) -> list[str]:
    texts, reason = [], ""
    for graph in graphs:
        try:
            texts.append(graph_script(graph))
        except NotInTrace as error:
            reason = f"{graph.name}: nothing in the trace says what {error} is"
            say(f"{reason}; the graph is left out", "note: ")
        except _MALFORMED as error:
            reason = f"{graph.name} is no graph as torch writes it ({type(error).__name__})"
            say(f"{reason}; it is left out", "note: ")
    if not texts:
        raise InputError(f"{reason}; record it again with TORCH_TRACE, or with real sizes")
    return texts

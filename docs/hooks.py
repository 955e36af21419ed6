"""Fill in the generated parts of the documentation: the options of each command and the graph of imports.

mkdocs calls ``on_page_markdown`` for each page as its guide says under hooks. A page asks for
a generated part with a line that holds ``<!-- options -->`` or ``<!-- import graph -->`` alone.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import click
import grimp

from torchbisect.cli.commands import main

PARTS = ("cli", "api", "triage", "pipeline", "reports", "minimizer", "bisect", "probe", "containers", "core")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page's text with its generated parts filled in."""
    if "<!-- options -->" in markdown:
        markdown = markdown.replace("<!-- options -->", options())
    if "<!-- import graph -->" in markdown:
        markdown = markdown.replace("<!-- import graph -->", import_graph())
    return markdown


def options() -> str:
    """Return the help of each command as Markdown."""
    context = click.Context(main, info_name="torchbisect", max_content_width=100)
    sections = []
    for name, command in main.commands.items():
        inner = click.Context(command, info_name=name, parent=context, max_content_width=100)
        sections.append(f"## torchbisect {name}\n\n```text\n{command.get_help(inner)}\n```\n")
    return "\n".join(sections)


def import_graph() -> str:
    """Return the imports between the packages of the source tree as a mermaid graph, with the number of imports."""
    graph = grimp.build_graph(*(f"torchbisect.{part}" for part in PARTS))
    edges: Counter[tuple[str, str]] = Counter()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            pair = package_of(importer), package_of(imported)
            edges[pair] += pair[0] != pair[1]
    lines = [f"    {one} -->|{count}| {other}" for (one, other), count in sorted(edges.items()) if count]
    return "\n".join(("```mermaid", "graph TD", *lines, "```"))


def package_of(module: str) -> str:
    """Return the part that a module belongs to: ``probe`` of ``torchbisect.probe.judge.signature``."""
    return module.split(".")[1]

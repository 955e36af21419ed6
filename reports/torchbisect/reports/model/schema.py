"""The JSON Schema of ``report.json``, made from the dataclasses and their docstrings.

``python -m torchbisect.reports.model.schema`` prints it. ``schema.json`` beside this file holds that output, for
programs that are not written in Python. A test compares the two.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
import typing
from pathlib import Path
from typing import Any

from torchbisect.reports.model.report import SCHEMA, Report

FILE = Path(__file__).with_name("schema.json")


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a whole report, draft 2020-12.

    Objects may have further keys: a newer version that only adds keys keeps the schema's number.
    """
    definitions: dict[str, Any] = {}
    _define(Report, definitions)
    root = definitions.pop("Report")
    root["properties"]["schema"] = {"const": SCHEMA, "description": root["properties"]["schema"]["description"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A report of torchbisect",
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def load() -> dict[str, Any]:
    """Return the schema in the package's own ``schema.json``."""
    data: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return data


def _define(kind: type, definitions: dict[str, Any]) -> None:
    definitions[kind.__name__], properties = {}, {}
    described, hints = described_fields(kind), typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        properties[field.name] = _type_schema(hints[field.name], definitions)
        if field.name in described:
            properties[field.name]["description"] = described[field.name]
    definitions[kind.__name__] = {
        "type": "object",
        "description": (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " "),
        "properties": properties,
        "required": list(properties),
    }


def _type_schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        name = typing.cast(type, hint).__name__
        if name not in definitions:
            _define(typing.cast(type, hint), definitions)
        return {"$ref": f"#/$defs/{name}"}
    if origin in (typing.Union, types.UnionType):
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        return {"anyOf": [_type_schema(inner, definitions), {"type": "null"}]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _type_schema(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type_schema(arguments[1], definitions)}
    if hint is Any:
        return {}
    if hint is float:
        return {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}
    return {"type": {str: "string", bool: "boolean", int: "integer"}[hint]}


def described_fields(kind: type) -> dict[str, str]:
    """Return the descriptions of a dataclass's fields, from the section ``Attributes:`` of its docstring."""
    documented = (inspect.getdoc(kind) or "").partition("Attributes:\n")[2]
    entries = re.split(r"^    (?=\w+: )", documented, flags=re.MULTILINE)[1:]
    pairs = (entry.split(": ", 1) for entry in entries)
    return {name: " ".join(text.split()) for name, text in pairs}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2, ensure_ascii=False))

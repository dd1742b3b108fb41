"""Tables of the keys of a pydantic model: type, default, meaning."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from pydantic import BaseModel

from fedlogit.component import ComponentRef
from fedlogit.frozen_config import FrozenConfig, model_in
from fedlogit.results.formatting import markdown
from scripts.docs_site.docstrings import about, attributes, subclasses

__all__ = ["fields_table", "in_cell", "model_page", "tables_of"]

_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_CALL = "call such as `name(key=value)`"


def model_page(title: str, intro: str, model: type[BaseModel]) -> str:
    """Return a page of a model, with a section for each model in it.

    Args:
        title: Of the page.
        intro: What stands before the first table.
        model: The outermost one.
    """
    return "\n\n".join([f"# {title}", intro, *tables_of(model, below=1)])


def tables_of(model: type[BaseModel], *, below: int) -> list[str]:
    """Return a model's table and a section for each model in it, which the table links to.

    Args:
        model: The outermost one.
        below: The level of the heading under which they stand; 1 is the page's title.
    """
    classes = subclasses(FrozenConfig)
    parts = [fields_table(model)]
    for name in model.model_json_schema(by_alias=True).get("$defs", {}):
        if name != ComponentRef.__name__:
            heading = f"{'#' * (below + 1)} {name}"
            parts += [heading, about(classes[name]), fields_table(classes[name])]
    return parts


def fields_table(model: type[BaseModel]) -> str:
    """Return a row per key: its type, its default and what it means; "" without keys."""
    schema = model.model_json_schema(by_alias=True)
    meaning = attributes(model)
    aliases = {field.alias or name: name for name, field in model.model_fields.items()}
    required = set(schema.get("required", ()))
    rows = [
        {
            "Key": f"`{key}`",
            "Type": in_cell(_type(part)),
            "Default": "required" if key in required else _default(part),
            "Meaning": in_cell(meaning.get(aliases[key]) or _of_the_type(model, aliases[key])),
        }
        for key, part in schema.get("properties", {}).items()
    ]
    return markdown(pd.DataFrame(rows)) if rows else ""


def _of_the_type(model: type[BaseModel], name: str) -> str:
    """Return what a field's own model says of itself, or ""."""
    inner = model_in(model.model_fields[name].annotation)
    return about(inner).partition("\n")[0] if inner else ""


def _default(part: Mapping[str, Any]) -> str:
    return f"`{json.dumps(part['default'])}`" if "default" in part else "empty"


def _type(part: Mapping[str, Any]) -> str:
    """Return a JSON schema's type in words."""
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        if name.startswith("_"):
            return "object, below"
        return _CALL if name == ComponentRef.__name__ else f"[{name}](#{name.lower()})"
    if "anyOf" in part:
        return " or ".join(dict.fromkeys(_type(one) for one in part["anyOf"]))
    if "enum" in part or "const" in part:
        values = part.get("enum", [part.get("const")])
        return ", ".join(f"`{json.dumps(value)}`" for value in values)
    kind = str(part.get("type", "anything"))
    if kind == "array":
        return f"list of {_type(part.get('items', {}))}"
    if kind == "object":
        inside = part.get("additionalProperties", True)
        return f"mapping to {_type(inside)}" if isinstance(inside, Mapping) else "mapping"
    return " ".join([kind, *_bounds(part)])


def _bounds(part: Mapping[str, Any]) -> Iterator[str]:
    found = [f"{sign} {part[key]:g}" for key, sign in _BOUNDS.items() if key in part]
    if found:
        yield " and ".join(found)
    if "pattern" in part:
        yield f"like `{part['pattern']}`"


def in_cell(text: str) -> str:
    """Return text that ends no cell of a table, and no HTML."""
    escaped = html.escape(text, quote=False).replace("|", "&#124;")
    pieces = escaped.split("`")  # odd ones are code, where entities are not read
    pieces[1::2] = [html.unescape(code).replace("|", r"\|") for code in pieces[1::2]]
    return "`".join(pieces)

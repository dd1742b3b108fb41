"""Reading what people write: YAML with fewer traps, and errors that name the file and the key."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from fedlogit.component import FrozenConfig, explain
from fedlogit.errors import DataError, FedlogitError, unknown

__all__ = ["check_keys", "load_yaml", "read_part"]

P = TypeVar("P", bound=FrozenConfig)


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, but ``1e-3`` is a number and a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping, refusing repeated keys, of which PyYAML would keep the last."""
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                line = node.start_mark.line + 1
                raise FedlogitError(f"key {key!r} is given twice in the mapping at line {line}")
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def load_yaml(path: Path) -> Any:
    """Read a YAML file as plain data.

    Raises:
        DataError: if it cannot be read.
        FedlogitError: if it is not YAML, or gives a key twice.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise FedlogitError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    except FedlogitError as error:
        raise FedlogitError(f"{path}: {error}") from None


def read_part(cls: type[P], data: Any, where: str) -> P:
    """Validate plain data as `cls`; an error names an unknown key, its place and the nearest one.

    Raises:
        FedlogitError: one line with `where`, the key, its value and what would be right.
    """
    try:
        return cls.model_validate_json(json.dumps(data))
    except (TypeError, ValueError) as error:
        if not isinstance(error, ValidationError):
            raise FedlogitError(f"{where}: not plain data ({error})") from None
        loc = error.errors()[0]["loc"]
        if error.errors()[0]["type"] == "extra_forbidden":
            inside = ".".join(str(part) for part in loc[:-1])
            place = f"{where}: {inside}" if inside else where
            raise FedlogitError(f"{place}: {unknown('key', loc[-1], _keys(cls, loc))}") from None
        raise explain(error, where) from None


def check_keys(cls: type[FrozenConfig], data: Any, where: str) -> None:
    """Check that every key of a partial tree of `cls` exists, before it is merged with others.

    Raises:
        FedlogitError: naming the place, the key and the nearest legal one.
    """
    if not isinstance(data, dict):
        return
    for key, value in data.items():
        if key not in cls.model_fields:
            raise FedlogitError(f"{where}: {unknown('key', key, cls.model_fields)}")
        inner = _model(cls.model_fields[key].annotation)
        if inner is not None:
            check_keys(inner, value, f"{where}.{key}")


def _keys(cls: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """Return the legal keys beside the one at `loc`."""
    model: type[BaseModel] = cls
    for part in loc[:-1]:
        field = next((f for n, f in model.model_fields.items() if part in (n, f.alias)), None)
        model = (_model(field.annotation) if field else None) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _model(annotation: Any) -> type[FrozenConfig] | None:
    """Return the `FrozenConfig` in an annotation: ``Public | None`` or ``dict[str, Table]``."""
    if isinstance(annotation, type) and issubclass(annotation, FrozenConfig):
        return annotation
    found = (_model(inner) for inner in get_args(annotation))
    return next((model for model in found if model is not None), None)

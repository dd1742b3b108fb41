"""Base of all that is read from files: frozen, strictly typed, and with errors of one line."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NoReturn, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fedlogit.errors import LONGEST_SHOWN, FedlogitError, MissingKeyError, unknown

__all__ = [
    "LARGEST",
    "MAX_PARALLEL",
    "FrozenConfig",
    "Name",
    "NonNegativeInt",
    "PositiveInt",
    "Seed",
    "Seeds",
    "explain",
    "model_in",
    "refuse_unused",
    "unknown_key",
]


def _each_once(seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Refuse no seed, and a seed that is named twice: its runs would be one."""
    if not seeds:
        raise ValueError("should have one entry at least")
    if len(set(seeds)) < len(seeds):
        raise ValueError("should name each seed once")
    return seeds


LARGEST = 2**31 - 1  # of what is counted: NumPy, PyTorch and tokenizers fail at more in many ways
MAX_PARALLEL = 1024
"""Threads of a run, or runs side by side, at most: more than any machine has cores."""
PositiveInt = Annotated[int, Field(gt=0, le=LARGEST)]
NonNegativeInt = Annotated[int, Field(ge=0, le=LARGEST)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
"""NumPy's legacy generator, with which some partitions are drawn, takes no larger one."""
Seeds = Annotated[tuple[Seed, ...], AfterValidator(_each_once)]
_NAME = r"^\w[\w.-]*$"
Name = Annotated[str, Field(pattern=_NAME)]  # part of a path and of a command


class FrozenConfig(BaseModel):
    """Base of everything that is read from a file: frozen, strictly typed, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    renamed: ClassVar[Mapping[str, str]] = {}
    """Keys of earlier versions, and what each is called now."""

    form: ClassVar[str] = "a mapping of keys to values"
    """What a value should be that is no mapping, for the message."""

    @classmethod
    def read(cls, data: Any, where: str) -> Self:
        """Validate plain data (as from YAML or JSON); `where` names it in errors.

        Raises:
            FedlogitError: naming the first offending key, its value and what would be right.
        """
        if inspect.isabstract(cls):
            lacking = ", ".join(sorted(cls.__abstractmethods__))
            raise FedlogitError(f"{where}: class {cls.__name__} does not define {lacking}")
        try:
            return cls.model_validate_json(json.dumps(data, default=_no_plain_value))
        except ValidationError as error:
            raise explain(error, where, cls) from None
        except (TypeError, ValueError, RecursionError) as error:
            raise FedlogitError(f"{where}: not plain data ({error})") from None


def refuse_unused(settings: FrozenConfig, keys: Iterable[str], why: str) -> None:
    """Refuse a value, other than the default, of a key that has no effect with the other settings.

    Raises:
        ValueError: naming the key, its value and the only one that is right.
    """
    for key in keys:
        value, default = getattr(settings, key), type(settings).model_fields[key].default
        if value != default:
            raise ValueError(f"{key} = {value!r} {why}; leave it out (or at {default!r})")


def explain(error: ValidationError, where: str, cls: type[BaseModel] = BaseModel) -> FedlogitError:
    """Turn the first pydantic error into one line; a missing key only if nothing else is wrong.

    Args:
        error: From validation.
        where: Names what was read.
        cls: What was to be read, whose keys are suggested for an unknown one.
    """
    first = min(error.errors(), key=lambda found: found["type"] == "missing")
    key = ".".join(str(part) for part in first["loc"])
    key = key if key.isprintable() else ascii(key)[1:-1]  # of a file from elsewhere
    if first["type"] == "extra_forbidden":
        *inside, last = first["loc"]
        place = ": ".join(filter(None, [where, ".".join(map(str, inside))]))
        return FedlogitError(f"{place}: {unknown_key(_model_at(cls, inside), str(last))}")
    if first["type"] == "missing":
        return MissingKeyError(f"{where}: key {key!r} is missing")
    given = first["input"]
    message = _message(first["type"], given, first.get("ctx", {}), _model_at(cls, first["loc"]))
    message = message or first["msg"].removeprefix("Value error, ")
    if not key:
        return FedlogitError(f"{where}{' is empty' if given is None else ''}: {message}")
    # Of a whole table the key says enough.
    value = f" = {given!r}" if len(repr(given)) <= LONGEST_SHOWN else ""
    return FedlogitError(f"{where}: {key}{value}: {message}")


def _no_plain_value(value: object) -> NoReturn:
    """Refuse a value that YAML has and JSON has not, such as a date without quotes."""
    raise TypeError(f"{value} is a {type(value).__name__}; put a text in quotes")


def _message(kind: str, given: Any, context: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Return what would be right where pydantic's words do not say it, else "".

    Args:
        kind: What pydantic calls the error.
        given: The value.
        context: What pydantic says about it.
        model: Of what lies at the place of the error.
    """
    if kind in ("dict_type", "model_type"):  # "an object", for pydantic
        form = model.form if kind == "model_type" and issubclass(model, FrozenConfig) else ""
        return f"should be {form or FrozenConfig.form}"
    if kind == "union_tag_not_found":
        return f"key {context['discriminator']} is missing"
    if kind == "union_tag_invalid":
        return f"{context['discriminator']} should be one of {context['expected_tags']}"
    if kind in ("list_type", "tuple_type"):  # "a valid array"
        return "should be a list, in brackets"
    if kind == "string_type" and isinstance(given, bool | int | float):
        return "should be a text; put it in quotes"
    if kind == "string_pattern_mismatch" and context.get("pattern") == _NAME:
        return "should be a name: letters, digits and _ . - alone, beginning with none of . -"
    return ""


def unknown_key(cls: type[BaseModel], key: str) -> str:
    """Say what a key that a class does not have is called now, or which one is like it."""
    renamed: Mapping[str, str] = getattr(cls, "renamed", {})
    if key in renamed:
        return f"key {key!r} is now {renamed[key]}"
    return str(unknown("key", key, [f.alias or n for n, f in cls.model_fields.items()]))


def model_in(annotation: Any) -> type[FrozenConfig] | None:
    """Return the `FrozenConfig` in an annotation: ``Public | None`` or ``dict[str, Table]``."""
    if isinstance(annotation, type) and issubclass(annotation, FrozenConfig):
        return annotation
    found = (model_in(inner) for inner in get_args(annotation))
    return next((model for model in found if model is not None), None)


def _model_at(cls: type[BaseModel], place: Sequence[int | str]) -> type[BaseModel]:
    """Return the class of what lies at a place within a `cls`."""
    model = cls
    for part in place:
        field = next((f for n, f in model.model_fields.items() if part in (n, f.alias)), None)
        model = (model_in(field.annotation) if field else None) or model
    return model

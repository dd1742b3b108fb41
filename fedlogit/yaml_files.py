"""Reading YAML that people write: stricter than PyYAML, with errors that name file and key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from fedlogit.errors import FedlogitError
from fedlogit.files import read_text
from fedlogit.frozen_config import FrozenConfig, model_in, unknown_key

__all__ = ["check_keys", "load_yaml"]

_DEEPEST = 100  # nested lists and mappings
_LARGEST = 1_000_000  # values, each as often as aliases repeat it
_DIGITS = 100  # of a number; Python does not print those of more than some thousand
_OCTAL_OR_BASE_60 = re.compile(r"[-+]?0[0-7_]+|.*:.*")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # without tabs and line ends


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's safe loader, but ``1e-3`` is a number and a key given twice is an error.

    So are numbers that mean another one: ``010`` would be 8, and ``1:30`` 90.

    It is the compiled one where there is one, which is several times as fast.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping, refusing repeated keys, of which PyYAML would keep the last."""
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # what PyYAML does not take as a key, either
            line = key.start_mark.line + 1
            if key.value in lines:
                first = lines[key.value]
                raise FedlogitError(
                    f"key {key.value!r} is given twice: at lines {first} and {line}"
                )
            lines[key.value] = line
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        """Build a number, refusing one that is not what most people take it for."""
        text, line = str(self.construct_scalar(node)), node.start_mark.line + 1
        if len(text) > _DIGITS:
            raise FedlogitError(
                f"the number at line {line} has {len(text)} digits; give at most {_DIGITS}"
            )
        whole = node.tag.endswith("int")
        number = self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)
        if _OCTAL_OR_BASE_60.fullmatch(text):
            raise FedlogitError(
                f"{text} at line {line} would be the number {number}; write that, or put a text in"
                " quotes"
            )
        return number

    def construct_scalar(self, node: yaml.ScalarNode) -> Any:
        r"""Refuse control characters, which only an escape can write, as ``"\e"`` does.

        A terminal that shows the text would obey them, and figures and pages have no sign for them.
        """
        value = super().construct_scalar(node)
        if isinstance(value, str) and _CONTROL.search(value):
            line = node.start_mark.line + 1
            raise FedlogitError(
                f"text {value[:100]!r} at line {line} should have no control characters"
            )
        return value


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_number)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def load_yaml(path: Path) -> Any:
    """Read a YAML file as plain data.

    Raises:
        DataError: if it cannot be read or is not UTF-8.
        FedlogitError: if it is not YAML, or gives a key twice.
    """
    text = read_text(path)
    try:
        _check_depth(text)
        data = yaml.load(text, Loader=_Loader)  # noqa: S506
        _check_size(data)
        return data
    except FedlogitError as error:
        raise FedlogitError(f"{path}: {error}") from None
    except RecursionError:
        raise FedlogitError(f"{path} is not valid YAML: it is nested too deeply") from None
    # Others are of what looks like a date and is none, such as 2001-99-99, or of tags.
    except (yaml.YAMLError, ValueError, KeyError, AttributeError, IndexError) as error:
        said = " ".join(str(error).replace('in "<unicode string>", ', "at ").split())
        raise FedlogitError(f"{path} is not valid YAML: {said}{_hint(said)}") from None


def _hint(said: str) -> str:
    """Return what mostly is wrong where PyYAML says this, or ""."""
    if "mapping values are not allowed" in said:
        return "; indent the keys of a mapping alike, and put a text with ': ' in quotes"
    if "could not find expected ':'" in said:
        return "; write 'key: value', with a space after the colon"
    if "cannot start any token" in said:
        return "; indent with spaces, not tabs, and put a text that begins with '@' in quotes"
    if "parsing a flow sequence" in said:
        return "; close the list, and put a call that has a comma or brackets in quotes"
    return ""


def _check_depth(text: str) -> None:
    """Refuse what is nested so deeply that the compiled loader would overrun its stack.

    Raises:
        RecursionError: if it is.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise RecursionError


def _check_size(data: Any) -> None:
    """Refuse aliases of aliases that stand for more than anybody writes.

    Raises:
        FedlogitError: if they do.
    """
    sizes: dict[int, int] = {}

    def size(value: Any) -> int:
        if not isinstance(value, dict | list):
            return 1
        if id(value) not in sizes:
            inner = value.values() if isinstance(value, dict) else value
            sizes[id(value)] = 1 + sum(map(size, inner))
        return sizes[id(value)]

    if size(data) > _LARGEST:
        raise FedlogitError(f"its aliases stand for more than {_LARGEST:,} values")


def check_keys(cls: type[FrozenConfig], data: Any, where: str) -> None:
    """Check that every key of a partial tree of `cls` exists, before it is merged with others.

    Raises:
        FedlogitError: naming the place, the key and the nearest legal one.
    """
    if not isinstance(data, dict):
        return
    for key, value in data.items():
        if key not in cls.model_fields:
            raise FedlogitError(f"{where}: {unknown_key(cls, key)}")
        inner = model_in(cls.model_fields[key].annotation)
        if inner is not None:
            check_keys(inner, value, f"{where}.{key}")

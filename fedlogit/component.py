"""Named components with typed parameters, written as calls: ``dir_client(0.05)``.

Partitions, methods and models are chosen by name in YAML. A `ComponentRef` is such a choice as
data; a `Component` is a frozen, validated set of parameters that knows what to do. A component is
found by its name: ``dir_client`` is the `Component` subclass of that name in the package's modules,
and ``my_package.my_module:MyClass`` is one from outside.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any, ClassVar, Self, TypeVar

from pydantic import PydanticUserError, model_validator

from fedlogit.errors import FedlogitError, did_you_mean, own_line, shown, unknown
from fedlogit.frozen_config import LARGEST, FrozenConfig
from fedlogit.stopping import raise_if_stopped

__all__ = [
    "A_CALL",
    "Component",
    "ComponentRef",
    "catalogue",
    "find",
    "import_object",
    "instantiate",
    "parse_call",
    "slug_of",
]


# Where a class's name is cut into words; DSFLMethod is dsfl_method.
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
A_CALL = "a name or a call, such as name or name(0.5)"

_DATA_FOLDERS = ("data", "dvc-remote", "results")  # folders of a project that hold what others made
_CALL = re.compile(r"^\s*([A-Za-z_][\w.:]*)\s*(\(.*\))?\s*$", re.DOTALL)


def _is_position(key: str) -> bool:
    """Return whether a parameter's key is its position among positional arguments (``"0"``, …)."""
    return re.fullmatch("0|[1-9][0-9]{0,8}", key) is not None


class ComponentRef(FrozenConfig):
    """A component chosen by name, with parameters: ``{"name": "dir_client", "params": {...}}``.

    Attributes:
        name: Of its class in snake case, or ``package.module:Class``.
        params: Parameters by name; those left out have their defaults.
    """

    form: ClassVar[str] = A_CALL

    name: str
    params: dict[str, Any] = {}  # noqa: RUF012 (pydantic copies it)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return parse_call(value) if isinstance(value, str) else value

    def resolved(self, component: Component) -> ComponentRef:
        """Return the call with every parameter of the component that it names, by name."""
        return ComponentRef(name=self.name, params=component.params())

    def __str__(self) -> str:
        given = (repr(v) if _is_position(k) else f"{k}={v!r}" for k, v in self.params.items())
        inside = ", ".join(given)
        return f"{self.name}({inside})" if inside else self.name


def parse_call(text: str) -> dict[str, Any]:
    """Parse ``name``, ``name(0.05)`` or ``name(alpha=0.05)`` into name, args and params.

    Positional arguments are returned under the keys ``"0"``, ``"1"``, …; `instantiate` gives them
    their names. Only literals are evaluated.

    Raises:
        FedlogitError: if the text is no call of literals, or gives a parameter twice.
    """
    name, params = _parsed(text)
    return {"name": name, "params": deepcopy(params) if params else {}}


@cache  # a plan of a thousand runs has the same few calls in each
def _parsed(text: str) -> tuple[str, dict[str, Any]]:
    match = _CALL.match(text)
    if not match:
        cut = text.count("(") != text.count(")")  # as by a list in YAML
        hint = "; put a call that has a comma in quotes" if cut else ""
        raise FedlogitError(f"{shown(text)} is not {A_CALL}{hint}")
    name, arguments = match.groups()
    if not arguments:
        return name, {}
    try:
        node = ast.parse(f"f{arguments}", mode="eval").body
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise ValueError
        if any(k.arg is None for k in node.keywords):  # as of `**more`
            raise ValueError
        given = [(str(i), ast.literal_eval(a)) for i, a in enumerate(node.args)]
        given += [(str(k.arg), ast.literal_eval(k.value)) for k in node.keywords]
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise FedlogitError(
            f"{shown(text)}: arguments must be literals, as in 'dir_client(0.05)' or"
            " \"uwa(fit='em')\""
        ) from None
    keys = [key for key, _ in given]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice:  # of which a dictionary would keep the last
        raise FedlogitError(f"{shown(text)}: {twice} is given twice; give it once")
    return name, dict(given)


class Component(FrozenConfig):
    """A named thing with validated parameters; subclasses set `name` where it differs.

    Integers among them are at most `LARGEST`.

    Attributes:
        name: How YAML calls it; by default the class name in snake case.
        added: Parameters that came after runs had been published. `params` leaves them out where
            they are at their default, which must therefore never change, so that those runs keep
            their hashes. A spec lacks them too, so a table with such a parameter in its rows has no
            value for the default. Those of base classes are added to a class's own.
    """

    name: ClassVar[str]
    added: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _refuse_hiding(cls)
        cls.added = frozenset().union(*(base.__dict__.get("added", ()) for base in cls.__mro__))
        if "name" not in cls.__dict__:
            cls.name = _WORDS.sub("_", cls.__name__).lower()

    @model_validator(mode="after")
    def _can_be_counted(self) -> Self:
        for key, value in self:
            if (most := _largest(value)) > LARGEST:
                raise ValueError(f"{key} = {most}: give at most {LARGEST:,}")
        return self

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if lacking := sorted(cls.added - cls.model_fields.keys()):
            raise TypeError(f"{cls.__name__}.added: {lacking[0]!r} is none of its parameters")

    @classmethod
    def from_call(cls, kind: str, package: str, call: ComponentRef | str) -> Self:
        """Return the component of this class that a call such as ``dir_client(0.05)`` means.

        Args:
            kind: What such components are called in messages.
            package: Whose modules they are in.
            call: Its name and parameters.

        Raises:
            FedlogitError: for an unknown name (with the nearest one) or a bad parameter.
        """
        call = ComponentRef.read(call, kind) if isinstance(call, str) else call
        return instantiate(kind, find(kind, package, cls, call.name), call)

    def params(self) -> dict[str, Any]:
        """Return all parameters, defaults included, less those `added`, as plain data."""
        data = self.model_dump(mode="json")
        return {k: v for k, v in data.items() if k not in self.added or not self._is_default(k, v)}

    def changed(self) -> dict[str, Any]:
        """Return the parameters that are required or not at their default, as plain data."""
        return {k: v for k, v in self.params().items() if not self._is_default(k, v)}

    def _is_default(self, key: str, value: Any) -> bool:
        field = type(self).model_fields[key]
        if field.is_required():
            return False
        default = field.get_default(call_default_factory=True)
        return bool(value == json.loads(json.dumps(default)))

    def slug(self) -> str:
        """Return a short folder name: the name and the parameters that are not defaults."""
        parts = [self.name, *(f"{k}{v}" for k, v in self.changed().items())]
        return _folder("-".join(parts))


def _refuse_hiding(cls: type[Component]) -> None:
    """Refuse what would hide an attribute of a base class without taking its place.

    Pydantic keeps a field, such as ``holdout: float = 0.2``, apart from the property of that name,
    which goes on to count; and a function is no property.

    Raises:
        TypeError: naming the attribute, and how it is written.
    """
    inherited = {
        key: value
        for base in reversed(cls.__mro__[1:])
        if issubclass(base, Component)
        for key, value in vars(base).items()
    }
    for key, annotation in inspect.get_annotations(cls).items():
        if key in inherited and "ClassVar" not in str(annotation):
            raise TypeError(
                f"{cls.__name__}.{key} is no parameter, as it is something else in a base class;"
                f" write {key}: ClassVar[…] = … for a constant, or a property that returns a"
                " parameter of another name"
            )
    for key, value in vars(cls).items():
        if isinstance(inherited.get(key), property) and inspect.isfunction(value):
            raise TypeError(f"{cls.__name__}.{key} is a property; write @property above it")


def _largest(value: Any) -> int:
    """Return the largest size of an integer in a parameter's value; 0 if there is none."""
    if isinstance(value, list | tuple):
        return max(map(_largest, value), default=0)
    return abs(value) if isinstance(value, int) else 0


C = TypeVar("C", bound=Component)


@cache
def catalogue(package: str, base: type[C]) -> dict[str, type[C]]:
    """Return every concrete subclass of `base` in `package`'s public modules, by name.

    Raises:
        FedlogitError: if one of them cannot be imported, or two have the same name.
    """
    root = importlib.import_module(package)
    found: dict[str, type[C]] = {}
    for info in pkgutil.iter_modules(root.__path__):
        if info.name.startswith("_"):
            continue
        try:
            module = importlib.import_module(f"{package}.{info.name}")
        except (Exception, SystemExit) as error:  # of a file that somebody has just put there
            raise_if_stopped()
            place = f"{package.replace('.', '/')}/{info.name}.py"
            raise FedlogitError(f"{place} cannot be imported: {_one_line(error)}") from error
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, base)
                and value is not base
                and value.__module__ == module.__name__
                and not inspect.isabstract(value)
            ):
                other = found.setdefault(value.name, value)
                if other is not value:  # a spec could mean either
                    raise FedlogitError(
                        f"{_place(other)} and {_place(value)} are both called {value.name!r};"
                        " rename one of them, or give it a name: ClassVar[str] = … of its own"
                    )
    return found


def _place(cls: type) -> str:
    return f"{cls.__module__}:{cls.__name__}"


def find(kind: str, package: str, base: type[C], name: str) -> type[C]:
    """Return the component class called `name`, or the one at ``module:Class``.

    Raises:
        FedlogitError: with the nearest known name.
    """
    if ":" in name:
        value = import_object(kind, name)
        if not (isinstance(value, type) and issubclass(value, base)):
            raise FedlogitError(f"{kind} {name!r} is not a {base.__name__}")
        return value
    known = catalogue(package, base)
    if name not in known:
        module, dot, attribute = name.rpartition(".")
        own = f"; a class of your own is called '{module}:{attribute}'" if dot else ""
        raise FedlogitError(f"{unknown(kind, name, known)}{own}")
    return known[name]


def import_object(kind: str, name: str, what: str = "Class") -> Any:
    """Import what lies at ``package.module:attribute``.

    Only a run that is about to train, and a paper's file, may name code; whatever reads results
    must not come here (see `slug_of`). Folders that hold what others made are never imported from.

    Raises:
        FedlogitError: if the name has another form, lies in such a folder, or cannot be imported.
    """
    module, _, attribute = name.partition(":")
    if module.endswith(".py"):
        raise FedlogitError(f"{kind} = {name!r}: should be {f'{module[:-3]}:{attribute}'!r}")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise FedlogitError(f"{kind} = {name!r}: should be 'package.module:{what}'")
    if module.partition(".")[0] in _DATA_FOLDERS:
        raise FedlogitError(
            f"{kind} {name!r} lies in the folder {module.partition('.')[0]!r}, which holds data;"
            " put code elsewhere"
        )
    try:
        imported = importlib.import_module(module)
        if hasattr(imported, attribute):
            return getattr(imported, attribute)
    except (Exception, SystemExit) as error:  # whatever a module that is not ours does
        raise_if_stopped()
        raise FedlogitError(f"{kind} {name!r} cannot be imported: {_one_line(error)}") from error
    raise FedlogitError(
        f"{kind} {name!r} cannot be imported: {module} has no {attribute!r}"
        f"{did_you_mean(attribute, vars(imported))}"
    )


def _one_line(error: Exception | SystemExit) -> str:
    """Return the error of an import in one line, with its type."""
    if isinstance(error, SystemExit):
        return (
            f"it calls sys.exit({error.code!r}) when it is imported; put what it does as a script"
            " below if __name__ == '__main__'"
        )
    said = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if isinstance(error, PydanticUserError):
        said = _untyped(error) or said
    place = own_line(error.__traceback__, skipped=__file__)
    return f"{said} ({place})" if place else said


def _untyped(error: PydanticUserError) -> str:
    """Say what a class's attribute without a type should be; "" of another error."""
    found = re.match("A non-annotated attribute was detected: `(((.+?) = )?.+?)`", str(error))
    if not found or error.code != "model-field-missing-annotation":
        return ""
    text, key = found[1], found[3] or found[1]
    return (
        f"{text!r} has no type; write {key}: int = … (or another type) for a parameter,"
        f" {key}: ClassVar[int] = … for a constant"
    )


def slug_of(call: ComponentRef, get: Callable[[ComponentRef], Component]) -> str:
    """Return the folder name of a call; of one from outside without importing it.

    Args:
        call: A resolved call.
        get: From a call to the component, for those of this package.
    """
    if ":" not in call.name:
        return get(call).slug()
    return _folder("-".join([call.name, *(f"{k}{v}" for k, v in call.params.items())]))


def _folder(text: str) -> str:
    return re.sub(r"[^\w.+-]+", "_", text)[:80].rstrip("_")


def instantiate(kind: str, cls: type[C], call: ComponentRef) -> C:
    """Build `cls` from a call; positional arguments name its required fields, then the others."""
    known = cls.model_fields
    fields = sorted(known, key=lambda field: not known[field].is_required())
    params: dict[str, Any] = {}
    for key, value in call.params.items():
        if _is_position(key):
            if int(key) >= len(fields):
                takes = ", ".join(fields) or "none"
                raise FedlogitError(f"{kind} {call.name}: too many arguments; it takes {takes}")
            key = fields[int(key)]
        if key in params:
            raise FedlogitError(f"{kind} {call.name}: {key} is given twice")
        params[key] = value
    return cls.read(params, f"{kind} {call.name}")

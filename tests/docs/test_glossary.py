"""Every identifier of docs/glossary.md exists in the code."""

from __future__ import annotations

import importlib
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from fedlogit.component import Component, catalogue
from fedlogit.frozen_config import model_in
from fedlogit.methods import Method
from fedlogit.papers import load_paper
from fedlogit.partition import Partition
from fedlogit.spec import RunSpec

PAGE = Path(__file__).parents[2] / "docs/glossary.md"
_CALL = re.compile(r"(\w+)\((\w+)=…\)")
_COLUMNS = ["symbol", "meaning", "section", "identifier"]


def rows() -> list[tuple[str, str, str]]:
    """Return section, symbol and identifier of every row that has one."""
    found, paper, head = [], "", False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            paper = line[3:]
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells:
            head = False
        elif cells == _COLUMNS:
            head = True
        elif head and not line.startswith("|-"):
            symbol, _, _, identifier = cells
            found.append((paper, symbol, identifier))
    return found


def components() -> dict[str, type[Component]]:
    """Return methods and partitions by name."""
    return {
        **catalogue("fedlogit.methods", Method),
        **catalogue("fedlogit.partition", Partition),
    }


def has(thing: Any, name: str) -> bool:
    """Return whether a class or module has a name, or declares a field of it."""
    if isinstance(thing, type) and is_dataclass(thing):
        return hasattr(thing, name) or name in {field.name for field in fields(thing)}
    if isinstance(thing, type) and issubclass(thing, BaseModel):
        return hasattr(thing, name) or name in thing.model_fields
    return hasattr(thing, name)


def in_library(path: str) -> bool:
    """Return whether a dotted path leads from a module to something in it."""
    parts = path.split(".")
    for end in range(len(parts), 1, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:-1]:
            thing = getattr(thing, name, None)
        return end < len(parts) and has(thing, parts[-1])
    return False


def in_spec(path: str) -> bool:
    """Return whether a run's spec has a key, such as ``local.epochs``."""
    model: type[BaseModel] | None = RunSpec
    for key in path.split("."):
        if model is None or key not in model.model_fields:
            return False
        model = model_in(model.model_fields[key].annotation)
    return True


def exists(identifier: str) -> bool:
    """Return whether the code has what a cell names."""
    if call := _CALL.fullmatch(identifier):
        component = components().get(call[1])
        return component is not None and call[2] in component.model_fields
    is_place = identifier.startswith("fedlogit.")
    return in_library(identifier) if is_place else in_spec(identifier)


def test_each_paper_has_a_table():
    papers = list(dict.fromkeys(paper for paper, _, _ in rows()))
    assert papers == ["Who to Trust?", "CELM", "FedOL", "TallyTrain"]
    assert len(rows()) > 70


@pytest.mark.parametrize(("paper", "symbol", "identifier"), rows())
def test_the_identifier_exists(paper, symbol, identifier):
    assert re.fullmatch(r"`[^`]+`", identifier), f"{paper}, {symbol}: {identifier}"
    assert exists(identifier.strip("`")), f"{paper}, {symbol}: {identifier}"


def test_every_method_of_the_comparison_is_there():
    methods = PAGE.read_text(encoding="utf-8").partition("\n## Methods\n")[2].partition("\n## ")[0]
    compared = load_paper("comparison", PAGE.parents[1] / "workflow/papers").methods
    assert compared.keys() - set(re.findall(r"`(\w+)`", methods)) == set()


@pytest.mark.parametrize(
    "identifier",
    [
        "celm(penalties=…)",
        "celmo(penalty=…)",
        "local.epoch",
        "rounds.every",
        "fedlogit.aggregation.votes.tallies",
        "fedlogit.aggregation.vote.tally",
        "fedlogit.aggregation.uwa.Mixture.mean",
        "fedlogit.aggregation.votes",
    ],
)
def test_what_the_code_lacks_is_noticed(identifier):
    assert not exists(identifier)

"""The reference, made from the models, registries and commands that it describes."""

from __future__ import annotations

import argparse
import importlib
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import get_args

import pandas as pd
from pydantic import BaseModel

from fedlogit import cli, commands
from fedlogit.component import Component, catalogue
from fedlogit.config import Settings
from fedlogit.data import DATASETS, Card
from fedlogit.methods import Method
from fedlogit.models import ModelConfig
from fedlogit.papers import Paper
from fedlogit.papers.claim_options import Comparison
from fedlogit.papers.options import ANALYSES, FIGURES
from fedlogit.partition import Partition
from fedlogit.results import analyses, figures
from fedlogit.results.formatting import markdown
from fedlogit.results.metrics import METRICS
from fedlogit.results.runs.result import Result
from fedlogit.results.verdicts.claim_tests import TESTS
from fedlogit.spec import RunSpec
from scripts.docs_site.docstrings import about, attributes, in_markdown
from scripts.docs_site.schema_tables import fields_table, in_cell, model_page, tables_of

__all__ = ["reference_pages"]

_LIBRARY = {
    "federation": ("Federation: clients, server and messages", ["fedlogit.federation"]),
    "methods": (
        "Base classes of methods",
        [
            "fedlogit.methods.base.Method",
            "fedlogit.methods.logit_federation.LogitFederation",
            "fedlogit.methods.model_federation.ModelFederation",
            "fedlogit.methods.one_shot.OneShot",
        ],
    ),
    "aggregation": (
        "Aggregation functions",
        ["fedlogit.aggregation.*"],
    ),
    "partition": (
        "Partitions: base class, splits and distances",
        ["fedlogit.partition.base", "fedlogit.partition.split", "fedlogit.partition.distances"],
    ),
    "randomness": ("Random numbers", ["fedlogit.rng"]),
    "results": (
        "Reading finished runs",
        [
            "fedlogit.results.runs.run",
            "fedlogit.results.collect",
            "fedlogit.results.verdicts.rules",
            "fedlogit.results.statistics.means",
        ],
    ),
}


def reference_pages() -> Iterator[tuple[str, str]]:
    """Yield each page: its place in the site and its Markdown."""
    yield (
        "reference/config.md",
        model_page(
            "Keys of `config.yaml`",
            "Every key can also be set for one call: `--config key=value`.",
            Settings,
        ),
    )
    yield (
        "reference/spec.md",
        model_page(
            "Fields of a run's spec",
            f"{about(RunSpec)} A paper's file gives them under `defaults`, `datasets`, `methods`"
            " and `scales`, nested or not; `spec.json` in a run's folder has them all. Fields at"
            " their default are left out of the hash, parameters of components never are. Where"
            " no meaning is given, an optimizer's keys mean the same as in `torch.optim`.",
            RunSpec,
        ),
    )
    yield (
        "reference/paper-file.md",
        model_page(
            "Keys of a paper's file",
            f"{about(Paper)} It lies in `workflow/papers/`.",
            Paper,
        ),
    )
    yield "reference/methods.md", _components("Methods", "fedlogit.methods", Method)
    yield "reference/partitions.md", _components("Partitions", "fedlogit.partition", Partition)
    yield "reference/models.md", _components("Models", "fedlogit.models", ModelConfig)
    yield "reference/datasets.md", _datasets()
    yield "reference/metrics.md", _metrics()
    yield "reference/figures.md", _figures()
    yield "reference/analyses.md", _analyses()
    yield "reference/claim-tests.md", _claim_tests()
    yield "reference/commands.md", _commands()
    yield "reference/result-file.md", _result_file()
    for name, (title, modules) in _LIBRARY.items():
        yield f"reference/library/{name}.md", _library(title, modules)


def _components(title: str, package: str, base: type[Component]) -> str:
    """Return a page with a section per component: what it is, its parameters, its file."""
    what = title.lower().removesuffix("s")
    parts = [
        f"# {title}",
        f"Each {what} is a class. In YAML, choose it by a call such as `name(key=value)`; for a"
        " class of your own, write `package.module:Class(key=value)`.",
    ]
    found = catalogue(package, base)
    for name, cls in sorted(found.items()):
        parts += [f"## `{name}`", about(cls), fields_table(cls) or "No parameters."]
        parts.append(f"[Source]({_source(cls)})")
    return "\n\n".join(parts)


def _source(thing: type | ModuleType) -> str:
    """Return where something is written, from the repository's root."""
    file = Path(inspect.getfile(thing))
    return file.relative_to(Path(cli.__file__).parents[1]).as_posix()


def _datasets() -> str:
    said = attributes(Card)
    rows = [
        {
            "Name": f"`{card.name}`",
            "": card.title,
            "Classes": str(card.classes or "–"),
            "Shape": " × ".join(map(str, card.shape)) or "–",
            "Train": f"{card.train:,}" if card.train else "–",
            "Test": f"{card.test:,}" if card.test else "–",
            "Licence": card.licence,
            "Note": in_cell(" ".join(filter(None, [_stands_for(card), card.note]))),
        }
        for card in DATASETS.values()
    ]
    return "\n\n".join(
        [
            "# Data sets",
            "These cards are in `fedlogit/data/cards.py`. Shape is height × width × channels; text"
            " data sets have none.",
            markdown(pd.DataFrame(rows)),
            "## Keys of a card",
            markdown(pd.DataFrame([{"Key": f"`{k}`", "": in_cell(v)} for k, v in said.items()])),
        ]
    )


def _stands_for(card: Card) -> str:
    return f"Offered in place of `{card.stands_for}`." if card.stands_for else ""


def _metrics() -> str:
    rows = [
        {
            "Name": f"`{metric.name}`",
            "What it is": in_cell(metric.label),
            "Unit": metric.unit or "–",
            "From": "computed" if metric.compute or metric.at_round else "column of `rounds.csv`",
        }
        for metric in METRICS.values()
    ]
    return "\n\n".join(
        [
            "# Metrics",
            "Values of `metric` in a paper's file. Besides these, any column of a run's"
            " `rounds.csv` is a metric, taken at the last round that has it; `name@10` is its value"
            " after round 10. A share lies between 0 and 1.",
            markdown(pd.DataFrame(rows)),
        ]
    )


def _figures() -> str:
    """Return a page with a section per kind of figure: what it shows, how it is drawn."""
    parts = ["# Kinds of figures", "Values of `plot` for a figure in a paper's file."]
    for name in figures.figure_names():
        module = importlib.import_module(f"{figures.__name__}.{name}")
        told = about(module), about(module.draw)
        parts += _kind(name, told, module, FIGURES.get(name))
    return "\n\n".join(parts)


def _analyses() -> str:
    """Return a page with a section per analysis: what its table says."""
    parts = ["# Analyses", "Values of `analysis` for a table in a paper's file."]
    for name in analyses.analysis_names():
        module = importlib.import_module(f"{analyses.__name__}.{name}")
        parts += _kind(name, (about(module),), module, ANALYSES.get(name))
    return "\n\n".join(parts)


def _kind(
    name: str, told: tuple[str, ...], module: ModuleType, options: type[BaseModel] | None
) -> list[str]:
    """Return the section of a kind of figure or analysis."""
    parts = [f"## `{name}`", *told, f"[Source]({_source(module)})"]
    if options and options.model_fields:
        parts += ["Its `options`:", *tables_of(options, below=2)]
    return parts


def _claim_tests() -> str:
    module = inspect.getmodule(TESTS["greater"])
    return "\n\n".join(
        [
            "# Tests of claims",
            about(module),
            f"Values of `test` for a claim: {', '.join(f'`{name}`' for name in TESTS)}."
            " Its `options`:",
            fields_table(Comparison),
            "When a claim holds: [the rule](docs/claims.md).",
        ]
    )


def _commands() -> str:
    """Return a page with a section per command: its help and its options."""
    parts = [
        "# Commands",
        f"`{cli.PROGRAM} COMMAND`. The folder and files that a run needs are given by options;"
        " `--help` prints the same.",
    ]
    for name in cli.command_names():
        module = importlib.import_module(f"{commands.__name__}.{name}")
        parser = argparse.ArgumentParser()
        module.add_arguments(parser)
        first, _, rest = in_markdown(inspect.cleandoc(module.__doc__ or "")).partition("\n")
        parts += [f"## `{name}`", first, rest.strip("\n"), _options(parser)]
    return "\n\n".join(filter(None, parts))


def _options(parser: argparse.ArgumentParser) -> str:
    rows = [
        {
            "Option": " ".join([f"`{call}`", "(required)" * action.required]).strip(),
            "Default": _default(action),
            "Meaning": in_cell((action.help or "").replace("%%", "%")),
        }
        for action, call in _calls(parser._actions)
    ]
    return markdown(pd.DataFrame(rows)) if rows else ""


def _calls(actions: Iterable[argparse.Action]) -> Iterator[tuple[argparse.Action, str]]:
    """Yield each argument with how it is typed, without ``--help``."""
    for action in actions:
        if action.dest == "help":
            continue
        takes = action.metavar or (
            "{" + ",".join(map(str, action.choices)) + "}"
            if action.choices
            else action.dest.upper()
        )
        if not action.option_strings:
            yield action, str(action.metavar or action.dest)
        elif action.nargs == 0:
            yield action, ", ".join(action.option_strings)
        else:
            yield action, f"{', '.join(action.option_strings)} {takes}"


def _default(action: argparse.Action) -> str:
    plain = action.default in (None, False, argparse.SUPPRESS) or action.nargs == 0
    if plain or action.dest == "workers":  # how many cores this machine has
        return "–"
    return f"`{action.default}`"


def _result_file() -> str:
    """Return a page on what of ``result.json`` tables and figures use."""
    parts = [
        "# Fields of `result.json`",
        "What tables and figures read of a run's result; the rest of the file is provenance"
        " (library versions, digests of data and split, command, peak memory)."
        " [What a run leaves behind](docs/run-folder.md) has the other files.",
        fields_table(Result),
    ]
    for field in Result.model_fields.values():
        model = next(filter(_is_model, [field.annotation, *get_args(field.annotation)]), None)
        if model:
            parts += [f"## {model.__name__}", about(model), fields_table(model)]
    return "\n\n".join(parts)


def _is_model(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _library(title: str, names: Iterable[str]) -> str:
    """Return a page of mkdocstrings: classes and modules with their docstrings."""
    parts = [f"# {title}"]
    for name in names:
        package, star, _ = name.partition(".*")
        found = [name]
        if star:
            folder = Path(str(importlib.import_module(package).__file__)).parent
            stems = sorted(path.stem for path in folder.glob("[!_]*.py"))
            found = [f"{package}.{stem}" for stem in stems]
        parts += [f"::: {one}" for one in found]
    return "\n\n".join(parts)

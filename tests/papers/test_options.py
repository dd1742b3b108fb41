"""Options of tables and figures are declared where papers are read, and checked there."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest
from papers.test_expansion import change, load, small
from support.refusals import refused

from fedlogit.papers.options import ANALYSES, FIGURES, NoOptions
from fedlogit.papers.schema import analysis_names, figure_names
from fedlogit.results import analyses, figures

KINDS = [(figures, name, FIGURES) for name in figure_names()]
KINDS += [(analyses, name, ANALYSES) for name in analysis_names()]


def test_every_kind_has_its_options_declared():
    assert sorted(FIGURES) == figure_names()
    assert sorted(ANALYSES) == analysis_names()


@pytest.mark.parametrize(("package", "name", "declared"), KINDS, ids=lambda value: str(value)[:40])
def test_declared_options_are_those_that_a_module_uses(package, name, declared):
    source = inspect.getsource(importlib.import_module(f"{package.__name__}.{name}"))
    assert "artefact.options" not in source
    read = set(re.findall(r"artefact\.read_options\((\w+)\)", source))
    assert read == {declared[name].__name__} - {NoOptions.__name__}


def test_a_kind_without_options_has_none():
    assert not NoOptions.model_fields


PUBLIC = {"dataset": ["digits"], "method": ["average"], "public.size": [50, 100]}


def figure(plot: str, **options: object) -> dict:
    return {"title": "F", "plot": plot, "from": "t", "options": options}


def table(analysis: str, **options: object) -> dict:
    return {"title": "T", "analysis": analysis, "from": "t", "options": options}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("tables/t/options", {"precent": True}, "tables.t.options: unknown key 'precent'; did you "
         "mean 'percent'"),
        ("tables/t/options", {"percent": "false"}, "tables.t.options: percent = 'false': Input "
         "should be a valid boolean"),
        ("tables/t/options", {"decimals": "two"}, "t.options: decimals = 'two': Input should be a "
         "valid integer"),
        ("tables/t/options", {"decimals": -1}, "t.options: decimals = -1: "),
        ("figures/f/options", {"shade_warmup": True}, "figures.f.options: unknown key "
         "'shade_warmup'; did you mean 'shade_warm_up'"),
        ("figures/f/options", {"log": "false"}, "figures.f.options: log = 'false': Input should"),
        ("figures/f", figure("ensemble", log=True), "figures.f.options = {'log': True}: 'ensemble' "
         "has no options; leave them out"),
        ("figures/f", figure("pareto", by="datset"), "f.options.by: unknown axis 'datset'; did you "
         "mean 'dataset'"),
        ("figures/f", figure("pareto", x="byts_up"), "f.options.x: unknown metric 'byts_up'; did "),
        ("figures/f", figure("accuracy_by_public", x="method"), "f.options.x = 'method': should be "
         "an axis of numbers or of lists of classes, such as public.size; it has the value "),
        ("figures/f", figure("accuracy_by_public", x="metod"), "f.options.x: unknown axis 'metod'"),
        ("figures/f", figure("accuracy_by_public"), "f.options: key 'x' is missing: give the axis "
         "across; the grid has none that starts with 'public'"),
        ("figures/f", figure("accuracy_by_setting"), "f.options: key 'x' is missing"),
        ("figures/f", figure("accuracy_by_setting", x="public.sise"), "f.options.x.public: unknown "
         "key 'sise'; did you mean 'size'"),
        ("figures/f", figure("accuracy_by_setting", x="public.size", metrics=["acuracy"]),
         "f.options.metrics: unknown metric 'acuracy'; did you mean 'accuracy'"),
        ("figures/f", figure("accuracy_by_setting", x="rounds", levels=[{"method": "averag"}]),
         "f.options.levels.0.method: unknown method 'averag'; did you mean 'average'"),
        ("figures/f", figure("accuracy_by_setting", x="rounds", table=["tt"]),
         "figures.f.options.table: unknown table 'tt'"),
        ("figures/f", figure("peer_bands", band="iqr"), "f.options: band = 'iqr': Input should be "
         "'std' or 'range'"),
        ("figures/f", figure("accuracy_lost"), "f.options: key 'condition' is missing"),
        ("tables/u", table("lost", condition="methd", against="UWA"),
         "u.options.condition: unknown axis 'methd'; did you mean 'method'"),
        ("tables/u", table("lost", condition="method", against="uwa"),
         "u.options.against: unknown label of a condition 'uwa'"),
        ("tables/u", table("contribution", value="averag"), "u.options.value: unknown method "
         "'averag'; did you mean 'average'"),
        ("tables/u", table("answer", labelled=["averag"]), "u.options.labelled: unknown method "
         "'averag'; did you mean 'average'"),
        ("tables/u", table("costs", percent=True), "'costs' has no options; leave them out"),
        ("tables/t/title", "Costs in $", "tables.t.title = 'Costs in $': should be plain text, "
         "without '$'"),
        ("labels/average", "![x](y)", "labels.average = '![x](y)': should be plain text, without "
         "'!['"),
        ("labels/average", "<b>A", "without '<'"),
    ],
)  # fmt: skip
def test_wrong_options_are_found_on_reading(tmp_path, path, value, said):
    data = small()
    change(data, path, value)
    with refused(said):
        load(tmp_path, data)


@pytest.mark.parametrize(
    "entry",
    [
        figure("pareto", by="partition", x="bytes_sent"),
        figure("accuracy_by_round", log=True, shade_warm_up=True),
        figure("accuracy_by_setting", x="method.validation", lines=["method.name"], panels=[]),
        {"title": "F", "plot": "accuracy_by_public", "grid": PUBLIC},
        {"title": "F", "plot": "accuracy_by_public", "grid": PUBLIC, "options": {"log": True}},
        figure("accuracy_lost", condition="method", against="UWA"),
    ],
)
def test_right_options_are_read(tmp_path, entry):
    data = small()
    data["figures"]["f"] = entry
    assert load(tmp_path, data).figures["f"].options == entry.get("options", {})

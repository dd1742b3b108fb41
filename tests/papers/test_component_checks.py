"""Mistakes in what a paper's file says of methods, partitions and their parameters."""

from __future__ import annotations

import pytest
from papers.test_expansion import REPOSITORY, load, small
from support.refusals import refused

from fedlogit import methods
from fedlogit.component import ComponentRef
from fedlogit.methods.base import NAMES_IN_PAPERS
from fedlogit.papers import list_papers, load_paper
from fedlogit.papers.component_checks import check_components

PAPERS = REPOSITORY / "workflow" / "papers"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda data: data["methods"].update(unused="uwa(ft='em')"),
            "small.yaml: methods.unused: method uwa: unknown key 'ft'",
        ),
        (
            lambda data: data["methods"].update(unused={"method": "avrage"}),
            "small.yaml: methods.unused: unknown method 'avrage'; did you mean 'average'?",
        ),
        (
            lambda data: data["scales"]["paper"].update(methods={"uwa": "uwa(validation='x')"}),
            "small.yaml: scales.paper.methods.uwa: method uwa: validation = 'x'",
        ),
        (
            lambda data: data["partitions"].update(unused="k_classes(private_sise=50)"),
            "small.yaml: partitions.unused: partition k_classes: unknown key 'private_sise'",
        ),
        (
            lambda data: data["methods"].update(unused={"method": {"name": "uwa"}}),
            "small.yaml: methods.unused.method = {'name': 'uwa'}: should be a call such as uwa(",
        ),
        (
            lambda data: data["methods"].update(unused={"method": 5}),
            "small.yaml: methods.unused.method = 5: should be a call such as uwa(",
        ),
        (
            lambda data: data["methods"].update(unused={"method": None}),
            "small.yaml: methods.unused.method = None: should be a call such as uwa(",
        ),
    ],
)
def test_calls_that_no_scale_uses_are_checked_too(tmp_path, change, said):
    data = small()
    check_components(load(tmp_path, data))  # `k` lacks the k that cells give
    change(data)
    with refused(said):
        check_components(load(tmp_path, data))


def with_parameters() -> dict:
    """A paper whose table, figure and claim name parameters of its methods."""
    data = small()
    data["methods"]["em"] = "uwa(fit='em')"
    data["labels"]["em"] = "UWA, EM"
    data["tables"]["t"]["grid"][0]["method"] = ["uwa", "em"]
    data["tables"]["t"]["columns"] = ["partition", "method.fit"]
    data["figures"]["f"] |= {"plot": "accuracy_by_setting", "options": {"x": "method.validation"}}
    options = {"left": {"method.fit": "supervised"}, "right": {"method.fit": "em"}}
    data["claims"] = {"c": {"text": "C", "from": "t", "test": "greater", "options": options}}
    return data


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda data: data["tables"]["t"].update(rows=["method.ft"]),
            "small.yaml: t: rows and columns: unknown parameter 'method.ft'; did you mean",
        ),
        (
            lambda data: data["labels"].update({"method.fit=supervisd": "Supervised"}),
            "small.yaml: labels.method.fit=supervisd: unknown value of method.fit 'supervisd'; did",
        ),
        (
            lambda data: data["figures"]["f"]["options"].update(x="method.valdation"),
            "small.yaml: figures.f.options.x: unknown parameter 'method.valdation'; did you mean",
        ),
        (
            lambda data: data["claims"]["c"]["options"]["left"].update({"method.fit": "ml"}),
            "small.yaml: claims.c.options.left.method.fit: unknown value 'ml'",
        ),
    ],
)
def test_parameters_that_are_named_must_be_a_method_s(tmp_path, change, said):
    data = with_parameters()
    check_components(load(tmp_path, data))
    change(data)
    with refused(said):
        check_components(load(tmp_path, data))


def test_a_scale_s_own_values_of_a_parameter_count(tmp_path):
    data = with_parameters()
    data["claims"]["c"]["options"]["left"] = {"method.validation": 0.3}
    with refused("claims.c.options.left"):
        check_components(load(tmp_path, data))
    data["tables"]["t"]["columns"] += ["method.validation"]
    data["scales"]["tiny"]["methods"] = {"uwa": "uwa(validation=0.3)"}
    check_components(load(tmp_path, data))


def test_parameters_of_methods_from_outside_are_left_to_who_uses_them(tmp_path):
    data = with_parameters()
    data["methods"]["em"] = "my.module:Method(fit='em')"
    data["tables"]["t"]["columns"] = ["partition", "method.ft"]
    data.pop("claims")
    check_components(load(tmp_path, data))


@pytest.mark.parametrize("name", NAMES_IN_PAPERS)
def test_a_name_of_papers_files_leads_to_the_call_that_they_have_for_it(name):
    entries = {}
    for paper in ("tally_train", "who_to_trust"):
        entries |= load_paper(paper, PAPERS).methods
    entry, call = entries[name], NAMES_IN_PAPERS[name]
    assert call == (entry if isinstance(entry, str) else entry["method"])
    assert methods.get(call)
    with refused(f"unknown method {name!r}: only papers' files call it so; give {call}"):
        methods.get(ComponentRef(name=name))


@pytest.mark.parametrize("name", list_papers(PAPERS))
def test_the_papers_here_pass(name):
    check_components(load_paper(name, PAPERS))

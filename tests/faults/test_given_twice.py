"""A parameter given twice is refused, whatever the component: none of the two is what was meant."""

import pytest
from support.refusals import refused
from support.small import small_spec

from fedlogit.component import ComponentRef, parse_call
from fedlogit.files import read_json
from fedlogit.partition import get


@pytest.mark.parametrize(
    ("key", "call"),
    [
        ("partition", "dir_client(alpha=0.1, alpha=0.5)"),
        ("method", "fedprox(mu=0.1, mu=0.5)"),
        ("models", "mlp(hidden=[5], hidden=[7])"),
    ],
)
def test_a_parameter_given_twice_by_name(key, call):
    with refused("is given twice; give it once"):
        small_spec(**{key: [call] if key == "models" else call})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"export": ["logits", "logits"]},
            "export = ['logits', 'logits']: 'logits' is given twice",
        ),
        ({"evaluation": {"rounds": [1, 2, 1]}}, "evaluation.rounds = [1, 2, 1]: 1 is given twice"),
        (
            {"public": {"size": 10, "classes": [3, 3]}},
            "public.classes = [3, 3]: 3 is given twice",
        ),
    ],
)
def test_an_entry_given_twice_which_changes_the_hash_alone(change, said):
    with refused(f"{said}; give it once"):
        small_spec(**change)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"export": ["logits", "weights"]}, {"export": ["weights", "logits"]}),
        ({"evaluation": {"rounds": [1, 3]}}, {"evaluation": {"rounds": [3, 1]}}),
        *[[{"public": {"size": 10, "classes": classes}} for classes in ([1, 3], [3, 1])]],
    ],
)
def test_the_order_of_entries_that_changes_no_number_changes_no_hash(one, other):
    assert small_spec(**one) == small_spec(**other)
    assert small_spec(**one).digest() == small_spec(**other).digest()


@pytest.mark.parametrize("key", ["00", "-1", "+0", "٠", " 0", "0.0"])
def test_a_place_of_a_parameter_that_is_none(key):
    with refused(f"partition dir_client: unknown key {key!r} (one of: alpha)"):
        get(ComponentRef(name="dir_client", params={key: 0.1}))


def test_a_parameter_given_by_place_and_by_name():
    with refused("partition dir_client: alpha is given twice"):
        get("dir_client(0.1, alpha=0.5)")


def test_the_line_names_the_call_and_the_parameter():
    with refused("'dir_client(alpha=0.1, alpha=0.5)': alpha is given twice; give it once"):
        parse_call("dir_client(alpha=0.1, alpha=0.5)")


def test_a_key_given_twice_in_json(tmp_path):
    (tmp_path / "spec.json").write_text('{"method": "average", "rounds": 3, "rounds": 5}')
    with refused("spec.json is not valid JSON: key 'rounds' is given twice; give it once"):
        read_json(tmp_path / "spec.json")

"""Who is there in a round: shares, numbers and schedules by hand, and what is refused."""

from __future__ import annotations

import json

import pytest
from support.calls import ROOT
from support.refusals import refused
from support.small import SMALL, small_spec

from fedlogit import methods
from fedlogit.errors import FedlogitError
from fedlogit.papers import expand, load_paper
from fedlogit.participation import Participation
from fedlogit.rng import rng
from fedlogit.spec import RunSpec


def participation(**given) -> Participation:
    return Participation.read(given, "participation")


@pytest.mark.parametrize(
    ("given", "clients", "drawn"),
    [
        ({"share": 0.7}, 10, 7),
        ({"share": 0.5}, 5, 2),  # 2.5, to the even number
        ({"share": 0.01}, 10, 1),
        ({"number": 3}, 10, 3),
    ],
)
def test_so_many_are_drawn_each_round(given, clients, drawn):
    rounds = [participation(**given).present(r, clients, seed=0) for r in range(1, 41)]
    assert {len(there) for there in rounds} == {drawn}
    assert all(list(there) == sorted(set(there)) for there in rounds), "without replacement"
    assert set().union(*rounds) == set(range(clients)), "drawn anew"


def test_a_draw_has_an_address_of_its_own():
    chosen = rng(3, "participation", 8).choice(10, 4, replace=False)
    assert participation(number=4).present(8, 10, seed=3) == tuple(sorted(chosen.tolist()))


def test_half_join_at_mid_run():
    who = participation(schedule=[{"clients": [2, 3], "since": 3}])
    assert [who.present(r, 4, seed=0) for r in (1, 2, 3, 4)] == [(0, 1)] * 2 + [(0, 1, 2, 3)] * 2
    assert who.fewest(4, 4) == (1, 2)
    assert who.first_rounds(4, 4, seed=0) == {0: 1, 1: 1, 2: 3, 3: 3}
    last = participation(schedule=[{"clients": [2], "since": 3}])
    assert last.first_rounds(3, 4, seed=0) == {0: 1, 1: 1, 2: 3}


def test_one_leaves_and_another_is_there_twice():
    stays = [
        {"clients": [0], "until": 2},
        {"clients": [1], "until": 1},
        {"clients": [1], "since": 4, "until": 5},
    ]
    who = participation(schedule=stays)
    there = [who.present(r, 3, seed=0) for r in range(1, 7)]
    assert there == [(0, 1, 2), (0, 2), (2,), (1, 2), (1, 2), (2,)]
    assert who.first_rounds(3, 6, seed=0) == {0: 1, 1: 1, 2: 1}
    assert who.fewest(3, 6) == (3, 1)


def test_who_is_never_there():
    who = participation(schedule=[{"clients": [0, 2], "until": 0}])
    assert [who.present(r, 3, seed=0) for r in (1, 2)] == [(1,)] * 2
    assert who.first_rounds(3, 2, seed=0) == {1: 1}
    assert who.fewest(3, 2) == (1, 1)
    assert who.model_dump(mode="json")["schedule"][0]["until"] == 0


def test_a_number_alone_is_a_share():
    assert small_spec(participation=0.5) == small_spec(participation={"share": 0.5})


@pytest.mark.parametrize(
    "everybody",
    [1.0, 0.9, {"number": 4}, {"schedule": [{"clients": [1], "until": 3}]}],
)
def test_where_nobody_is_ever_absent_it_is_the_run_without(everybody):
    assert small_spec(participation=everybody).digest() == small_spec().digest()


def test_a_run_with_absences_has_a_hash_of_its_own_and_the_same_division():
    some, all_ = small_spec(participation=0.5), small_spec()
    assert some.digest() != all_.digest()
    assert some.split_key() == all_.split_key()
    assert methods.resolve(RunSpec.read(some.model_dump(mode="json"), "spec")) == some
    assert json.loads(some.canonical())["participation"] == {"share": 0.5}
    assert "participation" not in all_.canonical()


def test_what_the_meta_model_does_is_dropped_for_other_methods():
    pad = {"share": 0.5, "meta_model": "pad"}
    assert small_spec(participation=pad) == small_spec(participation=0.5)
    kept = small_spec(participation=pad, method="meta_model(per_class=9)")
    assert kept.participation.meta_model == "pad"


def stays(**stay) -> dict:
    return {"schedule": [stay]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (0.0, "participation.share = 0.0: Input should be greater than 0"),
        ({"share": 1.5}, "participation.share = 1.5: Input should be less than or equal to 1"),
        (3, "participation = 3: alone it is a share, from 0 to 1; give {number: 3}"),
        (1.5, "participation = 1.5: alone it is a share, from 0 to 1"),
        (float("inf"), "participation = inf: alone it is a share, from 0 to 1"),
        pytest.param(10**400, "participation: alone it is a share, from 0 to 1", id="400 zeros"),
        ([0, 1], "participation = [0, 1]: should be a share such as 0.8, {number: 4} or {schedule"),
        (True, "participation = True: should be a share such as 0.8, {number: 4} or {schedule"),
        ({}, "give one of share, number and schedule"),
        ({"share": 0.5, "number": 2}, "give one of share, number and schedule"),
        ({"number": 5}, "participation.number = 5: give at most the 4 clients"),
        (stays(clients=[1, 4], since=2), "schedule.0.clients = 4: the 4 clients have the numbers"),
        (stays(clients=[1]), "give since, until, or both; who is not named is always there"),
        (stays(clients=[], since=2), "participation.schedule.0.clients = []"),
        (stays(clients=[1], since=3, until=2), "since = 3 comes after until = 2"),
        (stays(clients=[1], since=4), "schedule.0.since = 4: give at most the 3 rounds"),
        (stays(clients=[0, 1, 2, 3], since=2), "schedule: nobody is there in round 1"),
        (stays(clients=[0, 1, 2, 3], until=2), "schedule: nobody is there in round 3"),
        (stays(clients=[1], form=2), "unknown key 'form'"),
    ],
)
def test_what_is_refused(given, said):
    with refused(said):
        small_spec(participation=given)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"method": "celm", "participation": {"number": 1}}, "method celm needs 2 clients or more"),
        (
            {"method": "fedavg", "export": ["shapley"], "participation": 0.5},
            "export = 'shapley' needs all clients' models of the last round",
        ),
        (
            {
                "method": "tally_train(warm_up=0, adversaries=2)",
                "participation": {"schedule": [{"clients": [0, 1], "since": 2}]},
            },
            "in round 1 every client that is present is an adversary",
        ),
    ],
)
def test_a_method_that_cannot(changes, said):
    with refused(said):
        small_spec(**changes)


def test_a_method_from_outside_has_to_say_that_it_can(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from fedlogit.methods import Method\n"
        "class Mine(Method):\n"
        "    def round(self, fed, r):\n"
        "        fed.train_private()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with refused("method mine:Mine does not say what it does without some of its clients"):
        small_spec(method="mine:Mine", participation=0.5)
    assert small_spec(method="mine:Mine", participation=1.0).participation is None


def test_it_is_an_axis_of_a_papers_grid(tmp_path):
    run = {key: SMALL[key] for key in ("clients", "models", "optimizer", "local", "public")}
    shares = [{"share": 0.5}, {"schedule": [{"clients": [3], "until": 1}]}]
    paper = {
        "paper": "study",
        "title": "Study",
        "seeds": [0],
        "defaults": run | {"rounds": 2},
        "datasets": {"digits": {}},
        "partitions": {"k3": "k_classes(3, private_size=90)"},
        "methods": {"average": "average"},
        "labels": {"average": "Average"},
        "tables": {
            "absent": {
                "title": "Absent",
                "grid": {
                    "dataset": ["digits"],
                    "partition": ["k3"],
                    "method": ["average"],
                    "participation": [None, 1.0, *shares],
                },
                "rows": ["method"],
                "columns": ["participation"],
            }
        },
        "scales": {"smoke": {}},
    }
    (tmp_path / "study.yaml").write_text(json.dumps(paper))
    (table,) = expand(load_paper("study", tmp_path), "smoke")
    found = [cell.spec.participation for cell in table.cells]
    assert found == [None, None, *map(Participation.model_validate, shares)]
    paper["defaults"]["participation"] = {"shares": 0.5}
    (tmp_path / "study.yaml").write_text(json.dumps(paper))
    with pytest.raises(FedlogitError, match="unknown key 'shares'"):
        load_paper("study", tmp_path)


def test_the_schema_of_runs_knows_it():
    schema = json.loads((ROOT / "workflow" / "schemas" / "run.schema.json").read_text())
    assert {"share", "number", "schedule"} <= schema["$defs"]["Participation"]["properties"].keys()

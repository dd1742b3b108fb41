"""The bar of a run says how far it is, and how old the accuracy is that it shows."""

from __future__ import annotations

from support.small import small_spec

from fedlogit.runs.progress import Progress


def test_an_accuracy_stands_with_the_round_in_which_it_was_measured(capsys):
    bar = Progress(small_spec(rounds=4), show=True)
    tested, not_tested = {"round": 1, "accuracy": 0.5}, {"round": 2}
    bar.rounds([tested])
    bar.rounds([tested, not_tested])
    bar.stage()
    bar.close()
    said = capsys.readouterr().err.rpartition("\r")[2]
    assert "2/4" in said
    assert "accuracy 0.5000 in round 1, 1 client stages" in said


def test_without_a_test_there_is_no_accuracy(capsys):
    bar = Progress(small_spec(rounds=4), show=True)
    bar.rounds([{"round": 1}])
    bar.close()
    assert "accuracy" not in capsys.readouterr().err

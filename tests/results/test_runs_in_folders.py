"""Runs that somebody points at: found, labelled by what they differ in, tabled and drawn."""

from __future__ import annotations

import shutil

import pandas as pd
import pytest
from support.outcomes import rows
from support.refusals import refused
from support.sealed import seal

from fedlogit.cli import main
from fedlogit.errors import FedlogitError
from fedlogit.files import read_json, write_json
from fedlogit.results.figures import draw
from fedlogit.results.formatting import sentence
from fedlogit.results.runs_in_folders import beside_each_other, every_round, find_runs, run_table


@pytest.fixture
def labels(tmp_path):
    """Return a function that gives the labels of all runs below the test's folder."""

    def go() -> list[str]:
        artefact = beside_each_other(find_runs([tmp_path]).runs)
        return sorted({ref.axes["method"] for ref in artefact.runs})

    return go


def test_runs_that_differ_in_an_axis_or_a_seed_are_called_by_their_method(make_run, labels):
    make_run()
    make_run(seed=1)
    make_run(method="uwa")
    make_run(dataset="fashion_mnist", models=["mlp"])  # models go with the data set
    assert labels() == ["average", "uwa"]


def test_what_else_differs_stands_beside_the_method(make_run, labels):
    make_run()
    make_run(optimizer={"name": "adam", "lr": 0.01})
    make_run(method="uwa(fit='em')")
    make_run(method="uwa(fit='supervised')")
    assert labels() == [
        "average(optimizer.lr=0.001)",
        "average(optimizer.lr=0.01)",
        "uwa(fit='em')",
        "uwa(fit='supervised')",
    ]


def test_a_part_that_one_run_lacks_stands_beside_the_other(make_run, labels):
    make_run()
    make_run(participation=0.5)
    assert labels() == ["average", "average(participation.share=0.5)"]


def test_what_has_its_default_is_not_beside_the_method(make_run, labels):
    make_run(temperature=2.0)
    make_run(evaluation={"validation": 20, "with_test": True})
    make_run()
    assert labels() == [
        "average",
        "average(evaluation.validation=20, evaluation.with_test=True)",
        "average(temperature=2.0)",
    ]


def test_what_a_run_keeps_is_no_difference(make_run, labels):
    make_run()
    make_run(seed=1, export=["weights"])
    assert labels() == ["average"]


def test_runs_that_differ_in_what_they_keep_alone_count_once(make_run, tmp_path):
    make_run()
    whole = make_run(export=["logits", "weights"]).dir
    make_run(export=["weights"])
    found = find_runs([tmp_path])
    assert [run.folder for run in found.runs] == [whole]
    assert " 50.00 " in run_table(beside_each_other(found.runs))


@pytest.mark.parametrize(
    ("settings", "heading"),
    [
        ([{"evaluation": {"validation": 100}}], " validation accuracy [%] "),
        ([{"evaluation": {"validation": 100, "with_test": True}}], " test accuracy [%] "),
        ([{"evaluation": {"validation": 100}}, {}], " test or validation accuracy [%] "),
        ([{"text": {"vocabulary": 300, "length": 8}}], " validation accuracy [%] "),
        (
            [{"text": {"vocabulary": 300, "length": 8, "evaluation_split": "test"}}],
            " test accuracy [%] ",
        ),
    ],
)
def test_the_heading_says_on_which_samples_accuracy_is(make_run, tmp_path, settings, heading):
    for seed, changes in enumerate(settings):
        make_run(seed=seed, **changes)
    artefact = beside_each_other(find_runs([tmp_path]).runs)
    assert heading in run_table(artefact)
    name = sentence(heading.removesuffix(" [%] ").strip())
    assert artefact.title == f"{name} by round"
    assert draw(artefact).axes[0].get_ylabel() == name


def test_a_line_is_the_mean_over_seeds(make_run, tmp_path):
    make_run(0.4)
    make_run(0.6, seed=1)
    make_run(0.9, seed=2, status="diverged")
    *_, line = run_table(beside_each_other(find_runs([tmp_path]).runs)).splitlines()
    # std of .4 and .6 is .1 * sqrt(2); 400 bytes a round of 4 clients, 3 rounds: 300 a client.
    assert line.split()[:4] == ["mnist", "k_classes(2)", "average", "2"]
    assert "(1 diverged)" in line
    assert "50.00 ± 14.14" in line
    assert " 300 " in line


def test_seconds_of_a_run_in_stages_have_its_clients_as_those_of_a_run_in_one_piece(
    make_run, tmp_path
):
    make_run(method="average")
    result = read_json((staged := make_run(method="uwa").dir) / "result.json")
    result["provenance"] |= {"wall_seconds": 5.0, "clients_wall_seconds": 7.5}
    write_json(staged / "result.json", result)
    seal(staged)
    *_, whole, in_stages = run_table(beside_each_other(find_runs([tmp_path]).runs)).splitlines()
    assert whole.split()[-1] == in_stages.split()[-1] == "12.5"


def test_the_same_run_in_two_folders_counts_once(make_run, tmp_path):
    folder = make_run().dir
    found = find_runs([tmp_path, folder])
    assert [run.folder for run in found.runs] == [folder]


def test_what_was_begun_and_what_is_damaged_is_told(make_run, tmp_path, capsys):
    make_run()
    begun = make_run(seed=1).dir
    (begun / "result.json").unlink()
    damaged = make_run(seed=2).dir
    (damaged / "rounds.csv").write_text("round\n1\n")
    foreign = make_run(seed=3).dir
    (foreign / "spec.json").write_text("{}")
    assert main(["runs", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert f"not finished: {begun}" in said.out
    assert f"left out: {damaged / 'rounds.csv'} is damaged" in said.err
    assert f"left out: {foreign / 'spec.json'}: key 'dataset' is missing" in said.err


def test_what_is_hidden_is_no_run_that_was_begun(make_run, tmp_path):
    folder = make_run().dir
    shutil.copytree(folder, tmp_path / ".unpack-0123" / folder.name)
    assert find_runs([tmp_path]).unfinished == ()


def test_clients_that_were_trained_for_several_runs_are_none_that_was_begun(make_run, tmp_path):
    folder = make_run().dir
    clients = tmp_path / "clients"
    clients.mkdir()
    shutil.copy(folder / "spec.json", clients)
    assert find_runs([tmp_path]).unfinished == (clients,)
    (clients / "clients.json").write_text("{}")
    assert find_runs([tmp_path]).unfinished == ()


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: folder.joinpath("no").mkdir(), "no: holds no run: no spec.json below it"),
        (lambda folder: folder.joinpath("no").write_text(""), "no: is not a folder"),
    ],
)
def test_a_folder_without_runs_is_refused(tmp_path, prepare, message):
    prepare(tmp_path)
    with pytest.raises(FedlogitError, match=message):
        find_runs([tmp_path / "no"])


def test_an_unknown_metric_is_refused_with_those_there_are(make_run, tmp_path):
    make_run()
    with pytest.raises(FedlogitError, match="unknown metric 'acuracy'; did you mean 'accuracy'"):
        main(["runs", str(tmp_path), "--metric", "acuracy"])


@pytest.mark.parametrize("when", ["0", "first", "1" * 5000, "٣", "-1", ""])
@pytest.mark.parametrize("command", [["runs"], ["diff", "runs"]])
def test_a_metric_at_what_is_no_round_is_refused(tmp_path, command, when):
    with refused(": should be a metric and a round from 1, such as accuracy@10") as error:
        main([*command, str(tmp_path), "--metric", f"accuracy@{when}"])
    assert str(error.value).startswith("--metric = 'accuracy@")
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("option", ["--curves", "--csv"])
@pytest.mark.parametrize("where", [".", "..", "/"])
def test_a_folder_where_a_file_is_wanted_is_refused_in_one_line(make_run, tmp_path, option, where):
    make_run()
    with refused(f"{option}: {where}: is a folder; give the name of a file"):
        main(["runs", str(tmp_path), option, where])


def test_trained_runs_are_tabled_drawn_and_written_round_by_round(train, tmp_path, capsys):
    folders = [train(), train(method="uwa")]
    made = [tmp_path / "made" / name for name in ("curves.png", "curves.pdf", "all.csv")]
    told = ["--curves", str(made[0]), "--csv", str(made[2])]
    assert main(["runs", str(tmp_path), *told]) == 0
    assert all(path.stat().st_size for path in made)
    frame = pd.read_csv(made[2])
    assert len(frame) == 6  # two runs of three rounds
    for folder in folders:
        own = frame[frame["run"] == folder.as_posix()]
        assert own["accuracy"].tolist() == [float(row["accuracy"]) for row in rows(folder)]
    assert "digits" in capsys.readouterr().out


def test_dollar_signs_in_a_parameter_are_no_mathematics(make_run, tmp_path):
    for name in ("f", r"$\no_command$"):
        make_run(method={"name": "aggregator", "params": {"function": f"outside:{name}"}})
    out = tmp_path / "curves.png"
    assert main(["runs", str(tmp_path), "--curves", str(out)]) == 0
    assert out.stat().st_size


def test_every_round_keeps_columns_that_one_method_alone_logs(make_run, tmp_path):
    make_run()
    make_run(method="uwa")
    frame = every_round(beside_each_other(find_runs([tmp_path]).runs))
    assert list(frame.columns[:6]) == ["run", "dataset", "partition", "method", "seed", "round"]
    assert sorted(frame["method"].unique()) == ["average", "uwa"]

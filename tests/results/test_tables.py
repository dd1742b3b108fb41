from __future__ import annotations

import re

import pandas as pd
import pytest
from support.sealed import seal

from fedlogit.errors import FedlogitError
from fedlogit.results.collect import collect
from fedlogit.results.metric_words import metric_sentences
from fedlogit.results.runs.gathered import measured_on
from fedlogit.results.tables import write_table


@pytest.fixture
def three_by_two(make_run, make_artefact):
    """Average with three seeds and UWA with one; UWA has no run with 5 classes."""
    runs = [make_run(a, seed=i) for i, a in enumerate([0.80, 0.82, 0.84])]
    runs += [make_run(a, seed=i, partition="k_classes(5)") for i, a in enumerate([0.9, 1.0])]
    return [*runs, make_run(2 / 3, method="uwa")]


def test_markdown_has_mean_and_deviation(three_by_two, make_artefact, tmp_path):
    _, md, _ = write_table(make_artefact(*three_by_two), tmp_path / "t.v1")
    assert md.name == "t.v1.md"
    lines = md.read_text().splitlines()
    assert lines[0] == "**Table 1**"
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:6]]
    assert cells[0] == ["dataset", "method", "2 classes", "k_classes(5)"]
    # .9 and 1.0: mean .95, deviation sqrt(2 * .05²) = .0707
    assert cells[2] == ["mnist", "Average", "0.8200 ± 0.0200", "0.9500 ± 0.0707 (n = 2)"]
    assert cells[3] == ["", "UWA", "0.6667", ""]


def test_caption_states_scale_seeds_device_and_unit(three_by_two, make_artefact, tmp_path):
    artefact = make_artefact(*three_by_two, options={"percent": True, "decimals": 1})
    text = write_table(artefact, tmp_path / "t")[1].read_text()
    assert "82.0 ± 2.0" in text
    caption = text.splitlines()[-1]
    assert caption == (
        "A caption. Test accuracy in %, mean ± standard deviation over seeds. "
        "Numbers without ± are of one seed. n: seeds, where fewer. "
        "Scale: paper; 1–3 seeds; device: CPU test; engine: loop."
    )


@pytest.mark.parametrize(
    ("evaluations", "said"),
    [
        ([{"validation": 100}] * 2, "Validation accuracy in %, mean"),
        ([{"validation": 100, "with_test": True}] * 2, "Test accuracy in %, mean"),
        ([{"validation": 100}, {}], "Test or validation accuracy in %, mean"),
    ],
)
def test_a_caption_says_on_which_samples_accuracy_is(
    make_run, make_artefact, tmp_path, evaluations, said
):
    runs = [make_run(0.5, seed=seed, evaluation=e) for seed, e in enumerate(evaluations)]
    one = make_artefact(*runs, options={"percent": True})
    assert said in write_table(one, tmp_path / "t")[1].read_text()
    labels = {"accuracy": "First", "balanced_accuracy": "Second"}
    several = make_artefact(*runs, metrics=list(labels), labels=labels)
    accuracy = said.partition(" in %")[0].lower()
    assert f"First: {accuracy}; Second: balanced {accuracy}" in metric_text(several)


def metric_text(artefact) -> str:
    return " ".join(metric_sentences(artefact, measured_on(artefact)))


def test_fewer_seeds_are_told_only_where_others_have_more(make_run, make_artefact, tmp_path):
    def told(*runs, **changes) -> str:
        return write_table(make_artefact(*runs, **changes), tmp_path / "t")[1].read_text()

    one, two = make_run(), [make_run(method="uwa", seed=seed) for seed in (0, 1)]
    assert "without ±" not in told(one, two[0]) + told(*two)
    assert "without ±" in told(one, *two)
    # A seed at which training diverged is marked as such, and lacks none.
    diverged = [make_run(seed=1), make_run(seed=2, status="diverged")]
    assert "(n =" not in told(one, *diverged, *two, make_run(method="uwa", seed=2))
    # Bytes have no ± that could be lacking.
    text = told(one, *two, metric="bytes_up")
    assert "| 100 (n = 1) |" in " ".join(text.split())
    assert "n: seeds, where fewer" in text
    assert "without ±" not in text


def planned(method: str, dataset: str = "mnist", partition: str = "k_classes(2)") -> dict:
    axes = {"dataset": dataset, "method": method, "partition": partition}
    return {"before": 1, "axes": {**axes, "seed": 0}}


def test_a_method_without_any_run_is_named_below_the_table_that_lacks_it(
    make_run, make_artefact, tmp_path
):
    artefact = make_artefact(
        make_run(),
        missing=[planned("uwa"), planned("average", partition="iid"), planned("uwa")],
        left_out={"mnist": (3, 4)},
    )
    text = write_table(artefact, tmp_path / "t")[1].read_text()
    told = "Not run: mnist (3 of 4 runs); no run at all of UWA, partition iid.\n"
    assert text.endswith(told)


def test_what_has_runs_elsewhere_or_a_data_set_without_any_is_not_named(make_run, make_artefact):
    artefact = make_artefact(
        make_run(),
        missing=[planned("average"), planned("uwa", dataset="cifar10")],
        left_out={"mnist": (1, 2), "cifar10": (1, 1)},
    )
    assert artefact.not_run == "not run: mnist (1 of 2 runs), cifar10"


def test_csv_has_all_digits_and_provenance(three_by_two, make_artefact, tmp_path):
    csv = write_table(make_artefact(*three_by_two), tmp_path / "t")[0]
    frame = pd.read_csv(csv).set_index(["method", "partition"])
    row = frame.loc[("uwa", "k_classes(2)")]
    assert row["mean"] == 2 / 3
    assert pd.isna(row["std"])
    assert (row["n"], row["scale"], row["device"]) == (1, "paper", "CPU test")
    assert frame.loc[("average", "k_classes(2)"), "n"] == 3


def test_what_a_caption_tells_may_be_an_axis(make_run, make_artefact, tmp_path):
    axes = {"dataset": "mnist", "method": "average"}
    runs = [
        make_run(accuracy, precision=precision, axes=axes | {"precision": precision})
        for precision, accuracy in (("f32", 0.8), ("bf16", 0.7))
    ]
    artefact = make_artefact(*runs, columns=["precision"])
    frame = pd.read_csv(write_table(artefact, tmp_path / "t")[0]).set_index("precision")
    assert frame["mean"].to_dict() == {"f32": 0.8, "bf16": 0.7}


def test_latex_uses_booktabs_and_escapes(three_by_two, make_artefact, tmp_path):
    artefact = make_artefact(*three_by_two, title="A & B_1", options={"percent": True})
    text = write_table(artefact, tmp_path / "t")[2].read_text()
    assert text.startswith(r"% \usepackage{array,booktabs,longtable,multirow}")
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 1
    assert r"\caption{A \& B\_1. A caption. Test accuracy in \%" in text
    assert r"82.00 $\pm$ 2.00" in text
    assert r"k\_classes(5)" in text


def test_latex_has_bold_and_code_of_markdown_and_greek_letters(make_run, make_artefact, tmp_path):
    labels = {"average": "**A_1**", "uwa": "`uwa(fit='em_1')`", "mnist": "μ² *"}
    artefact = make_artefact(make_run(), make_run(method="uwa"), labels=labels)
    text = write_table(artefact, tmp_path / "t")[2].read_text()
    assert r"\textbf{A\_1} &" in text
    assert r"\texttt{uwa(fit=\textquotesingle{}em\_1\textquotesingle{})} &" in text
    assert r"$\mu$$^2$ *" in text


def test_latex_has_a_command_for_every_greek_letter(make_run, make_artefact, tmp_path):
    labels = {"average": "α & β, γ", "uwa": "Δω, ς Α"}
    artefact = make_artefact(make_run(), make_run(method="uwa"), labels=labels)
    text = write_table(artefact, tmp_path / "t")[2].read_text()
    assert r"$\alpha$ \& $\beta$, $\gamma$" in text
    assert r"$\Delta$$\omega$, $\varsigma$ $A$" in text
    assert text.isascii()
    alphabet = "".join(map(chr, [*range(0x391, 0x3A2), *range(0x3A3, 0x3AA), *range(0x3B1, 0x3CA)]))
    artefact = make_artefact(make_run(), labels={"average": alphabet})
    assert write_table(artefact, tmp_path / "t")[2].read_text().isascii()


def test_latex_says_which_letters_pdflatex_does_not_know(make_run, make_artefact, tmp_path):
    def heads(label: str) -> list[str]:
        artefact = make_artefact(make_run(), labels={"average": label})
        lines = write_table(artefact, tmp_path / "t")[2].read_text().splitlines()
        return [line for line in lines if line.startswith("%")]

    (plain,) = heads("Łódź § “é”…")
    assert heads("平均 → 平") == [
        plain,
        "% lualatex and a font with these letters, which pdflatex does not know: → 均 平",
    ]


def test_latex_aligns_texts_of_an_analysis_at_the_left_and_wraps_long_ones(
    make_run, make_artefact, tmp_path
):
    axes = {"partition": "k", "seed": 0}

    def columns(better: str) -> str:
        runs = [
            make_run(
                0.6 if setting == better else 0.5, axes=axes | {"method": setting}, method=setting
            )
            for setting in ("average", "average(temperature=2.0)")
        ]
        artefact = make_artefact(*runs, rows=None, columns=None, analysis="chosen")
        text = write_table(artefact, tmp_path / "t")[2].read_text()
        return text.partition(r"\begin{tabular}")[2].splitlines()[0]

    assert columns("average") == "{lrlrrr}"
    wrapped = r">{\raggedright\arraybackslash}p{0.30\linewidth}"
    assert columns("average(temperature=2.0)") == f"{{lr{wrapped}rrr}}"


def test_a_long_table_of_latex_has_several_pages_and_its_caption_once(
    make_run, make_artefact, tmp_path
):
    axes = {"dataset": "mnist", "partition": "k", "seed": 0}
    runs = [make_run(axes=axes | {"method": f"m{i}"}) for i in range(46)]
    short, long = (
        write_table(make_artefact(*found), tmp_path / "t")[2].read_text()
        for found in (runs[:45], runs)
    )
    assert r"\begin{table}" in short
    assert r"\begin{longtable}{llr}" in long
    assert long.count("A caption") == short.count("A caption") == 1
    assert r"\caption[]{Table 1 (continued)}" in long


def test_no_row_of_latex_begins_with_what_ends_the_row_before(make_run, make_artefact, tmp_path):
    labels = {"mnist": "*MNIST", "fashion_mnist": "[FM]"}
    runs = make_run(), make_run(dataset="fashion_mnist")
    text = write_table(make_artefact(*runs, labels=labels), tmp_path / "t")[2].read_text()
    assert "{}*MNIST" in text
    assert "{}[FM]" in text


def test_diverged_seeds_are_marked_and_not_averaged(make_run, make_artefact, tmp_path):
    runs = [make_run(0.8), make_run(0.9, seed=1), make_run(seed=2, status="diverged")]
    lost = make_run(method="uwa", status="diverged")
    text = write_table(make_artefact(*runs, lost), tmp_path / "t")[1].read_text()
    assert "0.8500 ± 0.0707 †1" in text
    assert "– †1" in text
    assert "†k: training diverged for k seeds" in text


def test_runs_that_all_diverged_are_not_said_to_lack_the_metric(make_run, make_artefact, tmp_path):
    artefact = make_artefact(make_run(), make_run(method="uwa", status="diverged"))
    text = write_table(artefact, tmp_path / "t")[1].read_text()
    assert "– †1" in text
    assert "do not have the metric" not in text


def test_a_column_that_one_method_logs_is_a_gap_for_the_others(make_run, make_artefact, tmp_path):
    run, other = make_run(), make_run(method="uwa")
    rounds = pd.read_csv(other.dir / "rounds.csv").assign(doubt=[0.5, 0.4, 0.3])
    rounds.to_csv(other.dir / "rounds.csv", index=False)
    seal(other.dir)
    artefact = make_artefact(run, other, metric="doubt", columns=["method"], rows=["dataset"])
    text = write_table(artefact, tmp_path / "t")[1].read_text()
    assert re.search(r"\| +– \| +0\.3000 ", text)
    assert "–: these runs do not have the metric" in text
    with pytest.raises(FedlogitError, match="unknown metric 'doubt'"):
        collect(artefact)  # as figures do, which draw no gaps


def test_bytes_are_counts_and_seconds_have_a_decimal(make_run, make_artefact, tmp_path):
    run = make_run()
    text = write_table(make_artefact(run, metric="bytes_up"), tmp_path / "t")[1].read_text()
    assert " 100 " in text
    assert "Bytes sent per client per round, one seed" in text
    text = write_table(make_artefact(run, metric="seconds"), tmp_path / "t")[1].read_text()
    assert " 12.5 " in text


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        (["accuracy", "balanced_accuracy"], "One seed, in %. "),
        (["accuracy", "bytes_up"], "One seed, shares in %. "),
        (["bytes_up", "seconds"], "One seed. "),
    ],
)
def test_of_several_metrics_only_shares_are_in_per_cent(
    make_run, make_artefact, tmp_path, metrics, said
):
    shown = {"columns": ["metric"], "metrics": metrics, "options": {"percent": True}}
    text = write_table(make_artefact(make_run(), **shown), tmp_path / "t")[1].read_text()
    assert said in text


def test_a_number_as_the_head_of_a_column_has_its_axis_before_it(make_run, make_artefact, tmp_path):
    runs = [make_run(public={"size": size}) for size in (10, 2000, 30)]
    labels = {"public.size": "Samples", "public.size=30": "thirty"}
    across = make_artefact(*runs, columns=["public.size"], labels=labels)
    head = write_table(across, tmp_path / "t")[1].read_text().splitlines()[2]
    assert re.findall(r"[^| ][^|]*[^| ]", head)[2:] == ["Samples 10", "Samples 2,000", "thirty"]
    down = make_artefact(*runs, rows=["public.size"], columns=["method"], labels=labels)
    text = write_table(down, tmp_path / "t")[1].read_text()
    assert "| Samples   |" in text
    assert "| 2,000     |" in text


def test_rows_keep_the_order_of_the_artefact(make_run, make_artefact, tmp_path):
    runs = [make_run(method=method) for method in ("uwa", "average", "meta_model")]
    text = write_table(make_artefact(*runs), tmp_path / "t")[1].read_text()
    assert text.index("UWA") < text.index("Average") < text.index("meta_model")


def test_the_label_of_a_value_on_its_axis_comes_before_that_of_the_value(
    make_run, make_artefact, tmp_path
):
    labels = {"uwa": "UWA", "method=uwa": "the weighted one", "dataset=uwa": "no"}
    artefact = make_artefact(make_run(method="uwa"), make_run(), labels=labels)
    text = write_table(artefact, tmp_path / "t")[1].read_text()
    assert "the weighted one" in text
    assert "| average" in text


def test_two_values_with_one_label_may_not_meet_in_a_cell(make_run, make_artefact, tmp_path):
    labels = {"average": "X", "uwa": "X"}
    runs = [make_run(), make_run(method="uwa")]
    with pytest.raises(FedlogitError, match=r"two cells share the labels .*X"):
        write_table(make_artefact(*runs, labels=labels), tmp_path / "t")
    apart = [make_run(), make_run(method="uwa", partition="k_classes(5)")]
    text = write_table(make_artefact(*apart, labels=labels), tmp_path / "t")[1].read_text()
    assert "| X        |         0.5000 |         0.5000 |" in text


def test_a_figure_is_no_table(make_run, make_artefact, tmp_path):
    artefact = make_artefact(make_run(), rows=None, columns=None)
    with pytest.raises(FedlogitError, match="a table needs axes"):
        write_table(artefact, tmp_path / "t")


def test_a_head_is_left_out_only_below_all_that_is_left_of_it(make_run, make_artefact, tmp_path):
    other = {"dataset": "fashion_mnist", "models": ["mlp"]}
    runs = [make_run(), make_run(method="uwa"), make_run(**other)]
    artefact = make_artefact(
        *runs, rows=["dataset", "partition", "method"], columns=["metric"], metrics=["accuracy"]
    )
    text = write_table(artefact, tmp_path / "t")[1].read_text()
    heads = [[cell.strip() for cell in line.split("|")[1:4]] for line in text.splitlines()[4:7]]
    assert heads[0][:2] == ["mnist", "2 classes"]
    assert heads[1][:2] == ["", ""]
    assert heads[2][:2] == ["fashion_mnist", "2 classes"]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"fpr": "FPR", "auroc": "AUROC"}, ["FPR: false-positive rate"]),
        (
            {"jsd@1": "JSD, Q of round 1", "jsd": "JSD, CELM", "jsd_mean": "JSD, mean Q"},
            ["JSD: Jensen-Shannon distance"],
        ),
        (
            {"jsd": "JSD, CELM", "emd": "EMD, CELM"},
            ["JSD: Jensen-Shannon distance; EMD: earth mover's distance"],
        ),
        ({"hellinger": "Hellinger, CELM", "hellinger_mean": "Hellinger, mean Q"}, []),
        ({"accuracy": "Test accuracy [%]", "balanced_accuracy": "Balanced accuracy"}, []),
        (
            {"oracle_accuracy": "Oracle accuracy", "accuracy": "Single model"},
            ["Oracle accuracy: at least one client is right; Single model: test accuracy"],
        ),
        ({"bytes_up": "Sent [bytes]"}, ["Sent: bytes sent per client per round"]),
        ({"accuracy@1": "First", "accuracy@2": "Second"}, ["Test accuracy"]),
        (
            {
                "theory_variance_hard": "Gradient variance, votes",
                "theory_variance_soft": "Gradient variance, softmax",
            },
            [
                "Gradient variance, votes: gradient variance with votes as target; Gradient"
                " variance, softmax: gradient variance with the mean softmax as target"
            ],
        ),
    ],
)
def test_headings_are_put_in_other_words_once_and_only_where_that_says_more(
    make_run, make_artefact, labels, said
):
    artefact = make_artefact(make_run(), columns=["metric"], metrics=[*labels], labels=labels)
    assert metric_sentences(artefact, "test") == said

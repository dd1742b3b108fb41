"""Methods are compared on the same data, told by its digests."""

from __future__ import annotations

import pytest
from support.refusals import refused
from support.sealed import seal

from fedlogit.errors import DataError
from fedlogit.files import read_json, write_json
from fedlogit.results.runs.gathered import gather
from fedlogit.results.tables import write_table


@pytest.fixture
def saw(make_run):
    """Return a function that makes a run whose result has these digests."""

    def make(digests: dict[str, str], **changes):
        run = make_run(**changes)
        result = read_json(run.dir / "result.json")
        result["provenance"] |= digests
        write_json(run.dir / "result.json", result)
        seal(run.dir)
        return run

    return make


@pytest.mark.parametrize(
    ("digest", "what"), [("dataset_digest", "data sets"), ("split_digest", "partitions")]
)
def test_a_table_of_methods_that_saw_different_data_is_refused(
    saw, make_artefact, tmp_path, digest, what
):
    runs = [saw({digest: "a"}), saw({digest: "b"}, method="uwa")]
    with pytest.raises(DataError, match=f"saw different data: their {what} differ") as error:
        write_table(make_artefact(*runs), tmp_path / "t")
    assert all(run.dir.name in str(error.value) for run in runs)


def test_runs_whose_images_were_normalised_otherwise_are_not_compared(saw, make_artefact):
    one, other = ({"normalised_by": {"mean": [mean], "std": [0.5]}} for mean in (0.5, 0.25))
    first, unknown = saw(one), saw({}, method="meta_model")
    assert len(gather(make_artefact(first, unknown))) == 2
    assert len(gather(make_artefact(first, saw(other, dataset="digits")))) == 2
    with pytest.raises(DataError, match="saw different data: their normalisations differ"):
        gather(make_artefact(first, unknown, saw(other, method="uwa")))


def test_other_divisions_of_the_same_data_are_no_difference(saw, make_artefact):
    digests = {"dataset_digest": "a", "split_digest": "a"}
    runs = [saw(digests), saw(digests | {"split_digest": "b"}, partition="k_classes(5)")]
    runs.append(saw({"dataset_digest": "b"}, dataset="digits"))
    assert len(gather(make_artefact(*runs))) == 3


@pytest.mark.parametrize("digest", ["dataset_digest", "split_digest"])
def test_a_run_that_does_not_say_what_it_saw_is_refused(make_run, make_artefact, digest):
    run = make_run()
    path = run.dir / "result.json"
    result = read_json(path)
    del result["provenance"][digest]
    write_json(path, result)
    seal(run.dir)
    with refused(f"{path}: key 'provenance.{digest}' is missing"):
        gather(make_artefact(run))


def test_the_tokens_of_one_text_are_the_same_and_those_of_another_vocabulary_need_not_be(
    saw, make_artefact
):
    text = {"dataset": "sklearn_docs", "text": {"vocabulary": 300, "length": 32}}
    more = text | {"text": {"vocabulary": 400, "length": 32}}
    first, other = saw({"tokenizer_digest": "a"}, **text), saw({"tokenizer_digest": "b"}, **more)
    assert len(gather(make_artefact(first, other))) == 2
    again = saw({"tokenizer_digest": "b"}, method="uwa", **text)
    with pytest.raises(DataError, match="saw different data: their tokens differ"):
        gather(make_artefact(first, again))


def test_the_public_images_of_one_data_set_are_the_same_beside_any_private_ones(saw, make_artefact):
    public = {"size": 60, "stratified": False, "dataset": "emnist47"}
    first = saw({"probes_digest": "a"}, public=public)
    other = saw({"probes_digest": "b"}, dataset="fashion_mnist", public=public)
    with pytest.raises(DataError, match="saw different data: their public images differ"):
        gather(make_artefact(first, other))
    another = saw({"probes_digest": "b"}, public=public | {"dataset": "fashion_mnist"})
    assert len(gather(make_artefact(first, another))) == 2

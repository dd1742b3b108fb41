"""Byte-pair encoding: the same twice, of the training split only, and checked when it is read."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.refusals import refused
from tokenizers import Tokenizer

from fedlogit.cli import call
from fedlogit.data import load
from fedlogit.data.embedded import docstrings
from fedlogit.data.tokens import load_tokens, sequences, token_files, tokenise
from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import load_npz, save_npz
from fedlogit.spec import Text

V = 280


@pytest.fixture(scope="module")
def texts():
    """Some kilobytes of scikit-learn's docstrings."""
    found = docstrings()
    return {"train": found["train"][:20_000], "valid": found["valid"][:3000], "test": found["test"]}


@pytest.fixture(scope="module")
def tokens(texts):
    return tokenise(texts, V, "docs")


def test_every_split_comes_back(texts, tokens):
    tokenizer = Tokenizer.from_str(tokens.tokenizer)
    for split, text in texts.items():
        ids = tokens.splits[split]
        assert tokenizer.decode(ids.tolist()) == text.tobytes().decode()
        assert ids.dtype == np.uint16
        assert len(ids) < len(text), "pairs were merged"
        assert ids.max() < V


@pytest.mark.parametrize(("vocabulary", "kind"), [(2**16, np.uint16), (2**16 + 1, np.uint32)])
def test_tokens_have_the_bytes_that_the_largest_needs(texts, monkeypatch, vocabulary, kind):
    class Largest:
        def encode_batch_fast(self, lines):
            return [SimpleNamespace(ids=[vocabulary - 1]) for _ in lines]

        def to_str(self):
            return "{}"

    monkeypatch.setattr("fedlogit.data.tokens.train_tokenizer", lambda *_: Largest())
    for ids in tokenise(texts, vocabulary, "docs").splits.values():
        assert ids.dtype == kind
        assert set(ids.tolist()) == {vocabulary - 1}


def test_bytes_that_the_training_split_does_not_have_come_back(tokens):
    text = "π ≈ 3 — 東京\r\n\t\x00 😀"
    tokenizer = Tokenizer.from_str(tokens.tokenizer)
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_the_same_text_gives_the_same_tokenizer(texts, tokens):
    again = tokenise({k: t.copy() for k, t in texts.items()}, V, "docs")
    assert again.tokenizer == tokens.tokenizer
    assert again.digest == tokens.digest
    assert all((again.splits[s] == tokens.splits[s]).all() for s in texts)


def test_only_the_training_split_makes_the_tokenizer(texts, tokens):
    other = tokenise({**texts, "valid": texts["train"], "test": texts["valid"]}, V, "docs")
    assert other.digest == tokens.digest
    assert tokenise({**texts, "train": texts["test"]}, V, "docs").digest != tokens.digest


def test_a_pair_is_merged_by_hand():
    """In "ababab ab" the commonest pair is a, b: token 256 is "ab", 257 "abab"."""
    text = np.frombuffer(b"abababab\nabab\n", np.uint8)
    made = tokenise({"train": text, "valid": text, "test": text}, 258, "letters")
    vocabulary = json.loads(made.tokenizer)["model"]["vocab"]
    assert {k: v for k, v in vocabulary.items() if v >= 256} == {"ab": 256, "abab": 257}
    newline = vocabulary["Ċ"]
    assert made.splits["train"].tolist() == [257, 257, newline, 257, newline]


def test_sequences_by_hand():
    x, y = sequences(np.arange(10), 3, "text")
    assert x.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert y.tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    x, y = sequences(np.arange(9), 3, "text")  # the last target of a third one is missing
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(FedlogitError, match=r"text\.length = 9: text has 9 tokens; give less"):
        sequences(np.arange(9), 9, "text")


def test_a_vocabulary_that_the_text_does_not_yield(texts):
    little = {**texts, "train": texts["train"][:200]}
    with refused("text.vocabulary = 456: the training split of docs yields only"):
        tokenise(little, 456, "docs")


@pytest.mark.parametrize("vocabulary", [457, 2**31 - 1])
def test_more_tokens_than_bytes_are_refused_before_the_library_reserves_memory_for_them(
    texts, monkeypatch, vocabulary
):
    def ends_the_process(*_, **__):
        raise AssertionError("the library was asked")

    monkeypatch.setattr("tokenizers.trainers.BpeTrainer", ends_the_process)
    with refused(
        f"text.vocabulary = {vocabulary}: the training split of docs has 200 bytes, which yield at"
        " most 456 tokens; give less"
    ):
        tokenise({**texts, "train": texts["train"][:200]}, vocabulary, "docs")


def test_a_text_that_is_no_text(texts):
    with pytest.raises(DataError, match="docs: valid is not UTF-8: byte 2 is not"):
        tokenise({**texts, "valid": np.array([65, 66, 255], np.uint8)}, V, "docs")


def test_files_are_checked_when_they_are_read(texts, tokens, tmp_path):
    again = r"make it with python -m fedlogit tokenise docs --vocabulary 280"
    with pytest.raises(DataError, match=rf"docs\.bpe280\.npz does not exist; {again}"):
        load_tokens("docs", tmp_path, V, texts)
    tokens.save(tmp_path, "docs", V)
    read = load_tokens("docs", tmp_path, V, texts)
    assert read.digest == tokens.digest
    assert all((read.splits[s] == tokens.splits[s]).all() for s in texts)

    with pytest.raises(DataError, match="was not trained on the training split of docs"):
        load_tokens("docs", tmp_path, V, {**texts, "train": texts["valid"]})

    arrays, tokenizer = token_files(tmp_path, "docs", V)
    replace(tokens, splits=tokens.splits | {"valid": np.array([V], np.uint16)}).save(
        tmp_path, "docs", V
    )
    with pytest.raises(DataError, match="valid must be a row of tokens below 280"):
        load_tokens("docs", tmp_path, V, texts)

    tokens.save(tmp_path, "docs", V)
    content = load_npz(arrays)
    save_npz(arrays, {k: v for k, v in content.items() if k != "trained_on"})
    with pytest.raises(DataError, match="trained_on is missing"):
        load_tokens("docs", tmp_path, V, texts)

    save_npz(arrays, content)
    tokenizer.write_text(tokenizer.read_text() + " ")
    with pytest.raises(DataError, match="is not the tokenizer that made"):
        load_tokens("docs", tmp_path, V, texts)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_one_flipped_bit_in_the_tokens_is_refused(texts, tokens, tmp_path, split):
    tokens.save(tmp_path, "docs", V)
    path, _ = token_files(tmp_path, "docs", V)
    arrays = load_npz(path)
    arrays[split][7] ^= 1
    save_npz(path, arrays)
    with refused(
        f"{path} was changed or damaged: its digest differs; make it with python -m fedlogit token"
    ):
        load_tokens("docs", tmp_path, V, texts)


def test_tokens_without_a_digest_are_to_be_made_again(texts, tokens, tmp_path):
    tokens.save(tmp_path, "docs", V)
    path, _ = token_files(tmp_path, "docs", V)
    save_npz(path, {k: v for k, v in load_npz(path).items() if k != "digest"})
    with refused(
        f"{path}: digest is missing (older versions wrote none); make it with"
        f" python -m fedlogit tokenise docs --vocabulary 280 --data {tmp_path}"
    ):
        load_tokens("docs", tmp_path, V, texts)


def test_the_embedded_text_needs_no_preparation(tmp_path):
    data = load("sklearn_docs", tmp_path, Text(vocabulary=300, length=64))
    assert data.classes == 300
    assert data.x_train.shape == data.y_train.shape
    assert data.x_train.shape[1] == 64
    assert (data.x_train[:, 1:] == data.y_train[:, :-1]).all()
    labels, kinds = data.strata
    assert kinds == 1
    assert len(labels) == len(data.x_train)
    assert not list(tmp_path.iterdir())
    tested = load(
        "sklearn_docs", tmp_path, Text(vocabulary=300, length=64, evaluation_split="test")
    )
    assert tested.tokenizer == data.tokenizer
    assert not np.array_equal(tested.x_test[0], data.x_test[0])
    with pytest.raises(FedlogitError, match="sklearn_docs is a text; give text:"):
        load("sklearn_docs", tmp_path)


@pytest.mark.slow
def test_the_command_writes_what_is_loaded(tmp_path, capsys):
    assert call("tokenise", ["sklearn_docs", "--vocabulary", "300", "--data", str(tmp_path)]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["sklearn_docs.bpe300.json", "sklearn_docs.bpe300.npz"]
    data = load("sklearn_docs", tmp_path, Text(vocabulary=300, length=64))
    assert data.tokenizer[:12] in capsys.readouterr().out
    Tokenizer.from_file(str(tmp_path / names[0]))  # others can read it
    (tmp_path / names[0]).unlink()
    with pytest.raises(DataError, match=r"sklearn_docs\.bpe300\.json does not exist"):
        load("sklearn_docs", tmp_path, Text(vocabulary=300, length=64))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["digits"], "dataset digits is not a text"),
        (["sklearn_docs", "--vocabulary", "256"], "options: vocabulary = 256"),
        (["wikitext2"], r"wikitext2\.npz does not exist; make it with python -m fedlogit download"),
    ],
)
def test_bad_options_get_one_line(tmp_path, arguments, said):
    with pytest.raises(FedlogitError, match=said) as error:
        call("tokenise", [*arguments, "--data", str(tmp_path)])
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_a_vocabulary_beyond_what_can_be_counted_is_one_line(tmp_path):
    with refused("vocabulary = 99999999999999999999: Input should be less than or equal to 214748"):
        call("tokenise", ["sklearn_docs", "--vocabulary", "9" * 20, "--data", str(tmp_path)])

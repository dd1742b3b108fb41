"""From a text to tokens: byte-pair encoding, trained on the training split only.

``<name>.bpe<V>.json`` is the tokenizer, in the format of the library `tokenizers`;
``<name>.bpe<V>.npz`` holds the tokens of each split, the digests of the tokenizer and of the text
that it was trained on, and a digest of all that; both files are checked whenever they are read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedlogit.data.content import TEXTS
from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import array_digest, load_npz, remove_leftovers_of, save_npz, write_atomic
from fedlogit.locks import held

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["Tokens", "load_tokens", "sequences", "token_files", "tokenise", "train_tokenizer"]

_KEYS = (*TEXTS, "tokenizer", "trained_on")
_SLACK = 1 << 20  # bytes for headers and digests


@dataclass(frozen=True, eq=False)
class Tokens:
    """A tokenised text.

    Attributes:
        splits: Tokens of `train`, `valid` and `test`, integers (tokens,).
        tokenizer: The tokenizer as JSON.
        trained_on: Digest of the text that the tokenizer was trained on.
    """

    splits: dict[str, np.ndarray]
    tokenizer: str
    trained_on: str

    @property
    def digest(self) -> str:
        """SHA-256 of the tokenizer."""
        return hashlib.sha256(self.tokenizer.encode()).hexdigest()

    def save(self, folder: Path, name: str, vocabulary: int) -> None:
        """Write the tokenizer, then the tokens."""
        arrays, tokenizer = token_files(folder, name, vocabulary)
        found = self.splits | {
            "tokenizer": np.array(self.digest),
            "trained_on": np.array(self.trained_on),
        }
        lock = arrays.with_name(f".{arrays.stem}.lock")
        with held(lock, f"waiting for another tokenisation of {name}"):
            remove_leftovers_of(arrays)
            remove_leftovers_of(tokenizer)
            with write_atomic(tokenizer) as temporary:
                temporary.write_text(self.tokenizer, encoding="utf-8")
            save_npz(arrays, found | {"digest": np.array(_digest(found))})


def _digest(arrays: dict[str, np.ndarray]) -> str:
    """Return the SHA-256 of all that the file of tokens holds."""
    return array_digest(*(arrays[key] for key in _KEYS))


def token_files(folder: Path, name: str, vocabulary: int) -> tuple[Path, Path]:
    """Return where a data set's tokens and tokenizer lie."""
    stem = f"{name}.bpe{vocabulary}"
    return folder / f"{stem}.npz", folder / f"{stem}.json"


def tokenise(texts: dict[str, np.ndarray], vocabulary: int, where: str) -> Tokens:
    """Train a tokenizer on the training split and encode all splits.

    Args:
        texts: The bytes of each split, as prepared.
        vocabulary: Number of tokens V.
        where: What errors call the text.

    Raises:
        FedlogitError: if the training split does not yield so many tokens.
        DataError: if a split is not UTF-8.
    """
    lines = {split: _lines(texts[split], f"{where}: {split}") for split in TEXTS}
    tokenizer = train_tokenizer(lines["train"], vocabulary, where)
    kind = np.uint16 if vocabulary <= 2**16 else np.uint32
    splits = {}
    for split in TEXTS:
        encoded = tokenizer.encode_batch_fast(lines[split])
        splits[split] = np.concatenate([np.array(e.ids, dtype=kind) for e in encoded])
    return Tokens(splits, tokenizer.to_str(), array_digest(texts["train"]))


def train_tokenizer(lines: list[str], vocabulary: int, where: str) -> Tokenizer:
    """Return a byte-level BPE with exactly `vocabulary` tokens, 256 of which are the bytes.

    TallyTrain's appendix I says "Byte-Pair Encoding" and how many tokens come out; on bytes it
    comes near that number, on words it does not (docs/deviations.md).

    Raises:
        FedlogitError: if the text yields fewer.
    """
    # Runs on tokens that were made before, and on images, do without the library.
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    _check_size(vocabulary, sum(len(line.encode()) for line in lines), where)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        show_progress=False,
        special_tokens=[],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(lines, trainer)
    found = tokenizer.get_vocab_size()
    if found != vocabulary:
        raise FedlogitError(
            f"text.vocabulary = {vocabulary}: the training split of {where} yields only {found}"
            " tokens; give that or less"
        )
    return tokenizer


def _check_size(vocabulary: int, size: int, where: str) -> None:
    """Refuse more tokens than a text of `size` bytes can have: each merge takes one of its pairs.

    The library reserves memory for all that it is asked for, and ends the process without it.

    Raises:
        FedlogitError: naming how many tokens it can have.
    """
    if vocabulary > 256 + size:
        raise FedlogitError(
            f"text.vocabulary = {vocabulary}: the training split of {where} has {size} bytes, which"
            f" yield at most {256 + size} tokens; give less"
        )


def load_tokens(name: str, folder: Path, vocabulary: int, texts: dict[str, np.ndarray]) -> Tokens:
    """Read what `Tokens.save` wrote for this text.

    Raises:
        DataError: if a file is missing or damaged, or was made of another text.
    """
    arrays, tokenizer = token_files(folder, name, vocabulary)
    again = (
        f"make it with python -m fedlogit tokenise {name} --vocabulary {vocabulary} --data {folder}"
    )
    for path in (arrays, tokenizer):
        if not path.exists():
            raise DataError(f"{path} does not exist; {again}")
    # A token is at least one byte of the text, and has at most four.
    found = load_npz(arrays, 4 * sum(map(len, texts.values())) + _SLACK)
    lacking = [key for key in (*_KEYS, "digest") if key not in found]
    if lacking:
        older = " (older versions wrote none)" if lacking == ["digest"] else ""
        raise DataError(f"{arrays}: {lacking[0]} is missing{older}; {again}")
    if str(found["digest"]) != _digest(found):
        raise DataError(f"{arrays} was changed or damaged: its digest differs; {again}")
    splits = {split: found[split] for split in TEXTS}
    try:
        vocabulary_text = tokenizer.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{tokenizer} is damaged: it is not UTF-8; {again}") from None
    tokens = Tokens(splits, vocabulary_text, str(found["trained_on"]))
    if tokens.digest != str(found["tokenizer"]):
        raise DataError(f"{tokenizer} is not the tokenizer that made {arrays.name}; {again}")
    if tokens.trained_on != array_digest(texts["train"]):
        raise DataError(
            f"{tokenizer} was not trained on the training split of {name} as prepared; {again}"
        )
    for split, ids in splits.items():
        if ids.dtype.kind != "u" or ids.ndim != 1 or (len(ids) and ids.max() >= vocabulary):
            raise DataError(
                f"{arrays}: {split} must be a row of tokens below {vocabulary}; {again}"
            )
    return tokens


def sequences(tokens: np.ndarray, length: int, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Cut tokens into sequences; the target of each token is the next one.

    Args:
        tokens: (tokens,).
        length: T.
        where: What errors call the tokens.

    Returns:
        Inputs (n, T) and targets (n, T), with n = (tokens - 1) // T; the rest is left out. The last
        target of a sequence is the first input of the next.

    Raises:
        FedlogitError: if there is not a single sequence.
    """
    n = (len(tokens) - 1) // length
    if n < 1:
        raise FedlogitError(
            f"text.length = {length}: {where} has {len(tokens)} tokens; give less than that"
        )
    return tokens[: n * length].reshape(n, length), tokens[1 : n * length + 1].reshape(n, length)


def _lines(text: np.ndarray, where: str) -> list[str]:
    try:
        return text.tobytes().decode().splitlines(keepends=True)
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not UTF-8: byte {error.start} is not") from None

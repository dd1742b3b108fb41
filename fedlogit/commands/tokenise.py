"""Tokenise a prepared text data set.

    python -m fedlogit tokenise wikitext2 --vocabulary 2048

Writes ``wikitext2.bpe2048.json`` (the tokenizer, trained on the training split) and
``wikitext2.bpe2048.npz`` (the tokens of each split) next to the prepared text.
"""

from __future__ import annotations

import argparse

from fedlogit.commands._folders import data_folder
from fedlogit.data import card, load_arrays
from fedlogit.data.tokens import tokenise
from fedlogit.errors import FedlogitError
from fedlogit.spec import Text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("dataset", help="name of a text in data/sources.yaml")
    parser.add_argument("--vocabulary", type=int, default=2048, help="number of tokens")
    data_folder(parser)


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    if card(args.dataset).kind != "text":
        raise FedlogitError(f"dataset {args.dataset} is not a text")
    vocabulary = Text.read({"vocabulary": args.vocabulary, "length": 1}, "options").vocabulary
    texts, _ = load_arrays(args.dataset, args.data)
    tokens = tokenise(texts, vocabulary, args.dataset)
    tokens.save(args.data, args.dataset, vocabulary)
    counts = ", ".join(f"{split} {len(ids):,}" for split, ids in tokens.splits.items())
    print(f"{args.dataset}: {counts} tokens; tokenizer {tokens.digest[:12]}")

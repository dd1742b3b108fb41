r"""Partition the training split of a prepared data set among clients.

Writes ``indices.npz`` (each client's samples), ``counts.csv`` (samples per client and class),
``distances.json`` (distances from a uniform partition, totals, digest, notes) and a picture,
``bubbles.png`` and ``bubbles.pdf``. Give the settings as a JSON file or as options, of which
--dataset, --partition, --clients and --seed are needed:

    python -m fedlogit partition --spec split.json --out results/partitions/example
    python -m fedlogit partition --dataset fashion_mnist --partition 'dir_client(0.05)' \
        --clients 5 --seed 42 --out results/partitions/example
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from fedlogit.commands._folders import data_folder
from fedlogit.commands._values import given_path
from fedlogit.data import load
from fedlogit.errors import FedlogitError
from fedlogit.files import read_json, write_json
from fedlogit.partition import Split, distances, divide, unused_samples
from fedlogit.results.bubbles import bubble_plot
from fedlogit.results.formatting import write_csv
from fedlogit.runs import layout
from fedlogit.spec import SplitSpec

_NEEDED = "(required without --spec)"
_SETTINGS = ("dataset", "train_size", "partition", "clients", "seed")
_PUBLIC = ("classes", "dataset", "anchors", "overlap")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--out", type=given_path, required=True, help="folder to write to")
    data_folder(parser)
    parser.add_argument("--spec", type=given_path, help="JSON file with the settings below as keys")
    parser.add_argument("--dataset", help=f"name of a prepared data set {_NEEDED}")
    parser.add_argument(
        "--train-size",
        type=int,
        help="number of samples, a stratified subsample of the training split",
    )
    parser.add_argument(
        "--partition",
        help="a partition with its parameters, such as 'k_classes(2, class_sets=\"balanced\")'"
        f" {_NEEDED}",
    )
    parser.add_argument("--clients", type=int, help=f"number of clients {_NEEDED}")
    parser.add_argument("--seed", type=int, help=f"seed of the partition {_NEEDED}")
    parser.add_argument("--public-size", type=int, help="size of the public set")
    parser.add_argument("--public-classes", type=int, nargs="+", help="classes of the public set")
    parser.add_argument("--public-dataset", help="take the public set from this data set")
    parser.add_argument(
        "--public-anchors",
        type=int,
        help="labelled samples of --dataset in such a public set (default: 0)",
    )
    parser.add_argument(
        "--public-overlap", action="store_true", help="keep public samples in the private pool"
    )
    parser.add_argument(
        "--validation",
        type=int,
        metavar="N",
        help="refuse a partition that leaves fewer samples for evaluation.validation than N",
    )


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    if args.spec:
        _refuse_idle(args)
        spec = SplitSpec.read(read_json(args.spec), str(args.spec))
    else:
        spec = SplitSpec.read(_from_options(args), "options")
    data = load(spec.dataset, args.data, spec.text)
    split = divide(spec, data)
    if args.validation is not None:
        unused_samples(data, split, args.validation)
    write(split, args.out, f"{data.title}: {spec.partition}, seed {spec.seed}")
    print(f"{args.out}: {spec.clients} clients, digest {split.digest[:12]}")
    for note in split.notes:
        print(f"note: {note}", file=sys.stderr)


def write(split: Split, folder: Path, title: str) -> None:
    """Write the five files of a split into `folder`."""
    split.save(folder / layout.INDICES)
    write_csv(folder / "counts.csv", pd.DataFrame(split.counts).reset_index(names="client"))
    write_json(
        folder / "distances.json",
        {
            "distances_from_uniform": distances(split.counts),
            "client_totals": split.counts.sum(axis=1).tolist(),
            "class_totals": split.counts.sum(axis=0).tolist(),
            "public": len(split.public),
            "digest": split.digest,
            "notes": list(split.notes),
        },
    )
    bubble_plot(split.counts, folder / "bubbles.png", title, split.roles)


def _refuse_idle(args: argparse.Namespace) -> None:
    """Refuse an option of a setting beside --spec, whose file alone says how to divide."""
    public = (f"public_{key}" for key in ("size", *_PUBLIC))
    for key in (*_SETTINGS, *public):
        value = getattr(args, key)
        if value is not None and value is not False:  # but 0 was given
            option = f"--{key.replace('_', '-')}"
            raise FedlogitError(f"{option} = {value!r}: --spec has all settings; change them there")


def _from_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return what a split spec holds, as plain data; absent options are left out.

    Raises:
        FedlogitError: naming an option that is needed, or one of a public set that there is not.
    """
    needed = [key for key in _SETTINGS if key != "train_size"]
    if lacking := [key for key in needed if getattr(args, key) is None]:
        raise FedlogitError(f"--{lacking[0]} is missing; give it, or a file with --spec")
    given = {key: value for key in _SETTINGS if (value := getattr(args, key)) is not None}
    if args.public_size is not None:
        given["public"] = {"size": args.public_size, **_public(args)}
    elif idle := _public(args):
        key, value = next(iter(idle.items()))
        why = "there is no public set without --public-size; give it, too"
        raise FedlogitError(f"--public-{key} = {value!r}: {why}")
    return given


def _public(args: argparse.Namespace) -> dict[str, Any]:
    """Return what the options say of the public set but its size, as plain data."""
    given = {key: value for key in _PUBLIC if (value := getattr(args, f"public_{key}"))}
    return given | ({"stratified": False} if args.public_dataset else {})

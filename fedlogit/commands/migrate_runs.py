"""Give finished runs of version 0.1 the names that they have now.

    python -m fedlogit migrate_runs

A run's spec no longer says at which scale it was asked for, nor what ran its clients (`kernel`),
and three of its keys have other names. So its hash, which names its folder, is another. What the
run computed stays as it is: rounds.csv and exports are not touched, and result.json gains the
engine. Of two runs that are now one, the one that ended later is kept; it is said where they
differ. Run again: nothing is left to do.
"""

from __future__ import annotations

import argparse
import csv
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fedlogit.files import read_json, read_sealed, write_json, write_sealed
from fedlogit.papers import run_dir
from fedlogit.runs import layout
from fedlogit.spec import RunSpec

ENGINES = {"autograd": "loop", "native": "native", "stacked": "stacked"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--runs", type=Path, default=Path("results/runs"), help="their folder")


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    old = tqdm(sorted(old_runs(args.runs)), unit="run", disable=None)
    kept = [migrate(args.runs, folder) for folder in old]
    print(f"{len(kept)} runs of version 0.1, {len(kept) - sum(kept)} of them there twice")


def old_runs(root: Path) -> Iterator[Path]:
    """Yield the folder of every finished run whose spec is one of version 0.1."""
    for path in root.rglob(layout.RESULT):
        if "kernel" in read_json(path.with_name(layout.SPEC)):
            yield path.parent


def migrate(root: Path, folder: Path) -> bool:
    """Move a run to its new folder; return whether it is there now.

    Of two runs that are now one, the one that ended later is kept.
    """
    before = read_json(folder / layout.SPEC)
    result = read_sealed(folder / layout.RESULT, f"remove {folder} and train it again")
    data = new_spec(before)
    spec = RunSpec.read(data, str(folder / layout.SPEC))
    target = root / run_dir(spec)
    if (target / layout.RESULT).exists():
        ends = {_finished(one): one for one in (folder, target)}
        if rows(target) != rows(folder):
            print(f"{folder} and {target} are one run with different numbers; the later is kept")
        if ends[max(ends)] == target:
            _remove(root, folder)
            return False
    engine = "none" if spec.ledger_only else ENGINES[before["kernel"]]
    if engine == "native" and spec.server is not None:
        engine = "native, server loop"  # a server's model had no other then
    result["provenance"] |= {"spec_digest": spec.digest(), "engine": engine}
    temporary = target.with_name(f".{target.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    write_json(temporary / layout.SPEC, spec.model_dump(mode="json"))
    shutil.copy2(folder / layout.ROUNDS, temporary)
    if (folder / layout.EXPORTS).is_dir():
        shutil.copytree(folder / layout.EXPORTS, temporary / layout.EXPORTS)
    write_sealed(temporary / layout.RESULT, result)
    shutil.rmtree(target, ignore_errors=True)  # that of an unfinished run, or of the same one
    temporary.rename(target)
    _remove(root, folder)
    return True


def rows(folder: Path) -> list[dict[str, str]]:
    """Return the rounds of a run without their wall time."""
    with (folder / layout.ROUNDS).open(newline="") as file:
        return [
            {k: v for k, v in row.items() if not k.startswith("seconds")}
            for row in csv.DictReader(file)
        ]


def new_spec(old: dict[str, Any]) -> dict[str, Any]:
    """Return a spec of version 0.1 with the keys of now."""
    new = {key: value for key, value in old.items() if key not in ("kernel", "scale")}
    new["optimizer"] = _optimizer(old["optimizer"])
    if old.get("server") and old["server"]["optimizer"]:
        new["server"] = old["server"] | {"optimizer": _optimizer(old["server"]["optimizer"])}
    if old.get("text"):
        text = dict(old["text"])
        new["text"] = {"evaluation_split": text.pop("tested_on"), **text}
    return new


def _finished(folder: Path) -> str:
    return str(read_json(folder / layout.RESULT)["provenance"]["finished"])


def _optimizer(old: dict[str, Any]) -> dict[str, Any]:
    new = dict(old)
    lifetime = new.pop("lifetime")
    new["reset_every"] = "phase" if lifetime == "stage" else lifetime
    new["zero_nonfinite_grads"] = new.pop("scrub", False)
    return new


def _remove(root: Path, folder: Path) -> None:
    """Remove a run's folder, and those above it that are empty then."""
    shutil.rmtree(folder)
    for parent in folder.parents:
        if parent == root or any(parent.iterdir()):
            return
        parent.rmdir()

"""What runs need that travel to a machine without network: specs, prepared data, partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fedlogit.commands._many.filing import Filed, move_file
from fedlogit.data import card, load_arrays
from fedlogit.data.dataset import preparing
from fedlogit.data.embedded import EMBEDDED
from fedlogit.errors import DataError
from fedlogit.files import file_digest, load_npz, read_json, write_json
from fedlogit.partition import Split
from fedlogit.runs import layout
from fedlogit.runs.external_code import external_modules
from fedlogit.runs.paths import data_stems, run_dir, split_dir
from fedlogit.runs.setup import open_data
from fedlogit.spec import RunSpec

__all__ = ["data_files", "file_inputs", "modules_of", "spec_files"]

_SPEC = re.compile(r"specs/((?:[^/]+/){3}[^/]+)\.json")
_SPLIT = re.compile(r"partitions/(?:[^/]+/){3}indices\.npz")
_DATA = re.compile(r"data/([\w-]+)((?:\.[\w-]+)*)\.(json|npz)")


def spec_files(runs: Mapping[str, RunSpec], data: Path, folder: Path) -> dict[str, Path]:
    """Write each run's spec and the partition of its data; return the files by their names.

    Partitions are made anew on the other machine; those that travel show that they are the same.

    Args:
        runs: Specs by their runs' folders.
        data: Folder of prepared data sets.
        folder: Where to write.

    Raises:
        DataError: if a data set is not there.
    """
    found: dict[str, Path] = {}
    for run, spec in runs.items():
        name, split = f"specs/{run}.json", f"partitions/{split_dir(spec)}/{layout.INDICES}"
        write_json(folder / name, spec.model_dump(mode="json"))
        if split not in found:
            open_data(spec, data, None)[1].save(folder / split)
        found |= {name: folder / name, split: folder / split}
    return found


def data_files(specs: Iterable[RunSpec], data: Path) -> dict[str, dict[str, Path]]:
    """Return the prepared files that runs read, by data set and by their names in an archive.

    Raises:
        DataError: if a file is missing that scikit-learn does not bring.
    """
    found: dict[str, dict[str, Path]] = {}
    for spec in specs:
        other = spec.public.dataset if spec.public else None
        for stem in [*data_stems(spec), *([other] if other else [])]:
            files = [data / f"{stem}.{suffix}" for suffix in ("json", "npz")]
            lacking = [path for path in files if not path.exists()]
            if lacking and stem not in EMBEDDED:
                name, _, tokens = stem.partition(".")
                how = f"tokenise {name}" if tokens else f"make it with {preparing(name, data)}"
                raise DataError(f"{lacking[0]} does not exist; {how}")
            own = found.setdefault(stem.partition(".")[0], {})
            own |= {f"data/{path.name}": path for path in files if not lacking}
    return {name: files for name, files in found.items() if files}


def modules_of(specs: Iterable[RunSpec]) -> list[str]:
    """Return the modules outside fedlogit that any of the runs imports, in order."""
    return sorted(
        {name for spec in specs for name in external_modules(spec.model_dump(mode="json"))}
    )


def file_inputs(arrived: Path, files: Sequence[str], target: Path) -> Filed:
    """Check all inputs that arrived, and then put each that is not there into its place.

    Args:
        arrived: A folder with the files, on the file system of `target`; they are taken from it.
        files: The files, below it.
        target: The folder of inputs.

    Raises:
        DataError: if there is a file that is no spec, partition or prepared data; then none is put
            into its place.
    """
    for name in files:
        _check(arrived, name)
    filed = Filed()
    for name in files:
        if not (target / name).exists():
            move_file(arrived / name, target / name)
            filed.new.append(name)
        elif file_digest(target / name) == file_digest(arrived / name):
            filed.there.append(name)
        else:
            filed.refused[name] = f"{target / name} is another file, which stays; remove it first"
    return filed


def _check(arrived: Path, name: str) -> None:
    if match := _SPEC.fullmatch(name):
        spec = RunSpec.read(read_json(arrived / name), name)
        if str(run_dir(spec)) != match[1]:
            raise DataError(f"{name}: its spec belongs to specs/{run_dir(spec)}.json")
    elif _SPLIT.fullmatch(name):
        Split.load(arrived / name)
    elif match := _DATA.fullmatch(name):
        _check_data(arrived / name, *match.groups())
    else:
        raise DataError(f"{name!r} is neither a spec nor a partition nor a prepared data set")


def _check_data(path: Path, dataset: str, tokens: str, suffix: str) -> None:
    """Refuse what cannot be read as the data set, or its tokens, that the file's name says."""
    if suffix == "json":
        read_json(path)
    elif tokens:
        load_npz(path, card(dataset).limit)
    else:
        load_arrays(dataset, path.parent)

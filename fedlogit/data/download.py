"""Raw files of a data set from the first source that serves the right content."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fedlogit.data import isic
from fedlogit.data.cards import DATASETS, card
from fedlogit.data.content import check
from fedlogit.data.decode import decode
from fedlogit.data.raw import MARK, Raw
from fedlogit.data.sources import SOURCES, Base, Folder, Mirror, read_sources
from fedlogit.errors import DataError, FedlogitError, writing
from fedlogit.files import file_digest, read_json, write_json
from fedlogit.frozen_config import FrozenConfig
from fedlogit.locks import held

__all__ = ["Mark", "download", "read_mark"]

_CONTENT = "what it gave"
"""What errors call the content of a source."""
_LOCAL = ("mirror", "folder", "embedded")  # kinds of sources that no network helps to reach


@dataclass(frozen=True)
class _Failure:
    """Why a source did not serve; if its files `arrived`, it had them, and they are wrong."""

    source: Base
    reason: str
    arrived: bool


class Mark(FrozenConfig):
    """What ``source.json`` says of the raw files beside it.

    Attributes:
        dataset: Name of the data set.
        kind: Kind of the source that served.
        source: Its address, package or folder.
        format: How the files are to be read.
        files: SHA-256 of each file, by name.
    """

    dataset: str
    kind: str
    source: str
    format: str
    files: dict[str, str]


def download(name: str, out: Path, mirror: Path | None = None, sources: Path = SOURCES) -> Mark:
    """Fill `out` with the raw files of a data set and ``source.json``, which says who served them.

    Every source is tried in a temporary folder; only files whose decoded content is the data set's
    are kept. If `out` is complete already, nothing happens. Who finds another process at it waits.
    What no download put into `out` is never touched.

    Args:
        name: A name from `DATASETS`.
        out: The raw folder.
        mirror: A folder that holds data sets where other sources cannot be reached.
        sources: The YAML file of sources.

    Raises:
        FedlogitError: if the name is unknown, or `out` cannot be written or holds other files.
        DataError: if no source serves, in one line: what was tried, why it failed, what to do.
    """
    card(name)  # an unknown name is refused first
    out = Path(out)
    there: Mark | None = None
    with suppress(FedlogitError):  # not there yet, or incomplete
        there = read_mark(out, name)
    if there is not None:
        _refuse_changed(there, read_sources(name, sources), out, mirror)
        return there
    with held(out.parent / f".{out.name}.lock", f"waiting for another download of {name}"):
        with suppress(FedlogitError):
            return read_mark(out, name)
        return _first(read_sources(name, sources), name, out, mirror)


def _refuse_changed(mark: Mark, sources: list[Base], out: Path, mirror: Path | None) -> None:
    """Refuse files of a mirror that have changed since they were copied: they would not be used.

    What a digest pins has the same content however the mirror packs it.

    Raises:
        DataError: naming the first one, and what to remove.
    """
    if mark.kind != "mirror" or mirror is None or not card(mark.dataset).unpinned:
        return
    for source in sources:
        for file in source.paths(mark.dataset) if isinstance(source, Mirror) else ():
            known, path = mark.files.get(Path(file).name), mirror / file
            if known and path.is_file() and file_digest(path) != known:
                raise DataError(
                    f"{path} has changed since it was copied; remove {out} and what was prepared"
                    f" of it (data/prepared/{mark.dataset}.*) to use it"
                )


def _first(sources: list[Base], name: str, out: Path, mirror: Path | None) -> Mark:
    """Fill `out` from the first source that serves."""
    failures: list[_Failure] = []
    for source in sources:
        with _workspace(out) as temporary:
            arrived = False
            try:
                served = source.fetch(name, temporary, mirror)
                arrived = True
                mark = _checked(source, name, temporary, served)
            except (DataError, OSError) as error:
                # The files of the source, not their copies, which are gone by then.
                reason = str(error).replace(f"{temporary}{os.sep}", "")
                reason = f"{_place(source, mirror)}: {reason}"
                failures.append(_Failure(source, reason, arrived))
                continue
            _move(temporary, out, mark)
            return mark
    raise DataError(_nothing(name, failures, mirror, card(name).homepage))


def _place(source: Base, mirror: Path | None) -> str:
    return f"mirror {mirror}" if source.kind == "mirror" and mirror else source.about()


def read_mark(out: Path, name: str) -> Mark:
    """Return a raw folder's ``source.json``, once its files are found to be what it says.

    Raises:
        DataError: if it is missing or of another data set, or a file is missing or was changed.
    """
    if not (out / MARK).exists():
        raise DataError(
            f"{out} has no {MARK}; first python -m fedlogit download {name} --out {out}"
        )
    mark = Mark.read(read_json(out / MARK), str(out / MARK))
    if mark.dataset != name:
        raise DataError(f"{out / MARK} is of {mark.dataset!r}, not {name!r}")
    for file, digest in mark.files.items():
        path = out / Path(file).name
        if not path.is_file():
            raise DataError(f"{path} is missing; run python -m fedlogit download {name} again")
        if file_digest(path) != digest:
            raise DataError(
                f"{path} was changed or damaged; run python -m fedlogit download {name} again"
            )
    return mark


@contextmanager
def _workspace(out: Path) -> Iterator[Path]:
    """Yield an empty folder on the same disk as `out`, for who holds its lock.

    It always has the same name, so that what a killed process left in it is found and removed.
    """
    folder = out.parent / f".{out.name}.part"
    with writing(folder):
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _checked(source: Base, name: str, folder: Path, served: str) -> Mark:
    """Decode and check what a source gave; return what ``source.json`` will hold."""
    raw = Raw(folder)
    if isinstance(source, Folder):
        isic.survey(raw, Path(served))
    else:
        check(card(name), decode(source.format, raw, card(name)), _CONTENT)
    files = {path.name: file_digest(path) for path in raw.files()}
    return Mark(dataset=name, kind=source.kind, source=served, format=source.format, files=files)


def _move(folder: Path, out: Path, mark: Mark) -> None:
    """Move files into place; ``source.json`` comes last, as the sign of success.

    Of what is there only what an earlier download put there goes.

    Raises:
        FedlogitError: if `out` cannot be written, or holds what no download put there.
    """
    with writing(out):
        out.mkdir(exist_ok=True)
        ours = _listed(out)
        _refuse_others(out, mark, ours)
        for name in ours or ():
            (out / name).unlink(missing_ok=True)
        (out / MARK).unlink(missing_ok=True)  # after what it lists: a kill in between forgets none
        for path in Raw(folder).files():
            path.replace(out / path.name)
    write_json(out / MARK, mark.model_dump(mode="json"))


def _listed(out: Path) -> set[str] | None:
    """Return the names of the files that an earlier download put there; None if none says so."""
    with suppress(FedlogitError):
        mark = Mark.read(read_json(out / MARK), str(out / MARK))
        return {Path(file).name for file in mark.files} - {""}
    return None


def _refuse_others(out: Path, mark: Mark, ours: set[str] | None) -> None:
    """Refuse a folder where a download would overwrite, or get mixed with, what it did not make.

    Snakemake removes ``source.json`` before it downloads again, and a killed download leaves a
    folder without it: the files are then the very ones that are to come, and nobody else's.

    Raises:
        FedlogitError: naming one of the others.
    """
    there = {path.name for path in out.iterdir()}
    if ours is None:
        others = {name for name in there if not name.startswith(".")}
    else:
        others = there & mark.files.keys() - ours
    for name in sorted(others):
        path = out / name
        if not path.is_file() or file_digest(path) != mark.files.get(name):
            raise FedlogitError(
                f"{path} was not put there by a download that {MARK} tells of, and stays; give"
                f" another folder, or remove {out} and run python -m fedlogit download"
                f" {mark.dataset} again"
            )


def _nothing(name: str, failures: list[_Failure], mirror: Path | None, homepage: str) -> str:
    """Return the message for the case that no source served."""
    tried = "; ".join(f"({i}) {failure.reason}" for i, failure in enumerate(failures, 1))
    advice = "".join(f"{part}. " for part in _advice(failures))
    return (
        f"no source served {name}. Tried: {tried}. {_stand_in(name, mirror)}{advice}"
        f"See docs/add-a-dataset.md and {homepage}"
    )


def _advice(failures: list[_Failure]) -> list[str]:
    """Return what may help: a network only who needs one, and a folder only who lacks one."""
    absent = {failure.source.kind for failure in failures if not failure.arrived}
    ways = ["connect to the network"] if absent.difference(_LOCAL) else []
    if absent & {"mirror", "folder"}:
        ways.append("give a folder that holds it with --mirror FOLDER or FEDLOGIT_MIRROR")
    arrived = any(failure.arrived for failure in failures)
    wrong = ["Correct the files, or the card in fedlogit/data/cards.py"] if arrived else []
    either = ", or ".join(ways)
    return [*wrong, either[0].upper() + either[1:]] if ways else wrong


def _stand_in(name: str, mirror: Path | None) -> str:
    """Return a sentence about a stand-in that the mirror holds; it is never taken silently."""
    for other in DATASETS.values():
        if mirror is not None and other.stands_for == name and _holds(mirror, other.name):
            return f"The mirror has {other.name} ({other.note}): ask for it by that name. "
    return ""


def _holds(mirror: Path, name: str) -> bool:
    sources = [source for source in read_sources(name) if isinstance(source, Mirror)]
    return any(all((mirror / f).is_file() for f in source.paths(name)) for source in sources)

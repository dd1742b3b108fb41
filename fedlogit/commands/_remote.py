"""Where a remote of DVC lies."""

from __future__ import annotations

from pathlib import Path

from dvc.exceptions import DvcException
from dvc.repo import Repo

from fedlogit.errors import unknown

__all__ = ["check_remote", "folder_in_repository", "objects_in_repository"]


def check_remote(remote: str | None) -> None:
    """Refuse a remote that DVC's configuration does not have.

    Raises:
        FedlogitError: with the nearest name.
    """
    if remote is not None:
        with Repo() as repo:
            known = list(repo.config["remote"])
        if remote not in known:
            raise unknown("remote of DVC", remote, known)


def folder_in_repository(remote: str | None) -> Path | None:
    """Return the folder, from the repository's root, of a remote of DVC; None if it is elsewhere.

    Args:
        remote: Its name; None is the default one.
    """
    folder = objects_in_repository(remote)
    return folder and folder.relative_to(Path(Repo.find_root()).resolve()).parent.parent


def objects_in_repository(remote: str | None) -> Path | None:
    """Return the folder in which such a remote has its objects; None if it is elsewhere."""
    with Repo() as repo:
        try:
            found = repo.cloud.get_remote_odb(remote, "push")
        except DvcException:  # `dvc push` says what is wrong with it
            return None
        root, folder = Path(repo.root_dir).resolve(), Path(found.path).resolve()
    is_inside = found.fs.protocol == "local" and folder.is_relative_to(root)
    return folder if is_inside else None

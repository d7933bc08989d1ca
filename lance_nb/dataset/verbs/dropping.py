"""Delete a whole dataset: every version, branch and tag, and every other file below its root.

The root must hold a version that can be read: a mistyped path is refused, not emptied. Manifests of
main go last, so that what was interrupted can be done again. Files under other base paths stay, as
in pylance.

Source: ``LanceDataset.drop`` of pylance 14.0.2.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from lance_nb.dataset.session import open_session
from lance_nb.errors import (
    DatasetNotFoundError,
    FormatError,
    InvalidInputError,
    NotSupportedError,
    ObjectNotFoundError,
)
from lance_nb.format.layout import HINT_PATH, VERSIONS, branch_root
from lance_nb.storage.base import Store, prune, sync_folder
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.versions import load_manifest, version_names
from lance_nb.transactions.version_slots import forget_versions

_TREE = "tree/"


def drop(
    base_uri: str | os.PathLike[str],
    storage_options: StorageOptions | None = None,
    *,
    ignore_not_found: bool = False,
) -> None:
    """Delete the dataset at ``base_uri``.

    Raises InvalidInputError where there is something else, DatasetNotFoundError where there is
    nothing, StorageError.
    """
    root = open_session(base_uri, storage_options).root
    files = sorted(one.name for one in root.list_recursive(""))
    if not files:
        prune(root)
        if ignore_not_found:
            return
        raise DatasetNotFoundError(root.uri, "the folder is empty or does not exist")
    if not _has_a_version(root):
        raise InvalidInputError(
            f"{root.uri!r} is not the root of a dataset: {VERSIONS!r} has no readable manifest, "
            "so nothing was deleted. Check that the path is not a folder above the dataset. "
            "Remove files that belong to no version with the tools of the store"
        )
    branches = {_branch_folder(one) for one in files if one.startswith(_TREE)}
    manifests = [one for one in files if one.startswith(f"{VERSIONS}/") and one != HINT_PATH]
    _delete(root, sorted({*files} - {*manifests}))
    for folder in branches - {""}:
        forget_versions(root.child(folder))
    forget_versions(root)  # before the manifests, else their store would call for them again
    _delete(root, manifests)
    prune(root)


def _delete(root: Store, files: Sequence[str]) -> None:
    """Delete files durably: what is deleted after them may not be lost to a power failure first."""
    for one in files:
        root.delete(one)
    for folder in sorted({one.rpartition("/")[0] for one in files}):
        with suppress(ObjectNotFoundError):  # somebody else drops it too
            sync_folder(root, folder)


def _has_a_version(root: Store) -> bool:
    try:
        names = version_names(root)
    except (DatasetNotFoundError, FormatError):
        return False
    for name in reversed(names):
        try:
            load_manifest(root, name)
        except (FormatError, NotSupportedError, ObjectNotFoundError):
            continue
        return True
    return False


def _branch_folder(path: str) -> str:
    folder, found, _ = path.partition(f"/{VERSIONS}/")
    return branch_root(folder.removeprefix(_TREE)) if found else ""

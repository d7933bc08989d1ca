"""Rename the manifests of a V1 dataset to V2 names, which stores list newest first.

Each manifest is created under its V2 name (exclusively, the same bytes) and then loses its V1 name,
the oldest first, so the newest version has its old name as long as possible. It ends when a listing
shows no V1 names. Repeating it, also after a crash, is harmless.

A writer may see V1 names, and commit one more, while another process renames the manifests. Both
schemes would be there then, and readers refuse the dataset. So our commit under a V1 name lists
once more: if V2 names have appeared, it takes its own V2 slot if that is free, and else withdraws
its V1 file, which nobody can have read as part of the history.

Limits: while the migration runs, and after a crash until it is repeated, both schemes are there and
readers refuse the dataset. Writers other than ours (pylance) may commit one more version under a V1
name: it is renamed if its number is free; if not, a CommitConflictError names both and nothing is
lost. So: no writers while it runs, as pylance demands.
Source: ``migrate_manifest_paths_v2`` of pylance 14.0.2.
"""

from __future__ import annotations

from lance_nb.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    CorruptFileError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from lance_nb.format.layout import (
    VERSIONS,
    ManifestName,
    NamingScheme,
    manifest_path,
    parse_manifest_name,
)
from lance_nb.storage.base import Store, sync_folder
from lance_nb.transactions.version_slots import ManifestSlots

_ROUNDS_MAX = 10


def migrate_manifest_paths_v2(home: Store) -> int:
    """Rename every V1 manifest of a branch; return how many were.

    Raises CommitConflictError when a version exists under both names with different content, or
    when other writers keep adding V1 names; CommitStateUnknownError when everything was renamed and
    the disk did not confirm it: repeating it asks the disk again.
    """
    renamed = 0
    for _ in range(_ROUNDS_MAX):
        old = _v1_names(home)
        if not old:
            _sync(home)
            return renamed
        for name in old:
            renamed += _rename(home, name)
    raise CommitConflictError(
        f"other writers keep committing under V1 names to {home.uri!r}: stop them and repeat"
    )


def _sync(home: Store) -> None:
    """Make the new names durable, also those of an earlier call that the disk did not confirm."""
    try:
        sync_folder(home, VERSIONS)
    except StorageError as error:
        raise CommitStateUnknownError(
            f"every manifest of {home.uri!r} has its V2 name and everybody sees it, but the disk "
            f"did not confirm it ({error}): after a power failure V1 names may be back. Repeat "
            "migrate_manifest_paths_v2"
        ) from error


def _v1_names(home: Store) -> list[ManifestName]:
    parsed = [parse_manifest_name(name) for name in home.list_names(VERSIONS)]
    names = [name for name in parsed if name is not None and name.scheme is NamingScheme.V1]
    return sorted(names, key=lambda name: name.version)


def _rename(home: Store, old: ManifestName) -> int:
    try:
        data = bytes(home.read(old.path))
    except ObjectNotFoundError:
        return 0  # somebody else migrates too
    new = manifest_path(old.version, NamingScheme.V2)
    try:
        home.write_if_absent(new, data)
    except ObjectExistsError:
        if bytes(home.read(new)) != data:
            raise CommitConflictError(
                f"version {old.version} of {home.uri!r} exists twice: as {old.path} and as {new}. "
                "A writer committed under a V1 name after the migration; both files were kept. Do "
                "its change again on the V2 version, then delete the V1 file"
            ) from None
    home.delete(old.path)
    return 1


def settle_v1(slots: ManifestSlots, name: ManifestName, data: bytes) -> bool:
    """Make sure that a version created under a V1 name is part of the history.

    Return whether it is: its number may belong to somebody else's version with a V2 name.
    """
    try:
        slots.latest()
        return True
    except CorruptFileError:
        pass  # both schemes: somebody is migrating
    new = ManifestName(name.version, NamingScheme.V2)
    try:
        slots.home.write_if_absent(new.path, data)
        ours = True
    except ObjectExistsError:
        ours = bytes(slots.read(new)) == data  # the migration may have renamed ours
    slots.home.delete(name.path)
    return ours

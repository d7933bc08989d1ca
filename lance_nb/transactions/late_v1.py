"""A version that was committed under a V1 name while the names were being migrated.

A writer looks, sees V1 names, and commits one more; in between, another process has renamed the
manifests to V2 names. Then both schemes are there and readers refuse the dataset. So a commit under
a V1 name looks once more: if V2 names have appeared, it takes its own V2 slot if that is free, and
else withdraws its V1 file, which nobody can have read as part of the history.

Limits: protects writers that do this (ours); not those that do not (pylance).
"""

from __future__ import annotations

from lance_nb.errors import CorruptFileError, ObjectExistsError
from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.transactions.manifest_slots import ManifestSlots


def settle_v1(slots: ManifestSlots, name: ManifestName, data: bytes) -> bool:
    """Make sure that a version created under a V1 name is part of the history; tell whether."""
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

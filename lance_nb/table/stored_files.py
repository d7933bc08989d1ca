"""The files that are there: one listing of a dataset's folder, told apart by branch and kind.

=====================  =========================================================================
manifest               ``_versions/<number>.manifest``, detached ones too
temporary_manifest     ``_versions``: ``.tmp...``, ``....manifest#1`` of interrupted commits,
                       ``2.manifest-<uuid>`` staged by an external manifest store;
                       ``_refs``: ``.tmp...`` of tags and branches that were not finished;
                       ``_checksums``: ``.tmp...`` of records that were not finished
transaction            ``_transactions/*.txn``
data                   ``data/**``: ``.lance``, ``.blob``, ``.tmp...``
deletion               ``_deletions/*.arrow``, ``*.bin``, ``.tmp...``
index                  ``_indices/**``
ref                    ``_refs/**`` and the hints to the latest version
other                  everything else: nobody but its owner knows what it is for
=====================  =========================================================================

A file belongs to main or to the branch in whose folder (``tree/<name>``) it lies; a branch's folder
is known by its record or by the manifests in it. A folder below ``data`` that has versions of its
own is another dataset: its files are ``other``.

Limits: one listing at any depth; modification times are those of the store.
Source: kinds as ``explain_cleanup_old_versions`` of pylance 14.0.2 names them; format/layout.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from lance_nb.format import checksums, layout
from lance_nb.format.manifest_files import DATA, DELETION, INDEX, TRANSACTION, identity_of
from lance_nb.storage.base import Listing

MANIFEST, TEMPORARY_MANIFEST, REF, OTHER = "manifest", "temporary_manifest", "ref", "other"
KINDS = (DATA, DELETION, INDEX, TRANSACTION, MANIFEST, TEMPORARY_MANIFEST, REF, OTHER)
_TEMPORARY = ".tmp"
_DATA_SUFFIXES = (".lance", ".blob", _TEMPORARY)
_TREE = f"{layout.TREE}/"
_FOLDERS = (
    layout.VERSIONS, layout.TRANSACTIONS, layout.DATA, layout.DELETIONS, layout.INDICES,
    checksums.FOLDER,
)  # fmt: skip


class StoredFile(NamedTuple):
    """One file. ``path`` is below the root, ``home`` the folder of its branch ("" is main's).

    ``identity`` is what manifests know it by, None where they do not name it.
    """

    path: str
    size_bytes: int
    modified: datetime | None
    home: str
    kind: str
    identity: str | None = None


def homes_in(listing: Listing, branches: Iterable[str]) -> list[str]:
    """Return the folders of main ("") and of every branch, known by record or by manifests."""
    marker = f"/{layout.VERSIONS}/"
    found = {layout.branch_root(name) for name in branches}
    for one in listing:
        if one.name.startswith(_TREE):
            home, sign, name = one.name.rpartition(marker)
            if sign and layout.parse_manifest_name(name):
                found.add(home)
    return ["", *sorted(found)]


def classified(listing: Listing, homes: Iterable[str]) -> list[StoredFile]:
    """Tell the files of a listing apart, in the order of their paths."""
    folders = set(homes)
    foreign = _foreign_datasets(listing, folders)
    found = []
    for one in sorted(listing, key=attrgetter("name")):
        home, inside = _home_of(one.name, folders)
        kind, identity = _kind_of(inside)
        if foreign and one.name.startswith(foreign):
            kind, identity = OTHER, None
        found.append(StoredFile(one.name, one.size_bytes, one.modified, home, kind, identity))
    return found


def _home_of(path: str, homes: set[str]) -> tuple[str, str]:
    """Return (home, path below it): of several homes, the innermost."""
    if not path.startswith(_TREE):
        return "", path
    parts = path.split("/")
    for stop in range(len(parts) - 2, 1, -1):
        home = "/".join(parts[:stop])
        if parts[stop] in _FOLDERS and home in homes:
            return home, "/".join(parts[stop:])
    return "", path


def _kind_of(path: str) -> tuple[str, str | None]:
    """Return (kind, identity) of a path below the folder of its branch."""
    folder, _, inside = path.partition("/")
    name = inside.rpartition("/")[2]
    match folder:
        case layout.VERSIONS:
            return _kind_of_version(inside), None
        case layout.TRANSACTIONS if name.endswith(".txn") or name.startswith(_TEMPORARY):
            return TRANSACTION, identity_of(TRANSACTION, name)
        case layout.DELETIONS if name.endswith((".arrow", ".bin")) or name.startswith(_TEMPORARY):
            return DELETION, identity_of(DELETION, name)
        case layout.INDICES:
            return INDEX, identity_of(INDEX, inside.partition("/")[0])
        case layout.DATA if name.endswith(_DATA_SUFFIXES) or name.startswith(_TEMPORARY):
            owner = inside.rpartition("/")[0].rpartition("/")[2] if name.endswith(".blob") else name
            return DATA, identity_of(DATA, owner)
        case checksums.FOLDER if name.startswith(_TEMPORARY):
            return TEMPORARY_MANIFEST, None
        case "_refs":
            return (TEMPORARY_MANIFEST if name.startswith(_TEMPORARY) else REF), None
    return OTHER, None


def _kind_of_version(name: str) -> str:
    if name == layout.HINT_PATH.rpartition("/")[2]:
        return REF
    if layout.parse_manifest_name(name) is not None:
        return MANIFEST
    is_left = name.startswith(_TEMPORARY) or staged_version(name) is not None
    return TEMPORARY_MANIFEST if is_left else OTHER


def staged_version(name: str) -> int | None:
    """Return the version of a manifest that is not under its final name, None for other files."""
    stem, sign, rest = name.partition(".manifest")
    if not sign or rest[:1] not in ("#", "-"):
        return None
    found = layout.parse_manifest_name(f"{stem}{sign}")
    return None if found is None else found.version


def _foreign_datasets(listing: Listing, homes: set[str]) -> tuple[str, ...]:
    """Return the folders (with a slash) of datasets inside of the folders for data and indices."""
    marker = f"/{layout.VERSIONS}/"
    found = set()
    for one in listing:
        if marker in one.name:
            home = one.name.partition(marker)[0]
            if home not in homes:
                found.add(f"{home}/")
    return tuple(found)

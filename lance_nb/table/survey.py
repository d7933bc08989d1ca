"""A survey of a whole dataset: files, versions of every branch, tags and branches, at one moment.

Clean-ups delete files by it, so the order matters. Files are listed first, refs and versions after
them: a file that is committed meanwhile is either not in the listing, or its version is in the
survey, or it is younger than anything that may be deleted.

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
other                  everything else, which only its owner knows
=====================  =========================================================================

A file belongs to main or to the branch in whose folder (``tree/<name>``) it lies; a branch's folder
is known by its record or by the manifests in it. A folder below ``data`` that has versions of its
own is another dataset: its files are ``other``.

Limits: one recursive listing, one listing of versions per branch, one read per tag and branch; no
manifest is read. Modification times are those of the store.
Source: kinds as ``explain_cleanup_old_versions`` of pylance 14.0.2 names them; format/layout.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from lance_nb.errors import (
    CorruptFileError,
    FormatError,
    InvalidInputError,
    LanceError,
    NotFoundError,
)
from lance_nb.format import checksums, layout
from lance_nb.format.layout import ManifestName, list_versions, parse_manifest_name
from lance_nb.format.manifest_history import DATA, DELETION, INDEX, TRANSACTION, identity_of
from lance_nb.storage.base import Listing, Store, check_path
from lance_nb.table import refs
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.format.refs import Branch, Tag

MANIFEST, TEMPORARY_MANIFEST, REF, OTHER = "manifest", "temporary_manifest", "ref", "other"
KINDS = (DATA, DELETION, INDEX, TRANSACTION, MANIFEST, TEMPORARY_MANIFEST, REF, OTHER)
_TEMPORARY = ".tmp"
_DATA_SUFFIXES = (".lance", ".blob", _TEMPORARY)
_TREE = f"{layout.TREE}/"
_FOLDERS = (
    layout.VERSIONS, layout.TRANSACTIONS, layout.DATA, layout.DELETIONS, layout.INDICES,
    checksums.FOLDER,
)  # fmt: skip
Record = TypeVar("Record")


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


@dataclass(frozen=True, slots=True)
class LineOfVersions:
    """The versions of main or of a branch. ``branch`` is None for main, ``folder`` then empty."""

    folder: str
    branch: str | None
    names: tuple[ManifestName, ...]
    detached: tuple[ManifestName, ...]

    @property
    def numbers(self) -> list[int]:
        """The version numbers, oldest first."""
        return [name.version for name in self.names]


class Unusable(NamedTuple):
    """What a tolerant survey left out: a ``tag``, ``branch``, ``name`` of a branch, or ``line``.

    ``name`` is that of the tag or branch, or the folder of the line of versions, whose manifests
    are named in two ways.
    """

    kind: str
    name: str
    error: LanceError


@dataclass(frozen=True, slots=True)
class Survey:
    """The result of a survey. ``lines`` by folder; ``manifests`` are the listed files by path."""

    root: Store
    files: tuple[StoredFile, ...]
    lines: Mapping[str, LineOfVersions]
    tags: Mapping[str, Tag]
    branches: Mapping[str, Branch]
    manifests: Mapping[str, StoredFile]
    unusable: tuple[Unusable, ...] = ()

    def store(self, folder: str) -> Store:
        """Return the store of a branch's folder."""
        return self.root.child(folder) if folder else self.root

    def manifest(self, folder: str, name: ManifestName) -> StoredFile | None:
        """Return the listed file of a version, None if it came after the listing."""
        return self.manifests.get(f"{folder}/{name.path}" if folder else name.path)

    def fork_versions(self, branch: str | None) -> dict[int, list[str]]:
        """Return the versions of a branch that other branches started from, with their names."""
        versions: dict[int, list[str]] = {}
        for name, version in sorted(set(forks(self.branches, branch))):
            versions.setdefault(version, []).append(name)
        return versions

    def tagged_versions(self, branch: str | None) -> dict[int, list[str]]:
        """Return the versions of a branch that have tags, with the names of these."""
        versions: dict[int, list[str]] = {}
        for name, tag in self.tags.items():
            if tag.branch == branch:
                versions.setdefault(tag.version, []).append(name)
        return versions

    def without(self, tags: Collection[str], branches: Collection[str]) -> Survey:
        """Return the survey as if these tags and branches had no record."""
        return replace(
            self,
            tags={name: tag for name, tag in self.tags.items() if name not in tags},
            branches={
                name: branch for name, branch in self.branches.items() if name not in branches
            },
        )


def take_survey(root: Store, *, tolerant: bool = False) -> Survey:
    """Survey a dataset.

    ``tolerant`` skips what cannot be used and records it; else raises FormatError for a damaged
    tag or branch, for one that no folder can be named after, and for manifests that are named in
    two ways. Raises StorageError.
    """
    listing = root.list_recursive("")
    unusable: list[Unusable] | None = [] if tolerant else None
    branches, tags = refs_of(root, unusable)
    folders = _branch_folders(root, listing, branches, unusable)
    usable = set(folders)
    branches = {
        name: branch for name, branch in branches.items() if layout.branch_root(name) in usable
    }
    files = tuple(classified(listing, folders))
    listed: dict[str, list[str]] = {folder: [] for folder in folders}
    for file in files:
        if file.kind == MANIFEST:
            listed[file.home].append(file.path.rpartition("/")[2])
    lines = {folder: line_of(root, folder, listed[folder], unusable) for folder in folders}
    manifests = {file.path: file for file in files if file.kind == MANIFEST}
    return Survey(
        root=root,
        files=files,
        lines=lines,
        tags=tags,
        branches=branches,
        manifests=manifests,
        unusable=tuple(unusable or ()),
    )


def refs_of(
    root: Store, unusable: list[Unusable] | None = None
) -> tuple[dict[str, Branch], dict[str, Tag]]:
    """Read all branches and tags; main is None in them, whichever way it was written.

    Damaged records are added to ``unusable``; without it, raises FormatError.
    """
    branches = {
        name: _normal_branch(ref)
        for name, ref in _read_all(
            root, refs.branch_names, refs.read_branch, kind="branch", unusable=unusable
        )
    }
    tags = _read_all(root, refs.tag_names, refs.read_tag, kind="tag", unusable=unusable)
    return branches, {name: _normal(tag) for name, tag in tags}


def _read_all(
    root: Store,
    names: Callable[[Store], list[str]],
    read: Callable[[Store, str], Record],
    kind: str,
    unusable: list[Unusable] | None,
) -> Iterator[tuple[str, Record]]:
    for name in names(root):
        try:
            yield name, read(root, name)
        except (FormatError, NotFoundError, InvalidInputError) as error:
            if unusable is None:
                raise
            unusable.append(Unusable(kind, name, error))


def _normal(tag: Tag) -> Tag:
    return replace(tag, branch=None) if tag.branch == refs.MAIN else tag


def _normal_branch(branch: Branch) -> Branch:
    return replace(branch, parent_branch=None) if branch.parent_branch == refs.MAIN else branch


def branch_folders(root: Store) -> list[str]:
    """List the folders of branches that have a record or versions now.

    pylance writes the versions of a new branch before its record.
    """
    prefix = f"{layout.TREE}/"
    listing = [
        replace(entry, name=prefix + entry.name) for entry in root.list_recursive(layout.TREE)
    ]
    return _branch_folders(root, listing, refs.branch_names(root))[1:]


def _branch_folders(
    root: Store,
    listing: Listing,
    branches: Iterable[str],
    unusable: list[Unusable] | None = None,
) -> list[str]:
    """Return the folders of main and of every branch; others may have written any name."""
    usable = []
    for name in branches:
        try:
            check_path(layout.branch_root(name))
            usable.append(name)
        except InvalidInputError as error:
            damage = _unusable(root, name)
            if unusable is None:
                raise damage from error
            unusable.append(Unusable("name", name, damage))
    return homes_in(listing, usable)


def _unusable(root: Store, name: str) -> CorruptFileError:
    record = layout.branch_path(name)
    expected = "the name of a folder below tree, as every branch has one"
    advice = (
        f"nobody can open this branch: delete {record} if it is not needed, "
        "else have who wrote it create it under another name"
    )
    return CorruptFileError(f"{root.uri}/{record}", None, expected, repr(name), advice=advice)


def line_of(
    root: Store, folder: str, listed: list[str], unusable: list[Unusable] | None = None
) -> LineOfVersions:
    """List the versions of a branch now; ``listed`` are names that were seen before.

    A version that was listed before and is deleted now is included; reading it fails. Of manifests
    that are named in two ways, those of the usual one are taken, and ``unusable`` records it.
    """
    home = root.child(folder) if folder else root
    names = {*home.list_names(layout.VERSIONS), *listed}
    parsed = (parse_manifest_name(name) for name in names if name.startswith("d"))
    detached = sorted(
        (name for name in parsed if name is not None and name.detached),
        key=lambda name: name.version,
    )
    branch = folder.removeprefix(f"{layout.TREE}/") or None
    where = f"{home.uri}/{layout.VERSIONS}"
    try:
        versions = list_versions(names, where)
    except CorruptFileError as error:
        if unusable is None:
            raise
        unusable.append(Unusable("line", folder, error))
        versions = list_versions([name for name in names if not _is_of_first_scheme(name)], where)
    return LineOfVersions(folder, branch, tuple(versions), tuple(detached))


def _is_of_first_scheme(name: str) -> bool:
    manifest_name = parse_manifest_name(name)
    return manifest_name is not None and manifest_name.scheme is layout.NamingScheme.V1


def forks(branches: Mapping[str, Branch], of: str | None) -> Iterator[tuple[str, int]]:
    """Yield (branch, version of ``of`` that it started from), for branches of branches too."""
    mine = branches[of].identifier if of is not None and of in branches else ()
    for name, branch in branches.items():
        if name == of:
            continue
        if branch.parent_branch == of:
            yield name, branch.parent_version
        hops = branch.identifier
        if (of is None or mine) and len(hops) > len(mine) and hops[: len(mine)] == mine:
            yield name, hops[len(mine)][0]


def homes_in(listing: Listing, branches: Iterable[str]) -> list[str]:
    """Return the folders of main ("") and of every branch, known by record or by manifests."""
    marker = f"/{layout.VERSIONS}/"
    homes = {layout.branch_root(name) for name in branches}
    for entry in listing:
        if entry.name.startswith(_TREE):
            home, sign, name = entry.name.rpartition(marker)
            if sign and layout.parse_manifest_name(name):
                homes.add(home)
    return ["", *sorted(homes)]


def classified(listing: Listing, homes: Iterable[str]) -> list[StoredFile]:
    """Classify the files of a listing by branch and kind, sorted by path."""
    folders = set(homes)
    foreign = _foreign_datasets(listing, folders)
    files = []
    for entry in sorted(listing, key=attrgetter("name")):
        home, inside = _home_of(entry.name, folders)
        kind, identity = _kind_of(inside)
        if foreign and entry.name.startswith(foreign):
            kind, identity = OTHER, None
        files.append(
            StoredFile(
                entry.name,
                entry.size_bytes,
                entry.modified,
                home=home,
                kind=kind,
                identity=identity,
            )
        )
    return files


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
    stem, sign, after = name.partition(".manifest")
    if not sign or after[:1] not in ("#", "-"):
        return None
    manifest_name = layout.parse_manifest_name(f"{stem}{sign}")
    return None if manifest_name is None else manifest_name.version


def _foreign_datasets(listing: Listing, homes: set[str]) -> tuple[str, ...]:
    """Return the folders (with a slash) of datasets inside of the folders for data and indices."""
    marker = f"/{layout.VERSIONS}/"
    folders = set()
    for entry in listing:
        if marker in entry.name:
            home = entry.name.partition(marker)[0]
            if home not in homes:
                folders.add(f"{home}/")
    return tuple(folders)

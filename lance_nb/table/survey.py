"""A survey of a whole dataset: files, versions of every branch, tags and branches, at one moment.

What deletes files stands on it, so the order matters. Files are listed first, refs and versions
after them: a file that somebody commits meanwhile is either not in the listing, or its version is
in the survey, or it is younger than anything that may be deleted.

Limits: one recursive listing, one listing of versions per branch, one read per tag and branch; no
manifest is read here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.format import layout
from lance_nb.format.layout import ManifestName, list_versions, parse_manifest_name
from lance_nb.storage.base import Listing, Store, check_path
from lance_nb.table import refs
from lance_nb.table.stored_files import MANIFEST, StoredFile, classified, homes_in

if TYPE_CHECKING:
    from lance_nb.format.refs import Branch, Tag


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
        return [one.version for one in self.names]


@dataclass(frozen=True, slots=True)
class Survey:
    """What was there. ``lines`` by folder; ``manifests`` are the listed files by their path."""

    root: Store
    files: tuple[StoredFile, ...]
    lines: Mapping[str, LineOfVersions]
    tags: Mapping[str, Tag]
    branches: Mapping[str, Branch]
    manifests: Mapping[str, StoredFile]

    def store(self, folder: str) -> Store:
        """Return the store of a branch's folder."""
        return self.root.child(folder) if folder else self.root

    def manifest(self, folder: str, name: ManifestName) -> StoredFile | None:
        """Return the listed file of a version, None if it came after the listing."""
        return self.manifests.get(f"{folder}/{name.path}" if folder else name.path)

    def fork_versions(self, branch: str | None) -> dict[int, list[str]]:
        """Return the versions of a branch that other branches started from, with their names."""
        found: dict[int, list[str]] = {}
        for name, version in sorted(set(forks(self.branches, branch))):
            found.setdefault(version, []).append(name)
        return found

    def tagged_versions(self, branch: str | None) -> dict[int, list[str]]:
        """Return the versions of a branch that have tags, with the names of these."""
        found: dict[int, list[str]] = {}
        for name, tag in self.tags.items():
            if tag.branch == branch:
                found.setdefault(tag.version, []).append(name)
        return found

    def without(self, tags: Collection[str], branches: Collection[str]) -> Survey:
        """Return the survey as if these tags and branches had no record."""
        return replace(
            self,
            tags={name: one for name, one in self.tags.items() if name not in tags},
            branches={name: one for name, one in self.branches.items() if name not in branches},
        )


def take_survey(root: Store) -> Survey:
    """Look at a dataset.

    Raises FormatError for a damaged tag or branch, and for one that no folder can be named after;
    StorageError.
    """
    listing = root.list_recursive("")
    branches, tags = refs_of(root)
    folders = _homes(root, listing, branches)
    files = tuple(classified(listing, folders))
    listed: dict[str, list[str]] = {folder: [] for folder in folders}
    for one in files:
        if one.kind == MANIFEST:
            listed[one.home].append(one.path.rpartition("/")[2])
    lines = {folder: line_of(root, folder, listed[folder]) for folder in folders}
    manifests = {one.path: one for one in files if one.kind == MANIFEST}
    return Survey(root, files, lines, tags, branches, manifests)


def refs_of(root: Store) -> tuple[dict[str, Branch], dict[str, Tag]]:
    """Read all branches and tags; main is None in them, whichever way it was written."""
    branches = {name: _normal_branch(one) for name, one in refs.list_branches(root).items()}
    return branches, {name: _normal(tag) for name, tag in refs.list_tags(root).items()}


def _normal(tag: Tag) -> Tag:
    return replace(tag, branch=None) if tag.branch == refs.MAIN else tag


def _normal_branch(branch: Branch) -> Branch:
    return replace(branch, parent_branch=None) if branch.parent_branch == refs.MAIN else branch


def branch_folders(root: Store) -> list[str]:
    """List the folders of branches that have a record or versions now.

    pylance writes the versions of a new branch before its record.
    """
    prefix = f"{layout.TREE}/"
    listing = [replace(one, name=prefix + one.name) for one in root.list_recursive(layout.TREE)]
    return _homes(root, listing, refs.branch_names(root))[1:]


def _homes(root: Store, listing: Listing, branches: Iterable[str]) -> list[str]:
    """Return the folders of main and of every branch; others may have written any name."""
    for name in branches:
        try:
            check_path(layout.branch_root(name))
        except InvalidInputError as error:
            raise _unusable(root, name) from error
    return homes_in(listing, branches)


def _unusable(root: Store, name: str) -> CorruptFileError:
    record = layout.branch_path(name)
    expected = "the name of a folder below tree, as every branch has one"
    advice = (
        f"nobody can open this branch: delete {record} if it is not needed, "
        "else have who wrote it create it under another name"
    )
    return CorruptFileError(f"{root.uri}/{record}", None, expected, repr(name), advice=advice)


def line_of(root: Store, folder: str, listed: list[str]) -> LineOfVersions:
    """List the versions of a branch now; ``listed`` are names that were seen before.

    A version that was seen before and is gone now stays in: reading it will tell.
    """
    home = root.child(folder) if folder else root
    names = {*home.list_names(layout.VERSIONS), *listed}
    parsed = (parse_manifest_name(name) for name in names if name.startswith("d"))
    detached = sorted(
        (one for one in parsed if one is not None and one.detached), key=lambda one: one.version
    )
    branch = folder.removeprefix(f"{layout.TREE}/") or None
    where = f"{home.uri}/{layout.VERSIONS}"
    return LineOfVersions(folder, branch, tuple(list_versions(names, where)), tuple(detached))


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

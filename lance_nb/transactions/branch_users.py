"""What refers to a branch: branches that started from it, tags on it, and who reads its files.

A branch that has merged another one reads the files of it where they are. Which these are is told
by the manifests alone, so every version of every other line is read, the newest first, until one
is found that does.

Limits: clones outside of the dataset are not known. What refers to a branch is looked up, not
locked: a tag that is created in that moment is not seen.
Source: spec page "branch and tag"; base paths of the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lance_nb.errors import ObjectNotFoundError, RefConflictError
from lance_nb.format.layout import ManifestName
from lance_nb.format.refs import Branch
from lance_nb.storage.base import Store
from lance_nb.storage.registry import split_uri
from lance_nb.table import refs
from lance_nb.table.refs import Target
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.tag_writer import PlaceOf
from lance_nb.transactions.version_source import Version, parse_version

Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class BranchUsers:
    """Who needs a branch. Children are (name, version they started from), tags (name, version).

    ``readers``: (branch, None for main; the newest version of it that reads files of this one).
    """

    children: tuple[tuple[str, int], ...] = ()
    tags: tuple[tuple[str, int], ...] = ()
    readers: tuple[tuple[str | None, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.children or self.tags or self.readers)

    def words(self) -> list[str]:
        """Name them, one by one."""
        found = [f"branch {name!r} (from version {at})" for name, at in self.children]
        found += [f"tag {name!r} (version {at})" for name, at in self.tags]
        for reader, at in self.readers:
            shown = refs.MAIN if reader is None else f"branch {reader!r}"
            found.append(f"{shown} (version {at} reads files that it has merged)")
        return found


@dataclass(frozen=True, slots=True)
class BranchDeletion:
    """What deleting a branch would take away; nothing while ``users`` need it.

    ``fork`` is the version that it started from, which loses its protection. ``versions`` are the
    branch's own, the first of them the copy of the fork.
    """

    name: str
    fork: Target
    versions: tuple[int, ...]
    num_files: int
    size_bytes: int
    users: BranchUsers

    def __str__(self) -> str:
        first = (
            f"deleting branch {self.name!r}: {len(self.versions)} versions, "
            f"{self.num_files} files, {self.size_bytes:,} bytes"
        )
        return "\n".join([first, *(f"refused: {one}" for one in self.users.words())])


def users_of(
    root: Store, place_of: PlaceOf, name: str, progress: Progress | None = None
) -> BranchUsers:
    """Find who needs a branch. ``progress`` is told the versions looked at, and all of them."""
    branches = refs.list_branches(root)
    mine = branches[name].identifier if name in branches else ()
    others = [
        one
        for one in (None, *branches)
        if one != name and not (one is not None and _inherits(branches[one], mine))
    ]
    readers = _readers({one: place_of(one) for one in others}, place_of(name), progress)
    return BranchUsers(
        _children(branches, name, mine),
        tuple(
            (tag, one.version) for tag, one in refs.list_tags(root).items() if one.branch == name
        ),
        tuple(readers),
    )


def check_unused(name: str, users: BranchUsers) -> None:
    """Raise RefConflictError if somebody needs the branch."""
    if users:
        raise RefConflictError(
            f"branch {name!r} cannot be deleted: {', '.join(users.words())} would lose what they "
            "refer to; delete them first, or force it"
        )


def _children(
    branches: Mapping[str, Branch], name: str, mine: Sequence[tuple[int, str]]
) -> tuple[tuple[str, int], ...]:
    """Return the branches that started from this one, at any depth."""
    return tuple(
        (other, branch.parent_version)
        for other, branch in branches.items()
        if branch.parent_branch == name or (other != name and _inherits(branch, mine))
    )


def _inherits(branch: Branch, mine: Sequence[tuple[int, str]]) -> bool:
    return bool(mine) and branch.identifier[: len(mine)] == mine


def _readers(
    others: Mapping[str | None, CommitPlace], place: CommitPlace, progress: Progress | None
) -> Iterator[tuple[str | None, int]]:
    """Find the branches that read files of a place because they have merged it.

    Those that started from it are not among ``others``: they do so by being its children.
    """
    wanted = _plain(place.home.uri)
    names = {other: one.slots.list_names()[::-1] for other, one in others.items()}
    done, total = 0, sum(map(len, names.values()))
    for other, versions in names.items():
        for at, name in enumerate(versions):
            if progress is not None:
                progress(done + at, total)
            if _reads_from(others[other], name, wanted):
                yield other, name.version
                break
        done += len(versions)


def _reads_from(place: CommitPlace, name: ManifestName, wanted: tuple[str, str]) -> bool:
    try:
        data = place.slots.read(name)
    except ObjectNotFoundError:
        return False  # cleaned up meanwhile
    found = parse_version(data, name, f"{place.home.uri}/{name.path}")
    bases = place.locations(found.manifest).present_bases()
    ids = {one.id for one in bases if _plain(one.path) == wanted}
    return bool(ids) and not ids.isdisjoint(_bases_in_use(found))


def is_same_place(uri: str, other: str) -> bool:
    """Tell whether two URIs name one folder, by their text."""
    return _plain(uri) == _plain(other)


def _plain(uri: str) -> tuple[str, str]:
    scheme, path = split_uri(uri)
    return scheme, path.rstrip("/")


def _bases_in_use(version: Version) -> Iterator[int | None]:
    yield from (one.base_id for one in version.indices)
    for fragment in version.manifest.fragments:
        yield from (one.base_id for one in fragment.files)
        if fragment.deletion_file is not None:
            yield fragment.deletion_file.base_id

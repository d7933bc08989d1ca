"""Tags and branches of a dataset: read and cached.

They are files in ``_refs`` of the root; a tag may point at a version of a branch. Which version a
ref means is found by ``table/ref_grammar``.

Each record is cached for as long as its file is unchanged. Other writers may move a tag at any
time, so the folder is listed on every call, and a cached record is used only where the listing
shows the very file that was read: the same size and the same e-tag (see ``ObjectInfo``; of local
files it is made of inode and time of change). A store whose listing has no e-tag, and a file so
young that a change might not show, are read again each time.

Limits: a ref file has at most 1 MB. ``KEPT_MAX`` records of a kind are kept; records of deleted
files are dropped.
Source: spec page "branch and tag"; both JSON spellings.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from lance_nb.errors import (
    CorruptFileError,
    FormatError,
    NotFoundError,
    ObjectNotFoundError,
    RefNotFoundError,
)
from lance_nb.format import layout
from lance_nb.storage.base import ObjectInfo, Store
from lance_nb.storage.threads import run_all
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.format.refs import Branch, Tag

Ref = int | str | date | tuple[str | None, int | None]  # a datetime is a date
MAIN = "main"


@dataclass(frozen=True, slots=True)
class Target:
    """What a ref resolves to: branch (None is main) and version (None is the latest).

    ``tag`` is the tag that was resolved, for messages.
    """

    branch: str | None
    version: int | None
    tag: str | None = field(default=None, compare=False, repr=False)


def list_tags(root: Store) -> dict[str, Tag]:
    """Read every tag, sorted by name. Raises CorruptFileError for one that is damaged."""
    names = tag_names(root)
    return dict(zip(names, _read_each(root, read_tag, names), strict=True))


def list_branches(root: Store) -> dict[str, Branch]:
    """Read every branch, sorted by name. Main has no file and is not listed."""
    names = branch_names(root)
    return dict(zip(names, _read_each(root, read_branch, names), strict=True))


def tag_names(root: Store) -> list[str]:
    """List tag names, sorted."""
    return _names(root, layout.TAGS)


def branch_names(root: Store) -> list[str]:
    """List branch names, sorted."""
    return _names(root, layout.BRANCHES)


def read_tag(root: Store, name: str) -> Tag:
    """Read one tag. Raises RefNotFoundError."""
    from lance_nb.format.refs import Tag

    path = layout.tag_path(name)
    try:
        return Tag.from_bytes(root.read(path), f"{root.uri}/{path}")
    except ObjectNotFoundError as exc:
        raise _missing(root, path, "tag", name) from exc


def read_branch(root: Store, name: str) -> Branch:
    """Read one branch. Raises RefNotFoundError."""
    from lance_nb.format.refs import Branch

    path = layout.branch_path(name)
    try:
        return Branch.from_bytes(root.read(path), f"{root.uri}/{path}")
    except ObjectNotFoundError as exc:
        raise _missing(root, path, "branch", name) from exc


def is_absent(root: Store, path: str, name: str) -> bool:
    """Tell whether a local folder has no record of exactly this name, although it may find one.

    A file system may not tell capitals apart: there the file of branch "dev" answers to "DEV", and
    only the listing tells. On other stores this is False; reading the record tells.
    """
    return root.scheme == "file" and name not in _names(root, path.rpartition("/")[0])


def has_versions(home: Store) -> bool:
    """Tell whether a branch's folder holds a version.

    The hint that writers leave beside the manifests is believed, which spares a listing.
    """
    if home.exists(layout.HINT_PATH):
        return True
    return any(layout.parse_manifest_name(name) for name in home.list_names(layout.VERSIONS))


def unfinished_problem(root: Store, name: str) -> str | None:
    """Say what is to be done about a branch that has a record and no version; None: it has one."""
    if has_versions(branch_store(root, name)):
        return None
    branch = read_branch(root, name)
    fork = f"{branch.parent_branch or MAIN}:{branch.parent_version}"
    return (
        f"branch {name!r} is unfinished: it has a record and no version, because its creation from "
        f"{fork} or its deletion was interrupted, or is under way; create it again from {fork} to "
        f"complete it, or remove it with branches.delete({name!r})"
    )


def _missing(root: Store, path: str, kind: str, name: str) -> CorruptFileError | RefNotFoundError:
    """Say why there is no record at its path: none anywhere, or one whose file is misspelled.

    pylance, too, lists the second and finds none: it fails on the whole list.
    """
    folder, _, file_name = path.rpartition("/")
    files = root.list_names(folder)
    names = {layout.parse_ref_file_name(file): file for file in files}
    file = names.get(name, file_name)
    if file == file_name:  # there is none, or there was none when it was looked for
        return RefNotFoundError(
            kind, name, tuple(sorted(name for name in names if name is not None))
        )
    advice = f"rename it to {file_name}, or delete it if the {kind} is not needed"
    expected = f"a file named {file_name}, where {kind} {name!r} is looked for"
    return CorruptFileError(f"{root.uri}/{folder}/{file}", None, expected, file, advice=advice)


def branch_store(root: Store, branch: str | None) -> Store:
    """Return the store of a branch's own folder."""
    return root if branch is None else root.child(layout.branch_root(branch))


def _names(root: Store, folder: str) -> list[str]:
    names = (layout.parse_ref_file_name(name) for name in root.list_names(folder))
    return sorted(name for name in names if name is not None)


KEPT_MAX = 20_000
_LOCAL = ("file", "memory")

Record = TypeVar("Record")


def _read_each(
    root: Store, read: Callable[[Store, str], Record], names: Iterable[str]
) -> list[Record]:
    """Read records in order: side by side where a request takes long."""
    tasks = [partial(read, root, name) for name in names]
    return [task() for task in tasks] if root.scheme in _LOCAL else run_all(tasks)


class RefCache:
    """What the records below one root say now. Safe for several threads."""

    def __init__(self, root: Store) -> None:
        self._tags = _Folder(root, layout.TAGS, read_tag)
        self._branches = _Folder(root, layout.BRANCHES, read_branch)
        self._root = root
        self._finished: dict[str, Branch] = {}

    def tags(self) -> dict[str, Tag]:
        """Return every tag, sorted by name. Raises CorruptFileError for one that is damaged."""
        return self._tags.records(readable=False)

    def tag_marks(self) -> dict[str, str]:
        """By name, a text that differs when the tag was written again; one listing, reads no tag.

        Of a store that tells neither e-tags nor times, only a tag of another length differs.
        """
        return self._tags.marks()

    def readable_tags(self) -> dict[str, Tag]:
        """Return the tags, those left out whose file is damaged or gone."""
        return self._tags.records(readable=True)

    def branches(self) -> dict[str, Branch]:
        """Return every branch, sorted by name. Main has no file and is not listed."""
        return self._branches.records(readable=False)

    def unfinished(self, branches: Mapping[str, Branch]) -> frozenset[str]:
        """Return which of the branches have a record and no version.

        On a store that is far away a branch is asked for once for as long as its record stays.
        """
        is_local = self._root.scheme in _LOCAL
        names = [
            name
            for name, branch in branches.items()
            if is_local or self._finished.get(name) != branch
        ]
        looks = [partial(has_versions, branch_store(self._root, name)) for name in names]
        results = [look() for look in looks] if is_local else run_all(looks)
        missing = {name for name, exists in zip(names, results, strict=True) if not exists}
        self._finished = {name: branch for name, branch in branches.items() if name not in missing}
        return frozenset(missing)


class _Folder(Generic[Record]):
    """The records of one folder: by name the state of the file that was read, and what it said."""

    def __init__(self, root: Store, path: str, read: Callable[[Store, str], Record]) -> None:
        self._root, self._path, self._read = root, path, read
        self._records: dict[str, tuple[tuple[str, int], Record]] = {}
        self._lock = threading.Lock()

    def records(self, *, readable: bool) -> dict[str, Record]:
        """Return what is there now; ``readable`` leaves out what cannot be read."""
        states = self._states()
        with self._lock:
            cached = {name: self._records[name] for name in states.keys() & self._records.keys()}
        fresh = [name for name, state in states.items() if state is None or name not in cached
                 or cached[name][0] != state]  # fmt: skip
        records = {name: record for name, (_, record) in cached.items()}
        for name in fresh:
            records.pop(name, None)
        records |= self._read_all(fresh, readable=readable)
        with self._lock:
            self._records = {
                name: (state, records[name])
                for name, state in list(states.items())[:KEPT_MAX]
                if state is not None and name in records
            }
        return {name: records[name] for name in sorted(records)}

    def marks(self) -> dict[str, str]:
        """Return by name what of the listing differs when a file was written again."""
        return {
            name: f"{info.size_bytes} {info.e_tag or info.modified}"
            for name, info in self._listed()
        }

    def _states(self) -> dict[str, tuple[str, int] | None]:
        """List the folder: by name what tells one state of a file from another, if that is told."""
        return {
            name: None if info.e_tag is None else (info.e_tag, info.size_bytes)
            for name, info in self._listed()
        }

    def _listed(self) -> Iterator[tuple[str, ObjectInfo]]:
        for info in self._root.list(self._path):
            name = layout.parse_ref_file_name(info.name)
            if name is not None:
                yield name, info

    def _read_all(self, names: list[str], *, readable: bool) -> dict[str, Record]:
        def read_readable(root: Store, name: str) -> Record | None:
            with suppress(FormatError, NotFoundError):
                return self._read(root, name)
            return None

        records = _read_each(self._root, read_readable if readable else self._read, names)
        pairs = zip(names, records, strict=True)
        return {name: record for name, record in pairs if record is not None}

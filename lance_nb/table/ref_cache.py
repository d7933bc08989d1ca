"""The tags and branches of one dataset, each cached for as long as its file is unchanged.

Other writers may move a tag at any time, so the folder is listed on every call, and a cached record
is used only where the listing shows the very file that was read: the same size and the same e-tag
(see ``ObjectInfo``; of local files it is made of inode and time of change). A store whose listing
has no e-tag, and a file so young that a change might not show, are read again each time.

Limits: ``KEPT_MAX`` records of a kind are kept; records of deleted files are dropped.
Source: spec page "branch and tag".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from lance_nb.errors import FormatError, NotFoundError
from lance_nb.format import layout
from lance_nb.storage.base import ObjectInfo, Store
from lance_nb.storage.threads import run_all
from lance_nb.table.refs import branch_store, has_versions, read_branch, read_tag

if TYPE_CHECKING:
    from lance_nb.format.refs import Branch, Tag

KEPT_MAX = 20_000
_LOCAL = ("file", "memory")

Record = TypeVar("Record")


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
        asked = [
            name
            for name, branch in branches.items()
            if is_local or self._finished.get(name) != branch
        ]
        looks = [partial(has_versions, branch_store(self._root, name)) for name in asked]
        found = [look() for look in looks] if is_local else run_all(looks)
        missing = {name for name, one in zip(asked, found, strict=True) if not one}
        self._finished = {name: branch for name, branch in branches.items() if name not in missing}
        return frozenset(missing)


class _Folder(Generic[Record]):
    """The records of one folder: by name the state of the file that was read, and what it said."""

    def __init__(self, root: Store, path: str, read: Callable[[Store, str], Record]) -> None:
        self._root, self._path, self._read = root, path, read
        self._kept: dict[str, tuple[tuple[str, int], Record]] = {}
        self._lock = threading.Lock()

    def records(self, *, readable: bool) -> dict[str, Record]:
        """Return what is there now; ``readable`` leaves out what cannot be read."""
        states = self._states()
        with self._lock:
            kept = {name: self._kept[name] for name in states.keys() & self._kept.keys()}
        fresh = [name for name, state in states.items() if state is None or name not in kept
                 or kept[name][0] != state]  # fmt: skip
        found = {name: record for name, (_, record) in kept.items()}
        for name in fresh:
            found.pop(name, None)
        found |= self._read_all(fresh, readable=readable)
        with self._lock:
            self._kept = {
                name: (state, found[name])
                for name, state in list(states.items())[:KEPT_MAX]
                if state is not None and name in found
            }
        return {name: found[name] for name in sorted(found)}

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
        """Read records: side by side where a read is a journey."""

        def read(name: str) -> Record | None:
            if not readable:
                return self._read(self._root, name)
            with suppress(FormatError, NotFoundError):
                return self._read(self._root, name)
            return None

        if self._root.scheme in _LOCAL:
            records = [read(name) for name in names]
        else:
            records = run_all([lambda name=name: read(name) for name in names])  # type: ignore[misc]
        both = zip(names, records, strict=True)
        return {name: record for name, record in both if record is not None}

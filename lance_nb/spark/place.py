"""Place: one pinned version of a dataset, as a value that travels to other processes.

A task opens exactly this version, never "the newest": what it finds is committed with it as the
read version, so that what others committed meanwhile is met by the commit and by nothing else.
A dataset that was deleted and made anew in the same folder has versions of the same numbers: a
place knows its version by the stamp of its commit too, and refuses another one.

Limits: storage options travel as they are; credentials in them reach the executors.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from lance_nb.dataset import LanceDataset, LanceFragment
from lance_nb.dataset.opened import check_stamp, stamp_of
from lance_nb.dataset.session import Session, open_session
from lance_nb.errors import VersionNotFoundError
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot

_KEPT_OPEN = 4


@dataclass(frozen=True, slots=True)
class Place:
    """A dataset at one version. ``branch`` None is main; version 0: there is no dataset yet.

    ``stamp`` says which version was pinned: its number, time and transaction. It stays when
    ``version`` is replaced by another one of the same dataset, which is then not compared.
    ``reads_checked``: files are compared with their checksums before they are read.
    """

    uri: str
    version: int
    branch: str | None = None
    storage_options: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    allow_bases: tuple[str, ...] = ()
    stamp: str = ""
    reads_checked: bool = False

    @classmethod
    def of(cls, dataset: LanceDataset) -> Place:
        """Pin the version that a dataset stands at."""
        return cls.at(*dataset.opened)

    @classmethod
    def at(cls, session: Session, snapshot: Snapshot | None) -> Place:
        """Pin a version, or the folder where a dataset will be."""
        uri = session.uri
        return cls(
            uri if "://" in uri else str(Path(uri).absolute()),
            0 if snapshot is None else snapshot.version,
            None if snapshot is None else snapshot.branch,
            _frozen(session.storage_options),
            session.trusted_bases,
            stamp="" if snapshot is None else stamp_of(snapshot.manifest),
            reads_checked=session.checks is not None,
        )

    @property
    def options_text(self) -> str | None:
        """The storage options as the data source takes them."""
        return json.dumps(dict(self.storage_options)) if self.storage_options else None

    @property
    def bases_text(self) -> str | None:
        """The allowed bases as the data source takes them: JSON, as a path may hold commas."""
        return json.dumps(self.allow_bases) if self.allow_bases else None

    def session(self) -> Session:
        """Open the folder alone; reads nothing."""
        options = dict(self.storage_options) or None
        return open_session(self.uri, options, self.allow_bases, check=self.reads_checked)

    def open(self) -> tuple[Session, Snapshot]:
        """Open the version; a worker that runs several tasks opens it once.

        Raises DatasetNotFoundError, VersionNotFoundError, StorageError; NotFoundError if another
        dataset is there now.
        """
        return _opened(self)

    def check(self) -> None:
        """Look again whether the version is still the one that was pinned, unless it is gone.

        Raises NotFoundError, StorageError.
        """
        if self.version:
            with suppress(VersionNotFoundError):
                _opened.__wrapped__(self)

    def dataset(self) -> LanceDataset:
        """Open the version as a dataset."""
        return LanceDataset.from_opened(*self.open())

    def fragments(self, ids: Collection[int]) -> list[LanceFragment]:
        """Open some fragments of the version."""
        return [one for one in self.dataset().get_fragments() if one.fragment_id in ids]


def _frozen(options: Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((options or {}).items()))


@lru_cache(maxsize=_KEPT_OPEN)
def _opened(place: Place) -> tuple[Session, Snapshot]:
    options = dict(place.storage_options) or None
    session = open_session(place.uri, options, place.allow_bases, check=place.reads_checked)
    snapshot = session.load(Target(place.branch, place.version))
    if place.stamp.startswith(f"{place.version} "):
        check_stamp(snapshot, place.stamp, place.uri)
    return session, snapshot

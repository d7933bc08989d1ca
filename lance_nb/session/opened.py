"""OpenedVersion: one open version of a dataset; it can be copied and pickled.

A handle is pickled as the URI, branch, version and options of its dataset, without credentials, and
opened on first use: unpickling sends no request. Exactly this version is opened, never "the
newest". A dataset that was deleted and recreated in the same place has versions of the same
numbers, so a version is identified by the time and transaction of its commit too. ``copy.copy`` and
``copy.deepcopy`` return another handle of the same version, which shares what was read and keeps
the credentials.

Limits: a version that was cleaned up in the meantime cannot be opened again (pylance pickles the
whole manifest, and fails when the data is read). ``memory://`` datasets live in one process.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from lance_nb.errors import InternalError, NotFoundError
from lance_nb.format.lance_schema import LanceSchema
from lance_nb.session.public_location import PublicLocation
from lance_nb.session.session import Session, open_session
from lance_nb.shown_text import without_url_secrets
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.format.manifest import Manifest
    from lance_nb.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class PinnedVersion:
    """One version of a dataset, as a value without credentials. ``branch`` None is main."""

    location: PublicLocation
    version: int
    branch: str | None = None
    allow_bases: tuple[str, ...] = ()
    stamp: str = ""
    check: bool = False

    @classmethod
    def of(cls, session: Session, snapshot: Snapshot) -> PinnedVersion:
        """Pin an opened version."""
        return cls(
            PublicLocation.of(session.uri, session.storage_options),
            snapshot.version,
            snapshot.branch,
            allow_bases=tuple(without_url_secrets(base) for base in session.trusted_bases),
            stamp=stamp_of(snapshot.manifest),
            check=session.checks is not None,
        )

    def open(self) -> tuple[Session, Snapshot]:
        """Open the version.

        Raises InvalidInputError when a credential is missing, DatasetNotFoundError,
        VersionNotFoundError, StorageError; NotFoundError if another dataset is there now.
        """
        uri, options = self.location.resolve()
        session = open_session(uri, options, self.allow_bases, check=self.check)
        snapshot = session.load(Target(self.branch, self.version))
        check_stamp(snapshot, self.stamp, self.location.uri)
        return session, snapshot


def stamp_of(manifest: Manifest) -> str:
    """Return a text that no other version has: its number, time and transaction."""
    return f"{manifest.version} {manifest.timestamp_ns} {manifest.transaction_file}"


def check_stamp(snapshot: Snapshot, stamp: str, uri: str) -> None:
    """Raise NotFoundError if a version is not the one that was pinned with this stamp."""
    if stamp_of(snapshot.manifest) != stamp:
        raise NotFoundError(
            f"version {snapshot.version} of {uri!r} is not the version that was pinned: the "
            "dataset was deleted and created again in the same place; open it again, and repeat "
            "the planning"
        )


_SCHEMA = "the whole schema"
_OWN = ("_opened", "_pinned")


class OpenedVersion:
    """One version of a dataset: where it is, which it is, and its schema."""

    def __init__(self, session: Session, snapshot: Snapshot) -> None:
        self._opened: tuple[Session, Snapshot] | None = (session, snapshot)
        self._pinned: PinnedVersion | None = None  # of a handle that was unpickled

    @property
    def opened(self) -> tuple[Session, Snapshot]:
        """The stores and the version behind it, for verbs that are functions."""
        if self._opened is None:
            if self._pinned is None:
                raise InternalError("the handle is neither open nor pinned")
            self._opened = self._pinned.open()
        return self._opened

    @property
    def _session(self) -> Session:
        return self.opened[0]

    @_session.setter
    def _session(self, session: Session) -> None:
        self._opened = (session, self.opened[1])

    @property
    def _snapshot(self) -> Snapshot:
        return self.opened[1]

    @_snapshot.setter
    def _snapshot(self, snapshot: Snapshot) -> None:
        self._opened = (self.opened[0], snapshot)

    def _follow_commit(self, snapshot: Snapshot) -> None:
        """Move to a version that a commit made, as every verb does; not to another branch."""
        _, current = self.opened
        if snapshot.branch == current.branch and snapshot.version > current.version:
            self._snapshot = snapshot

    @property
    def uri(self) -> str:
        """Root of the dataset (the same on every branch).

        Examples:
            >>> ds.uri
            '.../points.lance'
        """
        if self._opened is None and self._pinned is not None:
            return self._pinned.location.uri
        return self._session.uri

    @property
    def name(self) -> str:
        """Last part of the URI.

        Examples:
            >>> ds.name
            'points.lance'
        """
        place = self._session.root.uri
        return place.rstrip("/").rpartition("/")[2] or place

    @property
    def branch(self) -> str | None:
        """Name of the branch, None on main.

        Examples:
            >>> ds.create_branch("experiment").branch
            'experiment'
        """
        if self._opened is None and self._pinned is not None:
            return self._pinned.branch
        return self._snapshot.branch

    @property
    def version(self) -> int:
        """Number of this version.

        Examples:
            >>> ds.version
            1
        """
        if self._opened is None and self._pinned is not None:
            return self._pinned.version
        return self._snapshot.version

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema.

        Examples:
            >>> ds.schema.field("id").type
            DataType(int64)
        """
        return self.stored_schema

    @property
    def stored_schema(self) -> pa.Schema:
        """Arrow schema of the stored columns, whatever ``default_scan_options`` say.

        Examples:
            >>> small = lance_nb.dataset(uri, default_scan_options={"columns": ["id"]})
            >>> small.schema.names, small.stored_schema.names
            (['id'], ['id', 'label', 'vector'])
        """
        projections = self._snapshot.projections  # made once per version: long, with 2,000 columns
        schema: pa.Schema | None = projections.get(_SCHEMA)
        if schema is None:
            schema = projections[_SCHEMA] = self._snapshot.manifest.schema.to_arrow()
        return schema

    @property
    def lance_schema(self) -> LanceSchema:
        """Schema with field ids.

        Examples:
            >>> [(field.name(), field.id()) for field in ds.lance_schema.fields()]
            [('id', 0), ('label', 1), ('vector', 2)]
        """
        return LanceSchema(self._snapshot.manifest.schema)

    # --- copies and pickles -----------------------------------------------------------------------

    def __copy__(self) -> Self:
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copy = self.__copy__()
        memo[id(self)] = copy
        copy.__dict__.update(deepcopy(self._more_state(), memo))
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        pinned = self._pinned if self._opened is None else PinnedVersion.of(*self._opened)
        return _restored, (type(self), pinned), self._more_state() or None

    def _more_state(self) -> dict[str, Any]:
        """Return what classes below this one keep beside the version."""
        return {name: value for name, value in self.__dict__.items() if name not in _OWN}


class VersionPart:
    """What belongs to one version and is copied and pickled as its handle is."""

    def __init__(self, session: Session, snapshot: Snapshot) -> None:
        self._version = OpenedVersion(session, snapshot)

    @property
    def _session(self) -> Session:
        return self._version.opened[0]

    @property
    def _snapshot(self) -> Snapshot:
        return self._version.opened[1]


def _restored(kind: type[OpenedVersion], pinned: PinnedVersion) -> OpenedVersion:
    """Return a handle that opens its version when it is first used."""
    restored = kind.__new__(kind)
    restored._opened, restored._pinned = None, pinned  # noqa: SLF001 - its own class, without __init__
    return restored

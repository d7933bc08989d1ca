"""PinnedVersion: what a pickled handle says of its version.

A handle is pickled as the URI, branch, version and options of its dataset, without credentials, and
opened when it is first used: unpickling sends no request. Exactly this version is opened, never
"the newest". A dataset that was deleted and made anew in the same place has versions of the same
numbers, so a version is known by the time and transaction of its commit too.

Limits: a version that was cleaned up in the meantime cannot be opened again (pylance carries the
whole manifest along, and fails when the data is read). ``memory://`` datasets live in one process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_nb.dataset.public_location import PublicLocation, public_uri
from lance_nb.dataset.session import Session, open_session
from lance_nb.errors import NotFoundError
from lance_nb.table.refs import Target

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
            tuple(public_uri(base) for base in session.trusted_bases),
            stamp_of(snapshot.manifest),
            session.checks is not None,
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
            "dataset was deleted and made anew in the same place; open it again, and plan again "
            "what was planned on it"
        )

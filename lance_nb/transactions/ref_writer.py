"""Write the records of refs: create, move, describe and delete tags; nothing is overwritten unseen.

A tag is a file in ``_refs/tags`` of the root, also for versions of a branch. Moving it keeps its
creation time and metadata and sets ``updatedAt``; replacing the metadata leaves both times.

Creating a record is one exclusive write. Changing is a comparison and a write: in one step where
the store offers that (``Replacing``: local folders, memory), else in two, and then the record is
read once more. A change that another process makes between our read and our write is lost; that is
detected and reported, but not undone. After an answer that leaves the outcome open the record is
read back; what that does not decide is a CommitStateUnknownError.

Layout: format/refs.py.
Limits: programs that do not compare (pylance) can overwrite a change of ours. A lost reply is
recognised by the record itself: it holds times to the nanosecond, so equal bytes are ours.
Source: spec page "branch and tag"; behaviour of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from typing import Protocol, runtime_checkable

from lance_nb.errors import (
    CommitStateUnknownError,
    InvalidInputError,
    LanceError,
    ObjectExistsError,
    ObjectNotFoundError,
    RefConflictError,
    RefNotFoundError,
    StorageError,
    VersionNotFoundError,
)
from lance_nb.format.layout import ManifestName, NamingScheme, tag_path
from lance_nb.format.refs import Branch, Tag, check_tag_name
from lance_nb.storage.base import Buffer, Store, sync_folder
from lance_nb.table import refs
from lance_nb.table.refs import Target
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.environment import Environment
from lance_nb.value_classes import dataclass

# --- records --------------------------------------------------------------------------------------


@runtime_checkable
class Replacing(Protocol):
    """A store that compares and replaces in one step."""

    def replace(self, path: str, expected: Buffer, data: Buffer) -> bool:
        """Replace an object if it still is ``expected``; return whether it was.

        Raises ObjectNotFoundError.
        """
        ...


def create_record(root: Store, path: str, data: bytes, subject: str) -> None:
    """Create a record; ``subject`` names it.

    Raises RefConflictError when there is one, StorageError when it certainly was not created,
    CommitStateUnknownError.
    """
    problem: LanceError | None = None
    try:
        root.write_if_absent(path, data)
        return
    except ObjectExistsError:
        pass
    except StorageError as error:
        problem = _unclear(error, subject, "created")
    record = _read_record(root, path, subject, done="created", problem=problem)
    if record is None:
        raise _unknown(subject, "created", problem) from problem
    if record != data:
        raise RefConflictError(f"{subject} already exists")
    sync_record(root, path, subject, "written")


def replace_record(root: Store, path: str, expected: bytes, data: bytes, subject: str) -> None:
    """Change a record that was read as ``expected``.

    Raises RefConflictError when it has been changed by somebody else, ObjectNotFoundError when it
    has been deleted, StorageError when it certainly was not changed, CommitStateUnknownError.
    """
    if not isinstance(root, Replacing):
        replaced = _replace_in_steps(root, path, expected, data=data, subject=subject)
    else:
        try:
            replaced = root.replace(path, expected, data)
        except StorageError as error:
            problem = _unclear(error, subject, "changed")
            replaced = _is_now(root, path, data, subject=subject, problem=problem)
    if not replaced:
        raise RefConflictError(
            f"{subject} was changed by another process at the same time: read it again, then "
            "repeat the change"
        )


def _replace_in_steps(root: Store, path: str, expected: bytes, data: bytes, subject: str) -> bool:
    if bytes(root.read(path)) != expected:
        return False
    problem: LanceError | None = None
    try:
        root.write(path, data)
    except StorageError as error:
        problem = _unclear(error, subject, "changed")
    return _is_now(root, path, data, subject=subject, problem=problem)


def _is_now(root: Store, path: str, data: bytes, subject: str, problem: LanceError | None) -> bool:
    """Return whether a record that was written is there, and not somebody else's in its place."""
    record = _read_record(root, path, subject, done="changed", problem=problem)
    if record == data:
        if problem is not None:
            sync_record(root, path, subject, "written")
        return True
    if problem is not None:  # it is as it was, and our write may still arrive
        raise _unknown(subject, "changed", problem) from problem
    return False


def delete_record(root: Store, path: str, subject: str) -> bool:
    """Delete a record; return whether there was one.

    Raises StorageError when it certainly was not deleted, CommitStateUnknownError.
    """
    try:
        root.size(path)
    except ObjectNotFoundError:
        return False
    try:
        root.delete(path)
    except StorageError as error:
        problem = _unclear(error, subject, "deleted")
        if _read_record(root, path, subject, done="deleted", problem=problem) is not None:
            raise _unknown(subject, "deleted", problem) from error
    sync_record(root, path, subject, "deleted")
    return True


def sync_record(root: Store, path: str, subject: str, done: str) -> None:
    """Make durable what was ``done`` to a record, visibly. Raises CommitStateUnknownError."""
    try:
        sync_folder(root, path.rpartition("/")[0])
    except StorageError as error:
        raise _unsynced(subject, done, error) from error


def _unclear(error: StorageError, subject: str, done: str) -> StorageError:
    """Return an error that leaves open what was done; raise what says it."""
    if error.outcome == "failed":
        raise error
    if error.outcome == "unsynced":
        raise _unsynced(subject, done, error) from error
    return error


def _read_record(
    root: Store, path: str, subject: str, done: str, problem: LanceError | None
) -> bytes | None:
    """Read a record, None if there is none."""
    try:
        return bytes(root.read(path))
    except ObjectNotFoundError:
        return None
    except StorageError as error:
        raise _unknown(subject, done, problem or error) from error


def _unknown(subject: str, done: str, problem: LanceError | None) -> CommitStateUnknownError:
    reason = "" if problem is None else f" ({problem})"
    return CommitStateUnknownError(
        f"whether {subject} was {done} is unknown{reason}: look at it before doing the change again"
    )


def _unsynced(subject: str, done: str, problem: LanceError) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"{subject} was {done} and everybody sees it, but the disk did not confirm it ({problem}): "
        "after a power failure it may be as before"
    )


# --- tags -----------------------------------------------------------------------------------------

PlaceOf = Callable[[str | None], CommitPlace]


@dataclass(frozen=True, slots=True)
class TagWriter:
    """Changes the tags of one dataset. ``place_of`` gives the place of a branch (None: main)."""

    root: Store
    place_of: PlaceOf
    environment: Environment = field(default_factory=Environment)

    def create(self, name: str, target: Target, metadata: Mapping[str, str] | None = None) -> Tag:
        """Create a tag. Raises InvalidRefError, RefConflictError, VersionNotFoundError."""
        check_tag_name(name)
        version, size_bytes = locate(self.place_of(target.branch), target.version, target.tag or "")
        now = self.environment.clock()
        tag = Tag(
            version,
            target.branch,
            now,
            updated_at_ns=now,
            manifest_size_bytes=size_bytes,
            metadata=check_metadata(metadata or {}),
        )
        create_record(self.root, tag_path(name), tag.to_bytes(), f"tag {name!r}")
        return tag

    def update(self, name: str, target: Target, expected: Target | None = None) -> Tag:
        """Move a tag to another version. Raises RefNotFoundError, VersionNotFoundError.

        ``expected`` is where the tag was when the caller looked: RefConflictError if it is not any
        more.
        """
        old, raw = self._read(name)
        _check_place(name, old, expected)
        version, size_bytes = locate(self.place_of(target.branch), target.version, target.tag or "")
        tag = replace(
            old,
            version=version,
            branch=target.branch,
            updated_at_ns=self.environment.clock(),
            manifest_size_bytes=size_bytes,
        )
        self._replace(name, raw, tag)
        return tag

    def replace_metadata(self, name: str, metadata: Mapping[str, str]) -> Tag:
        """Replace all metadata of a tag; its times stay. Raises RefNotFoundError."""
        old, raw = self._read(name)
        tag = replace(old, metadata=check_metadata(metadata))
        self._replace(name, raw, tag)
        return tag

    def delete(self, name: str, expected: Target | None = None) -> None:
        """Delete a tag. Raises RefNotFoundError, and as ``update`` if it is not where expected.

        Stores cannot compare and delete in one step: what happens between the two is not seen.
        """
        if expected is not None:
            _check_place(name, self._read(name)[0], expected)
        path = tag_path(check_tag_name(name))
        is_absent = refs.is_absent(self.root, path, name)
        if is_absent or not delete_record(self.root, path, f"tag {name!r}"):
            raise RefNotFoundError("tag", name, tuple(refs.tag_names(self.root)))

    def _read(self, name: str) -> tuple[Tag, bytes]:
        path = tag_path(check_tag_name(name))
        try:
            if refs.is_absent(self.root, path, name):
                raise ObjectNotFoundError(path)
            raw = bytes(self.root.read(path))
        except ObjectNotFoundError as error:
            raise RefNotFoundError("tag", name, tuple(refs.tag_names(self.root))) from error
        return Tag.from_bytes(raw, f"{self.root.uri}/{path}"), raw

    def _replace(self, name: str, raw: bytes, tag: Tag) -> None:
        try:
            replace_record(
                self.root, tag_path(name), raw, data=tag.to_bytes(), subject=f"tag {name!r}"
            )
        except ObjectNotFoundError as error:
            raise RefNotFoundError("tag", name, tuple(refs.tag_names(self.root))) from error


def _check_place(name: str, tag: Tag, expected: Target | None) -> None:
    if expected is not None and (tag.branch, tag.version) != (expected.branch, expected.version):
        raise RefConflictError(
            f"tag {name!r} was moved meanwhile: it is at {tag.branch or refs.MAIN}:{tag.version}, "
            f"not at {expected.branch or refs.MAIN}:{expected.version} any more"
        )


def locate(place: CommitPlace, version: int | None, tag: str = "") -> tuple[int, int]:
    """Return (version, bytes of its manifest) of a branch; None is its latest version.

    ``tag`` is the tag that names it, for the message. Raises VersionNotFoundError.
    """
    if version is not None:
        with suppress(ObjectNotFoundError):  # nearly all have V2 names: nothing is listed
            return version, place.home.size(ManifestName(version, NamingScheme.V2).path)
    latest = place.slots.latest()
    if latest is None:
        number = "latest" if version is None else version
        raise VersionNotFoundError(place.home.uri, number, tag=tag)
    name = latest if version is None else ManifestName(version, latest.scheme)
    try:
        return name.version, _size_bytes(place, name)
    except ObjectNotFoundError as error:
        shown = f"up to {latest.version}"
        raise VersionNotFoundError(place.home.uri, name.version, shown, tag) from error


def _size_bytes(place: CommitPlace, name: ManifestName) -> int:
    try:
        return place.home.size(name.path)
    except ObjectNotFoundError:
        return len(place.slots.read(name))  # an external store may still have to put it in place


def check_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata of a ref if it maps texts to texts. Raises InvalidInputError."""
    checked = dict(metadata)
    if not all(isinstance(text, str) for pair in checked.items() for text in pair):
        raise InvalidInputError("the metadata of a ref maps texts to texts")
    return checked


def ordered_tags(tags: Mapping[str, Tag], order: str | None = None) -> list[tuple[str, Tag]]:
    """Sort tags by version, the newest first unless ``order`` is "asc"; then by name.

    Raises InvalidInputError for another order.
    """
    descending = check_order(order)
    by_name = sorted(tags.items())
    return sorted(by_name, key=lambda entry: entry[1].version, reverse=descending)


def ordered_branches(
    branches: Mapping[str, Branch], order: str | None = None
) -> list[tuple[str, Branch]]:
    """Sort branches by the version they started from, as ``ordered_tags`` does."""
    descending = check_order(order)
    by_name = sorted(branches.items())
    return sorted(by_name, key=lambda entry: entry[1].parent_version, reverse=descending)


def check_order(order: str | None) -> bool:
    """Return whether an order is descending. Raises InvalidInputError."""
    if order not in (None, "asc", "desc"):
        raise InvalidInputError(f"invalid sort order {order!r}; valid are 'asc' and 'desc'")
    return order != "asc"

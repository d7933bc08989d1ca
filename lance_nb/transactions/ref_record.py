"""Write the small JSON records of refs so that nobody's record is overwritten unseen.

Creating is one exclusive write. Changing is a comparison and a write: in one step where the store
offers that (``Replacing``: local folders, memory), else in two, and then the record is read once
more. What is lost there is a change that another process makes between our look and our write; it
is found and told, but not undone. After an answer that leaves it open what was done the record is
read back; what that does not decide is a CommitStateUnknownError.

Limits: programs that do not compare (pylance) can overwrite a change of ours. A lost reply is
recognised by the record itself: it holds times to the nanosecond, so equal bytes are ours.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lance_nb.errors import (
    CommitStateUnknownError,
    LanceError,
    ObjectExistsError,
    ObjectNotFoundError,
    RefConflictError,
    StorageError,
)
from lance_nb.storage.base import Buffer, Store, sync_folder


@runtime_checkable
class Replacing(Protocol):
    """A store that compares and replaces in one step."""

    def replace(self, path: str, expected: Buffer, data: Buffer) -> bool:
        """Replace an object if it still is ``expected``; tell whether it was.

        Raises ObjectNotFoundError.
        """
        ...


def create_record(root: Store, path: str, data: bytes, what: str) -> None:
    """Create a record; ``what`` names it.

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
        problem = _unclear(error, what, "created")
    found = _look(root, path, what, "created", problem)
    if found is None:
        raise _unknown(what, "created", problem) from problem
    if found != data:
        raise RefConflictError(f"{what} already exists")
    sync_record(root, path, what, "written")


def replace_record(root: Store, path: str, expected: bytes, data: bytes, what: str) -> None:
    """Change a record that was read as ``expected``.

    Raises RefConflictError when it has been changed by somebody else, ObjectNotFoundError when it
    has been deleted, StorageError when it certainly was not changed, CommitStateUnknownError.
    """
    if not isinstance(root, Replacing):
        replaced = _replace_in_steps(root, path, expected, data, what)
    else:
        try:
            replaced = root.replace(path, expected, data)
        except StorageError as error:
            problem = _unclear(error, what, "changed")
            replaced = _is_now(root, path, data, what, problem)
    if not replaced:
        raise RefConflictError(
            f"{what} was changed by another process at the same time; look at it and do the change "
            "again"
        )


def _replace_in_steps(root: Store, path: str, expected: bytes, data: bytes, what: str) -> bool:
    if bytes(root.read(path)) != expected:
        return False
    problem: LanceError | None = None
    try:
        root.write(path, data)
    except StorageError as error:
        problem = _unclear(error, what, "changed")
    return _is_now(root, path, data, what, problem)


def _is_now(root: Store, path: str, data: bytes, what: str, problem: LanceError | None) -> bool:
    """Tell whether a record that was written is there, and not somebody else's in its place."""
    found = _look(root, path, what, "changed", problem)
    if found == data:
        if problem is not None:
            sync_record(root, path, what, "written")
        return True
    if problem is not None:  # it is as it was, and our write may still arrive
        raise _unknown(what, "changed", problem) from problem
    return False


def delete_record(root: Store, path: str, what: str) -> bool:
    """Delete a record; tell whether there was one.

    Raises StorageError when it certainly was not deleted, CommitStateUnknownError.
    """
    try:
        root.size(path)
    except ObjectNotFoundError:
        return False
    try:
        root.delete(path)
    except StorageError as error:
        problem = _unclear(error, what, "deleted")
        if _look(root, path, what, "deleted", problem) is not None:
            raise _unknown(what, "deleted", problem) from error
    sync_record(root, path, what, "deleted")
    return True


def sync_record(root: Store, path: str, what: str, done: str) -> None:
    """Make durable what was ``done`` to a record, visibly. Raises CommitStateUnknownError."""
    try:
        sync_folder(root, path.rpartition("/")[0])
    except StorageError as error:
        raise _unsynced(what, done, error) from error


def _unclear(error: StorageError, what: str, done: str) -> StorageError:
    """Return an error that leaves open what was done; raise what says it."""
    if error.outcome == "failed":
        raise error
    if error.outcome == "unsynced":
        raise _unsynced(what, done, error) from error
    return error


def _look(root: Store, path: str, what: str, done: str, problem: LanceError | None) -> bytes | None:
    """Read a record, None if there is none."""
    try:
        return bytes(root.read(path))
    except ObjectNotFoundError:
        return None
    except StorageError as error:
        raise _unknown(what, done, problem or error) from error


def _unknown(what: str, done: str, problem: LanceError | None) -> CommitStateUnknownError:
    reason = "" if problem is None else f" ({problem})"
    return CommitStateUnknownError(
        f"whether {what} was {done} is unknown{reason}: look at it before doing the change again"
    )


def _unsynced(what: str, done: str, problem: LanceError) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"{what} was {done} and everybody sees it, but the disk did not confirm it ({problem}): "
        "after a power failure it may be as before"
    )

"""Write the small JSON records of refs so that nobody's record is overwritten unseen.

Creating is one exclusive write. Changing is a comparison and a write: in one step where the store
offers that (``Replacing``: local folders, memory), else in two, and then the record is read once
more. What is lost there is a change that another process makes between our look and our write; it
is found and told, but not undone.

Limits: programs that do not compare (pylance) can overwrite a change of ours. A lost reply is
recognised by the record itself: it holds times to the nanosecond, so equal bytes are ours.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lance_nb.errors import ObjectExistsError, ObjectNotFoundError, RefConflictError, StorageError
from lance_nb.storage.base import Buffer, Store


@runtime_checkable
class Replacing(Protocol):
    """A store that compares and replaces in one step."""

    def replace(self, path: str, expected: Buffer, data: Buffer) -> bool:
        """Replace an object if it still is ``expected``; tell whether it was.

        Raises ObjectNotFoundError.
        """
        ...


def create_record(root: Store, path: str, data: bytes, what: str) -> None:
    """Create a record. Raises RefConflictError when there is one; ``what`` names it."""
    try:
        root.write_if_absent(path, data)
        return
    except ObjectExistsError:
        pass
    except StorageError as error:
        if error.outcome != "unknown":
            raise
        if not root.exists(path):
            raise
    if bytes(root.read(path)) != data:
        raise RefConflictError(f"{what} already exists")


def replace_record(root: Store, path: str, expected: bytes, data: bytes, what: str) -> None:
    """Change a record that was read as ``expected``.

    Raises RefConflictError when it has been changed by somebody else, ObjectNotFoundError when it
    has been deleted.
    """
    if isinstance(root, Replacing):
        replaced = root.replace(path, expected, data)
    else:
        replaced = _replace_in_steps(root, path, expected, data)
    if not replaced:
        raise RefConflictError(
            f"{what} was changed by another process at the same time; look at it and do the change "
            "again"
        )


def _replace_in_steps(root: Store, path: str, expected: bytes, data: bytes) -> bool:
    if bytes(root.read(path)) != expected:
        return False
    try:
        root.write(path, data)
    except StorageError as error:
        if error.outcome != "unknown":
            raise
    return bytes(root.read(path)) == data


def delete_record(root: Store, path: str) -> bool:
    """Delete a record; tell whether there was one."""
    try:
        root.size(path)
    except ObjectNotFoundError:
        return False
    root.delete(path)
    return True

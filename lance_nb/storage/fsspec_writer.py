"""An object of a store behind fsspec that is written piece by piece: an upload in parts.

How: the driver buffers and uploads blocks; object stores show the object when the upload is
completed. An aborted upload is cancelled, and what a driver without uploads (memory, ftp) shows
early is removed.

Limits: drivers that write in place show a partial object until the end: names must be unique, which
those of data files are.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from lance_nb.errors import InternalError, StorageError
from lance_nb.storage import meter
from lance_nb.storage.base import Buffer


class FsspecObjectWriter:
    """An upload; see ObjectWriter in base.py. ``guard`` translates what the driver raises."""

    def __init__(self, filesystem: Any, full: str, guard: AbstractContextManager[None]) -> None:
        self._fs = filesystem
        self._full = full
        self._guard = guard
        with guard:
            self._upload: Any = filesystem.open(full, "wb")

    def write(self, pieces: Sequence[Buffer]) -> None:
        """Append pieces of bytes."""
        upload = self._open_upload()
        meter.count_write(sum(memoryview(piece).nbytes for piece in pieces))
        try:
            with self._guard:
                for piece in pieces:
                    upload.write(memoryview(piece).cast("B"))
        except StorageError:
            self.abort()
            raise

    def finish(self) -> None:
        """Complete the upload."""
        upload = self._open_upload()
        try:
            with self._guard:
                upload.close()
        except StorageError:
            self.abort()
            raise
        self._upload = None

    def abort(self) -> None:
        """Cancel the upload and remove what it left; a store that fails now keeps an orphan."""
        upload, self._upload = self._upload, None
        if upload is None:
            return
        for step in (lambda: _cancel(upload), lambda: self._fs.rm_file(self._full)):
            try:
                with self._guard:
                    step()
            except (StorageError, LookupError):
                continue

    def _open_upload(self) -> Any:
        if self._upload is None:
            raise InternalError(f"{self._full} is written to after its end")
        return self._upload


def _cancel(upload: Any) -> None:
    discard = getattr(upload, "discard", None)
    if discard is None:
        upload.close()
        return
    discard()
    if hasattr(upload, "forced"):  # a buffered file would upload the rest when it is collected
        upload.closed = True

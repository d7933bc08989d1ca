"""A local file that is written piece by piece and appears, durably, when it is finished.

How: a temporary file in the same folder, ``writev`` without copying, rename, fsync of file and
folder. The name appears only in ``finish``; an aborted file leaves nothing. A file that replaces
another one is synced before the rename, because a power failure could otherwise lose both.

While a file is written, the writeback of its dirty pages is started early, so that ``fsync`` waits
less. This is a hint; durability still comes from ``fsync``. Linux only: ``sync_file_range`` is not
in Python's ``os`` module and is called through ctypes. Measured: ``write_dataset`` of 210 MB to a
local disk of a busy machine took 1.18 s with it and 1.39 s without (medians of six alternating
runs; best 0.62 s and 0.71 s).

Limits: one ``writev`` takes ``PIECES_MAX`` pieces (the system's limit), more take several calls.
Writeback is started in ranges of ``RUN_BYTES``.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

from lance_nb.errors import InternalError, StorageError
from lance_nb.storage import meter
from lance_nb.storage.base import Buffer
from lance_nb.storage.links import Boundary
from lance_nb.storage.local_files import temporary_name, translated
from lance_nb.storage.local_naming import WrittenFile, rename_over, sync_name
from lance_nb.storage.sync_later import sync_later
from lance_nb.storage.system_calls import (
    RENAMES_OPEN_FILES,
    OpenFolder,
    close_quietly,
    write_pieces,
)

PIECES_MAX = 1024
RUN_BYTES = 8 * 1024 * 1024

_SYNC_FILE_RANGE_WRITE = 2  # start writing dirty pages, do not wait


class LocalObjectWriter:
    """A file under construction; see ObjectWriter in base.py."""

    def __init__(self, full: str, boundary: Boundary) -> None:
        """Make the temporary file. Raises StorageError, and InvalidInputError for a link."""
        self._full = full
        above, _, self._name = full.rpartition("/")
        self._temporary = temporary_name()
        with translated(full):
            self._folder = boundary.open_folder(above or "/", create=True)
            try:
                self._descriptor = self._folder.create(self._temporary)
            except OSError:
                self._folder.remove_quietly(self._temporary)  # it may exist despite the error
                self._folder.close()
                raise
        self._size = 0
        self._writeback = EarlyWriteback()

    def write(self, pieces: Sequence[Buffer]) -> None:
        """Append pieces of bytes, one after the other."""
        if self._descriptor < 0:
            raise InternalError(f"{self._full} is written to after its end")
        views = [view for view in (memoryview(piece).cast("B") for piece in pieces) if view]
        meter.count_write(sum(view.nbytes for view in views))
        try:
            with translated(self._full):
                while views:
                    written = write_pieces(self._descriptor, views[:PIECES_MAX])
                    views = _rest(views, written)
                    self._size += written
            self._writeback.reached(self._descriptor, self._size)
        except StorageError:
            self.abort()
            raise

    def finish(self) -> None:
        """Make the file durable and give it its name.

        Inside ``synced_together`` it is durable when that ends. Raises StorageError, leaving
        nothing, unless it replaced another file: ``outcome`` then says what is known.
        """
        if self._descriptor < 0:
            raise InternalError(f"{self._full} is finished twice")
        if not RENAMES_OPEN_FILES:
            self._finish_closed()
            return
        try:
            with translated(self._full):
                replaces = self._folder.holds(self._name)
                if replaces:
                    os.fsync(self._descriptor)
                file = WrittenFile.of(self._folder, self._temporary, self._descriptor)
                rename_over(file, self._full)
                if not replaces:
                    self._temporary = self._name  # removed if it cannot be made durable
                    self._sync()
            if replaces:
                sync_name(self._folder, self._full)
            self._close()
        except StorageError:
            self.abort()
            raise

    def _finish_closed(self) -> None:
        """Close the file before it is renamed; on Windows an open file keeps its name."""
        try:
            with translated(self._full):
                os.fsync(self._descriptor)
                file = WrittenFile.of(self._folder, self._temporary, self._descriptor)
            descriptor, self._descriptor = self._descriptor, -1
            close_quietly(descriptor)
            rename_over(file, self._full)
            sync_name(self._folder, self._full)
        except StorageError:
            self.abort()
            self._folder.remove_quietly(self._temporary)
            raise
        finally:
            self._folder.close()

    def abort(self) -> None:
        """Remove what was written; does nothing after ``finish``."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            close_quietly(descriptor)
            self._folder.remove_quietly(self._temporary)
            self._folder.close()

    def _sync(self) -> None:
        """Make file and name durable, now or together with the files of ``synced_together``."""
        later = self._folder.duplicate()
        is_later = False
        try:
            is_later = sync_later(self._descriptor, partial(_sync_later, self._full, later))
        finally:
            if not is_later:
                later.close()
        if not is_later:
            _sync(self._full, self._folder, self._descriptor)

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        close_quietly(descriptor)
        self._folder.close()


def _sync_later(full: str, folder: OpenFolder, descriptor: int) -> None:
    with folder:
        _sync(full, folder, descriptor)


def _sync(full: str, folder: OpenFolder, descriptor: int) -> None:
    with translated(full):
        os.fsync(descriptor)
        folder.sync()  # costs little: a journaling file system wrote the name with the file


def _rest(views: list[memoryview], written: int) -> list[memoryview]:
    """Return what is left after the first ``written`` bytes."""
    position = 0
    while position < len(views) and written >= len(views[position]):
        written -= len(views[position])
        position += 1
    unwritten = views[position:]
    if written:
        unwritten[0] = unwritten[0][written:]
    return unwritten


class EarlyWriteback:
    """Starts the writeback of one file that is written sequentially."""

    def __init__(self) -> None:
        self._start = 0

    def reached(self, descriptor: int, size_bytes: int) -> None:
        """Start the writeback of new bytes; ``size_bytes`` of the file are written so far."""
        new = size_bytes - self._start
        if new >= RUN_BYTES and _sync_file_range is not None:
            _sync_file_range(
                descriptor, self._start, new, _SYNC_FILE_RANGE_WRITE
            )  # errors are ignored
            self._start = size_bytes


def _system_call() -> Callable[[int, int, int, int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        call = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    call.restype = ctypes.c_int
    return call


_sync_file_range = _system_call()

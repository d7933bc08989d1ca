"""A local file that is written piece by piece and appears, durably, when it is finished.

How: a temporary file beside the place it will have, ``writev`` without copying, rename, fsync of
file and folder. Nobody sees the name before ``finish``; an aborted file leaves
nothing. A file that takes the place of another is synced before it is renamed: else a power failure
could leave neither.

Limits: one ``writev`` takes ``PIECES_MAX`` pieces (the system's limit), more go in rounds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from lance_nb.errors import InternalError, StorageError
from lance_nb.storage import meter
from lance_nb.storage.base import Buffer
from lance_nb.storage.early_writeback import EarlyWriteback
from lance_nb.storage.links import Boundary
from lance_nb.storage.local_files import temporary_name, translated
from lance_nb.storage.local_naming import (
    OpenFolder,
    WrittenFile,
    close_quietly,
    rename_over,
    sync_name,
)
from lance_nb.storage.sync_later import sync_later

PIECES_MAX = 1024


class LocalObjectWriter:
    """A file under construction; see ObjectWriter in base.py."""

    def __init__(self, full: str, boundary: Boundary) -> None:
        """Make the temporary file. Raises StorageError, and InvalidInputError for a link."""
        self._full = full
        above, _, self._name = full.rpartition("/")
        self._temporary = temporary_name()
        with translated(full):
            self._folder = OpenFolder(boundary.open_folder(above or "/", create=True))
            try:
                self._descriptor = self._folder.create(self._temporary)
            except OSError:
                self._folder.remove_quietly(self._temporary)  # it may have been made all the same
                self._folder.close()
                raise
        self._size = 0
        self._writeback = EarlyWriteback()

    def write(self, pieces: Sequence[Buffer]) -> None:
        """Append pieces of bytes, one after the other."""
        if self._descriptor < 0:
            raise InternalError(f"{self._full} is written to after its end")
        views = [view for view in (memoryview(one).cast("B") for one in pieces) if view]
        meter.count_write(sum(view.nbytes for view in views))
        try:
            with translated(self._full):
                while views:
                    written = os.writev(self._descriptor, views[:PIECES_MAX])
                    views = _rest(views, written)
                    self._size += written
            self._writeback.reached(self._descriptor, self._size)
        except StorageError:
            self.abort()
            raise

    def finish(self) -> None:
        """Make the file durable and give it its name.

        Inside ``synced_together`` it is durable when that ends. Raises StorageError, leaving
        nothing, unless it took the place of another file: ``outcome`` then says what is known.
        """
        if self._descriptor < 0:
            raise InternalError(f"{self._full} is finished twice")
        try:
            with translated(self._full):
                replaces = self._folder.holds(self._name)
                if replaces:
                    os.fsync(self._descriptor)
                file = WrittenFile.of(self._folder, self._temporary, self._descriptor)
                rename_over(file, self._full)
                if not replaces:
                    self._temporary = self._name  # is removed when it does not become durable
                    self._sync()
            if replaces:
                sync_name(self._folder, self._full)
            self._close()
        except StorageError:
            self.abort()
            raise

    def abort(self) -> None:
        """Remove what was written; does nothing after ``finish``."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            close_quietly(descriptor)
            self._folder.remove_quietly(self._temporary)
            self._folder.close()

    def _sync(self) -> None:
        """Make file and name durable, at once or when those that wait are."""
        later = OpenFolder(os.dup(self._folder.descriptor))
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
        folder.sync()  # a journal has written the name with the file: nothing to wait for


def _rest(views: list[memoryview], written: int) -> list[memoryview]:
    """Return what is left after the first ``written`` bytes."""
    position = 0
    while position < len(views) and written >= len(views[position]):
        written -= len(views[position])
        position += 1
    rest = views[position:]
    if written:
        rest[0] = rest[0][written:]
    return rest

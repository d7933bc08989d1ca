"""Open data files, shared by every version of one dataset handle.

Data files never change, so an open reader (footer, column metadata, opened pages) stays good for as
long as it is kept. The least recently used ones go first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from lance_nb.file.opening import DataFileReader, open_data_file
from lance_nb.storage.base import Store

_FILES_MAX = 1024


class FileCache:
    """A bounded map from (store, path) to an open file."""

    def __init__(self, files_max: int = _FILES_MAX) -> None:
        self._files_max = files_max
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[str, str], DataFileReader] = OrderedDict()

    def get(self, store: Store, path: str, size_bytes: int = 0) -> DataFileReader:
        """Return the reader of a file, opening it when needed."""
        key = (store.uri, path)
        with self._lock:
            if key in self._open:
                self._open.move_to_end(key)
                return self._open[key]
        reader = open_data_file(store, path, size_bytes)
        with self._lock:
            self._open[key] = reader
            while len(self._open) > self._files_max:
                self._open.popitem(last=False)
        return reader

    def size_bytes(self) -> int:
        """Return about how many bytes of metadata the open files hold."""
        with self._lock:
            readers = list(self._open.values())
        return sum(reader.metadata_bytes for reader in readers)

"""Open a data file of any version.

The version is read from the last 8 bytes, which all versions share: ``u16 major | u16 minor |
"LANC"``.

Limits: at most 64 files are remembered after the last handle on them has gone.
Source: spec page "file format".
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from lance_nb.encodings.base import Rows
from lance_nb.errors import CorruptFileError
from lance_nb.file.columns import Leaf, LeafPart
from lance_nb.file.footer import parse_version
from lance_nb.file.metadata import PageListing
from lance_nb.file.reader import FileReader
from lance_nb.file.source import FileSource
from lance_nb.storage.base import Store


class DataFileReader(Protocol):
    """What every open data file can do. Safe to share between threads for reading."""

    path: str

    @property
    def file_version(self) -> tuple[int, int]:
        """Version of the file format, (2, 2) for example."""
        ...

    @property
    def size_bytes(self) -> int:
        """Size of the file."""
        ...

    @property
    def num_rows(self) -> int:
        """Rows in the file."""
        ...

    @property
    def metadata_bytes(self) -> int:
        """Bytes of the metadata that is held in memory."""
        ...

    def read_leaves(
        self,
        leaves: Sequence[Leaf],
        owners: Mapping[int, int],
        rows: Rows,
        num_rows: int | None = None,
    ) -> dict[int, list[LeafPart]]:
        """Decode ``rows`` of each leaf; returns its parts in row order, by field id.

        ``owners`` maps field ids to the columns of this file. Raises CorruptFileError when the file
        has fewer rows than asked for, or not ``num_rows`` rows (None: not known).
        """
        ...

    def list_pages(self) -> Iterator[PageListing]:
        """List the pages of every column."""
        ...


class RecentFiles:
    """The local files opened last, with what has been read of them, for all dataset handles.

    A file is known by its mapping: the store hands out the same one as long as the file behind the
    path has the same inode, size and modification time.
    """

    def __init__(self, files_max: int) -> None:
        self._files_max = files_max
        self._lock = threading.Lock()
        self._files: OrderedDict[tuple[str, str], tuple[memoryview, DataFileReader]] = OrderedDict()

    def get(self, root: str, source: FileSource) -> DataFileReader | None:
        """Return the reader of a file if the same one was open."""
        with self._lock:
            mapped, reader = self._files.get((root, source.path), (None, None))
            return reader if mapped is not None and mapped is source.mapped else None

    def put(self, root: str, source: FileSource, reader: DataFileReader) -> None:
        """Cache a reader of a local file; of a remote file it is not known whether it changed."""
        if source.mapped is None:
            return
        with self._lock:
            self._files[root, source.path] = source.mapped, reader
            self._files.move_to_end((root, source.path))
            while len(self._files) > self._files_max:
                self._files.popitem(last=False)


_recent = RecentFiles(64)


def open_data_file(store: Store, path: str, size_bytes: int = 0) -> DataFileReader:
    """Open a data file. ``size_bytes`` is what the manifest says (0 = not known).

    A local file that was open a moment ago, in any dataset handle, is returned as it is. Raises
    ObjectNotFoundError, CorruptFileError, NotSupportedError.
    """
    source = FileSource(store, path, size_bytes)
    reader = _recent.get(store.uri, source)
    if reader is None or (size_bytes and size_bytes != reader.size_bytes):
        reader = _opened(store, source, size_bytes)
        _recent.put(store.uri, source, reader)
    return reader


def _opened(store: Store, source: FileSource, size_bytes: int) -> DataFileReader:
    path = source.path
    is_legacy = parse_version(source.tail(8), source.size_bytes, source.path) < (2, 0)
    # Releases 0.30 to 7 measured 0.1 files before they had written the end of them.
    if size_bytes and size_bytes != source.size_bytes and not is_legacy:
        expected = f"{size_bytes} bytes as the manifest says"
        raise CorruptFileError(source.path, None, expected, f"{source.size_bytes} bytes")
    if is_legacy:
        from lance_nb.file.v0_1_reader import LegacyReader

        return LegacyReader(source)
    return FileReader(store, path, size_bytes, source)

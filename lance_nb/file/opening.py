"""Open a data file of any version.

The version is read from the last 8 bytes, which all versions share: ``u16 major | u16 minor |
"LANC"``.

Source: spec page "file format".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from lance_nb import file
from lance_nb.encodings.base import Rows
from lance_nb.errors import CorruptFileError
from lance_nb.file.columns import Leaf, LeafPart
from lance_nb.file.footer import parse_version
from lance_nb.file.reader import FileReader
from lance_nb.file.source import FileSource
from lance_nb.storage.base import Store

if TYPE_CHECKING:
    from lance_nb.file.page_listing import PageListing


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


def open_data_file(store: Store, path: str, size_bytes: int = 0) -> DataFileReader:
    """Open a data file. ``size_bytes`` is what the manifest says (0 = not known).

    Raises ObjectNotFoundError, CorruptFileError, NotSupportedError.
    """
    source = FileSource(store, path)
    is_legacy = parse_version(source.tail(8), source.size_bytes, path) < (2, 0)
    # Releases 0.30 to 7 measured 0.1 files before they had written the end of them.
    if size_bytes and size_bytes != source.size_bytes and not is_legacy:
        expected = f"{size_bytes} bytes as the manifest says"
        raise CorruptFileError(path, None, expected, f"{source.size_bytes} bytes")
    if is_legacy:
        return file.legacy_reader.LegacyReader(source)
    return FileReader(store, path, size_bytes, source)

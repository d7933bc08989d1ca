"""Open one file of an index: its columns, settings and global buffers.

Files of indices are ordinary data files, whatever their extension. Columns are read as they are
stored: ``_rowid`` is no row column here. An open file is kept in the cache of the dataset handle,
as files never change.

Limits: what a caller may hold in memory is checked before it is read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import one_array
from lance_nb.encodings.base import Ints, Rows
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.columns import Leaf, assemble, leaves_of
from lance_nb.file.reader import FileReader
from lance_nb.format.field import Field
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.storage.base import Store
from lance_nb.table.file_cache import FileCache
from lance_nb.table.single_file import column_owners
from lance_nb.table.snapshot import Snapshot

BYTES_MAX = 1 << 30
"""Bytes of a file that are read for one question; a question that needs more is not answered."""


class IndexFile:
    """An open file of an index."""

    def __init__(self, files: FileCache, store: Store, path: str, size_bytes: int = 0) -> None:
        reader = files.get(store, path, size_bytes)
        if not isinstance(reader, FileReader):
            raise NotSupportedError(f"{path}: index files of version 0.1 are not read")
        self.reader = reader
        self.path = path
        self.num_rows = reader.num_rows
        self._schema = reader.schema
        self._arrow = self._schema.to_arrow(storage=True)
        self._owners = column_owners(self._schema, reader.file_version)
        self._columns: dict[str, tuple[Field, pa.DataType, list[Leaf]]] = {}

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self._arrow.names)

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a column. Raises CorruptFileError."""
        return self._column(name)[1]

    def setting(self, name: str, default: str = "") -> str:
        """Return a setting in the metadata of the schema."""
        return self._schema.metadata.get(name, default.encode()).decode(errors="replace")

    def number(self, name: str, default: int, most: int) -> int:
        """Return a setting that is a number from 1 to ``most``. Raises CorruptFileError."""
        text = self.setting(name, str(default))
        value = int(text) if text.isdecimal() and len(text) < 20 else 0
        if not 0 < value <= most:
            raise CorruptFileError(self.path, None, f"{name} from 1 to {most}", text[:40])
        return value

    def buffer(self, setting: str) -> bytes | None:
        """Return the global buffer that a setting names, None without the setting."""
        if setting not in self._schema.metadata:
            return None
        return bytes(self.reader.global_buffer(self.number(setting, 0, 1 << 20)))

    def check_rows(self, most: int) -> None:
        """Refuse a file of too many rows to be held. Raises NotSupportedError."""
        if self.num_rows > most:
            raise NotSupportedError(
                f"{self.path}: {self.num_rows:,} rows, at most {most:,} are read"
            )

    def read(self, names: Sequence[str], starts: Ints, stops: Ints) -> list[pa.Array]:
        """Read ranges of rows of some columns. Raises CorruptFileError."""
        num_rows = int((stops - starts).sum())
        if not num_rows:
            return [pa.nulls(0, self.type_of(name)) for name in names]
        leaves = [leaf for name in names for leaf in self._column(name)[2]]
        leaf_parts = self.reader.read_leaves(
            leaves, self._owners, Rows(starts, stops), self.num_rows
        )
        arrays = []
        for name in names:
            field, kind, mine = self._column(name)
            parts = {leaf.field_id: leaf_parts[leaf.field_id] for leaf in mine}
            array = one_array(assemble(field, kind, parts, num_rows))
            if len(array) != num_rows:
                raise CorruptFileError(self.path, None, f"{num_rows} rows", f"{len(array)}")
            arrays.append(array)
        return arrays

    def read_all(self, *names: str) -> list[pa.Array]:
        """Read some columns whole. Raises CorruptFileError."""
        return self.read(names, np.array([0], np.int64), np.array([self.num_rows], np.int64))

    def read_rows(self, names: Sequence[str], rows: Ints) -> list[pa.Array]:
        """Read single rows, ascending and different. Raises CorruptFileError."""
        return self.read(names, rows, rows + 1)

    def _column(self, name: str) -> tuple[Field, pa.DataType, list[Leaf]]:
        if name not in self._columns:
            field = next((field for field in self._schema if field.name == name), None)
            if field is None:
                names = ", ".join(self._schema.names)
                raise CorruptFileError(self.path, None, f"a column {name!r}", names)
            kind = self._arrow.field(name).type
            self._columns[name] = field, kind, list(leaves_of(field, kind, self._owners))
        return self._columns[name]


def open_file(snapshot: Snapshot, index: IndexMetadata, name: str) -> IndexFile:
    """Open a file of a segment. Raises CorruptFileError, ObjectNotFoundError."""
    size_bytes = next((file.size_bytes for file in index.files if file.path == name), 0)
    path = f"_indices/{index.uuid}/{name}"
    store, place = snapshot.locations.locate(path, index.base_id)
    return IndexFile(snapshot.files, store, place, size_bytes)

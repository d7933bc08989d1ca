"""Open the two files of a segment of a vector index, and read whole partitions.

=================  =============================================================================
``index.idx``      the setting ``lance:index`` says type and metric; ``lance:ivf`` names a global
                   buffer, an ``IVF`` message with the centroids. Graphs (HNSW) are its rows; they
                   are not read
``auxiliary.idx``  a row for each vector: ``_rowid`` and the column of ``flat``, ``product`` or
                   ``scalar``. Its ``lance:ivf`` tells which rows are which partition, and
                   ``storage_metadata`` how vectors are stored (a JSON list of one JSON text)
=================  =============================================================================

Where vectors are stored in a way that is not known (IVF_RQ), the rows of partitions are, and exact
distances are computed from the column.

Limits: ``PARTITIONS_MAX`` partitions; a partition has to fit into ``BYTES_MAX`` bytes. Partitions
that were read are kept, ``KEPT_BYTES_MAX`` bytes for each handle of a dataset, the least recently
used ones go first.
Source: files that pylance 14.0.2 writes; messages ``IVF`` and ``Tensor`` of lance.index.pb.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.format.vector_index import Partitioning, tensor_from_bytes
from lance_nb.indices.index_file import BYTES_MAX, IndexFile
from lance_nb.indices.row_sets import U64s
from lance_nb.indices.vectors import flat, product, scalar
from lance_nb.indices.vectors.stored_vectors import Floats, Matrix, Settings, StoredVectors
from lance_nb.table.file_cache import FileCache
from lance_nb.table.index_search import numbers
from lance_nb.table.nearest import METRICS
from lance_nb.value_classes import dataclass

FILES = ("index.idx", "auxiliary.idx")
NEWEST = 2
PARTITIONS_MAX = 1 << 20
KEPT_BYTES_MAX = 512 * 1024 * 1024
ROW_ID = "_rowid"
_COLUMNS = (flat.COLUMN, scalar.COLUMN, product.COLUMN)


@dataclass(frozen=True, slots=True)
class Partition:
    """The vectors of a partition: who they are, and what is stored of them (None: not known)."""

    rows: U64s
    stored: Matrix | None

    @property
    def size_bytes(self) -> int:
        """Bytes that it holds."""
        return self.rows.nbytes + (0 if self.stored is None else self.stored.nbytes)


class Partitions:
    """The partitions that were read through one handle of a dataset, within bounds."""

    def __init__(self) -> None:
        self._partitions: OrderedDict[tuple[str, int], Partition] = OrderedDict()
        self._lock = threading.Lock()
        self._size_bytes = 0

    def get(self, key: tuple[str, int], read: Callable[[], Partition]) -> Partition:
        """Return a partition, reading it if it is not kept."""
        with self._lock:
            if key in self._partitions:
                self._partitions.move_to_end(key)
                return self._partitions[key]
        partition = read()
        with self._lock:
            if key not in self._partitions and partition.size_bytes <= KEPT_BYTES_MAX:
                self._partitions[key] = partition
                self._size_bytes += partition.size_bytes
                while self._size_bytes > KEPT_BYTES_MAX:
                    self._size_bytes -= self._partitions.popitem(last=False)[1].size_bytes
        return partition


_partitions: WeakKeyDictionary[FileCache, Partitions] = WeakKeyDictionary()


def partitions_of(files: FileCache) -> Partitions:
    """Return the partitions that are kept for a handle."""
    return _partitions.setdefault(files, Partitions())


class IvfSegment:
    """The files of one segment, opened. Raises CorruptFileError, NotSupportedError."""

    def __init__(
        self, uuid: str, partitions: Partitions, index: IndexFile, auxiliary: IndexFile
    ) -> None:
        self._uuid = uuid
        self._partitions = partitions
        self.file = auxiliary
        self.index_path = index.path
        self.kind, self.metric = _kind_and_metric(index)
        model = _partitioning(index)
        if model.centroids is None or model.centroids.ndim != 2 or not model.centroids.size:
            shape = None if model.centroids is None else model.centroids.shape
            raise CorruptFileError(index.path, None, "a matrix of centroids", f"shape {shape}")
        self.centroids = model.centroids
        self.num_partitions = len(self.centroids)
        self.loss = model.loss
        rows = _partitioning(auxiliary)
        self._starts, self.lengths = _ranges(rows, auxiliary, self.num_partitions)
        self.settings = Settings(auxiliary.path, self.metric, self.centroids, _storage(auxiliary))
        self._column = next((name for name in auxiliary.names if name in _COLUMNS), None)
        self._stored = _stored(self._column, self.settings, auxiliary)

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""
        return self.settings.dimension

    @property
    def num_rows(self) -> int:
        """Vectors, those of deleted rows too."""
        return int(self.lengths.sum())

    @property
    def is_coded(self) -> bool:
        """Whether distances are estimated from codes."""
        return self._column not in (None, flat.COLUMN)

    @property
    def stored(self) -> StoredVectors | None:
        """What computes distances from partitions, None where the codes are not known."""
        return self._stored

    def nearest_partitions(self, query: Floats) -> npt.NDArray[np.int64]:
        """Return all partitions, the one with the nearest centroid first."""
        from lance_nb.table.nearest import distances

        metric = "l2" if self.metric == "cosine" else self.metric
        return np.argsort(distances(self.centroids, query, metric), kind="stable")

    def partition(self, number: int) -> Partition:
        """Read one partition whole. Raises CorruptFileError, NotSupportedError."""
        return self._partitions.get((self._uuid, number), lambda: self._read(number))

    def _read(self, number: int) -> Partition:
        start, length = int(self._starts[number]), int(self.lengths[number])
        names = [ROW_ID] if self._column is None else [ROW_ID, self._column]
        width = 0 if self._stored is None else self._stored.width
        if length * (8 + 8 * width) > BYTES_MAX:
            raise NotSupportedError(f"{self.file.path}: partition {number} has {length:,} vectors")
        if self._column is not None:
            self._check_column(self._column, width)
        columns = self.file.read(names, np.array([start]), np.array([start + length]))
        rows = numbers(columns[0], self.file.path)
        if self._column is None:
            return Partition(rows, None)
        return Partition(rows, _matrix(columns[1], width, self.file.path))

    def _check_column(self, name: str, width: int) -> None:
        kind = self.file.type_of(name)
        is_vector = pt.is_fixed_size_list(kind) and kind.list_size == width
        fits = pt.is_floating if name == flat.COLUMN else pt.is_uint8
        if not is_vector or not (fits(kind.value_type) or pt.is_uint8(kind.value_type)):
            raise CorruptFileError(
                self.file.path, None, f"{width} values in a row of {name!r}", str(kind)
            )


def _kind_and_metric(index: IndexFile) -> tuple[str, str]:
    metadata = _json(index.setting("lance:index"), index.path)
    if not isinstance(metadata, dict):
        raise CorruptFileError(index.path, None, "type and metric of an index", str(metadata)[:40])
    kind, metric = str(metadata.get("type", "")), str(metadata.get("distance_type", ""))
    if not kind.startswith("IVF") or metric not in METRICS:
        raise NotSupportedError(f"{index.path}: an index {kind[:40]!r} by {metric[:40]!r}")
    return kind, metric


def _partitioning(file: IndexFile) -> Partitioning:
    data = file.buffer("lance:ivf")
    if data is None:
        raise CorruptFileError(file.path, None, "the setting 'lance:ivf'", "none")
    return Partitioning.from_bytes(data, file.path)


def _ranges(
    rows: Partitioning, file: IndexFile, count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where each partition begins, and how long it is."""
    if not rows.starts.size == rows.lengths.size == count <= PARTITIONS_MAX:
        sizes_text = f"{rows.starts.size} and {rows.lengths.size}"
        raise CorruptFileError(
            file.path, None, f"offsets and lengths of {count} partitions", sizes_text
        )
    starts, lengths = rows.starts, rows.lengths
    is_outside = (starts > file.num_rows) | (starts + lengths > file.num_rows)
    if bool(is_outside.any()):
        wrong = int(is_outside.argmax())
        actual = f"partition {wrong} of {int(lengths[wrong])} rows from {int(starts[wrong])} on"
        raise CorruptFileError(file.path, None, f"partitions within {file.num_rows} rows", actual)
    return starts.astype(np.int64), lengths.astype(np.int64)


def _storage(file: IndexFile) -> dict[str, Any]:
    outer = _json(file.setting("storage_metadata", "[]"), file.path)
    text = outer[0] if isinstance(outer, list) and outer else ""
    settings = _json(text, file.path) if isinstance(text, str) and text else {}
    if not isinstance(settings, dict):
        raise CorruptFileError(file.path, None, "settings of vectors", text[:40])
    return settings


def _json(text: str, path: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(path, None, "JSON", text[:40]) from error


def _stored(column: str | None, settings: Settings, file: IndexFile) -> StoredVectors | None:
    if column == flat.COLUMN:
        return flat.FlatVectors(settings)
    if column == scalar.COLUMN:
        return scalar.ScalarCodes(settings)
    if column == product.COLUMN:
        place = int(settings.number("codebook_position", 1, 1 << 20))
        codebook = tensor_from_bytes(file.reader.global_buffer(place), file.path)
        return product.ProductCodes(settings, codebook)
    return None


def _matrix(vectors: pa.Array, width: int, path: str) -> Matrix:
    """Return the rows of a column of fixed-size lists; 16-bit numbers as float32."""
    flat_values = vectors.values.slice(vectors.offset * width, len(vectors) * width)
    if vectors.null_count or flat_values.null_count:
        raise CorruptFileError(path, None, "vectors without nulls", "a null")
    kind = {"halffloat": "<f2", "float": "<f4", "double": "<f8"}.get(str(flat_values.type), "u1")
    itemsize = np.dtype(kind).itemsize
    if not len(flat_values):
        return np.zeros((0, width), kind)
    data = np.frombuffer(
        flat_values.buffers()[1], kind, len(flat_values), flat_values.offset * itemsize
    )
    data = data.astype(np.float32) if kind == "<f2" else data
    return data.reshape(-1, width)

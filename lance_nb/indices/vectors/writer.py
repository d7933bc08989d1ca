"""Build a segment of an index on a column of vectors: IVF_FLAT, IVF_PQ and IVF_SQ.

A sample of the rows trains the centroids of the partitions, and what is needed to code vectors; a
second reading assigns and codes each vector. Rows whose vector is null, or has a number that is not
finite (or, for cosine, only zeros) are in no partition. Segments that extend an index have the
centroids and codes of the first of its segments. The same rows and seed make the same files.

The layout is that of pylance 14.0.2, see ``ivf``; ``auxiliary.idx`` has the rows of a partition in
the order of the scan.

Limits: memory holds 12 bytes for each row, the sample (``_SAMPLE_BYTES_MAX``) and a batch. Codes
wait in a temporary file when they are more than ``_HELD_BYTES_MAX``.
Source: ``create_index`` of pylance 14.0.2, its defaults and files.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import InvalidInputError
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.vector_index import (
    METRICS,
    Partitioning,
    details_of,
    tensor_to_bytes,
    vector_details,
)
from lance_nb.indices.building import Parameters, SegmentDetails, SegmentFiles, SegmentRows
from lance_nb.indices.index_file import open_file
from lance_nb.indices.vectors import flat, product, scalar
from lance_nb.indices.vectors.ivf import (
    FILES,
    PARTITIONS_MAX,
    ROW_ID,
    IvfSegment,
    Partitions,
)
from lance_nb.indices.vectors.kmeans import (
    MAX_ITERATIONS,
    SAMPLES_PER_CENTROID,
    nearest_centroids,
    train,
)
from lance_nb.indices.vectors.stored_vectors import Floats, Matrix, Settings, StoredVectors
from lance_nb.table.nearest import matrix_of
from lance_nb.table.snapshot import Snapshot

DETAILS_URL = "/lance.index.pb.VectorIndexDetails"
FLAT, PQ, SQ = "IVF_FLAT", "IVF_PQ", "IVF_SQ"
_VERSION = 1
_ROWS_PER_PARTITION = {FLAT: 4096, PQ: 8192, SQ: 8192}
_COMPRESSIONS = {FLAT: "flat", PQ: "pq", SQ: "sq"}
_SAMPLE_BYTES_MAX = 1 << 30
_HELD_BYTES_MAX = 256 * 1024 * 1024
_WRITTEN_BYTES = 16 * 1024 * 1024
_SCALAR_SAMPLES = 65_536
_DEFAULTS: Mapping[str, Any] = {
    "metric": "l2",
    "num_partitions": None,
    "target_partition_size": None,
    "sample_rate": SAMPLES_PER_CENTROID,
    "max_iters": MAX_ITERATIONS,
    "ivf_centroids": None,
    "seed": 0,
}
_SCALAR_DEFAULTS: Mapping[str, Any] = {"sq_bounds": None}
_PRODUCT_DEFAULTS: Mapping[str, Any] = {"num_sub_vectors": None, "num_bits": 8, "pq_codebook": None}


# --- parameters -----------------------------------------------------------------------------------


def check(kind: str, column: pa.Field, parameters: Parameters) -> Parameters:
    """Return all parameters of a kind, with its defaults. Raises InvalidInputError."""
    type_ = column.type
    if not pt.is_fixed_size_list(type_):
        raise InvalidInputError(f"{kind} holds vectors of one length: {column.name!r} is {type_}")
    own = {PQ: _PRODUCT_DEFAULTS, SQ: _SCALAR_DEFAULTS}.get(kind, {})
    defaults = {**_DEFAULTS, **own}
    unknown = sorted(set(parameters) - set(defaults))
    if unknown:
        raise InvalidInputError(
            f"{kind} has no parameter {unknown[0]!r}; it takes {', '.join(sorted(defaults))}"
        )
    settings = {
        **defaults,
        **{name: parameter for name, parameter in parameters.items() if parameter is not None},
    }
    settings["metric"] = _metric(kind, type_, str(settings["metric"]))
    limits = {
        "num_partitions": PARTITIONS_MAX, "target_partition_size": 1 << 40, "sample_rate": 1 << 20,
        "max_iters": 10_000,
    }  # fmt: skip
    for name, most in limits.items():
        if settings[name] is not None:
            settings[name] = _whole(kind, name, settings[name], least=1, most=most)
    settings["seed"] = _whole(kind, "seed", settings["seed"], least=0, most=(1 << 63) - 1)
    if kind == PQ:
        _check_product(settings, type_)
    if kind == SQ and settings["sq_bounds"] is not None:
        settings["sq_bounds"] = _bounds(settings["sq_bounds"])
    if settings["ivf_centroids"] is not None:
        settings["ivf_centroids"] = _centroids(settings, type_)
    return settings


def _metric(kind: str, type_: pa.DataType, metric_name: str) -> str:
    metric = {"euclidean": "l2"}.get(metric_name.lower(), metric_name.lower())
    if pt.is_uint8(type_.value_type):
        allowed: tuple[str, ...] = ("hamming",) if kind == FLAT else ()
    else:
        allowed = ("l2", "cosine", "dot") if pt.is_floating(type_.value_type) else ()
    if not allowed:
        raise InvalidInputError(f"{kind} does not hold vectors of {type_.value_type}")
    if metric not in allowed or metric not in METRICS:
        raise InvalidInputError(
            f"metric {metric_name!r} does not fit vectors of {type_.value_type}; "
            f"use {' or '.join(allowed)}"
        )
    return metric


def _whole(kind: str, name: str, value: Any, least: int, most: int) -> int:
    is_whole = isinstance(value, int | np.integer) or (
        isinstance(value, float) and value.is_integer()
    )
    if isinstance(value, bool) or not is_whole or not least <= value <= most:
        raise InvalidInputError(
            f"{kind}: {name} is a whole number from {least} to {most}, not {value!r}"
        )
    return int(value)


def _check_product(settings: dict[str, Any], type_: pa.DataType) -> None:
    if settings["num_sub_vectors"] is None:
        raise InvalidInputError("num_sub_vectors is required for IVF_PQ")
    pieces = _whole(
        PQ, "num_sub_vectors", settings["num_sub_vectors"], least=1, most=type_.list_size
    )
    bits = _whole(PQ, "num_bits", settings["num_bits"], least=4, most=8)
    if bits not in (4, 8) or (bits == 4 and pieces % 2):
        raise InvalidInputError(
            f"IVF_PQ: num_bits is 8, or 4 with an even num_sub_vectors, not {bits} with {pieces}"
        )
    if type_.list_size % pieces:
        raise InvalidInputError(
            f"dimension ({type_.list_size}) must be divisible by num_sub_vectors ({pieces})"
        )
    settings |= {"num_sub_vectors": pieces, "num_bits": bits}
    if settings["pq_codebook"] is not None:
        if settings["ivf_centroids"] is None:
            raise InvalidInputError("ivf_centroids must be given when pq_codebook is given")
        shape = pieces, 1 << bits, type_.list_size // pieces
        codebook = _numbers(settings["pq_codebook"])
        if codebook.size != type_.list_size << bits or codebook.ndim not in (2, 3):
            raise InvalidInputError(f"pq_codebook has the shape {shape}, not {codebook.shape}")
        settings["pq_codebook"] = codebook.reshape(shape).astype(np.float32)


def _bounds(bounds: Any) -> tuple[float, float]:
    """Return the numbers that the codes 0 and 255 of IVF_SQ stand for."""
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"sq_bounds are two numbers, not {bounds!r}") from error
    if not (np.isfinite([low, high]).all() and low <= high):
        raise InvalidInputError(f"sq_bounds are two finite numbers in order, not {low}, {high}")
    return low, high


def _centroids(settings: dict[str, Any], type_: pa.DataType) -> Matrix:
    centroids = _numbers(settings["ivf_centroids"])
    num_partitions = settings["num_partitions"]
    if centroids.ndim != 2 or not len(centroids) or centroids.shape[1] != type_.list_size:
        raise InvalidInputError(
            f"ivf_centroids has a row of {type_.list_size} numbers for each partition, "
            f"not the shape {centroids.shape}"
        )
    if num_partitions is not None and num_partitions != len(centroids):
        raise InvalidInputError(
            f"ivf_centroids has {len(centroids)} rows, but num_partitions={num_partitions}"
        )
    is_bits = settings["metric"] == "hamming"
    if is_bits != (centroids.dtype == np.uint8) or not np.isfinite(centroids).all():
        raise InvalidInputError("ivf_centroids must be finite numbers, of the type of the vectors")
    return centroids if is_bits else centroids.astype(np.float32)


def _numbers(values: Any) -> Matrix:
    """Return a matrix of a numpy array or of Arrow's fixed-size lists."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if isinstance(values, pa.FixedSizeListArray):
        matrix, valid = matrix_of(pa.chunked_array([values]))
        if not valid.all():
            raise InvalidInputError("centroids and codebooks have no nulls")
        return matrix
    try:
        array = np.asarray(values)
        return array if array.dtype == np.uint8 else array.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("centroids and codebooks are arrays of numbers") from error


def parameters_of(snapshot: Snapshot, index: IndexMetadata) -> Parameters:
    """Return the parameters of a segment that is there."""
    metric, settings = details_of(index.details, snapshot.manifest.path)
    return {**_DEFAULTS, "metric": metric, **settings}


# --- the model ------------------------------------------------------------------------------------


def train_model(kind: str, rows: SegmentRows, parameters: Parameters) -> Parameters:
    """Return parameters with what training learns, which makes segments that are alike."""
    model = _Model.trained(kind, rows, _storage_type(rows.field), parameters)
    learned: dict[str, Any] = {"ivf_centroids": model.centroids}
    if kind == PQ:
        learned["pq_codebook"] = model.codebook
    elif kind == SQ:
        bounds = model.storage["bounds"]
        learned["sq_bounds"] = bounds["start"], bounds["end"]
    return {**parameters, **learned}


def _storage_type(column: pa.Field) -> pa.DataType:
    is_extension = isinstance(column.type, pa.BaseExtensionType)
    return column.type.storage_type if is_extension else column.type


def write(
    kind: str,
    rows: SegmentRows,
    files: SegmentFiles,
    parameters: Parameters,
    existing: Sequence[IndexMetadata],
) -> SegmentDetails:
    """Train, unless there are segments already; code all vectors; write both files."""
    parameters = {**_DEFAULTS, **_PRODUCT_DEFAULTS, **_SCALAR_DEFAULTS, **parameters}
    type_ = _storage_type(rows.field)
    if existing:
        model = _Model.of_segment(kind, rows.snapshot, existing[0])
    else:
        model = _Model.trained(kind, rows, type_, parameters)
    _write_index(files, model, type_)
    _write_vectors(rows, files, model, type_)
    hints = {
        "lance.ivf.sample_rate": str(parameters["sample_rate"]),
        "lance.ivf.max_iters": str(parameters["max_iters"]),
    }
    settings = {}
    if kind == PQ:
        names = ("num_sub_vectors", "num_bits")
        settings = {name: int(parameters[name]) for name in names}
    elif kind == SQ:
        settings = {"num_bits": 8}
    details = vector_details(
        model.metric,
        _COMPRESSIONS[kind],
        settings,
        hints=hints,
        target_partition_size=parameters["target_partition_size"] or 0,
    )
    return SegmentDetails(details, _VERSION)


class _Model:
    """What training has learned: centroids, and how vectors are stored.

    ``codebook`` is that of IVF_PQ; ``loss`` is the sum of the distances of the sample.
    """

    def __init__(
        self,
        kind: str,
        metric: str,
        centroids: Matrix,
        storage: dict[str, Any],
        *,
        loss: float = 0.0,
        codebook: Floats | None = None,
    ) -> None:
        self.kind = kind
        self.metric = metric
        self.centroids = centroids
        self.loss = loss
        self.storage = storage
        self.codebook = codebook
        settings = Settings("", metric, centroids, storage)
        self.stored: StoredVectors
        if kind == PQ and codebook is not None:
            self.column = product.COLUMN
            self.stored = product.ProductCodes(settings, codebook)
        elif kind == SQ:
            self.column = scalar.COLUMN
            self.stored = scalar.ScalarCodes(settings)
        else:
            self.column = flat.COLUMN
            self.stored = flat.FlatVectors(settings)

    @classmethod
    def of_segment(cls, kind: str, snapshot: Snapshot, index: IndexMetadata) -> _Model:
        """Return the model of a segment that is there. Raises LanceError."""
        opened = IvfSegment(
            index.uuid, Partitions(), *(open_file(snapshot, index, name) for name in FILES)
        )
        if opened.kind != kind:
            raise InvalidInputError(f"index {index.name!r} is an {opened.kind}, not an {kind}")
        codebook = None
        storage = dict(opened.settings.storage)
        if isinstance(opened.stored, product.ProductCodes):
            codebook = opened.stored.codebook
            storage["transposed"] = True
        loss = opened.loss or 0.0
        return cls(kind, opened.metric, opened.centroids, storage, loss=loss, codebook=codebook)

    @classmethod
    def trained(
        cls, kind: str, rows: SegmentRows, type_: pa.DataType, parameters: Parameters
    ) -> _Model:
        """Train on a sample of the rows."""
        metric, rng = parameters["metric"], np.random.default_rng(parameters["seed"])
        rate, most = parameters["sample_rate"], parameters["max_iters"]
        given_centroids = parameters["ivf_centroids"]
        count = (
            _partition_count(kind, rows.num_rows, parameters)
            if given_centroids is None
            else len(given_centroids)
        )
        bits = parameters["num_bits"] if kind == PQ else 8
        sample_size = max(count * rate, rate << bits, _SCALAR_SAMPLES if kind == SQ else 0)
        sample_size = min(sample_size, max(_SAMPLE_BYTES_MAX // (4 * type_.list_size), 1))
        sample = np.zeros((0, type_.list_size), np.float32)
        if rows.num_rows:
            sample, _ = _prepared(rows.sample(sample_size, rng), metric)
        if not len(sample):  # no row has a vector
            dtype = np.uint8 if metric == "hamming" else np.float32
            sample = np.zeros((1, type_.list_size), dtype)
        centroids, loss = given_centroids, 0.0
        if centroids is None:
            chosen = sample[rng.permutation(len(sample))[: count * rate]]
            with rows.progress.stage("train_ivf", most, "iterations") as add:
                centroids, loss = train(
                    chosen, count, "l2" if metric == "cosine" else metric, rng,
                    max_iterations=most, on_iteration=partial(add, 1),
                )  # fmt: skip
        if kind == FLAT:
            return cls(kind, metric, centroids, {"dim": type_.list_size}, loss=loss)
        if kind == SQ:
            low, high = parameters["sq_bounds"] or (float(sample.min()), float(sample.max()))
            bounds = {"start": low, "end": high}
            storage = {"dim": type_.list_size, "num_bits": 8, "bounds": bounds}
            return cls(kind, metric, centroids, storage, loss=loss)
        codebook = parameters["pq_codebook"]
        if codebook is None:
            codebook = _codebook(sample, centroids, parameters, rows=rows, rng=rng)
        storage = {
            "codebook_position": 2, "nbits": bits, "num_sub_vectors": len(codebook),
            "dimension": type_.list_size, "codebook_tensor": [], "transposed": True,
        }  # fmt: skip
        return cls(kind, metric, centroids, storage, loss=loss, codebook=codebook)


def _partition_count(kind: str, num_rows: int, parameters: Parameters) -> int:
    if parameters["num_partitions"] is not None:
        return int(parameters["num_partitions"])
    size = parameters["target_partition_size"] or _ROWS_PER_PARTITION[kind]
    return min(max(num_rows // size, 1), PARTITIONS_MAX)


def _codebook(
    sample: Floats,
    centroids: Matrix,
    parameters: Parameters,
    rows: SegmentRows,
    rng: np.random.Generator,
) -> Floats:
    """Train the codewords of each piece, on what centroids leave of the vectors."""
    pieces, words = parameters["num_sub_vectors"], 1 << parameters["num_bits"]
    training = sample[rng.permutation(len(sample))[: words * parameters["sample_rate"]]]
    if parameters["metric"] != "dot":
        training = training - centroids[nearest_centroids(training, centroids)]
    size = training.shape[1] // pieces
    codebook = []
    with rows.progress.stage("train_quantizer", pieces, "sub-vectors") as add:
        for piece in range(pieces):
            part = np.ascontiguousarray(training[:, piece * size : (piece + 1) * size])
            codewords, _ = train(
                part, words, "l2", rng, max_iterations=parameters["max_iters"],
                on_iteration=partial(add, 0),
            )  # fmt: skip
            codebook.append(codewords)
            add(1)
    return np.stack(codebook)


def _prepared(vectors: pa.ChunkedArray, metric: str) -> tuple[Matrix, npt.NDArray[np.bool_]]:
    """Return vectors as they are compared, without those that are in no partition, and which."""
    matrix, valid = matrix_of(vectors)
    if metric == "hamming":
        return matrix[valid] if not valid.all() else matrix, valid
    with np.errstate(all="ignore"):
        prepared = matrix.astype(np.float32, copy=False)
        keep = valid & np.isfinite(prepared).all(axis=1)
        if metric == "cosine":
            lengths = np.sqrt(np.einsum("ij,ij->i", prepared, prepared))
            keep &= (lengths > 0) & np.isfinite(lengths)
            prepared = prepared / lengths[:, None]
    return prepared[keep] if not keep.all() else prepared, keep


# --- files ----------------------------------------------------------------------------------------


def _write_index(files: SegmentFiles, model: _Model, type_: pa.DataType) -> None:
    nothing = np.zeros(len(model.centroids), np.uint64)
    centroids = model.centroids.astype(_tensor_type(type_))
    settings = {
        "lance:index": json.dumps({"type": model.kind, "distance_type": model.metric}),
        "lance:flat": json.dumps([""] * len(centroids)),
    }
    marker = pa.field("__flat_marker", pa.uint64(), nullable=False)
    buffer = Partitioning(nothing, nothing, centroids, model.loss).to_bytes()
    files.write("index.idx", [], pa.schema([marker], settings), {"lance:ivf": buffer})


def _tensor_type(type_: pa.DataType) -> np.dtype[Any]:
    """Return the type of centroids and codebooks: that of the vectors, or else pylance panics."""
    dtype: np.dtype[Any] = np.dtype(type_.value_type.to_pandas_dtype())
    return dtype


def _write_vectors(
    rows: SegmentRows, files: SegmentFiles, model: _Model, type_: pa.DataType
) -> None:
    kind = type_.value_type if model.kind == FLAT else pa.uint8()
    width = model.stored.width
    dtype = np.dtype(kind.to_pandas_dtype())
    size_bytes = rows.num_rows * (width * dtype.itemsize + 8)
    with _Coded(width, dtype, in_file=size_bytes > _HELD_BYTES_MAX) as coded:
        for batch in rows.batches("shuffle"):
            _code(batch, model, coded, dtype)
        partitions = np.concatenate(coded.partitions)
        order = np.argsort(partitions, kind="stable")
        lengths = np.bincount(partitions, minlength=len(model.centroids)).astype(np.uint64)
        starts = np.cumsum(lengths) - lengths
        codes = pa.list_(pa.field("item", kind), width)
        settings = {
            "distance_type": model.metric,
            "storage_metadata": json.dumps([json.dumps(model.storage)]),
        }
        schema = pa.schema(
            [
                pa.field(ROW_ID, pa.uint64()),
                pa.field(model.column, codes, nullable=model.kind != FLAT),
            ],
            settings,
        )
        with files.create("auxiliary.idx", schema) as file:
            file.add_global_buffer(Partitioning(starts, lengths).to_bytes())
            file.add_schema_metadata({"lance:ivf": b"1"})
            if model.codebook is not None:
                flat_words = model.codebook.reshape(-1, type_.list_size)
                words = flat_words.astype(_tensor_type(type_))
                file.add_global_buffer(tensor_to_bytes(words))
            with rows.progress.stage("merge_partitions", len(lengths), "partitions") as add:
                for batch, count in _batches(coded, order, lengths, model=model, schema=schema):
                    file.write(batch)
                    add(count)


def _code(batch: pa.RecordBatch, model: _Model, coded: _Coded, dtype: np.dtype[Any]) -> None:
    """Assign and code the vectors of one batch."""
    column = pa.chunked_array([batch.column(0)])
    vectors, keep = _prepared(column, model.metric)
    metric = "l2" if model.metric == "cosine" else model.metric
    partitions = nearest_centroids(vectors, model.centroids, metric)
    stored = vectors
    if model.kind != FLAT:
        stored = model.stored.encode(vectors, partitions)
    elif dtype == np.float64 and model.metric != "cosine":
        stored = matrix_of(column)[0][keep]
    ids = np.asarray(batch.column(1).to_numpy(zero_copy_only=False))
    coded.add(partitions.astype(np.uint32), ids[keep], stored.astype(dtype, copy=False))


def _batches(
    coded: _Coded,
    order: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.uint64],
    model: _Model,
    schema: pa.Schema,
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield the rows of whole partitions, and how many partitions they are."""
    most = max(_WRITTEN_BYTES // (coded.row_bytes + 8), 1)
    ends = np.cumsum(lengths).astype(np.int64)
    first = 0
    while first < len(lengths):
        start = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, start + most, side="right")), first + 1)
        ids, stored = coded.take(order[start : int(ends[last - 1])])
        if model.stored.is_transposed:
            for number in range(first, last):
                begin = (int(ends[number - 1]) if number else 0) - start
                part = stored[begin : int(ends[number]) - start]
                part[...] = np.ascontiguousarray(part.T).reshape(part.shape)
        values = pa.FixedSizeListArray.from_buffers(
            schema.field(1).type, len(ids), [None],
            children=[pa.Array.from_buffers(
                schema.field(1).type.value_type, stored.size, [None, pa.py_buffer(stored)])],
        )  # fmt: skip
        arrays = [pa.Array.from_buffers(pa.uint64(), len(ids), [None, pa.py_buffer(ids)]), values]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema), last - first
        first = last


class _Coded:
    """Coded vectors in the order of the scan, in memory or in a temporary file."""

    def __init__(self, width: int, dtype: np.dtype[Any], *, in_file: bool) -> None:
        self.partitions: list[npt.NDArray[np.uint32]] = [np.zeros(0, np.uint32)]
        self.row_bytes = width * dtype.itemsize
        self._record = np.dtype([("id", "<u8"), ("stored", dtype, (width,))])
        self._parts: list[npt.NDArray[Any]] = []
        self._file = tempfile.TemporaryFile(prefix="lance_nb-") if in_file else None  # noqa: SIM115
        self._whole: npt.NDArray[Any] | None = None

    def add(
        self, partitions: npt.NDArray[np.uint32], ids: npt.NDArray[np.uint64], stored: Matrix
    ) -> None:
        """Add the vectors of a batch."""
        self.partitions.append(partitions)
        records = np.empty(len(ids), self._record)
        records["id"] = ids
        records["stored"] = stored
        if self._file is None:
            self._parts.append(records)
        else:
            self._file.write(records.tobytes())

    def take(self, places: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint64], Matrix]:
        """Return the row ids and what is stored of some vectors."""
        if self._whole is None:
            self._whole = self._read()
        records = self._whole[places]
        return np.ascontiguousarray(records["id"]), np.ascontiguousarray(records["stored"])

    def _read(self) -> npt.NDArray[Any]:
        if self._file is None:
            return np.concatenate([np.empty(0, self._record), *self._parts])
        if not self._file.tell():
            return np.empty(0, self._record)
        self._file.flush()
        return np.memmap(self._file, self._record, "r")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._whole = None
        if self._file is not None:
            self._file.close()

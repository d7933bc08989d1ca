"""Encode plans, tasks and their results as JSON, for the journal.

Plain values stand for themselves, a tuple is an array, and everything else is an object whose
``"is"`` names its type::

    {"is": "Addition", "fields": {"fragments": [...]}}         a dataclass of ours, field by field
    {"is": "Fragment", "bytes": "<base64>"}                    the protobuf message of the format
    {"is": "dict", "items": [[key, value], ...]}               also "list", "frozenset"
    {"is": "bytes", "bytes": "<base64>"}
    {"is": "arrow field", "bytes": "<base64>"}                 Arrow IPC; also "arrow array"
    {"is": "numbers", "type": "float32", "shape": [2, 3], "bytes": "<base64>"}
    {"is": "function", "name": "commit_edits"}                 one of a fixed set

``tasks_to_json`` writes a value that many tasks share once: ``{"is": "shared", "at": 3}`` is the
third item of the list before the value.

Security: only the listed types are read, so a text cannot choose code to run. Credentials are left
out (public_location.py). Functions of users are left out as well, because they would be pickles.
Limits: what has an open store cannot be encoded.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.dataset.public_location import PublicLocation
from lance_nb.errors import FormatError, InternalError, InvalidInputError
from lance_nb.file.external_blobs import NO_BASES
from lance_nb.file.writer import FileOptions
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFileType, Fragment
from lance_nb.spark.engine import PickledValue
from lance_nb.spark.plan import PinnedVersion
from lance_nb.spark.tasks.file_formats import Range
from lance_nb.spark.tasks.maintenance import CommitCopy, CopyFiles
from lance_nb.spark.tasks.source_files import SourceFile
from lance_nb.transactions.fragment_writer import WriteOptions
from lance_nb.transactions.merge_insert_plan import WhenMatched

if TYPE_CHECKING:
    from lance_nb.storage.registry import StorageOptions

# What decoding raises for JSON of another structure.
_DECODE_ERRORS = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
_ROWS_MAX = 2**32  # of a fragment: offsets are 32 bits
_NUMBERS = {"float32": np.float32, "uint8": np.uint8}  # of centroids and codewords


@dataclass(slots=True)
class ResumeOptions:
    """What is not stored: a function, credentials of the dataset and of the copy of a clone.

    ``missing`` collects the options that are still unknown, with the environment variables that
    can provide them. ``lacks_function``: a function of the user is needed, and was not given.
    """

    options: StorageOptions | None = field(default=None, repr=False)
    target_options: StorageOptions | None = field(default=None, repr=False)
    function: Callable[..., Any] | None = None
    missing: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lacks_function: bool = field(default=False, init=False)
    shared: list[Any] = field(default_factory=list, init=False, repr=False)


def to_json(value: Any) -> bytes:
    """Encode a value. Raises InternalError for a type that is not listed."""
    return _dumped(_encoded(value, None))


def tasks_to_json(value: Any) -> bytes:
    """Encode a value with tasks, whose shared values are written once.

    Raises InternalError for a type that is not listed, and for a task with an open store.
    """
    shared = _Shared()
    encoded = _encoded(value, shared)
    return _dumped({"shared": shared.items, "value": encoded})


def _dumped(encoded: Any) -> bytes:
    return json.dumps(encoded, separators=(",", ":")).encode()


def from_json(data: bytes, resume_options: ResumeOptions) -> Any:
    """Decode a value.

    Raises InvalidInputError for data that ``to_json`` of this release does not write.
    """
    return _checked(data, lambda document: _decoded(document, resume_options))


def tasks_from_json(data: bytes, resume_options: ResumeOptions) -> Any:
    """Decode what ``tasks_to_json`` has written. Raises InvalidInputError for anything else."""

    def decoded(document: Any) -> Any:
        for shared_value in document["shared"]:
            resume_options.shared.append(_decoded(shared_value, resume_options))
        return _decoded(document["value"], resume_options)

    return _checked(data, decoded)


def _checked(data: bytes, decode: Callable[[Any], Any]) -> Any:
    try:
        return decode(json.loads(data))
    except (*_DECODE_ERRORS, FormatError) as error:
        raise InvalidInputError(
            f"this release of lance_nb cannot read the entry: {error!r}"
        ) from error


# --- writing --------------------------------------------------------------------------------------


# Values that many tasks of a plan share.
_SHARED_TYPES = frozenset(
    {"CompactionOptions", "MergeClauseText", "PickledValue", "PinnedVersion", "RowWriter", "Schema",
     "Wanted", "bytes"}
)  # fmt: skip


class _Shared:
    """The encoded values that tasks share, each at its first use."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._places: dict[int, tuple[int, Any]] = {}

    def place_of(self, value: Any) -> int:
        """Return the position of a value, which is encoded if it is new."""
        if id(value) not in self._places:  # the value is kept, so that its id stays its own
            encoded = _encoded_object(value, self)
            self._places[id(value)] = len(self.items), value
            self.items.append(encoded)
        return self._places[id(value)][0]


def _encoded(value: Any, shared: _Shared | None) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if type(value) is tuple:
        return [_encoded(element, shared) for element in value]
    if isinstance(value, np.generic):
        return _encoded(value.item(), shared)
    if shared is not None and type(value).__name__ in _SHARED_TYPES:
        return {"is": "shared", "at": shared.place_of(value)}
    return _encoded_object(value, shared)


def _encoded_object(value: Any, shared: _Shared | None) -> Any:
    for kind, encode in _ENCODERS.items():
        if isinstance(value, kind):
            return {"is": _NAMES.get(kind, kind.__name__), **encode(value, shared)}
    if is_dataclass(value) and _types().get(type(value).__name__) is type(value):
        encoded = {
            field.name: _encoded(getattr(value, field.name), shared)
            for field in fields(value)
            if field.init
        }
        return {"is": type(value).__name__, "fields": encoded}
    name = getattr(value, "__name__", "")
    if name and _functions().get(name) is value:
        return {"is": "function", "name": name}
    raise InternalError(f"the journal cannot store a value of type {type(value).__name__}")


def _encoded_version(pinned: PinnedVersion, shared: _Shared | None) -> dict[str, Any]:
    return {
        "location": _encoded_location(pinned.uri, pinned.storage_options, shared),
        "version": pinned.version,
        "branch": pinned.branch,
        "allow_bases": list(pinned.allow_bases),
        "stamp": pinned.stamp,
        "reads_checked": pinned.reads_checked,
    }


def _encoded_copy(copy: CommitCopy, shared: _Shared | None) -> dict[str, Any]:
    return {"location": _encoded_location(copy.target, copy.target_options, shared)}


def _encoded_copies(task: CopyFiles, shared: _Shared | None) -> dict[str, Any]:
    # The store of a file decides how its options are understood.
    in_bases = all(uri for uri, _, _ in task.files)
    first = task.files[0][0] if in_bases else task.source
    return {
        "files": _encoded(task.files, shared),
        "source": _encoded_location(first, task.source_options, shared),
        "target": _encoded_location(task.target, task.target_options, shared),
        "size_bytes": task.size_bytes,
        "allow_bases": list(task.allow_bases),
        "checksums": task.checksums,
    }


def _encoded_file(file: SourceFile, shared: _Shared | None) -> dict[str, Any]:
    return {
        "location": _encoded_location(file.path, tuple(file.options.items()), shared),
        "size_bytes": file.size_bytes,
        "partition": _encoded(file.partition, shared),
    }


def _encoded_location(
    uri: str, options: tuple[tuple[str, Any], ...], shared: _Shared | None
) -> dict[str, Any]:
    location = PublicLocation.of(uri, dict(options))
    return {
        "uri": location.uri,
        "options": _encoded(dict(location.options or {}), shared),
        "withheld": [list(path) for path in location.withheld],
    }


def _encoded_pickled(pickled: PickledValue, shared: _Shared | None) -> dict[str, Any]:
    value = pickled.value
    return {"function": True} if callable(value) else {"value": _encoded(value, shared)}


_ROW_LIMITS = ("max_rows_per_file", "max_bytes_per_file")
_FILE_FIELDS = (
    "page_bytes", "waiting_bytes_max", "allows_external_blobs", "blob_pack_bytes", "checksums",
)  # fmt: skip


def _encoded_options(options: WriteOptions, shared: _Shared | None) -> dict[str, Any]:
    """Encode write options; a commit needs no more than the version, a task needs all of them."""
    file = options.file
    holds_stores = options.places or file.ingests or file.stored or file.blob_bases != NO_BASES
    if shared is not None and holds_stores:
        raise InternalError("the journal cannot store tasks whose write options hold stores")
    return {
        "file_version": list(options.file_version),
        "limits": [getattr(options, name) for name in _ROW_LIMITS],
        "file": [getattr(file, name) for name in _FILE_FIELDS],
    }


def _stream(schema: pa.Schema, *batches: pa.RecordBatch) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return _text(sink.getvalue().to_pybytes())


def _array_stream(array: pa.Array) -> str:
    batch = pa.RecordBatch.from_arrays([array], names=["value"])
    return _stream(batch.schema, batch)


def _encoded_numbers(value: npt.NDArray[Any]) -> dict[str, Any]:
    if str(value.dtype) not in _NUMBERS:
        raise InternalError(f"the journal cannot store numbers of type {value.dtype}")
    return {"type": str(value.dtype), "shape": list(value.shape), "bytes": _text(value.tobytes())}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)


def _pair(key: Any, value: Any, shared: _Shared | None) -> list[Any]:
    return [_encoded(key, shared), _encoded(value, shared)]


_ENCODERS: dict[Any, Callable[[Any, _Shared | None], dict[str, Any]]] = {
    bytes: lambda value, _: {"bytes": _text(value)},
    list: lambda value, shared: {"items": [_encoded(element, shared) for element in value]},
    frozenset: lambda value, shared: {
        "items": [_encoded(element, shared) for element in sorted(value)]
    },
    Mapping: lambda value, shared: {"items": [_pair(k, v, shared) for k, v in value.items()]},
    Range: lambda value, _: {"items": list(value)},
    WhenMatched: lambda value, _: {"value": value.value},
    pa.Field: lambda value, _: {"bytes": _stream(pa.schema([value]))},
    pa.Array: lambda value, _: {"bytes": _array_stream(value)},
    np.ndarray: lambda value, _: _encoded_numbers(value),
    Fragment: lambda value, _: {"bytes": _text(value.to_bytes())},
    DeletionVector: lambda value, _: {"bytes": _text(value.to_bytes(DeletionFileType.BITMAP))},
    PinnedVersion: _encoded_version,
    PickledValue: _encoded_pickled,
    CommitCopy: _encoded_copy,
    CopyFiles: _encoded_copies,
    SourceFile: _encoded_file,
    WriteOptions: _encoded_options,
}
_NAMES = {
    Mapping: "dict", pa.Field: "arrow field", pa.Array: "arrow array", np.ndarray: "numbers",
}  # fmt: skip


# --- reading --------------------------------------------------------------------------------------


def _decoded(value: Any, resume_options: ResumeOptions) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(element, resume_options) for element in value)
    if not isinstance(value, dict):
        return value
    name = value["is"]
    if name in _DECODERS:
        return _DECODERS[name](value, resume_options)
    if name == "function":
        return _functions()[value["name"]]
    decoded_fields = {
        str(key): _decoded(field_value, resume_options)
        for key, field_value in value["fields"].items()
    }
    return _types()[name](**decoded_fields)


def _decoded_version(value: dict[str, Any], resume_options: ResumeOptions) -> PinnedVersion:
    uri, options = _resolved(value["location"], resume_options, resume_options.options)
    bases = tuple(value["allow_bases"])
    checked = value["reads_checked"]
    return PinnedVersion(
        uri, value["version"], value["branch"], options, bases, value["stamp"], checked
    )


def _decoded_copy(value: dict[str, Any], resume_options: ResumeOptions) -> CommitCopy:
    return CommitCopy(*_resolved(value["location"], resume_options, resume_options.target_options))


def _decoded_copies(value: dict[str, Any], resume_options: ResumeOptions) -> CopyFiles:
    source, source_options = _resolved(value["source"], resume_options, resume_options.options)
    target, target_options = _resolved(
        value["target"], resume_options, resume_options.target_options
    )
    return CopyFiles(
        _decoded(value["files"], resume_options), source_options, target, target_options,
        value["size_bytes"], tuple(value["allow_bases"]), value["checksums"], source,
    )  # fmt: skip


def _decoded_file(value: dict[str, Any], resume_options: ResumeOptions) -> SourceFile:
    path, options = _resolved(value["location"], resume_options, resume_options.options)
    partition = _decoded(value["partition"], resume_options)
    return SourceFile(path, value["size_bytes"], partition, dict(options))


def _decoded_pickled(value: dict[str, Any], resume_options: ResumeOptions) -> PickledValue:
    if "function" not in value:
        return PickledValue.of(_decoded(value["value"], resume_options))
    resume_options.lacks_function = resume_options.function is None
    return PickledValue.of(resume_options.function)


def _decoded_options(value: dict[str, Any]) -> WriteOptions:
    version = tuple(value["file_version"])
    if "limits" not in value:  # an entry of an earlier release
        return WriteOptions(file_version=version)
    limits = dict(zip(_ROW_LIMITS, value["limits"], strict=True))
    file = FileOptions(**dict(zip(_FILE_FIELDS, value["file"], strict=True)))
    return WriteOptions(**limits, file_version=version, file=file)


def _opened(value: dict[str, Any]) -> pa.RecordBatchStreamReader:
    return pa.ipc.open_stream(_bytes(value["bytes"]))


def _resolved(
    location_fields: dict[str, Any], resume_options: ResumeOptions, options: StorageOptions | None
) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Add the credentials to a URI and its options, or record what is missing."""
    withheld = tuple(tuple(path) for path in location_fields["withheld"])
    location = PublicLocation(
        location_fields["uri"], _decoded(location_fields["options"], resume_options), withheld
    )
    missing = location.missing(options)
    resume_options.missing.update(missing)
    uri, resolved_options = (location.uri, None) if missing else location.resolve(options)
    return uri, tuple(sorted((resolved_options or {}).items()))


def _numbers(value: dict[str, Any]) -> npt.NDArray[Any]:
    dtype = _NUMBERS[value["type"]]
    return np.frombuffer(_bytes(value["bytes"]), dtype).reshape(value["shape"])


def _vector(value: dict[str, Any]) -> DeletionVector:
    return DeletionVector.from_bytes(
        _bytes(value["bytes"]), DeletionFileType.BITMAP, physical_rows=_ROWS_MAX
    )


_DECODERS: dict[str, Callable[[dict[str, Any], ResumeOptions], Any]] = {
    "bytes": lambda value, _: _bytes(value["bytes"]),
    "list": lambda value, resume_options: [
        _decoded(element, resume_options) for element in value["items"]
    ],
    "frozenset": lambda value, resume_options: frozenset(
        _decoded(element, resume_options) for element in value["items"]
    ),
    "dict": lambda value, resume_options: {
        _decoded(key, resume_options): _decoded(element, resume_options)
        for key, element in value["items"]
    },
    "Fragment": lambda value, _: Fragment.from_bytes(_bytes(value["bytes"])),
    "DeletionVector": lambda value, _: _vector(value),
    "PinnedVersion": _decoded_version,
    "CommitCopy": _decoded_copy,
    "CopyFiles": _decoded_copies,
    "PickledValue": _decoded_pickled,
    "Range": lambda value, _: Range(*value["items"]),
    "SourceFile": _decoded_file,
    "WhenMatched": lambda value, _: WhenMatched(value["value"]),
    "WriteOptions": lambda value, _: _decoded_options(value),
    "arrow array": lambda value, _: _opened(value).read_next_batch().column(0),
    "arrow field": lambda value, _: _opened(value).schema.field(0),
    "numbers": lambda value, _: _numbers(value),
    "shared": lambda value, resume_options: resume_options.shared[value["at"]],
}


# --- the listed types -----------------------------------------------------------------------------


@cache
def _types() -> dict[str, type]:
    """Return the dataclasses that are stored field by field."""
    from lance_nb.dataset.verbs.indexing import Wanted
    from lance_nb.format.field import Field, Keys
    from lance_nb.format.index_metadata import IndexFile, IndexMetadata
    from lance_nb.format.key_filter import KeyFilter
    from lance_nb.format.merged_logs import MergedLog
    from lance_nb.format.schema import Schema
    from lance_nb.spark import merge_insert, row_writer
    from lance_nb.spark.plan import Label
    from lance_nb.spark.tasks import bad_records, columns, files, maintenance, rows
    from lance_nb.transactions.column_rewrite import ColumnRewrite
    from lance_nb.transactions.compaction import CompactionOptions, CompactionTask, Rewritten
    from lance_nb.transactions.deletion_plan import DeletionPlan, FragmentDeletion
    from lance_nb.transactions.merge_insert import MergePart
    from lance_nb.transactions.merge_insert_plan import MergeClauses, MergePlan
    from lance_nb.transactions.row_rewrite import RowRewrite
    from lance_nb.transactions.staged import Addition
    from lance_nb.transactions.stream_mark import StreamMark

    values = (
        Addition, ColumnRewrite, CompactionOptions, DeletionPlan, Field, FragmentDeletion,
        IndexFile, IndexMetadata, KeyFilter, Keys, Label, MergeClauses, MergePart, MergePlan,
        MergedLog, Rewritten, RowRewrite, Schema, StreamMark, Wanted,
    )  # fmt: skip
    commits = (
        row_writer.CommitRows, row_writer.RowWriter, row_writer.SkippedFile,
        files.CheckedRows, bad_records.BadRecordCount, bad_records.BadRecordRule,
        maintenance.BuiltSegment,
        maintenance.CommitRewrites, maintenance.CommitSegments, maintenance.Copied,
        merge_insert.InsertUnmatched, merge_insert.MergeClauseText, columns.FilledFragments,
    )  # fmt: skip
    tasks = (
        CompactionTask, columns.CastFragments, columns.FillColumns, files.DatasetRows,
        files.FileRows, files.UnreadableFile, files.WriteRows, maintenance.BuildSegment,
        maintenance.RewriteFragments,
        merge_insert.MergeFragments, rows.DeleteRows, rows.UpdateRows,
    )  # fmt: skip
    return {kind.__name__: kind for kind in (*values, *commits, *tasks)}


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    """Return the functions that commit a plan."""
    from lance_nb.spark.plan import commit_edits
    from lance_nb.spark.tasks.columns import commit_columns
    from lance_nb.spark.tasks.files import additions_of, with_counts, without_skipped

    listed = (additions_of, commit_edits, commit_columns, with_counts, without_skipped)
    return {function.__name__: function for function in listed}

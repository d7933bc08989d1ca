"""Encode plans, tasks and their results as JSON, for the journal.

Plain values stand for themselves, a tuple is an array, and everything else is an object whose
``"is"`` names its type::

    {"is": "Addition", "fields": {"fragments": [...]}}    a dataclass of ours, without its defaults
    {"is": "WhenMatched", "value": "UpdateAll"}           a member of an enumeration of ours
    {"is": "function", "value": "commit_edits"}           a function of ours
    {"is": "Fragment", "value": "<base64>"}               other types: see ``_CODECS``
    {"is": "shared", "value": 3}                          an item of the list before the value

The document is ``{"shared": [...], "value": ...}``: what many tasks share is written once.

Security: only the listed types are read, so a text cannot choose code to run. Credentials are left
out (public_location.py). Functions of users are left out as well, because they would be pickles.
Limits: what has an open store cannot be encoded.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from lance_nb.errors import FormatError, InternalError, InvalidInputError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFileType, Fragment
from lance_nb.session.public_location import PublicLocation
from lance_nb.spark.engine import PickledValue
from lance_nb.spark.plan import Location

if TYPE_CHECKING:
    from lance_nb.storage.registry import StorageOptions

# What decoding raises for JSON of another structure.
_DECODE_ERRORS = (
    ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError,
    FormatError,
)  # fmt: skip
_ROWS_MAX = 2**32  # of a fragment: offsets are 32 bits
_NUMBERS = {"float32": np.float32, "uint8": np.uint8}  # of centroids and codewords
# The dataclasses, enumerations and functions that are stored; a module is imported when needed.
_STORED = {
    "file.writer": "FileOptions",
    "format.field": "Field Keys",
    "format.index_metadata": "IndexFile IndexMetadata",
    "format.key_filter": "KeyFilter",
    "format.merged_logs": "MergedLog",
    "format.schema": "Schema",
    "spark.merge_insert": "InsertUnmatched MergeClauseText MergeFragments",
    "spark.plan": "Label PinnedVersion commit_edits",
    "spark.row_writer": "CommitRows RowWriter SkippedFile",
    "spark.tasks.bad_records": "BadRecordCount BadRecordRule",
    "spark.tasks.columns": "CastFragments FillColumns FilledFragments commit_columns",
    "spark.tasks.file_formats": "Range",
    "spark.tasks.files": (
        "CheckedRows DatasetRows FileRows UnreadableFile WriteRows additions_of with_counts "
        "without_skipped"
    ),
    "spark.tasks.maintenance": (
        "BuildSegment BuiltSegment CommitCopy CommitRewrites CommitSegments Copied CopyFiles "
        "RewriteFragments"
    ),
    "spark.tasks.rows": "DeleteRows UpdateRows",
    "spark.tasks.source_files": "SourceFile",
    "transactions.stream_mark": "StreamMark",
    "writing.compaction": "CompactionOptions CompactionTask Rewritten",
    "writing.fragment_writer": "WriteOptions",
    "writing.indexing": "IndexRequest",
    "writing.staged": "Addition ColumnRewrite DeletionPlan FragmentDeletion MergePlan RowRewrite",
    "writing.upsert_source": "MergeClauses WhenMatched",
    "writing.upserting": "MergePart",
}
_MODULES = {
    name: f"lance_nb.{module}" for module, names in _STORED.items() for name in names.split()
}
# Values that many tasks of a plan share.
_SHARED_TYPES = frozenset(
    {"CompactionOptions", "MergeClauseText", "PickledValue", "PinnedVersion", "RowWriter", "Schema",
     "IndexRequest", "bytes"}
)  # fmt: skip


class ResumeOptions:
    """What is not stored: a function, credentials of the dataset and of the copy of a clone.

    ``missing`` collects the options that are still unknown, with the environment variables that
    can provide them. ``lacks_function``: a function of the user is needed, and was not given.
    """

    def __init__(
        self,
        options: StorageOptions | None = None,
        target_options: StorageOptions | None = None,
        function: Callable[..., Any] | None = None,
    ) -> None:
        self.options = options
        self.target_options = target_options
        self.function = function
        self.missing: dict[str, tuple[str, ...]] = {}
        self.lacks_function = False


def to_json(value: Any) -> bytes:
    """Encode a value. Raises InternalError for a type that is not listed, or an open store."""
    encoder = _Encoder()
    encoded = encoder.encoded(value)
    document = {"shared": encoder.shared, "value": encoded}
    return json.dumps(document, separators=(",", ":")).encode()


def from_json(data: bytes, resume_options: ResumeOptions) -> Any:
    """Decode a value.

    Raises InvalidInputError for data that ``to_json`` of this release does not write.
    """
    try:
        document = json.loads(data)
        decoder = _Decoder(resume_options)
        for value in document["shared"]:
            decoder.shared.append(decoder.decoded(value))
        return decoder.decoded(document["value"])
    except _DECODE_ERRORS as error:
        raise InvalidInputError(
            f"this release of lance_nb cannot read the entry: {error!r}"
        ) from error


def _listed(name: str) -> Any:
    return getattr(import_module(_MODULES[name]), name)


def _is_listed(value: Any) -> bool:
    """Whether a type or function is the one that is listed under its name."""
    name = getattr(value, "__name__", None)
    return isinstance(name, str) and _MODULES.get(name) == value.__module__


class _Encoder:
    """Encodes a value; ``shared`` are the encoded values that are written once."""

    def __init__(self) -> None:
        self.shared: list[Any] = []
        # A value is kept, so that its id stays its own.
        self._places: dict[int, tuple[int, Any]] = {}

    def encoded(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return self.encoded(value.item())
        if type(value) is tuple:
            return [self.encoded(element) for element in value]
        if type(value).__name__ not in _SHARED_TYPES:
            return self._object(value)
        if id(value) not in self._places:
            encoded = self._object(value)
            self._places[id(value)] = len(self.shared), value
            self.shared.append(encoded)
        return {"is": "shared", "value": self._places[id(value)][0]}

    def _object(self, value: Any) -> dict[str, Any]:
        for name, codec in _CODECS.items():
            if isinstance(value, codec.kind):
                return {"is": name, "value": self.encoded(codec.encode(value))}
        kind = type(value)
        if isinstance(value, FunctionType) and _is_listed(value):
            return {"is": "function", "value": value.__name__}
        if isinstance(value, Enum) and _is_listed(kind):
            return {"is": kind.__name__, "value": value.value}
        if is_dataclass(value) and _is_listed(kind):
            own_fields = {
                field.name: self.encoded(getattr(value, field.name))
                for field in fields(value)
                if field.init and not _is_default(getattr(value, field.name), field)
            }
            return {"is": kind.__name__, "fields": own_fields}
        raise InternalError(f"the journal cannot store a value of type {kind.__name__}")


def _is_default(value: Any, field: Field[Any]) -> bool:
    if field.default is MISSING:
        return False
    return value is field.default or (
        type(value) is type(field.default) and bool(value == field.default)
    )


class _Decoder:
    """Decodes a value; ``shared`` are the values that it refers to."""

    def __init__(self, resume_options: ResumeOptions) -> None:
        self.shared: list[Any] = []
        self._resume_options = resume_options

    def decoded(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self.decoded(element) for element in value)
        if not isinstance(value, dict):
            return value
        name = value["is"]
        if name in _CODECS:
            return _CODECS[name].decode(self.decoded(value["value"]), self._resume_options)
        if name == "shared":
            return self.shared[value["value"]]
        if name == "function":
            function = _listed(value["value"])
            if not isinstance(function, FunctionType):
                raise InvalidInputError(f"{value['value']} is not a function")
            return function
        kind = _listed(name)
        if issubclass(kind, Enum):
            return kind(value["value"])
        return kind(**{key: self.decoded(element) for key, element in value["fields"].items()})


# --- types with a form of their own ---------------------------------------------------------------


class _Codec(NamedTuple):
    """A type, and how its values become plain values or those of other types, and back."""

    kind: type
    encode: Callable[[Any], Any]
    decode: Callable[[Any, ResumeOptions], Any]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)


def _encode_array(array: pa.Array) -> str:
    batch = pa.RecordBatch.from_arrays([array], names=["value"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return _text(sink.getvalue().to_pybytes())


def _decode_array(text: str, _: ResumeOptions) -> pa.Array:
    return pa.ipc.open_stream(_bytes(text)).read_next_batch().column(0)


def _encode_numbers(value: Any) -> tuple[str, tuple[int, ...], str]:
    if str(value.dtype) not in _NUMBERS:
        raise InternalError(f"the journal cannot store numbers of type {value.dtype}")
    return str(value.dtype), value.shape, _text(value.tobytes())


def _decode_numbers(parts: Any, _: ResumeOptions) -> Any:
    dtype, shape, text = parts
    return np.frombuffer(_bytes(text), _NUMBERS[dtype]).reshape(shape)


def _encode_location(location: Location) -> tuple[Any, ...]:
    public = PublicLocation.of(location.opening_uri, dict(location.options))
    return public.uri, dict(public.options or {}), public.withheld, location.is_copy


def _decode_location(parts: Any, resume_options: ResumeOptions) -> Location:
    """Add the credentials to a URI and its options, or record what is missing."""
    uri, public_options, withheld, is_copy = parts
    public = PublicLocation(uri, public_options, withheld)
    options = resume_options.target_options if is_copy else resume_options.options
    missing = public.missing(options)
    resume_options.missing.update(missing)
    resolved = (public.uri, None) if missing else public.resolve(options)
    return Location.of(*resolved, is_copy=is_copy)


def _decode_pickled(values: tuple[Any, ...], resume_options: ResumeOptions) -> PickledValue:
    if values:
        return PickledValue.of(*values)
    resume_options.lacks_function = resume_options.function is None
    return PickledValue.of(resume_options.function)


_CODECS = {
    "bytes": _Codec(bytes, _text, lambda text, _: _bytes(text)),
    "list": _Codec(list, tuple, lambda elements, _: list(elements)),
    "frozenset": _Codec(
        frozenset, lambda value: tuple(sorted(value)), lambda elements, _: frozenset(elements)
    ),
    "dict": _Codec(Mapping, lambda value: tuple(value.items()), lambda pairs, _: dict(pairs)),
    "arrow field": _Codec(
        pa.Field,
        lambda field: _text(pa.schema([field]).serialize().to_pybytes()),
        lambda text, _: pa.ipc.read_schema(pa.py_buffer(_bytes(text))).field(0),
    ),
    "arrow array": _Codec(pa.Array, _encode_array, _decode_array),
    "numbers": _Codec(np.ndarray, _encode_numbers, _decode_numbers),
    "Fragment": _Codec(
        Fragment,
        lambda fragment: _text(fragment.to_bytes()),
        lambda text, _: Fragment.from_bytes(_bytes(text)),
    ),
    "DeletionVector": _Codec(
        DeletionVector,
        lambda vector: _text(vector.to_bytes(DeletionFileType.BITMAP)),
        lambda text, _: DeletionVector.from_bytes(
            _bytes(text), DeletionFileType.BITMAP, physical_rows=_ROWS_MAX
        ),
    ),
    "Location": _Codec(Location, _encode_location, _decode_location),
    "PickledValue": _Codec(
        PickledValue,
        lambda pickled: () if callable(pickled.value) else (pickled.value,),
        _decode_pickled,
    ),
}

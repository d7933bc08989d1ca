"""What a commit needs of a plan, and what its tasks returned, as JSON; and back.

Only the types that are listed here are written and made again, each by its name; nothing that is
read chooses code. Plain values stand for themselves, a tuple is an array, everything else an object
whose ``"is"`` says what it is::

    {"is": "Addition", "fields": {"fragments": [...]}}         a value of ours, field by field
    {"is": "Fragment", "bytes": "<base64>"}                    in the bytes of Lance's own format
    {"is": "dict", "items": [[key, value], ...]}               also "list", "frozenset"
    {"is": "bytes", "bytes": "<base64>"}
    {"is": "function", "name": "commit_edits"}                 one of those listed here

Credentials are left out of places and their options (lance_nb.dataset.public_location), and are
asked for when the value is made again.

Limits: a value of a type that is not listed is refused; a field that a later release adds or drops
makes the values of the other one unreadable, which is an error that says so.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lance_nb.dataset.public_location import PublicLocation
from lance_nb.errors import FormatError, InternalError, InvalidInputError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFileType, Fragment
from lance_nb.spark.place import Place
from lance_nb.spark.tasks.clone import CommitCopy
from lance_nb.transactions.fragment_writer import WriteOptions

if TYPE_CHECKING:
    from lance_nb.storage.registry import StorageOptions

# What values say of JSON that is not theirs.
_NOT_OURS = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
_ROWS_MAX = 2**32  # of a fragment: offsets are 32 bits


@dataclass(frozen=True, slots=True)
class Given:
    """Storage options for what was left out: of the dataset, and of the copy that a clone makes.

    ``missing`` collects what is still not known, with the variables that could say it.
    """

    options: StorageOptions | None = field(default=None, repr=False)
    target_options: StorageOptions | None = field(default=None, repr=False)
    missing: dict[str, tuple[str, ...]] = field(default_factory=dict)


def to_json(value: Any) -> bytes:
    """Write a value. Raises InternalError for a type that is not listed."""
    return json.dumps(_encoded(value), separators=(",", ":")).encode()


def from_json(data: bytes, given: Given) -> Any:
    """Make a value again.

    Raises InvalidInputError for what ``to_json`` of this release does not write.
    """
    try:
        return _decoded(json.loads(data), given)
    except (*_NOT_OURS, FormatError) as error:
        raise InvalidInputError(
            f"what was kept cannot be read by this release of lance_nb: {error!r}"
        ) from error


# --- writing --------------------------------------------------------------------------------------


def _encoded(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return [_encoded(one) for one in value]
    if isinstance(value, np.generic):
        return _encoded(value.item())
    for kind, encode in _ENCODERS.items():
        if isinstance(value, kind):
            return {"is": _name_of(kind), **encode(value)}
    if is_dataclass(value) and _types().get(type(value).__name__) is type(value):
        found = {one.name: _encoded(getattr(value, one.name)) for one in fields(value) if one.init}
        return {"is": type(value).__name__, "fields": found}
    name = getattr(value, "__name__", "")
    if name and _functions().get(name) is value:
        return {"is": "function", "name": name}
    raise InternalError(f"a {type(value).__name__} is not listed for the journal")


def _name_of(kind: type) -> str:
    return "dict" if kind is Mapping else kind.__name__


def _encoded_place(place: Place) -> dict[str, Any]:
    location = PublicLocation.of(place.uri, dict(place.storage_options))
    return {
        "location": _encoded_location(location),
        "version": place.version,
        "branch": place.branch,
        "allow_bases": list(place.allow_bases),
        "stamp": place.stamp,
        "reads_checked": place.reads_checked,
    }


def _encoded_copy(copy: CommitCopy) -> dict[str, Any]:
    location = PublicLocation.of(copy.target, dict(copy.target_options))
    return {"location": _encoded_location(location)}


def _encoded_location(location: PublicLocation) -> dict[str, Any]:
    return {
        "uri": location.uri,
        "options": _encoded(dict(location.options or {})),
        "withheld": [list(path) for path in location.withheld],
    }


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)


_ENCODERS: dict[Any, Callable[[Any], dict[str, Any]]] = {
    bytes: lambda value: {"bytes": _text(value)},
    list: lambda value: {"items": [_encoded(one) for one in value]},
    frozenset: lambda value: {"items": [_encoded(one) for one in sorted(value)]},
    Mapping: lambda value: {"items": [[_encoded(k), _encoded(v)] for k, v in value.items()]},
    Fragment: lambda value: {"bytes": _text(value.to_bytes())},
    DeletionVector: lambda value: {"bytes": _text(value.to_bytes(DeletionFileType.BITMAP))},
    Place: _encoded_place,
    CommitCopy: _encoded_copy,
    # A commit asks for nothing else of it, and it may hold open stores.
    WriteOptions: lambda value: {"file_version": list(value.file_version)},
}


# --- reading --------------------------------------------------------------------------------------


def _decoded(value: Any, given: Given) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(one, given) for one in value)
    if not isinstance(value, dict):
        return value
    name = value["is"]
    if name in _DECODERS:
        return _DECODERS[name](value, given)
    if name == "function":
        return _functions()[value["name"]]
    found = {str(key): _decoded(one, given) for key, one in value["fields"].items()}
    return _types()[name](**found)


def _decoded_place(value: dict[str, Any], given: Given) -> Place:
    uri, options = _resolved(value["location"], given, given.options)
    bases = tuple(value["allow_bases"])
    checked = bool(value.get("reads_checked", False))  # older journals lack it
    return Place(uri, value["version"], value["branch"], options, bases, value["stamp"], checked)


def _decoded_copy(value: dict[str, Any], given: Given) -> CommitCopy:
    return CommitCopy(*_resolved(value["location"], given, given.target_options))


def _resolved(
    kept: dict[str, Any], given: Given, options: StorageOptions | None
) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Return a URI and options with what was left out, or note what is missing."""
    withheld = tuple(tuple(path) for path in kept["withheld"])
    location = PublicLocation(kept["uri"], _decoded(kept["options"], given), withheld)
    missing = location.missing(options)
    given.missing.update(missing)
    uri, found = (location.uri, None) if missing else location.resolve(options)
    return uri, tuple(sorted((found or {}).items()))


def _vector(value: dict[str, Any]) -> DeletionVector:
    return DeletionVector.from_bytes(
        _bytes(value["bytes"]), DeletionFileType.BITMAP, physical_rows=_ROWS_MAX
    )


_DECODERS: dict[str, Callable[[dict[str, Any], Given], Any]] = {
    "bytes": lambda value, _: _bytes(value["bytes"]),
    "list": lambda value, given: [_decoded(one, given) for one in value["items"]],
    "frozenset": lambda value, given: frozenset(_decoded(one, given) for one in value["items"]),
    "dict": lambda value, given: {
        _decoded(key, given): _decoded(one, given) for key, one in value["items"]
    },
    "Fragment": lambda value, _: Fragment.from_bytes(_bytes(value["bytes"])),
    "DeletionVector": lambda value, _: _vector(value),
    "Place": _decoded_place,
    "CommitCopy": _decoded_copy,
    "WriteOptions": lambda value, _: WriteOptions(file_version=tuple(value["file_version"])),
}


# --- what is listed -------------------------------------------------------------------------------


@cache
def _types() -> dict[str, type]:
    """Return the values of ours that are written field by field."""
    from lance_nb.format.field import Field, Keys
    from lance_nb.format.index_metadata import IndexFile, IndexMetadata
    from lance_nb.format.key_filter import KeyFilter
    from lance_nb.format.merged_logs import MergedLog
    from lance_nb.format.schema import Schema
    from lance_nb.spark.new_rows import CommitRows, NewRows
    from lance_nb.spark.plan import Label
    from lance_nb.spark.tasks.clone import Copied
    from lance_nb.spark.tasks.columns import FilledFragments
    from lance_nb.spark.tasks.compaction import CommitRewrites
    from lance_nb.spark.tasks.indexing import BuiltSegment, CommitSegments
    from lance_nb.transactions.column_rewrite import ColumnRewrite
    from lance_nb.transactions.compaction_options import CompactionOptions
    from lance_nb.transactions.compaction_run import Rewritten
    from lance_nb.transactions.deletion_plan import DeletionPlan, FragmentDeletion
    from lance_nb.transactions.merge_insert_plan import MergePlan
    from lance_nb.transactions.row_rewrite import RowRewrite
    from lance_nb.transactions.staged import Addition
    from lance_nb.transactions.stream_mark import StreamMark

    listed = (
        Addition, BuiltSegment, ColumnRewrite, CommitRewrites, CommitRows, CommitSegments,
        CompactionOptions, Copied, DeletionPlan, Field, FilledFragments, FragmentDeletion,
        IndexFile, IndexMetadata, KeyFilter, Keys, Label, MergePlan, MergedLog, NewRows, Rewritten,
        RowRewrite, Schema, StreamMark,
    )  # fmt: skip
    return {one.__name__: one for one in listed}


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    """Return the functions that finish a plan."""
    from lance_nb.spark.plan import commit_edits
    from lance_nb.spark.tasks.columns import commit_columns

    return {one.__name__: one for one in (commit_edits, commit_columns)}

"""Keep the results of tasks until their commit is known to have succeeded.

If the kernel dies, or the outcome of a commit is unknown, the work of the tasks is not lost: the
plan and its results are stored in the user's cache folder and can be committed again under the same
operation id, which makes the commit idempotent.

Layout: ``<cache>/lance_nb/jobs/<operation id>.json`` has two lines: a header with the SHA-256 of
the second line; then plan, results and label as JSON. Plain values stand for themselves, a tuple is
an array, and everything else is an object whose ``"is"`` names its type::

    {"is": "Addition", "fields": {"fragments": [...]}}         a dataclass of ours, field by field
    {"is": "Fragment", "bytes": "<base64>"}                    the protobuf message of the format
    {"is": "dict", "items": [[key, value], ...]}               also "list", "frozenset"
    {"is": "bytes", "bytes": "<base64>"}
    {"is": "function", "name": "commit_edits"}                 one of a fixed set

Security: only the listed types are read, so an entry cannot choose code to run. Folder and files
are accessible to the user alone (private_folder.py). Credentials are not stored: ``resume`` takes
them as arguments or reads them from the environment. A damaged entry, or one of another release, is
listed with the reason and does not hide the others.

Limits: results above ``ENTRY_BYTES_MAX`` are not stored, and are committed without an entry.
Entries of older releases were pickles, which are never read; they are listed and can be removed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lance_nb.code_lines import Python
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.public_location import PublicLocation, public_uri
from lance_nb.errors import FormatError, InternalError, InvalidInputError, StorageError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFileType, Fragment
from lance_nb.spark.plan import Label, PinnedVersion, Plan
from lance_nb.spark.tasks.maintenance import CommitCopy
from lance_nb.storage.private_folder import PrivateFolder, cache_folder
from lance_nb.transactions.fragment_writer import WriteOptions

if TYPE_CHECKING:
    from lance_nb.storage.registry import StorageOptions

ENTRY_BYTES_MAX = 256 * 1024**2
FORMAT = 2
_NEW, _OLD = ".json", ".pickle"
_SPARK = Python("lance_nb.spark")
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_USER_INFO = re.compile(r"//[^/@\s]*:[^/@\s]*@")


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation whose tasks are done and whose commit is not known to have succeeded.

    ``problem`` says why it cannot be resumed, and what to do instead; "" if it can be.
    """

    operation_id: str
    verb: str = ""
    detail: str = ""
    uri: str = ""
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return f"{self.operation_id}: {self.problem}"
        return f"{self.operation_id}: {self.verb} {self.detail} on {self.uri}"


def check() -> None:
    """Check the folder before the work whose results it will keep. Raises StorageError."""
    _folder().check()


def keep(plan: Plan, results: Sequence[Any], label: Label) -> Entry | None:
    """Write an entry durably before its commit; return None if it is too large.

    Raises StorageError.
    """
    plan = replace(plan, detail=_USER_INFO.sub("//***@", plan.detail))
    entry = Entry(plan.operation_id, plan.verb, plan.detail, public_uri(plan.pinned.uri))
    body = to_json((_plan_fields(plan), tuple(results), label))
    head = {
        "format": FORMAT, "operation_id": entry.operation_id, "verb": entry.verb,
        "detail": entry.detail, "uri": entry.uri, "sha256": hashlib.sha256(body).hexdigest(),
    }  # fmt: skip
    data = json.dumps(head).encode() + b"\n" + body
    if len(data) > ENTRY_BYTES_MAX:
        return None
    _folder().write(_name(plan.operation_id), data)
    return entry


def forget(operation_id: str) -> None:
    """Remove an entry; cleanup removes its data files if they were not committed.

    Raises InvalidInputError for a malformed operation id, StorageError.
    """
    folder = _folder()
    folder.remove(_name(operation_id))
    folder.remove(_name(operation_id, _OLD))


def unfinished() -> list[Entry]:
    """List the operations whose commit is not known to have succeeded, oldest first.

    Entries that cannot be resumed are listed with the reason. Raises StorageError if other users
    can access the folder.
    """
    found = []
    for name in _folder().names():
        stem, dot, suffix = name.rpartition(".")
        if dot + suffix in (_NEW, _OLD) and _ID.fullmatch(stem):
            read = _read(stem, dot + suffix)
            found += [] if read is None else [read[0]]
    return found


def resume(
    operation_id: str,
    storage_options: StorageOptions | None = None,
    target_storage_options: StorageOptions | None = None,
) -> LanceDataset:
    """Commit an unfinished operation and return the version. Idempotent.

    Credentials are not kept: pass ``storage_options`` of the dataset, and for a clone
    ``target_storage_options`` of the copy if they differ. Other values are read from the
    environment. Example::

        lance_nb.spark.resume(id, storage_options={"key": key, "secret": secret})

    Raises InvalidInputError if there is no such operation, it cannot be resumed, or options are
    missing, and the exceptions of ``Plan.commit``.
    """
    read = _read(operation_id, _NEW) or _read(operation_id, _OLD)
    if read is None:
        known = ", ".join(one.operation_id for one in unfinished()) or "none"
        raise InvalidInputError(f"no unfinished operation {operation_id!r}; unfinished: {known}")
    entry, body = read
    if entry.problem:
        raise InvalidInputError(f"operation {entry}")
    target = storage_options if target_storage_options is None else target_storage_options
    given = ResumeOptions(storage_options, target)
    plan, results, label = _decoded_plan(operation_id, from_json(body, given))
    if given.missing:
        raise InvalidInputError(_missing(entry, given))
    made = plan.commit(results, label)
    forget(operation_id)
    return made


def _read(operation_id: str, suffix: str) -> tuple[Entry, bytes] | None:
    """Read an entry and its body; None if there is none."""
    folder, name = _folder(), _name(operation_id, suffix)
    if suffix == _OLD:
        return (Entry(operation_id, problem=_old(operation_id)), b"") if folder.has(name) else None
    try:
        data = folder.read(name, ENTRY_BYTES_MAX)
    except StorageError as error:
        return Entry(operation_id, problem=_cannot_resume(operation_id, str(error))), b""
    if data is None:
        return None
    line, _, body = data.partition(b"\n")
    try:
        head = json.loads(line)
        if head["format"] != FORMAT:
            problem = f"it has format {head['format']!r}, and this release writes {FORMAT}"
            return Entry(operation_id, problem=_cannot_resume(operation_id, problem)), b""
        is_whole = head["sha256"] == hashlib.sha256(body).hexdigest()
        verb, detail, uri = (str(head[key]) for key in ("verb", "detail", "uri"))
        is_whole = is_whole and head["operation_id"] == operation_id
    except (ValueError, TypeError, KeyError, RecursionError):
        verb = detail = uri = ""
        is_whole = False
    problem = "" if is_whole else _cannot_resume(operation_id, "it is damaged")
    return Entry(operation_id, verb, detail, uri, problem), body


def _cannot_resume(operation_id: str, reason: str) -> str:
    removed = _SPARK.attribute("forget").call(operation_id)
    return (
        f"cannot be resumed: {reason}. Check the history for its transaction, repeat the operation "
        f"if it is not there, and remove the entry: {removed.code}"
    )


def _old(operation_id: str) -> str:
    return _cannot_resume(operation_id, "it is a pickle of an older release, which is never read")


def _plan_fields(plan: Plan) -> dict[str, Any]:
    """Return the fields of a plan that its commit needs."""
    return {
        "verb": plan.verb,
        "detail": plan.detail,
        "pinned": plan.pinned,
        "finish": plan.finish,
        "commits_without_results": plan.commits_without_results,
        "operation_id": plan.operation_id,
    }


def _decoded_plan(operation_id: str, found: Any) -> tuple[Plan, tuple[Any, ...], Label]:
    """Check a decoded entry and return its plan. Raises InvalidInputError."""
    try:
        kept, results, label = found
        plan = Plan(**kept, tasks=())
        is_sound = isinstance(label, Label) and isinstance(plan.pinned, PinnedVersion)
    except (TypeError, ValueError):
        is_sound = False
    if not is_sound or plan.operation_id != operation_id or not callable(plan.finish):
        raise InvalidInputError(
            f"operation {operation_id}: {_cannot_resume(operation_id, 'its content is invalid')}"
        )
    return plan, results, label


def _missing(entry: Entry, given: ResumeOptions) -> str:
    """List the missing storage options, and how to pass them."""
    listed = "; ".join(
        f"{what} (or the environment variable {' or '.join(names)})"
        for what, names in given.missing.items()
    )
    return (
        f"operation {entry} cannot be resumed yet: credentials are not kept, and these are "
        f"missing: {listed}. Pass them as storage_options={{...}} to "
        f"{_SPARK.attribute('resume').call(entry.operation_id).code}, and as "
        "target_storage_options={...} for the copy that a clone makes, if it needs others"
    )


def _name(operation_id: str, suffix: str = _NEW) -> str:
    if not _ID.fullmatch(operation_id):
        raise InvalidInputError(f"{operation_id!r} is not an operation id")
    return f"{operation_id}{suffix}"


def _folder() -> PrivateFolder:
    return cache_folder(os.environ.get("XDG_CACHE_HOME"), "jobs")


# What decoding raises for JSON of another structure.
_DECODE_ERRORS = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
_ROWS_MAX = 2**32  # of a fragment: offsets are 32 bits


@dataclass(frozen=True, slots=True)
class ResumeOptions:
    """Storage options with the credentials, for the dataset and for the copy that a clone makes.

    ``missing`` collects the options that are still unknown, with the environment variables that
    can provide them.
    """

    options: StorageOptions | None = field(default=None, repr=False)
    target_options: StorageOptions | None = field(default=None, repr=False)
    missing: dict[str, tuple[str, ...]] = field(default_factory=dict)


def to_json(value: Any) -> bytes:
    """Encode a value. Raises InternalError for a type that is not listed."""
    return json.dumps(_encoded(value), separators=(",", ":")).encode()


def from_json(data: bytes, given: ResumeOptions) -> Any:
    """Decode a value.

    Raises InvalidInputError for data that ``to_json`` of this release does not write.
    """
    try:
        return _decoded(json.loads(data), given)
    except (*_DECODE_ERRORS, FormatError) as error:
        raise InvalidInputError(
            f"this release of lance_nb cannot read the entry: {error!r}"
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
    raise InternalError(f"the journal cannot store a value of type {type(value).__name__}")


def _name_of(kind: type) -> str:
    return "dict" if kind is Mapping else kind.__name__


def _encoded_version(pinned: PinnedVersion) -> dict[str, Any]:
    location = PublicLocation.of(pinned.uri, dict(pinned.storage_options))
    return {
        "location": _encoded_location(location),
        "version": pinned.version,
        "branch": pinned.branch,
        "allow_bases": list(pinned.allow_bases),
        "stamp": pinned.stamp,
        "reads_checked": pinned.reads_checked,
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
    PinnedVersion: _encoded_version,
    CommitCopy: _encoded_copy,
    # The commit needs only the version, and the other fields may hold open stores.
    WriteOptions: lambda value: {"file_version": list(value.file_version)},
}


# --- reading --------------------------------------------------------------------------------------


def _decoded(value: Any, given: ResumeOptions) -> Any:
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


def _decoded_version(value: dict[str, Any], given: ResumeOptions) -> PinnedVersion:
    uri, options = _resolved(value["location"], given, given.options)
    bases = tuple(value["allow_bases"])
    checked = value["reads_checked"]
    return PinnedVersion(
        uri, value["version"], value["branch"], options, bases, value["stamp"], checked
    )


def _decoded_copy(value: dict[str, Any], given: ResumeOptions) -> CommitCopy:
    return CommitCopy(*_resolved(value["location"], given, given.target_options))


def _resolved(
    kept: dict[str, Any], given: ResumeOptions, options: StorageOptions | None
) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Add the credentials to a URI and its options, or record what is missing."""
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


_DECODERS: dict[str, Callable[[dict[str, Any], ResumeOptions], Any]] = {
    "bytes": lambda value, _: _bytes(value["bytes"]),
    "list": lambda value, given: [_decoded(one, given) for one in value["items"]],
    "frozenset": lambda value, given: frozenset(_decoded(one, given) for one in value["items"]),
    "dict": lambda value, given: {
        _decoded(key, given): _decoded(one, given) for key, one in value["items"]
    },
    "Fragment": lambda value, _: Fragment.from_bytes(_bytes(value["bytes"])),
    "DeletionVector": lambda value, _: _vector(value),
    "PinnedVersion": _decoded_version,
    "CommitCopy": _decoded_copy,
    "WriteOptions": lambda value, _: WriteOptions(file_version=tuple(value["file_version"])),
}


# --- the listed types -----------------------------------------------------------------------------


@cache
def _types() -> dict[str, type]:
    """Return the dataclasses that are stored field by field."""
    from lance_nb.format.field import Field, Keys
    from lance_nb.format.index_metadata import IndexFile, IndexMetadata
    from lance_nb.format.key_filter import KeyFilter
    from lance_nb.format.merged_logs import MergedLog
    from lance_nb.format.schema import Schema
    from lance_nb.spark.plan import Label
    from lance_nb.spark.row_writer import CommitRows, RowWriter
    from lance_nb.spark.tasks.columns import FilledFragments
    from lance_nb.spark.tasks.maintenance import (
        BuiltSegment,
        CommitRewrites,
        CommitSegments,
        Copied,
    )
    from lance_nb.transactions.column_rewrite import ColumnRewrite
    from lance_nb.transactions.compaction import CompactionOptions, Rewritten
    from lance_nb.transactions.deletion_plan import DeletionPlan, FragmentDeletion
    from lance_nb.transactions.merge_insert_plan import MergePlan
    from lance_nb.transactions.row_rewrite import RowRewrite
    from lance_nb.transactions.staged import Addition
    from lance_nb.transactions.stream_mark import StreamMark

    listed = (
        Addition, BuiltSegment, ColumnRewrite, CommitRewrites, CommitRows, CommitSegments,
        CompactionOptions, Copied, DeletionPlan, Field, FilledFragments, FragmentDeletion,
        IndexFile, IndexMetadata, KeyFilter, Keys, Label, MergePlan, MergedLog, Rewritten,
        RowRewrite, RowWriter, Schema, StreamMark,
    )  # fmt: skip
    return {one.__name__: one for one in listed}


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    """Return the functions that commit a plan."""
    from lance_nb.spark.plan import commit_edits
    from lance_nb.spark.tasks.columns import commit_columns

    return {one.__name__: one for one in (commit_edits, commit_columns)}

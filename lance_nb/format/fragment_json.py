"""Fragments as JSON, in pylance's form, so that tasks of either library can be read by the other.

Layout: ``{"id", "files": [{"path", "fields", "column_indices", "file_major_version",
"file_minor_version", "file_size_bytes", "base_id"}], "deletion_file": {"read_version", "id",
"file_type": "array" | "bitmap", "num_deleted_rows", "base_id"}, "row_id_meta": {"Inline": [bytes]},
"physical_rows", "last_updated_at_version_meta": {"inline": [bytes]}, "created_at_version_meta"}``;
what a fragment has not is left out.

Not supported: overlays, clustering, metadata and fields of newer writers (pickle keeps them).
Source: ``CompactionTask.json`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.fragment import (
    DataFile,
    DeletionFile,
    DeletionFileType,
    Fragment,
    InlineSequence,
    Sequence,
)

_TYPES = {DeletionFileType.ARROW: "array", DeletionFileType.BITMAP: "bitmap"}
_NAMES = {name: kind for kind, name in _TYPES.items()}


def fragment_to_json(fragment: Fragment) -> dict[str, Any]:
    """Return the JSON object. Raises NotSupportedError."""
    if fragment.overlays or fragment.clustering_id or fragment.metadata:
        raise NotSupportedError(
            f"fragment {fragment.id} has parts that JSON does not hold; use pickle"
        )
    if fragment.has_unknown_fields:
        raise NotSupportedError(
            f"fragment {fragment.id} has fields of a newer writer, which JSON does not hold"
        )
    made: dict[str, Any] = {"id": fragment.id, "files": [_file(one) for one in fragment.files]}
    if fragment.deletion_file is not None:
        made["deletion_file"] = _deletion(fragment.deletion_file)
    if fragment.row_ids is not None:
        made["row_id_meta"] = {"Inline": _bytes(fragment.row_ids)}
    made["physical_rows"] = fragment.physical_rows
    for key, sequence in (
        ("last_updated_at_version_meta", fragment.last_updated_at_versions),
        ("created_at_version_meta", fragment.created_at_versions),
    ):
        if sequence is not None:
            made[key] = {"inline": _bytes(sequence)}
    return made


def fragment_from_json(value: Any) -> Fragment:
    """Read the JSON object. Raises InvalidInputError."""
    try:
        deletion = value.get("deletion_file")
        return Fragment(
            _integer(value["id"]),
            tuple(_file_of(one) for one in value["files"]),
            _integer(value.get("physical_rows") or 0),
            None if deletion is None else _deletion_of(deletion),
            _sequence(value.get("row_id_meta")),
            _sequence(value.get("created_at_version_meta")),
            _sequence(value.get("last_updated_at_version_meta")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(f"not the JSON of a fragment: {error!r}") from error


def _file(file: DataFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "fields": list(file.fields),
        "column_indices": list(file.column_indices),
        "file_major_version": file.file_version[0],
        "file_minor_version": file.file_version[1],
        "file_size_bytes": file.size_bytes or None,
        "base_id": file.base_id,
    }


def _file_of(value: Mapping[str, Any]) -> DataFile:
    base = value.get("base_id")
    return DataFile(
        str(value["path"]),
        tuple(map(_integer, value["fields"])),
        tuple(map(_integer, value.get("column_indices") or ())),
        (_integer(value["file_major_version"]), _integer(value["file_minor_version"])),
        _integer(value.get("file_size_bytes") or 0),
        None if base is None else _integer(base),
    )


def _deletion(file: DeletionFile) -> dict[str, Any]:
    return {
        "read_version": file.read_version,
        "id": file.id,
        "file_type": _TYPES[file.file_type],
        "num_deleted_rows": file.num_deleted_rows,
        "base_id": file.base_id,
    }


def _deletion_of(value: Mapping[str, Any]) -> DeletionFile:
    base = value.get("base_id")
    return DeletionFile(
        _NAMES[value["file_type"]],
        _integer(value["read_version"]),
        _integer(value["id"]),
        _integer(value["num_deleted_rows"]),
        None if base is None else _integer(base),
    )


def _bytes(sequence: Sequence) -> list[int]:
    if not isinstance(sequence, InlineSequence):
        raise NotSupportedError("row ids or versions in hidden columns: JSON does not hold them")
    return list(sequence.data)


def _sequence(value: Mapping[str, Any] | None) -> InlineSequence | None:
    if value is None:
        return None
    (data,) = value.values()  # the key is "Inline" or "inline"
    return InlineSequence(bytes(data))


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInputError(f"not the JSON of a fragment: {value!r} is no integer")
    return value

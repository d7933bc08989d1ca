"""Fragment metadata: the data files and the deletion file that hold one group of rows.

The classes have the constructors, attributes and JSON forms of pylance, so that fragments can be
exchanged between both libraries.

Layout of the JSON: ``{"id", "files": [{"path", "fields", "column_indices", "file_major_version",
"file_minor_version", "file_size_bytes", "base_id"}], "overlays": [], "physical_rows",
"deletion_file": {"read_version", "id", "file_type": "array" | "bitmap", "num_deleted_rows",
"base_id"}, "row_id_meta": {"Inline": [bytes]}, "created_at_version_meta": {"inline": [bytes]},
"last_updated_at_version_meta"}``; missing parts are null or absent.

Limits: fragment ids fit 32 bits; a row address is ``id << 32 | offset``, so a fragment has fewer
than 2**32 rows (not checked here: the data files say how many they hold). JSON holds no overlays,
clustering, metadata and fields of newer writers; pickle does.
Not supported: data overlays are carried as bytes; a feature flag refuses datasets that need them.
Source: messages ``DataFragment``, ``DataFile``, ``DeletionFile`` of lance.table. ``base_id`` 0 and
an absent ``base_id`` differ. JSON: ``FragmentMetadata.to_json`` and ``CompactionTask.json`` of
pylance 14.0.2.
"""

from __future__ import annotations

import json as json_text
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from lance_nb._pb import table as pb
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format import layout
from lance_nb.format.frozen_list import FrozenList
from lance_nb.format.wire import parse, unknown_bytes
from lance_nb.value_classes import dataclass

NO_FIELD = -1  # a field id in DataFile.fields that is none: some writers commit it all the same
TOMBSTONE = -2  # a field id in DataFile.fields: the column has been replaced by another file

_set = object.__setattr__  # sets the fields of a frozen value in its constructor


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DataFile:
    """One data file of a fragment: its path, and the columns in it.

    ``fields`` are field ids of the dataset's schema (-2 where another file has replaced the
    column); column ``column_indices[i]`` of the file holds field ``fields[i]``. ``path`` is
    relative to ``data/`` of the base ``base_id``, else of this dataset; ``location`` gives a
    checked path. ``file_size_bytes`` is None when it is not known.

    Values do not change: ``dataclasses.replace(file, path="b.lance")`` makes another one.

    Examples:
        >>> from lance_nb import DataFile
        >>> file = DataFile("a.lance", [0, 1], [0, 1], 2, 2)
        >>> file.fields == [0, 1], file.file_version, file.is_legacy, file.size_bytes
        (True, (2, 2), False, 0)
        >>> file.location(), DataFile.from_dict(file.asdict()) == file
        ('data/a.lance', True)
        >>> stored = ds.get_fragment(0).data_files()[0]
        >>> DataFile.create(ds, stored.path).fields == stored.fields
        True
    """

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    file_major_version: int
    file_minor_version: int
    file_size_bytes: int | None
    base_id: int | None
    unknown: bytes

    def __init__(  # noqa: PLR0917
        self,
        path: str,
        fields: Iterable[int],
        column_indices: Iterable[int] | None = None,
        file_major_version: int = 0,
        file_minor_version: int = 0,
        file_size_bytes: int | None = None,
        base_id: int | None = None,
        unknown: bytes = b"",
    ) -> None:
        _set(self, "path", path)
        _set(self, "fields", FrozenList(fields))
        _set(self, "column_indices", FrozenList(column_indices or ()))
        _set(self, "file_major_version", file_major_version)
        _set(self, "file_minor_version", file_minor_version)
        _set(self, "file_size_bytes", file_size_bytes or None)
        _set(self, "base_id", base_id)
        _set(self, "unknown", unknown)

    def __repr__(self) -> str:
        base = "" if self.base_id is None else f", base_id={self.base_id}"
        return (
            f"DataFile(path={self.path!r}, fields={self.fields}, "
            f"column_indices={self.column_indices}, "
            f"file_major_version={self.file_major_version}, "
            f"file_minor_version={self.file_minor_version}, "
            f"file_size_bytes={self.file_size_bytes}{base})"
        )

    @property
    def file_version(self) -> tuple[int, int]:
        """The version of the file format, major and minor."""
        return self.file_major_version, self.file_minor_version

    @property
    def size_bytes(self) -> int:
        """Size of the file in bytes, 0 when it is not known."""
        return self.file_size_bytes or 0

    @property
    def is_legacy(self) -> bool:
        """Whether it is a 0.1 file (recorded as 0.0 to 0.2), which has no column numbers."""
        return self.file_version < (0, 3)

    @classmethod
    def create(cls, dataset: Any, path: str, *, base_id: int | None = None) -> DataFile:
        """Describe a file of a dataset's data folder; as ``dataset.describe_data_file``.

        Args:
            dataset: the dataset.
            path, base_id: as for ``LanceDataset.describe_data_file``.

        Raises ObjectNotFoundError, SchemaMismatchError, CorruptFileError, NotSupportedError.
        """
        described: DataFile = dataset.describe_data_file(path, base_id=base_id)
        return described

    def field_ids(self) -> tuple[int, ...]:
        """Return ``fields``; deprecated in pylance."""
        warnings.warn("DataFile.field_ids() is deprecated, use .fields", DeprecationWarning, 2)
        return self.fields

    def location(self, manifest: str = "") -> str:
        """Return the path below the dataset root.

        Args:
            manifest: the manifest that names the file, for errors.

        Raises CorruptFileError if it would leave the root.
        """
        return layout.data_path(self.path, manifest)

    @classmethod
    def from_pb(cls, message: pb.DataFile) -> DataFile:
        """Read the message."""
        return cls(
            path=message.path,
            fields=message.fields,
            column_indices=message.column_indices,
            file_major_version=message.file_major_version,
            file_minor_version=message.file_minor_version,
            file_size_bytes=message.file_size_bytes,
            base_id=message.base_id if message.HasField("base_id") else None,
            unknown=unknown_bytes(message),
        )

    def to_pb(self) -> pb.DataFile:
        """Return the message."""
        message = pb.DataFile(
            path=self.path,
            fields=self.fields,
            column_indices=self.column_indices,
            file_major_version=self.file_major_version,
            file_minor_version=self.file_minor_version,
            file_size_bytes=self.size_bytes,
            base_id=self.base_id,
        )
        message.MergeFromString(self.unknown)
        return message

    def asdict(self) -> dict[str, Any]:
        """Return the values as a dict that JSON can hold."""
        return {
            "path": self.path,
            "fields": list(self.fields),
            "column_indices": list(self.column_indices),
            "file_major_version": self.file_major_version,
            "file_minor_version": self.file_minor_version,
            "file_size_bytes": self.file_size_bytes,
            "base_id": self.base_id,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> DataFile:
        """Read the result of ``asdict``.

        Args:
            value: the dict.

        Raises InvalidInputError.
        """
        with _reading("data file"):
            return cls(
                path=_text(value["path"]),
                fields=map(_integer, value["fields"]),
                column_indices=map(_integer, value.get("column_indices") or ()),
                file_major_version=_integer(value.get("file_major_version") or 0),
                file_minor_version=_integer(value.get("file_minor_version") or 0),
                file_size_bytes=_integer(value.get("file_size_bytes") or 0),
                base_id=_integer_or_none(value.get("base_id")),
            )


class DeletionFileType(StrEnum):
    """How a deletion file is stored: an Arrow array of offsets, or a Roaring bitmap."""

    ARROW = "array"
    BITMAP = "bitmap"

    def __repr__(self) -> str:
        return repr(self.value)

    @property
    def suffix(self) -> str:
        """The suffix of the file's name."""
        return "arrow" if self is DeletionFileType.ARROW else "bin"


class _JsonValue:
    """A value that JSON text can hold."""

    __slots__ = ()

    if TYPE_CHECKING:

        def asdict(self) -> Any: ...
        @classmethod
        def from_dict(cls, value: Any, /) -> Self: ...

    def json(self) -> str:
        """Return the values as JSON text. Raises NotSupportedError for what it cannot hold."""
        return json_text.dumps(self.asdict())

    @classmethod
    def from_json(cls, json: str) -> Self:
        """Read the result of ``json``, of this library or of pylance.

        Args:
            json: the text.

        Raises InvalidInputError.
        """
        return cls.from_dict(_loaded(json))


@dataclass(frozen=True, slots=True, init=False)
class DeletionFile(_JsonValue):
    """The deletion file of a fragment: its path, and the number of deleted rows.

    ``read_version`` is the version that the rows were deleted from, ``id`` a random number that
    makes the name unique, ``file_type`` "array" or "bitmap".

    Raises InvalidInputError for another ``file_type`` and numbers that do not fit 64 bits.

    Examples:
        >>> from lance_nb import DeletionFile
        >>> file = DeletionFile(3, 17, "array", 2)
        >>> file.path(fragment_id=5), file.location(5)
        ('_deletions/5-3-17.arrow', '_deletions/5-3-17.arrow')
        >>> DeletionFile.from_json(file.json()) == file
        True
        >>> DeletionFile.from_dict(file.asdict()) == file
        True
    """

    read_version: int
    id: int
    file_type: DeletionFileType
    num_deleted_rows: int
    base_id: int | None
    unknown: bytes = field(repr=False)

    def __init__(  # noqa: PLR0917
        self,
        read_version: int,
        id: int,
        file_type: str,
        num_deleted_rows: int,
        base_id: int | None = None,
        unknown: bytes = b"",
    ) -> None:
        try:
            kind = DeletionFileType(file_type)
        except ValueError as error:
            raise InvalidInputError(
                f"the file_type of a deletion file is 'array' or 'bitmap', not {file_type!r:.40}"
            ) from error
        for name, number in (
            ("read_version", read_version),
            ("id", id),
            ("num_deleted_rows", num_deleted_rows),
        ):
            if not 0 <= number < 2**64:
                raise InvalidInputError(f"{name} of a deletion file does not fit 64 bits: {number}")
        _set(self, "read_version", read_version)
        _set(self, "id", id)
        _set(self, "file_type", kind)
        _set(self, "num_deleted_rows", num_deleted_rows)
        _set(self, "base_id", base_id)
        _set(self, "unknown", unknown)

    def location(self, fragment_id: int) -> str:
        """Return the path below the dataset root."""
        return layout.deletion_path(fragment_id, self.read_version, self.id, self.file_type.suffix)

    def path(self, fragment_id: int, base_uri: str | None = None) -> str:
        """Return the path below the dataset root, or below ``base_uri``."""
        below = self.location(fragment_id)
        return below if base_uri is None else f"{base_uri.rstrip('/')}/{below}"

    def asdict(self) -> dict[str, Any]:
        """Return the values as a dict that JSON can hold."""
        return {
            "read_version": self.read_version,
            "id": self.id,
            "file_type": self.file_type.value,
            "num_deleted_rows": self.num_deleted_rows,
            "base_id": self.base_id,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> DeletionFile:
        """Read the result of ``asdict``.

        Args:
            value: the dict.

        Raises InvalidInputError.
        """
        with _reading("deletion file"):
            return cls(
                _integer(value["read_version"]),
                _integer(value["id"]),
                value["file_type"],
                num_deleted_rows=_integer(value["num_deleted_rows"]),
                base_id=_integer_or_none(value.get("base_id")),
            )

    @classmethod
    def from_pb(cls, message: pb.DeletionFile) -> DeletionFile:
        """Read the message."""
        is_bitmap = message.file_type == pb.DeletionFile.BITMAP
        return cls(
            message.read_version,
            message.id,
            DeletionFileType.BITMAP if is_bitmap else DeletionFileType.ARROW,
            num_deleted_rows=message.num_deleted_rows,
            base_id=message.base_id if message.HasField("base_id") else None,
            unknown=unknown_bytes(message),
        )

    def to_pb(self) -> pb.DeletionFile:
        """Return the message."""
        is_bitmap = self.file_type is DeletionFileType.BITMAP
        message = pb.DeletionFile(
            file_type=pb.DeletionFile.BITMAP if is_bitmap else pb.DeletionFile.ARROW_ARRAY,
            read_version=self.read_version,
            id=self.id,
            num_deleted_rows=self.num_deleted_rows,
            base_id=self.base_id,
        )
        message.MergeFromString(self.unknown)
        return message


# --- per-row sequences (row ids, versions) -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class InlineSequence:
    """Serialized in the manifest (row_sequences.py)."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ExternalSequence:
    """Part of another file; only old protos had it."""

    path: str
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ColumnSequence:
    """Stored as a hidden uint64 column of the fragment's data files."""

    field_id: int


Sequence = InlineSequence | ExternalSequence | ColumnSequence


@dataclass(frozen=True, slots=True)
class RowIdMeta(_JsonValue):
    """The location of the stable row ids of a fragment; see ``RowIdSequence`` for inline ones.

    Examples:
        >>> from lance_nb import RowIdMeta
        >>> meta = ds.get_fragment(0).metadata.row_id_meta
        >>> RowIdMeta.from_json(meta.json()) == meta, RowIdMeta.from_dict(meta.asdict()) == meta
        (True, True)
        >>> RowIdMeta.inline(lance_nb.RowIdSequence([7]).to_inline_metadata().sequence.data).json()
        '{"Inline": [10, 6, 10, 4, 8, 7, 16, 8]}'
    """

    sequence: Sequence

    @classmethod
    def inline(cls, data: bytes) -> RowIdMeta:
        """Return metadata that holds a serialized RowIdSequence itself.

        Args:
            data: its bytes.
        """
        return cls(InlineSequence(data))

    def asdict(self) -> Any:
        """Return ``{"Inline": [bytes]}`` or "Column". Raises NotSupportedError for other places."""
        if isinstance(self.sequence, ColumnSequence):
            return "Column"
        return {"Inline": _inline_bytes(self.sequence)}

    @classmethod
    def from_dict(cls, dict: Any) -> RowIdMeta:
        """Read the result of ``asdict``.

        Args:
            dict: the value.

        Raises InvalidInputError.
        """
        if dict == "Column":
            return cls(ColumnSequence(ROW_ID_FIELD))
        with _reading("row id metadata"):
            return cls.inline(bytes(map(_integer, _only(dict, "Inline"))))


@dataclass(frozen=True, slots=True)
class RowDatasetVersionMeta(_JsonValue):
    """The location of the versions that created, or last updated, each row of a fragment.

    Examples:
        >>> from lance_nb import RowDatasetVersionMeta
        >>> meta = ds.get_fragment(0).metadata.created_at_version_meta
        >>> RowDatasetVersionMeta.from_json(meta.json()) == meta
        True
        >>> RowDatasetVersionMeta.from_dict(meta.asdict()) == meta
        True
        >>> RowDatasetVersionMeta.inline(b"").asdict()
        {'inline': []}
    """

    sequence: Sequence

    @classmethod
    def inline(cls, data: bytes) -> RowDatasetVersionMeta:
        """Return metadata that holds a serialized RowVersionSequence itself.

        Args:
            data: its bytes.
        """
        return cls(InlineSequence(data))

    def asdict(self) -> Any:
        """Return ``{"inline": [bytes]}``. Raises NotSupportedError for other places."""
        return {"inline": _inline_bytes(self.sequence)}

    @classmethod
    def from_dict(cls, value: Any) -> RowDatasetVersionMeta:
        """Read the result of ``asdict``.

        Args:
            value: the dict.

        Raises InvalidInputError.
        """
        with _reading("row version metadata"):
            return cls.inline(bytes(map(_integer, _only(value, "inline"))))


def _inline_bytes(sequence: Sequence) -> list[int]:
    if not isinstance(sequence, InlineSequence):
        raise NotSupportedError("row ids or versions outside of the manifest: JSON holds none")
    return list(sequence.data)


def _only(value: Mapping[str, Any], key: str) -> Any:
    if value.keys() != {key}:
        raise InvalidInputError(f"expected the one key {key!r}, found {list(value)!r:.80}")
    return value[key]


ROW_ID_FIELD = -3
CREATED_AT_FIELD = -4
LAST_UPDATED_AT_FIELD = -5


def _sequence(message: pb.DataFragment, oneof: str, hidden_field: int) -> Sequence | None:
    arm = message.WhichOneof(oneof)
    if arm is None:
        return None
    value = getattr(message, arm)
    if arm.startswith("inline"):
        return InlineSequence(value)
    if arm.startswith("external"):
        return ExternalSequence(value.path, value.offset, value.size)
    return ColumnSequence(hidden_field)


def _set_sequence(message: pb.DataFragment, name: str, value: Sequence | None) -> None:
    if isinstance(value, InlineSequence):
        setattr(message, f"inline_{name}", value.data)
    elif isinstance(value, ExternalSequence):
        external = getattr(message, f"external_{name}")
        external.path, external.offset, external.size = (
            value.path,
            value.offset_bytes,
            value.size_bytes,
        )
    elif isinstance(value, ColumnSequence):
        getattr(message, f"column_{name}").SetInParent()


# --- the fragment -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Fragment:
    """One fragment of one version; ``lance_nb.FragmentMetadata``.

    ``physical_rows`` counts deleted rows too (0: not recorded, in versions of early 2023). The
    three ``..._meta`` are None without stable row ids; versions of rows are derived when a
    fragment is committed. Each of ``files`` holds other columns of the same rows.

    Values do not change: ``dataclasses.replace(fragment, id=3)`` makes another one.

    Examples:
        >>> import json
        >>> from lance_nb import DataFile, FragmentMetadata
        >>> fragment = FragmentMetadata(0, [DataFile("a.lance", [0], [0], 2, 2)], 10)
        >>> FragmentMetadata.from_json(json.dumps(fragment.to_json())) == fragment
        True
        >>> FragmentMetadata.from_dict(fragment.to_json()) == fragment
        True
        >>> FragmentMetadata.from_bytes(fragment.to_bytes()) == fragment
        True
        >>> fragment.num_rows, fragment.num_deletions, fragment.num_deleted_rows
        (10, 0, 0)
        >>> fragment.row_ids, fragment.created_at_versions, fragment.last_updated_at_versions
        (None, None, None)
        >>> fragment.has_unknown_fields
        False
    """

    id: int
    files: tuple[DataFile, ...]
    physical_rows: int
    deletion_file: DeletionFile | None
    row_id_meta: RowIdMeta | None
    created_at_version_meta: RowDatasetVersionMeta | None
    last_updated_at_version_meta: RowDatasetVersionMeta | None
    overlays: tuple[bytes, ...]
    clustering_id: int
    metadata: Mapping[str, str]
    unknown: bytes

    def __init__(  # noqa: PLR0917
        self,
        id: int,
        files: Iterable[DataFile],
        physical_rows: int,
        deletion_file: DeletionFile | None = None,
        row_id_meta: RowIdMeta | None = None,
        created_at_version_meta: RowDatasetVersionMeta | None = None,
        last_updated_at_version_meta: RowDatasetVersionMeta | None = None,
        overlays: Iterable[bytes] = (),
        clustering_id: int = 0,
        metadata: Mapping[str, str] | None = None,
        unknown: bytes = b"",
    ) -> None:
        _set(self, "id", id)
        _set(self, "files", FrozenList(files))
        _set(self, "physical_rows", physical_rows)
        _set(self, "deletion_file", deletion_file)
        _set(self, "row_id_meta", row_id_meta)
        _set(self, "created_at_version_meta", created_at_version_meta)
        _set(self, "last_updated_at_version_meta", last_updated_at_version_meta)
        _set(self, "overlays", FrozenList(overlays))
        _set(self, "clustering_id", clustering_id)
        _set(self, "metadata", metadata or {})
        _set(self, "unknown", unknown)

    def __repr__(self) -> str:
        return (
            f"FragmentMetadata(id={self.id}, files={self.files}, "
            f"physical_rows={self.physical_rows}, deletion_file={self.deletion_file}, "
            f"row_id_meta={self.row_id_meta}, "
            f"created_at_version_meta={self.created_at_version_meta}, "
            f"last_updated_at_version_meta={self.last_updated_at_version_meta}, "
            f"overlays={self.overlays})"
        )

    @property
    def row_ids(self) -> Sequence | None:
        """The location of the stable row ids, None if the dataset has none."""
        return None if self.row_id_meta is None else self.row_id_meta.sequence

    @property
    def created_at_versions(self) -> Sequence | None:
        """The location of the versions that created each row, None if they are not recorded."""
        meta = self.created_at_version_meta
        return None if meta is None else meta.sequence

    @property
    def last_updated_at_versions(self) -> Sequence | None:
        """The location of the versions that last updated each row, None if not recorded."""
        meta = self.last_updated_at_version_meta
        return None if meta is None else meta.sequence

    @property
    def num_deletions(self) -> int:
        """Rows that the deletion file marks."""
        return self.num_deleted_rows

    def data_files(self) -> tuple[DataFile, ...]:
        """Return ``files``; deprecated in pylance."""
        warnings.warn(
            "FragmentMetadata.data_files() is deprecated, use .files", DeprecationWarning, 2
        )
        return self.files

    @property
    def num_deleted_rows(self) -> int:
        """Rows that the deletion file marks."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows

    @property
    def num_rows(self) -> int:
        """Live rows."""
        return self.physical_rows - self.num_deleted_rows

    @property
    def has_unknown_fields(self) -> bool:
        """Whether it has fields of a newer writer that this release does not know."""
        files = any(file.unknown for file in self.files)
        deletion = self.deletion_file is not None and bool(self.deletion_file.unknown)
        return bool(self.unknown) or files or deletion

    @classmethod
    def from_bytes(cls, data: bytes, path: str = "") -> Fragment:
        """Parse a serialized DataFragment.

        Args:
            data: the bytes of the message.
            path: named in errors.

        Raises CorruptFileError.
        """
        return cls.from_pb(parse(pb.DataFragment, data, path))

    def to_json(self) -> dict[str, Any]:
        """Return a dict that JSON can hold, as pylance's ``FragmentMetadata.to_json``.

        Raises NotSupportedError for parts that the JSON form cannot hold; pickle can.
        """
        if self.overlays or self.clustering_id or self.metadata:
            raise NotSupportedError(
                f"fragment {self.id} has parts that JSON does not hold; use pickle"
            )
        if self.has_unknown_fields:
            raise NotSupportedError(
                f"fragment {self.id} has fields of a newer writer, which JSON does not hold"
            )
        parts = {name: getattr(self, name) for name in _PARTS}
        return {
            "id": self.id,
            "files": [file.asdict() for file in self.files],
            "overlays": [],
            "physical_rows": self.physical_rows,
            **{name: None if part is None else part.asdict() for name, part in parts.items()},
        }

    @classmethod
    def from_json(cls, json_data: str) -> Fragment:
        """Read the JSON text of a fragment, of this library or of pylance.

        Args:
            json_data: the text.

        Raises InvalidInputError, and NotSupportedError for data overlays.
        """
        return cls.from_dict(_loaded(json_data))

    @classmethod
    def from_dict(cls, value: Any) -> Fragment:
        """Read the result of ``to_json``. Raises as ``from_json``.

        Args:
            value: the dict.
        """
        with _reading("fragment"):
            if value.get("overlays"):
                raise NotSupportedError("a fragment with data overlays is not supported")
            parts: dict[str, Any] = {
                name: None if value.get(name) is None else kind.from_dict(value[name])
                for name, kind in _PARTS.items()
            }
            return cls(
                _integer(value["id"]),
                [DataFile.from_dict(file) for file in value["files"]],
                _integer(value.get("physical_rows") or 0),
                **parts,
            )

    @classmethod
    def from_pb(cls, message: pb.DataFragment) -> Fragment:
        """Read the message."""
        deletion = message.deletion_file if message.HasField("deletion_file") else None
        row_ids = _sequence(message, "row_id_sequence", ROW_ID_FIELD)
        created = _sequence(message, "created_at_version_sequence", CREATED_AT_FIELD)
        updated = _sequence(message, "last_updated_at_version_sequence", LAST_UPDATED_AT_FIELD)
        return cls(
            id=message.id,
            files=[DataFile.from_pb(file) for file in message.files],
            physical_rows=message.physical_rows,
            deletion_file=None if deletion is None else DeletionFile.from_pb(deletion),
            row_id_meta=None if row_ids is None else RowIdMeta(row_ids),
            created_at_version_meta=None if created is None else RowDatasetVersionMeta(created),
            last_updated_at_version_meta=None
            if updated is None
            else RowDatasetVersionMeta(updated),
            overlays=[overlay.SerializeToString() for overlay in message.overlays],
            clustering_id=message.clustering_id,
            metadata=dict(message.metadata),
            unknown=unknown_bytes(message),
        )

    def to_pb(self) -> pb.DataFragment:
        """Return the message."""
        message = pb.DataFragment(
            id=self.id,
            files=[file.to_pb() for file in self.files],
            physical_rows=self.physical_rows,
            overlays=[pb.DataOverlayFile.FromString(overlay) for overlay in self.overlays],
            clustering_id=self.clustering_id,
            metadata=dict(self.metadata),
        )
        if self.deletion_file is not None:
            message.deletion_file.CopyFrom(self.deletion_file.to_pb())
        _set_sequence(message, "row_ids", self.row_ids)
        _set_sequence(message, "created_at_versions", self.created_at_versions)
        _set_sequence(message, "last_updated_at_versions", self.last_updated_at_versions)
        message.MergeFromString(self.unknown)
        return message

    def to_bytes(self) -> bytes:
        """Serialize; equal fragments give equal bytes."""
        return self.to_pb().SerializeToString(deterministic=True)


_PARTS: Mapping[str, Any] = {
    "deletion_file": DeletionFile,
    "row_id_meta": RowIdMeta,
    "created_at_version_meta": RowDatasetVersionMeta,
    "last_updated_at_version_meta": RowDatasetVersionMeta,
}

# --- JSON -----------------------------------------------------------------------------------------


@contextmanager
def _reading(subject: str) -> Iterator[None]:
    """Raise errors of malformed values as InvalidInputError that says what was expected."""
    try:
        yield
    except NotSupportedError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(f"not the JSON of a {subject}: {error}") from error


def _loaded(text: str) -> Any:
    try:
        return json_text.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"expected JSON text: {error}") from error


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInputError(f"{value!r:.40} is no integer")
    return value


def _integer_or_none(value: Any) -> int | None:
    return None if value is None else _integer(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(f"{value!r:.40} is no text")
    return value

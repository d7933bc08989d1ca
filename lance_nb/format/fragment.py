"""A fragment: the files that hold one group of rows, as metadata.

Limits: fragment ids fit 32 bits; a row address is ``id << 32 | offset``, so a fragment has fewer
than 2**32 rows (not checked here: the data files say how many they hold).
Not supported: data overlays are carried as bytes; a feature flag refuses datasets that need them.
Source: messages ``DataFragment``, ``DataFile``, ``DeletionFile`` of lance.table. ``base_id`` 0 and
an absent ``base_id`` differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lance_nb._pb import table as pb
from lance_nb.format import layout
from lance_nb.format.wire import parse, unknown_bytes

TOMBSTONE = -2  # a field id in DataFile.fields: the column has been replaced by another file


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file of a fragment.

    ``column_indices[i]`` is the column of the file that holds field ``fields[i]``. ``size_bytes`` 0
    means not known. ``path`` is relative to ``data/`` of the base ``base_id``, else of this
    dataset; call ``location`` for a checked path.
    """

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    file_version: tuple[int, int]
    size_bytes: int = 0
    base_id: int | None = None
    unknown: bytes = b""

    @property
    def is_legacy(self) -> bool:
        """Whether it is a 0.1 file (recorded as 0.0 to 0.2), which has no column numbers."""
        return self.file_version < (0, 3)

    def location(self, manifest: str = "") -> str:
        """Return the path below the dataset root. Raises CorruptFileError if it would leave it."""
        return layout.data_path(self.path, manifest)

    @classmethod
    def from_pb(cls, message: pb.DataFile) -> DataFile:
        """Read the message."""
        return cls(
            message.path,
            tuple(message.fields),
            tuple(message.column_indices),
            (message.file_major_version, message.file_minor_version),
            message.file_size_bytes,
            message.base_id if message.HasField("base_id") else None,
            unknown_bytes(message),
        )

    def to_pb(self) -> pb.DataFile:
        """Return the message."""
        message = pb.DataFile(
            path=self.path,
            fields=self.fields,
            column_indices=self.column_indices,
            file_major_version=self.file_version[0],
            file_minor_version=self.file_version[1],
            file_size_bytes=self.size_bytes,
            base_id=self.base_id,
        )
        message.MergeFromString(self.unknown)
        return message


class DeletionFileType(Enum):
    """How a deletion file is stored; the value is the suffix of its name."""

    ARROW = "arrow"
    BITMAP = "bin"


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """Where the deleted row offsets of a fragment are, and how many there are."""

    file_type: DeletionFileType
    read_version: int
    id: int
    num_deleted_rows: int
    base_id: int | None = None
    unknown: bytes = b""

    def location(self, fragment_id: int) -> str:
        """Return the path below the dataset root."""
        return layout.deletion_path(fragment_id, self.read_version, self.id, self.file_type.value)

    @classmethod
    def from_pb(cls, message: pb.DeletionFile) -> DeletionFile:
        """Read the message."""
        is_bitmap = message.file_type == pb.DeletionFile.BITMAP
        return cls(
            DeletionFileType.BITMAP if is_bitmap else DeletionFileType.ARROW,
            message.read_version,
            message.id,
            message.num_deleted_rows,
            message.base_id if message.HasField("base_id") else None,
            unknown_bytes(message),
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
    """Serialized in the manifest (row_id_sequence.py, row_versions.py)."""

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


@dataclass(frozen=True, slots=True)
class Fragment:
    """One fragment of one version. ``physical_rows`` counts deleted rows too (0 = not recorded)."""

    id: int
    files: tuple[DataFile, ...]
    physical_rows: int
    deletion_file: DeletionFile | None = None
    row_ids: Sequence | None = None
    created_at_versions: Sequence | None = None
    last_updated_at_versions: Sequence | None = None
    overlays: tuple[bytes, ...] = ()
    clustering_id: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    unknown: bytes = b""

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
        """Whether a newer writer put something in that this release does not know."""
        files = any(one.unknown for one in self.files)
        deletion = self.deletion_file is not None and bool(self.deletion_file.unknown)
        return bool(self.unknown) or files or deletion

    @classmethod
    def from_bytes(cls, data: bytes, path: str = "") -> Fragment:
        """Parse a serialized DataFragment. Raises CorruptFileError."""
        return cls.from_pb(parse(pb.DataFragment, data, path))

    @classmethod
    def from_pb(cls, message: pb.DataFragment) -> Fragment:
        """Read the message."""
        deletion = message.deletion_file if message.HasField("deletion_file") else None
        return cls(
            message.id,
            tuple(DataFile.from_pb(one) for one in message.files),
            message.physical_rows,
            None if deletion is None else DeletionFile.from_pb(deletion),
            _sequence(message, "row_id_sequence", ROW_ID_FIELD),
            _sequence(message, "created_at_version_sequence", CREATED_AT_FIELD),
            _sequence(message, "last_updated_at_version_sequence", LAST_UPDATED_AT_FIELD),
            tuple(one.SerializeToString() for one in message.overlays),
            message.clustering_id,
            dict(message.metadata),
            unknown_bytes(message),
        )

    def to_pb(self) -> pb.DataFragment:
        """Return the message."""
        message = pb.DataFragment(
            id=self.id,
            files=[one.to_pb() for one in self.files],
            physical_rows=self.physical_rows,
            overlays=[pb.DataOverlayFile.FromString(one) for one in self.overlays],
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

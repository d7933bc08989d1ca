"""The manifest: the message that describes one version of a dataset, and the file that holds it.

Layout of the file (little endian, no padding); the fields are those of ``lance.table.Manifest``::

    values of dictionaries          only of 0.1 datasets, at Field.dictionary.offset
    [u32 length | IndexSection]     optional, at Manifest.index_section
    [u32 length | Transaction]      optional, at Manifest.transaction_section
    u32 length | Manifest           at P
    u64 P | u16 major | u16 minor | "LANC"     the last 16 bytes

Worked example: a 434-byte file that ends in ``b6 00 .. 00 | 0000 0200 | 4c414e43`` has its manifest
at 182; the u32 there is 232 = 434 - 16 - 182 - 4.

Limits: ``FILE_BYTES_MAX``. The footer's version is 0.2; readers have always ignored it, so any up
to ``FOOTER_VERSION_MAX`` in both halves is accepted, and larger ones are treated as damage.
Fragments are decoded when they are accessed (fragment_list.py). The inline transaction is read from
field 23, else from 21, by presence and not by value, because 0 is a usual offset.
Not supported: ``fragment_tree`` (reserved; a feature flag refuses it).
Source: messages ``Manifest``, ``WriterVersion``, ``DataStorageFormat``, ``BasePath`` of lance.table
as of pylance 14.0.2, which writes the sections in the order index, transaction, manifest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.schema import Schema
from lance_nb.format.serialized_fragments import FragmentWire
from lance_nb.format.wire import FILE_BYTES_MAX, U32_MAX, are_unknown_fields, parse, unknown_bytes
from lance_nb.value_classes import dataclass

TAIL_BYTES = 64 * 1024  # one read of this size gets the manifest of nearly every table
FOOTER = struct.Struct("<QHH4s")
FOOTER_VERSION = (0, 2)
FOOTER_VERSION_MAX = 9
MAGIC = b"LANC"

# Field 17, ``blob_dataset_version``: a version of the second dataset that held blobs until 2025. It
# has no meaning any more, and a later version must not inherit it; pylance drops it too. Blobs that
# are there still forbid writing (``storage_class`` in field.py).
_RETIRED = (17,)

_LENGTH = struct.Struct("<I")
_LEGACY_NAMES = ("", "0.1", "legacy")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_MAX = 253_402_300_799  # the end of the year 9999
_SECONDS_MIN = -62_135_596_800  # the beginning of the year 1


@dataclass(frozen=True, slots=True)
class WriterVersion:
    """Which library wrote the version; informative."""

    library: str
    version: str
    prerelease: str = ""
    build_metadata: str = ""

    def __str__(self) -> str:
        pre = f"-{self.prerelease}" if self.prerelease else ""
        build = f"+{self.build_metadata}" if self.build_metadata else ""
        return f"{self.library} {self.version}{pre}{build}".strip()

    @classmethod
    def from_pb(cls, message: pb.WriterVersion) -> WriterVersion:
        """Read the message."""
        return cls(message.library, message.version, message.prerelease, message.build_metadata)

    def to_pb(self) -> pb.WriterVersion:
        """Return the message."""
        return pb.WriterVersion(
            library=self.library,
            version=self.version,
            prerelease=self.prerelease,
            build_metadata=self.build_metadata,
        )


@dataclass(frozen=True, slots=True)
class DataStorageFormat:
    """The format of new data files, for example ("lance", "2.2")."""

    file_format: str
    version: str
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: pb.DataStorageFormat) -> DataStorageFormat:
        """Read the message."""
        return cls(message.file_format, message.version, unknown_bytes(message))

    def to_pb(self) -> pb.DataStorageFormat:
        """Return the message."""
        message = pb.DataStorageFormat(file_format=self.file_format, version=self.version)
        message.MergeFromString(self.unknown)
        return message


@dataclass(frozen=True, slots=True)
class BasePath:
    """Another root that files of this dataset may live under (branches, clones)."""

    id: int
    path: str
    is_dataset_root: bool = False
    name: str | None = None
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: pb.BasePath) -> BasePath:
        """Read the message."""
        name = message.name if message.HasField("name") else None
        return cls(
            message.id,
            message.path,
            message.is_dataset_root,
            name=name,
            unknown=unknown_bytes(message),
        )

    def to_pb(self) -> pb.BasePath:
        """Return the message."""
        message = pb.BasePath(
            id=self.id, name=self.name, is_dataset_root=self.is_dataset_root, path=self.path
        )
        message.MergeFromString(self.unknown)
        return message


@dataclass(frozen=True, slots=True)
class Section:
    """A length-prefixed section. ``data`` is None when it lies before the bytes that were read."""

    offset_bytes: int
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of a dataset.

    ``timestamp_ns`` counts from the epoch, UTC. ``clustering`` and ``fragment_tree`` are serialized
    messages. ``raw`` is the serialized Manifest message that was parsed, empty for a built one.
    ``preamble``: the bytes before the first section. In 0.1 datasets they hold the values of
    dictionaries, at places that fields name, so every version carries them at the same place.
    """

    version: int
    schema: Schema
    fragments: FragmentList = field(default_factory=FragmentList)
    timestamp_ns: int | None = None
    tag: str = ""
    reader_feature_flags: int = 0
    writer_feature_flags: int = 0
    max_fragment_id: int | None = None
    transaction_file: str = ""
    writer_version: WriterVersion | None = None
    next_row_id: int = 0
    data_format: DataStorageFormat | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    base_paths: tuple[BasePath, ...] = ()
    table_metadata: Mapping[str, str] = field(default_factory=dict)
    branch: str | None = None
    max_allocated_field_id: int | None = None
    clustering: tuple[bytes, ...] = ()
    max_clustering_id: int = 0
    fragment_tree: bytes | None = None
    version_aux_data: int = 0
    unknown: bytes = b""
    index_section: Section | None = field(default=None, compare=False)
    transaction_section: Section | None = field(default=None, compare=False)
    size_bytes: int = field(default=0, compare=False)
    path: str = field(default="", compare=False)
    raw: bytes | memoryview = field(default=b"", compare=False, repr=False)
    preamble: bytes = field(default=b"", compare=False, repr=False)

    @property
    def timestamp(self) -> datetime | None:
        """Commit time as an aware UTC datetime (microseconds), None if not recorded."""
        if self.timestamp_ns is None:
            return None
        return _EPOCH + timedelta(microseconds=self.timestamp_ns // 1000)

    @property
    def has_unknown_fields(self) -> bool:
        """Whether the manifest or its schema holds fields of a newer writer.

        Fragments are not decoded for this; see ``Fragment.has_unknown_fields``.
        """
        return bool(self.unknown) or any(field.unknown for field in self.schema.walk())

    @classmethod
    def from_pb(
        cls,
        message: pb.Manifest,
        path: str = "",
        *,
        raw: bytes | memoryview = b"",
        sections: tuple[Section | None, Section | None] = (None, None),
        size_bytes: int = 0,
        preamble: bytes = b"",
    ) -> Manifest:
        """Read the message; ``raw`` are its bytes, ``sections`` the indices and the transaction."""
        unknown = unknown_bytes(message)
        wire = FragmentWire(message.fragments, None if unknown or not raw else raw)
        return cls(
            version=message.version,
            schema=Schema.from_pb(message.fields, message.schema_metadata, path),
            fragments=FragmentList(
                message.fragments, path, wire, has_counts=message.HasField("writer_version")
            ),
            timestamp_ns=timestamp_ns_of(message, path),
            tag=message.tag,
            reader_feature_flags=message.reader_feature_flags,
            writer_feature_flags=message.writer_feature_flags,
            max_fragment_id=_if_set(message, "max_fragment_id"),
            transaction_file=message.transaction_file,
            writer_version=_if_set(message, "writer_version", WriterVersion.from_pb),
            next_row_id=message.next_row_id,
            data_format=_if_set(message, "data_format", DataStorageFormat.from_pb),
            config=dict(message.config),
            base_paths=tuple(BasePath.from_pb(base) for base in message.base_paths),
            table_metadata=dict(message.table_metadata),
            branch=_if_set(message, "branch"),
            max_allocated_field_id=_if_set(message, "max_allocated_field_id"),
            clustering=tuple(key.SerializeToString() for key in message.clustering),
            max_clustering_id=message.max_clustering_id,
            fragment_tree=_if_set(message, "fragment_tree", lambda tree: tree.SerializeToString()),
            version_aux_data=message.version_aux_data,
            unknown=b"" if are_unknown_fields(message, _RETIRED) else unknown,
            index_section=sections[0],
            transaction_section=sections[1],
            size_bytes=size_bytes,
            path=path,
            raw=raw,
            preamble=preamble,
        )

    def to_pb(self) -> pb.Manifest:
        """Return the message, without section offsets."""
        message = self._frame()
        message.fields.extend(self.schema.to_pb())
        message.fragments.extend(self.fragments.raw)
        return message

    def _frame(self) -> pb.Manifest:
        """Return the message without section offsets, fields and fragments."""
        message = pb.Manifest(
            version=self.version,
            version_aux_data=self.version_aux_data,
            tag=self.tag,
            reader_feature_flags=self.reader_feature_flags,
            writer_feature_flags=self.writer_feature_flags,
            max_fragment_id=self.max_fragment_id,
            transaction_file=self.transaction_file,
            next_row_id=self.next_row_id,
            base_paths=[base.to_pb() for base in self.base_paths],
            branch=self.branch,
            max_allocated_field_id=self.max_allocated_field_id,
            clustering=[pb.Clustering.FromString(key) for key in self.clustering],
            max_clustering_id=self.max_clustering_id,
        )
        if self.fragment_tree is not None:
            message.fragment_tree.MergeFromString(self.fragment_tree)
            message.fragment_tree.SetInParent()
        self._set_maps(message)
        self._set_messages(message)
        message.MergeFromString(self.unknown)
        return message

    def _set_maps(self, message: pb.Manifest) -> None:
        # Most are empty, and setting an empty map costs as much as setting another one.
        if self.schema.metadata:
            message.schema_metadata.update(self.schema.metadata)
        if self.config:
            message.config.update(self.config)
        if self.table_metadata:
            message.table_metadata.update(self.table_metadata)

    def _set_messages(self, message: pb.Manifest) -> None:
        if self.timestamp_ns is not None:
            seconds, nanos = divmod(self.timestamp_ns, 1_000_000_000)
            message.timestamp.seconds, message.timestamp.nanos = seconds, nanos
            message.timestamp.SetInParent()
        if self.writer_version is not None:
            message.writer_version.CopyFrom(self.writer_version.to_pb())
        if self.data_format is not None:
            message.data_format.CopyFrom(self.data_format.to_pb())

    def to_bytes(
        self, *, index_section: bytes | None = None, transaction: bytes | None = None
    ) -> bytes:
        """Return the bytes of a manifest file with these sections (serialized messages).

        The section offsets are computed; those of the file this manifest came from are not used.
        """
        message = self._frame()
        preamble = self.live_preamble
        if index_section is not None:
            message.index_section = len(preamble)
        if transaction is not None:
            message.transaction_section = len(preamble) + section_size(index_section)
        sections = [section for section in (index_section, transaction) if section is not None]
        schema = pb.Manifest(fields=self.schema.to_pb()).SerializeToString(deterministic=True)
        frame = message.SerializeToString(deterministic=True)
        return build_manifest_file(sections, [schema, *self.fragments.wire(), frame], preamble)

    @property
    def live_preamble(self) -> bytes:
        """The preamble, empty when no field names values in it any more."""
        if self.preamble and any(field.dictionary for field in self.schema.walk()):
            return self.preamble
        return b""


def parse_manifest(data: bytes | memoryview, path: str) -> Manifest:
    """Parse a whole manifest file; ``path`` is for messages. Raises CorruptFileError."""
    parsed = parse_manifest_tail(data, len(data), path)
    if isinstance(parsed, int):
        raise CorruptFileError(path, None, f"{parsed} bytes", f"{len(data)} bytes")
    return parsed


def parse_manifest_tail(tail: bytes | memoryview, file_size: int, path: str) -> Manifest | int:
    """Parse a manifest from the end of its file.

    Returns the number of bytes from the end that are needed when ``tail`` is too short. A section
    that lies before ``tail`` is known by its offset only (``Section.data`` is None).
    """
    parsed = message_of(tail, file_size, path)
    if isinstance(parsed, int):
        return parsed
    message, raw, position = parsed
    view = memoryview(tail)
    index_at, transaction_at = section_offsets(message)
    preamble = b""
    if _has_dictionaries(message):
        if len(view) < file_size:
            return file_size
        starts = [offset for offset in (index_at, transaction_at) if offset is not None]
        preamble = bytes(view[: min([*starts, position])])
    sections = (
        read_section(view, file_size, index_at, limit=position, path=path),
        read_section(view, file_size, transaction_at, limit=position, path=path),
    )
    return Manifest.from_pb(
        message, path, raw=raw, sections=sections, size_bytes=file_size, preamble=preamble
    )


def _has_dictionaries(message: pb.Manifest) -> bool:
    """Return whether values of dictionaries precede the sections, as in 0.1 datasets."""
    if message.HasField("data_format") and message.data_format.version not in _LEGACY_NAMES:
        return False
    return any(
        column.HasField("dictionary") and column.dictionary.length for column in message.fields
    )


def message_of(
    tail: bytes | memoryview, file_size: int, path: str
) -> tuple[pb.Manifest, memoryview, int] | int:
    """Return (message, its bytes, its position in the file), or the bytes needed from the end."""
    view = memoryview(tail)
    position = message_position(view, file_size, path)
    if file_size - position > len(view):
        return file_size - position
    raw = message_bytes(view, file_size, position, path)
    return parse(pb.Manifest, raw, path, position), raw, position


def branch_of_message(data: bytes, path: str) -> str | None:
    """Return the branch that a manifest message names; None is main. Raises CorruptFileError."""
    branch: str | None = _if_set(parse(pb.Manifest, data, path, 0), "branch")
    return branch


def section_offsets(message: pb.Manifest) -> tuple[int | None, int | None]:
    """Return the file offsets of the index section and of the inline transaction."""
    index_at = message.index_section if message.HasField("index_section") else None
    if message.HasField("transaction_section"):
        return index_at, message.transaction_section
    if message.HasField("transaction_section_deprecated"):
        return index_at, message.transaction_section_deprecated
    return index_at, None


def timestamp_ns_of(message: pb.Manifest, path: str) -> int | None:
    """Return the commit time in nanoseconds. Raises CorruptFileError if it is out of range."""
    if not message.HasField("timestamp"):
        return None
    seconds, nanos = message.timestamp.seconds, message.timestamp.nanos
    if not (_SECONDS_MIN <= seconds <= _SECONDS_MAX and 0 <= nanos < 1_000_000_000):
        raise CorruptFileError(path, None, "a commit time", f"{seconds} s and {nanos} ns")
    return seconds * 1_000_000_000 + nanos


def _if_set(message: pb.Manifest, name: str, form: Callable[[Any], Any] | None = None) -> Any:
    """Return ``form`` of a field, None where it is not set."""
    if not message.HasField(name):
        return None
    value = getattr(message, name)
    return value if form is None else form(value)


# --- frame of the file ----------------------------------------------------------------------------


def message_position(tail: memoryview, file_size: int, path: str) -> int:
    """Return the offset P of the manifest's length prefix. Raises CorruptFileError.

    ``tail`` is the end of the file, at least 16 bytes unless the file is shorter.
    """
    if file_size > FILE_BYTES_MAX:
        size_text = f"{file_size} bytes"
        raise CorruptFileError(
            path, None, f"a manifest of at most {FILE_BYTES_MAX} bytes", size_text
        )
    smallest = FOOTER.size + _LENGTH.size
    if file_size < smallest or len(tail) < min(FOOTER.size, file_size):
        raise CorruptFileError(
            path, None, f"a manifest of at least {smallest} bytes", f"{file_size} bytes (truncated)"
        )
    footer_at = file_size - FOOTER.size
    position, major, minor, magic = FOOTER.unpack(tail[-FOOTER.size :])
    if magic != MAGIC:
        raise CorruptFileError(path, file_size - 4, "the magic bytes 'LANC'", repr(bytes(magic)))
    if major > FOOTER_VERSION_MAX or minor > FOOTER_VERSION_MAX:
        raise CorruptFileError(path, footer_at + 8, "footer version 0.2", f"{major}.{minor}")
    if position > footer_at - _LENGTH.size:
        position_text = f"position {position} in a file of {file_size} bytes"
        raise CorruptFileError(path, footer_at, "the position of the manifest", position_text)
    return int(position)


def message_bytes(tail: memoryview, file_size: int, position: int, path: str) -> memoryview:
    """Return the serialized Manifest; ``tail`` must reach back to ``position``."""
    start = position - (file_size - len(tail))
    (length,) = _LENGTH.unpack_from(tail, start)
    expected = file_size - FOOTER.size - position - _LENGTH.size
    if length != expected:
        raise CorruptFileError(path, position, f"a manifest of {expected} bytes", f"{length} bytes")
    begin = start + _LENGTH.size
    return tail[begin : begin + length]


def read_section(
    tail: memoryview, file_size: int, offset: int | None, limit: int, path: str
) -> Section | None:
    """Return the section at file offset ``offset`` (None: there is none).

    ``limit`` is where the manifest starts: sections lie before it. Raises CorruptFileError.
    """
    if offset is None:
        return None
    if offset + _LENGTH.size > limit:
        actual = f"one that begins at byte {offset}"
        raise CorruptFileError(path, offset, f"a section before byte {limit}", actual)
    start = offset - (file_size - len(tail))
    if start < 0:
        return Section(offset, None)
    (length,) = _LENGTH.unpack_from(tail, start)
    if offset + _LENGTH.size + length > limit:
        length_text = f"{length} bytes"
        raise CorruptFileError(
            path, offset, f"a section that ends before byte {limit}", length_text
        )
    begin = start + _LENGTH.size
    return Section(offset, bytes(tail[begin : begin + length]))


def section_size(data: bytes | None) -> int:
    """Return how many bytes a section takes with its length prefix."""
    return 0 if data is None else _LENGTH.size + len(data)


def build_manifest_file(
    sections: list[bytes], message: Sequence[bytes | memoryview], preamble: bytes = b""
) -> bytes:
    """Return the bytes of a manifest file with these sections in front of the manifest.

    ``message`` is the serialized Manifest, in pieces; ``preamble`` goes before the sections. Raises
    CorruptFileError.
    """
    parts: list[bytes | memoryview] = [preamble]
    for pieces in (*([data] for data in sections), message):
        size_bytes = sum(len(piece) for piece in pieces)
        if size_bytes > U32_MAX:
            raise CorruptFileError("", None, "sections of at most 4 GiB", f"{size_bytes} bytes")
        parts += [_LENGTH.pack(size_bytes), *pieces]
    position = len(preamble) + sum(section_size(data) for data in sections)
    return b"".join([*parts, FOOTER.pack(position, *FOOTER_VERSION, MAGIC)])

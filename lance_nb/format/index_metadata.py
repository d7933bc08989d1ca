"""What the manifest says about indices: read, carried forward, never dropped.

Layout: section ``IndexSection`` of the manifest file, one ``IndexMetadata`` per index. ``details``
is a protobuf Any whose type url starts with "/" and has no host; what it is follows from the last
part of that url, compared without regard to case.

Limits: ids are 16 bytes; the fragment bitmap is a 32-bit Roaring bitmap, decoded when asked for. It
may name fragments that are gone: intersect with the live ones.
Not supported: reading the index files themselves.
Source: messages ``IndexSection``, ``IndexMetadata`` of lance.table.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pyroaring import BitMap

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.roaring import check_portable
from lance_nb.format.wire import parse, unknown_bytes

SYSTEM_NAMES = ("__lance_frag_reuse", "__lance_mem_wal")

_KINDS = {
    kind.lower() + "indexdetails": kind
    for kind in (
        "BTree",
        "Bitmap",
        "LabelList",
        "NGram",
        "ZoneMap",
        "Inverted",
        "BloomFilter",
        "RTree",
        "Fm",
        "MinHashLsh",
        "Json",
        "Vector",
        "FragmentReuse",
        "MemWal",
    )
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS_MAX = 253_402_300_799_999  # the end of the year 9999


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file of an index, relative to its folder."""

    path: str
    size_bytes: int
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: pb.IndexFile) -> IndexFile:
        """Read the message."""
        return cls(message.path, message.size_bytes, unknown_bytes(message))

    def to_pb(self) -> pb.IndexFile:
        """Return the message."""
        message = pb.IndexFile(path=self.path, size_bytes=self.size_bytes)
        message.MergeFromString(self.unknown)
        return message


@dataclass(frozen=True, slots=True)
class IndexMetadata:
    """One index, or one delta of it (deltas share the name).

    ``content`` is what the file says that ``details`` point to, once it has been read (only the
    fragment-reuse index has such a file).
    """

    uuid: str
    name: str
    fields: tuple[int, ...]
    dataset_version: int
    fragment_bitmap: bytes = field(default=b"", repr=False)
    details_url: str = ""
    details: bytes = field(default=b"", repr=False)
    index_version: int | None = None
    created_at_ms: int | None = None
    base_id: int | None = None
    files: tuple[IndexFile, ...] = ()
    covering_fields: tuple[int, ...] = ()
    clustering_id: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    unknown: bytes = field(default=b"", repr=False)
    content: bytes = field(default=b"", repr=False, compare=False)

    @property
    def kind(self) -> str:
        """``BTree``, ``Vector``, ...; the last part of the type url if unknown, "" if absent."""
        last = self.details_url.rpartition("/")[2].rpartition(".")[2]
        return _KINDS.get(last.lower(), last)

    @property
    def is_system(self) -> bool:
        """Whether this is bookkeeping of the format rather than an index on columns."""
        return self.name in SYSTEM_NAMES

    @property
    def created_at(self) -> datetime | None:
        """When the index was built (aware, UTC)."""
        if self.created_at_ms is None or self.created_at_ms > _MILLISECONDS_MAX:
            return None
        return _EPOCH + timedelta(milliseconds=self.created_at_ms)

    @property
    def size_bytes(self) -> int | None:
        """Bytes of its files, None if the writer did not list them."""
        return sum(one.size_bytes for one in self.files) if self.files else None

    def fragment_ids(self, path: str = "") -> BitMap | None:
        """Return the fragments the index covers, None if it does not say.

        Raises CorruptFileError.
        """
        if not self.fragment_bitmap:
            return None
        check_portable(self.fragment_bitmap, path)
        try:
            return BitMap.deserialize(self.fragment_bitmap)
        except ValueError as error:
            raise CorruptFileError(path, None, "a Roaring bitmap", str(error)) from error

    @classmethod
    def from_pb(cls, message: pb.IndexMetadata, path: str = "") -> IndexMetadata:
        """Read the message. Raises CorruptFileError."""
        identity = message.uuid.uuid
        if len(identity) != 16:
            raise CorruptFileError(path, None, "an index id of 16 bytes", f"{len(identity)} bytes")
        return cls(
            str(uuid.UUID(bytes=identity)),
            message.name,
            tuple(message.fields),
            message.dataset_version,
            message.fragment_bitmap,
            message.index_details.type_url,
            message.index_details.value,
            message.index_version if message.HasField("index_version") else None,
            message.created_at if message.HasField("created_at") else None,
            message.base_id if message.HasField("base_id") else None,
            tuple(IndexFile.from_pb(one) for one in message.files),
            tuple(message.covering_fields),
            message.clustering_id,
            dict(message.metadata),
            unknown_bytes(message),
        )

    def to_pb(self) -> pb.IndexMetadata:
        """Return the message."""
        message = pb.IndexMetadata(
            uuid=pb.UUID(uuid=uuid.UUID(self.uuid).bytes),
            name=self.name,
            fields=self.fields,
            dataset_version=self.dataset_version,
            fragment_bitmap=self.fragment_bitmap,
            index_version=self.index_version,
            created_at=self.created_at_ms,
            base_id=self.base_id,
            files=[one.to_pb() for one in self.files],
            covering_fields=self.covering_fields,
            clustering_id=self.clustering_id,
            metadata=dict(self.metadata),
        )
        if self.details_url or self.details:
            message.index_details.type_url = self.details_url
            message.index_details.value = self.details
        message.MergeFromString(self.unknown)
        return message


def parse_index_section(data: bytes, path: str = "") -> tuple[IndexMetadata, ...]:
    """Read an IndexSection message. Raises CorruptFileError."""
    message = parse(pb.IndexSection, data, path)
    return tuple(IndexMetadata.from_pb(one, path) for one in message.indices)


def build_index_section(indices: Iterable[IndexMetadata]) -> bytes:
    """Return the bytes of an IndexSection message."""
    message = pb.IndexSection(indices=[one.to_pb() for one in indices])
    return message.SerializeToString(deterministic=True)

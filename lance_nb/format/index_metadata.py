"""The metadata of indices in a manifest: read, preserved in later versions, described.

Layout: section ``IndexSection`` of the manifest file, one ``IndexMetadata`` per index. ``details``
is a protobuf Any whose type url starts with "/" and has no host; the last part of the url, compared
without regard to case, names the type of the index. Scalar indices have their type there; a vector
index says in its details how its vectors are partitioned and compressed.

Limits: ids are 16 bytes; the fragment bitmap is a 32-bit Roaring bitmap, decoded when accessed. It
may contain fragments that do not exist any more: intersect it with the live ones.
Not supported: reading the index files themselves. The empty details of vector indices of 2025 and
before read as plain "Vector".
Source: messages ``IndexSection``, ``IndexMetadata`` of lance.table, ``VectorIndexDetails``,
``InvertedIndexDetails`` of lance.index.pb; names of pylance 14.0.2.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any

from pyroaring import BitMap

from lance_nb._pb import index as index_pb
from lance_nb._pb import table as pb
from lance_nb.errors import ArgumentError, CorruptFileError, InvalidInputError
from lance_nb.format.frozen_list import FrozenList
from lance_nb.format.roaring import check_portable
from lance_nb.format.wire import parse, unknown_bytes
from lance_nb.value_classes import dataclass

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
_COMPRESSIONS = {"pq": "PQ", "sq": "SQ", "rq": "RQ", "flat": "FLAT"}
_METRICS = ("L2", "Cosine", "Dot", "Hamming")


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file of an index, relative to its folder.

    Examples:
        >>> ds.create_scalar_index("id", "BTREE")
        >>> index = ds.read_transaction(2).operation.new_indices[0]
        >>> sorted(file.path for file in index.files)
        ['page_data.lance', 'page_lookup.lance']
    """

    path: str
    size_bytes: int
    unknown: bytes = field(default=b"", repr=False)

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

    ``content`` is the content of the file that ``details`` point to, once it has been read (only
    the fragment-reuse index has such a file).
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
        return sum(file.size_bytes for file in self.files) if self.files else None

    def fragment_ids(self, path: str = "") -> BitMap | None:
        """Return the fragments that the index covers, None if they are not recorded.

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
            uuid=str(uuid.UUID(bytes=identity)),
            name=message.name,
            fields=tuple(message.fields),
            dataset_version=message.dataset_version,
            fragment_bitmap=message.fragment_bitmap,
            details_url=message.index_details.type_url,
            details=message.index_details.value,
            index_version=message.index_version if message.HasField("index_version") else None,
            created_at_ms=message.created_at if message.HasField("created_at") else None,
            base_id=message.base_id if message.HasField("base_id") else None,
            files=tuple(IndexFile.from_pb(file) for file in message.files),
            covering_fields=tuple(message.covering_fields),
            clustering_id=message.clustering_id,
            metadata=dict(message.metadata),
            unknown=unknown_bytes(message),
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
            files=[file.to_pb() for file in self.files],
            covering_fields=self.covering_fields,
            clustering_id=self.clustering_id,
            metadata=dict(self.metadata),
        )
        if self.details_url or self.details:
            message.index_details.type_url = self.details_url
            message.index_details.value = self.details
        message.MergeFromString(self.unknown)
        return message


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Index:
    """An index as operations name it: ``LanceOperation.CreateIndex([Index(...)], [])``.

    ``fields`` are the ids of the indexed columns, ``fragment_ids`` the fragments it covers,
    ``index_details`` the type and the serialized parameters, ``files`` those in its folder.

    Raises InvalidInputError for an id that is no UUID.

    Examples:
        >>> uuid = "d02910da-c60f-48da-9df6-846239884c05"
        >>> index = lance_nb.Index(uuid, "a_idx", [0], 1, {0, 1}, 0)
        >>> index.uuid == uuid, index.name, index.fields, index.covering_fields
        (True, 'a_idx', [0], [])
        >>> index.fragment_ids == {0, 1}, index.dataset_version, index.index_version
        (True, 1, 0)
        >>> index.created_at, index.base_id, index.files, index.index_details
        (None, None, None, None)
    """

    metadata: IndexMetadata

    def __init__(  # noqa: PLR0917
        self,
        uuid: str,
        name: str,
        fields: Iterable[int],
        dataset_version: int,
        fragment_ids: Iterable[int],
        index_version: int,
        created_at: datetime | None = None,
        base_id: int | None = None,
        files: Iterable[IndexFile] | None = None,
        index_details: tuple[str, bytes] | None = None,
        covering_fields: Iterable[int] = (),
    ) -> None:
        url, details = index_details or ("", b"")
        made_at = None if created_at is None else (created_at - _EPOCH) // timedelta(milliseconds=1)
        metadata = IndexMetadata(
            uuid=_uuid(uuid),
            name=name,
            fields=FrozenList(fields),
            dataset_version=dataset_version,
            fragment_bitmap=BitMap(fragment_ids).serialize(),
            details_url=url,
            details=details,
            index_version=index_version,
            created_at_ms=made_at,
            base_id=base_id,
            files=FrozenList(files or ()),
            covering_fields=FrozenList(covering_fields),
        )
        object.__setattr__(self, "metadata", metadata)

    @classmethod
    def of(cls, value: Index | IndexMetadata) -> Index:
        """Return a value of the manifest as an Index. Raises ArgumentError for other values."""
        if isinstance(value, Index):
            return value
        if not isinstance(value, IndexMetadata):
            raise ArgumentError(f"expected an Index, not {type(value).__name__}")
        index = cls.__new__(cls)
        object.__setattr__(index, "metadata", value)
        return index

    @property
    def uuid(self) -> str:
        """Its id, and the name of its folder."""
        return self.metadata.uuid

    @property
    def name(self) -> str:
        """Its name; the parts of an index share it."""
        return self.metadata.name

    @property
    def fields(self) -> FrozenList[int]:
        """Ids of the indexed fields."""
        return FrozenList(self.metadata.fields)

    @property
    def dataset_version(self) -> int:
        """The version it was built on."""
        return self.metadata.dataset_version

    @property
    def fragment_ids(self) -> frozenset[int]:
        """The fragments it covers. Raises CorruptFileError."""
        return frozenset(self.metadata.fragment_ids() or ())

    @property
    def index_version(self) -> int:
        """Version of the index's own format."""
        return self.metadata.index_version or 0

    @property
    def created_at(self) -> datetime | None:
        """When it was built (UTC)."""
        return self.metadata.created_at

    @property
    def base_id(self) -> int | None:
        """The base path that its folder is below, None for the dataset itself."""
        return self.metadata.base_id

    @property
    def files(self) -> FrozenList[IndexFile] | None:
        """Its files, None if the writer did not list them."""
        return FrozenList(self.metadata.files) or None

    @property
    def index_details(self) -> tuple[str, bytes] | None:
        """The type url and the serialized parameters, None if they are not recorded."""
        if not self.metadata.details_url:
            return None
        return self.metadata.details_url, self.metadata.details

    @property
    def covering_fields(self) -> FrozenList[int]:
        """Ids of the fields whose values the index holds as well."""
        return FrozenList(self.metadata.covering_fields)

    def __repr__(self) -> str:
        names = ("uuid", "name", "fields", "dataset_version", "fragment_ids", "index_version",
                 "created_at", "base_id", "files", "index_details", "covering_fields")  # fmt: skip
        return f"Index({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidInputError(f"the id of an index is a UUID, not {text!r:.60}") from error


def parse_index_section(data: bytes, path: str = "") -> tuple[IndexMetadata, ...]:
    """Read an IndexSection message. Raises CorruptFileError."""
    message = parse(pb.IndexSection, data, path)
    return tuple(IndexMetadata.from_pb(index, path) for index in message.indices)


def build_index_section(indices: Iterable[IndexMetadata]) -> bytes:
    """Return the bytes of an IndexSection message."""
    message = pb.IndexSection(indices=[index.to_pb() for index in indices])
    return message.SerializeToString(deterministic=True)


# --- details --------------------------------------------------------------------------------------


def index_type(index: IndexMetadata, path: str = "") -> str:
    """Return the name of the index's type. Raises CorruptFileError."""
    if index.kind != "Vector" or not index.details:
        return index.kind
    details = parse(index_pb.VectorIndexDetails, index.details, path)
    compression = details.WhichOneof("compression")
    if compression is None:
        return index.kind
    graph = "HNSW_" if details.HasField("hnsw_index_config") else ""
    return f"IVF_{graph}{_COMPRESSIONS[compression]}"


# Fields 12 (documents of a block, 128) and 15 (version of the format, 2), which the published
# schema of the message does not have yet.
_NEWER_INVERTED_FIELDS = bytes([12 << 3, 0x80, 0x01, 15 << 3, 2])


def inverted_details(parameters: Mapping[str, Any]) -> bytes:
    """Return the details of a text index, from the parameters with which it cuts texts."""
    details = index_pb.InvertedIndexDetails(language=json.dumps(parameters["language"]))
    for descriptor_field in details.DESCRIPTOR.fields:
        value = parameters[descriptor_field.name]
        if descriptor_field.name != "language" and value is not None:
            setattr(details, descriptor_field.name, value)
    return details.SerializeToString(deterministic=True) + _NEWER_INVERTED_FIELDS


def index_settings(index: IndexMetadata, path: str = "") -> dict[str, Any]:
    """Return the settings in the details, as pylance's ``IndexDescription.details``, or {}.

    Raises CorruptFileError.
    """
    if index.kind == "Vector":
        return _vector_settings(parse(index_pb.VectorIndexDetails, index.details, path))
    if index.kind == "Inverted":
        settings = _fields(parse(index_pb.InvertedIndexDetails, index.details, path))
        return settings | {"language": settings["language"].strip('"')}  # it is written as JSON
    return {}


def _vector_settings(details: index_pb.VectorIndexDetails) -> dict[str, Any]:
    is_known = details.metric_type < len(_METRICS)
    settings: dict[str, Any] = {
        "metric_type": _METRICS[details.metric_type] if is_known else details.metric_type
    }
    if details.HasField("hnsw_index_config"):
        settings["hnsw"] = _fields(details.hnsw_index_config)
    kind = details.WhichOneof("compression")
    if kind is not None:
        settings["compression"] = {"type": kind, **_fields(getattr(details, kind))}
    if details.runtime_hints:
        settings["runtime_hints"] = dict(details.runtime_hints)
    return settings


def _fields(message: Any) -> dict[str, Any]:
    """Return the single values of a message, None for an absent one."""
    return {
        descriptor.name: getattr(message, descriptor.name)
        if not descriptor.has_presence or message.HasField(descriptor.name)
        else None
        for descriptor in message.DESCRIPTOR.fields
    }


def zone_map_details(rows_per_zone: int, *, use_seeds: bool) -> bytes:
    """Return the details of a zone map with a set of null rows."""
    details = index_pb.ZoneMapIndexDetails(
        rows_per_zone=rows_per_zone, use_seeds=use_seeds, has_null_bitmap=True
    )
    return details.SerializeToString(deterministic=True)

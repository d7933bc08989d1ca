"""Small versions and contexts for tests of operations: no store, no files."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from lance_nb._pb import index as pb
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import DataStorageFormat, Manifest
from lance_nb.format.schema import Schema
from lance_nb.transactions.manifest_building import coverage
from lance_nb.transactions.new_version import build
from lance_nb.transactions.operation import ApplyContext, BuildOptions, Built, Operation
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.rebase import RebaseContext
from lance_nb.transactions.transaction import Transaction

SCHEMA = Schema.from_arrow(pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())]))
ROWS = 10


def new_fragment(
    name: str = "new", rows: int = ROWS, fields: tuple[int, ...] = (0, 1, 2)
) -> Fragment:
    """Return a fragment as a writer hands it in: without id."""
    columns = tuple(range(len(fields)))
    return Fragment(0, (DataFile(f"{name}.lance", fields, columns, 2, 2, 100),), rows)


def deleted(fragment: Fragment, count: int, read_version: int = 1) -> Fragment:
    """Return the fragment with that many rows deleted."""
    file = DeletionFile(read_version, 7 + count, DeletionFileType.ARROW, count)
    return replace(fragment, deletion_file=file)


def index(
    name: str, *fields: int, covers: tuple[int, ...] = (0, 1, 2), kind: str = "BTree"
) -> IndexMetadata:
    """Return an index on some fields; the uuid follows from the name."""
    identity = str(uuid.uuid5(uuid.NAMESPACE_URL, name))
    url = f"/lance.table.{kind}IndexDetails"
    return IndexMetadata(identity, name, fields, 1, coverage(covers), url)


class Versions:
    """A history in memory: ``apply`` makes the next version, checked."""

    def __init__(self, fragments: int = 3, *, stable_row_ids: bool = False) -> None:
        self.built: dict[int, Built] = {}
        self.options = BuildOptions(stable_row_ids=stable_row_ids)
        parts = tuple(new_fragment(f"first{one}") for one in range(fragments))
        self.apply(Overwrite(SCHEMA, parts))

    @property
    def newest(self) -> Built:
        return self.built[max(self.built)]

    @property
    def manifest(self) -> Manifest:
        return self.newest.manifest

    @property
    def fragment_ids(self) -> list[int]:
        return [one.id for one in self.manifest.fragments]

    def fragment(self, fragment_id: int) -> Fragment:
        return self.manifest.fragments.with_ids([fragment_id])[fragment_id]

    def covered(self, name: str) -> list[int]:
        return sorted(next(one for one in self.newest.indices if one.name == name).fragment_ids())

    def context(self, **options: object) -> ApplyContext:
        current = self.newest if self.built else None
        return ApplyContext(
            None if current is None else current.manifest,
            () if current is None else current.indices,
            self.load,
            timestamp_ns=1_700_000_000_000_000_000,
            options=replace(self.options, **options),
        )

    def load(self, version: int) -> tuple[Manifest, tuple[IndexMetadata, ...]]:
        return self.built[version].manifest, self.built[version].indices

    def apply(self, operation: Operation, **options: object) -> Built:
        read_version = max(self.built, default=0)
        transaction = Transaction(read_version, operation, str(uuid.uuid4()))
        built = build(transaction, self.context(**options))
        self.built[built.manifest.version] = built
        return built

    def rebasing(
        self,
        affected_rows: Mapping[int, tuple[int, ...]] | None = None,
        deleted_now: Mapping[int, tuple[int, ...]] | None = None,
    ) -> RebaseContext:
        """Return what a rebase onto the newest version sees; vectors instead of files."""
        written = {}

        def write(fragment_id: int, version: int, vector: DeletionVector) -> DeletionFile:
            written[fragment_id] = vector
            return DeletionFile(version, 1, DeletionFileType.BITMAP, len(vector))

        vectors = {key: DeletionVector.of(rows) for key, rows in (affected_rows or {}).items()}
        return RebaseContext(
            self.manifest,
            self.newest.indices,
            self.load,
            lambda one: DeletionVector.of((deleted_now or {}).get(one.id, ())),
            write,
            None if affected_rows is None else vectors,
        )


def minimal_manifest(version: int = 1) -> Manifest:
    """Return a version without fragments."""
    data_format = DataStorageFormat("lance", "2.2")
    return Manifest(version, SCHEMA, FragmentList(), data_format=data_format)


def details(*entries: tuple[int, tuple[int, ...], tuple[int, ...]]) -> bytes:
    """Return details with one group per entry: (dataset version, old ids, new ids)."""
    message = pb.FragmentReuseIndexDetails()
    message.inline.SetInParent()
    for version, old, new in entries:
        entry = message.inline.legacy_versions.add(dataset_version=version)
        group = entry.groups.add()
        for one in old:
            group.old_fragments.add(id=one)
        for one in new:
            group.new_fragments.add(id=one)
    return message.SerializeToString()


FIRST, SECOND, THIRD = (3, (0, 1), (5,)), (6, (5, 2), (6,)), (9, (6,), (7, 8))

"""A dataset in memory, with the part of LanceDataset that the explorer reads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_nb.errors import (
    InvalidRefError,
    LanceError,
    PredicateError,
    RefNotFoundError,
    VersionNotFoundError,
)
from lance_nb.explorer.rows.row_query import SYSTEM_COLUMNS

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
Lanes = dict[str | None, dict[int, "FakeVersion"]]


@dataclass(frozen=True, slots=True)
class FakeTransaction:
    read_version: int = 1
    uuid: str = "7f0c"
    operation: str = "Append"
    description: str = "appends 2 rows in 1 fragment"
    details: dict[str, Any] = field(default_factory=lambda: {"fragments": [{"id": 1, "rows": 2}]})


@dataclass(frozen=True, slots=True)
class FakeVersion:
    """What a version of the fake looks like; it is its own VersionInfo and its own Stats."""

    version: int
    table: pa.Table
    operation: str | None = "Append"
    num_deleted_rows: int = 0
    message: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    transaction: FakeTransaction | None = None
    num_fragments: int = 1
    num_data_files: int = 1
    num_deletion_files: int = 0
    size_bytes: int | None = 3_400_000

    @property
    def num_rows(self) -> int:
        return self.table.num_rows

    @property
    def timestamp(self) -> datetime:
        return START + timedelta(minutes=self.version)


class FakeRefs:
    def __init__(self, refs: dict[str, dict[str, Any]]) -> None:
        self._refs = refs

    def list(self) -> dict[str, dict[str, Any]]:
        return self._refs

    def names(self) -> list[str]:
        return sorted(self._refs)

    def marks(self) -> dict[str, str]:
        return {name: repr(ref) for name, ref in self._refs.items()}


class FakeDataset:
    """A dataset at one version. ``reads`` counts versions described, shared by all checkouts."""

    data_storage_version = "2.2"

    def __init__(
        self,
        lanes: Lanes,
        *,
        branch: str | None = None,
        version: int | None = None,
        tags: dict[str, dict[str, Any]] | None = None,
        branches: dict[str, dict[str, Any]] | None = None,
        uri: str = "data/fake.lance",
    ) -> None:
        self.lanes = lanes
        self.branch = branch
        self.version = max(lanes[branch]) if version is None else version
        self.tags = FakeRefs(tags or {})
        self.branches = FakeRefs(branches or {})
        self.uri = uri
        self.name = uri.rpartition("/")[2]
        self.reads: list[int] = []
        self.row_error: LanceError | None = None

    @property
    def _here(self) -> FakeVersion:
        return self.lanes[self.branch][self.version]

    @property
    def latest_version(self) -> int:
        return max(self.lanes[self.branch])

    @property
    def schema(self) -> pa.Schema:
        return self._here.table.schema

    def count_rows(self, filter: str | None = None) -> int:
        return self._passing(filter).num_rows

    def _passing(self, filter: str | None) -> pa.Table:
        """Rows that pass a filter like ``id < 5``: that is all the SQL that is spoken here."""
        if filter is None:
            return self._here.table
        name, _, limit = filter.partition(" < ")
        if name not in self.schema.names or not limit.isdecimal():
            raise PredicateError(f"cannot read {filter!r}: only NAME < NUMBER")
        return self._here.table.filter(pc.less(self._here.table[name], int(limit)))

    def stats(self) -> FakeVersion:
        return self._here

    def version_numbers(self) -> list[int]:
        return sorted(self.lanes[self.branch])

    def version_info(self, version: int, *, with_tags: bool = True) -> FakeVersion:
        self.reads.append(version)
        if version not in self.lanes[self.branch]:
            raise VersionNotFoundError(self.uri, version)
        return self.lanes[self.branch][version]

    def transaction(self, version: int) -> FakeTransaction | None:
        return self.lanes[self.branch][version].transaction

    def checkout_version(self, version: Any) -> FakeDataset:
        if isinstance(version, int):
            version = (self.branch, version)
        branch, number = self._named(version) if isinstance(version, str) else version
        if branch not in self.lanes:
            raise RefNotFoundError("branch", branch)
        number = max(self.lanes[branch]) if number is None else number
        if number not in self.lanes[branch]:
            raise VersionNotFoundError(self.uri, number)
        other = object.__new__(FakeDataset)
        other.__dict__.update(self.__dict__)
        other.branch, other.version = branch, number
        return other

    def _named(self, text: str) -> tuple[str | None, int | None]:
        """Read a version as table/ref_grammar does, as far as tests of the explorer write it."""
        word = text.strip()
        name, colon, place = word.rpartition(":")
        if word.isdecimal():
            return self.branch, int(word)
        if not word or (colon and name != "tag" and not place.isdecimal()):
            raise InvalidRefError(f"{word!r} is not a version")
        if colon and name != "tag":
            return None if name == "main" else name, int(place)
        if word.startswith("HEAD"):
            back = int(word.removeprefix("HEAD").removeprefix("~") or 0)
            return self.branch, self.version_numbers()[-1 - back]
        if place == "main" or place in self.branches.list():
            return None if place == "main" else place, None
        if place not in self.tags.list():
            names = (*self.branches.names(), *self.tags.names())
            raise RefNotFoundError("tag or branch", place, names)
        record = self.tags.list()[place]
        return record["branch"], record["version"]

    def to_table(
        self,
        columns: list[str] | None = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        filter: str | None = None,
    ) -> pa.Table:
        if self.row_error is not None:
            raise self.row_error
        table = self._passing(filter)
        ids = pa.array(range(table.num_rows), pa.uint64())
        for name in SYSTEM_COLUMNS:
            table = table.append_column(name, ids)
        table = table.select(self.schema.names if columns is None else columns)
        return table.slice(offset or 0, limit)

    def take(self, indices: list[int], columns: list[str] | None = None) -> pa.Table:
        table = self._here.table if columns is None else self._here.table.select(columns)
        return table.take(pa.array(indices, pa.int64()))


def rows(count: int, first: int = 0) -> pa.Table:
    """Rows with an id and a text."""
    ids = list(range(first, first + count))
    return pa.table({"id": ids, "text": [f"row {number}" for number in ids]})


def small_dataset() -> FakeDataset:
    """Four versions, a tag and a branch forked at version 2."""
    main = {
        1: FakeVersion(1, rows(10), "Overwrite"),
        2: FakeVersion(2, rows(30), tags=("v1",), transaction=FakeTransaction()),
        3: FakeVersion(3, rows(25), "Delete", num_deleted_rows=5, message="drop five"),
        4: FakeVersion(4, rows(25), "Update", num_deleted_rows=9),
    }
    dev = {2: replace(main[2], operation="Clone", tags=()), 3: FakeVersion(3, rows(40))}
    tag = {"branch": None, "version": 2, "manifest_size": 10}
    fork = {"parent_branch": None, "parent_version": 2, "create_at": 0, "manifest_size": 10}
    return FakeDataset({None: main, "dev": dev}, tags={"v1": tag}, branches={"dev": fork})


def many_versions(count: int) -> FakeDataset:
    """One branch with versions 1 to ``count`` over one table."""
    table = rows(50)
    return FakeDataset({None: {n: FakeVersion(n, table) for n in range(1, count + 1)}})


def one_table(table: pa.Table) -> FakeDataset:
    """A dataset with one version that holds ``table``."""
    return FakeDataset({None: {1: FakeVersion(1, table, "Overwrite")}})


def hostile_dataset(payload: str) -> FakeDataset:
    """A dataset with the payload in every name and value that can be shown."""
    table = pa.table({payload: [payload, None], "list": [[payload], [payload]]})
    table = table.replace_schema_metadata({b"k": payload.encode("utf-8", "replace")})
    version = FakeVersion(
        1,
        table,
        operation=payload,
        message=payload,
        properties={payload: payload},
        tags=(payload,),
        transaction=FakeTransaction(
            1, payload, payload, payload, {payload: {payload: [payload], "l": [{payload: 1}]}}
        ),
    )
    tag = {"branch": None, "version": 1}
    fork = {"parent_branch": payload, "parent_version": 1}
    return FakeDataset(
        {None: {1: version}, payload: {1: version}},
        tags={payload: tag},
        branches={payload: fork},
        uri=f"data/{payload}",
    )

"""Plan a scan for Spark: pinned version, columns, filter, and the fragments of each partition."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.spark.plan import TASK_BYTES, PinnedVersion, fragment_bytes, fragment_groups
from lance_nb.spark.source.options import TABLES, SourceOptions
from lance_nb.spark.types import readable_schema, to_spark
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID
from lance_nb.table.scan import DEFAULT_BATCH_ROWS
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import Snapshot

# A part has at least this size; parts get smaller if there would be fewer than ``_PARTS``.
_PART_BYTES = 8 * 1024**2
_PARTS = 8
_BATCH_ROWS = 65_536
_BATCH_BYTES = 8 * 1024**2


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A scan of one version. ``schema`` is that of Spark."""

    pinned: PinnedVersion
    columns: tuple[str, ...] | None
    filter: str | None
    with_row_id: bool
    with_row_address: bool
    schema: pa.Schema

    @classmethod
    def of(cls, options: SourceOptions) -> ReadPlan:
        """Pin the version, and check columns and filter."""
        dataset = options.open()
        columns = options.columns
        plan = cls(
            PinnedVersion.of(dataset),
            None if columns is None else tuple(columns),
            options.get("filter"),
            options.is_set("withrowid"),
            options.is_set("withrowaddress"),
            pa.schema([]),
        )
        schema = readable_schema(plan._scanner(dataset, None).projected_schema)
        return replace(plan, schema=schema)

    def select(self, names: list[str]) -> ReadPlan:
        """Select columns. Raises InvalidInputError for an unknown column."""
        known = self.schema.names
        if names == known:
            return self
        missing = [name for name in names if name not in known]
        if missing:
            raise InvalidInputError(f"no column {missing[0]!r}; columns: {', '.join(known)}")
        schema = pa.schema([self.schema.field(name) for name in names])
        stored = tuple(name for name in names if name not in (ROW_ID, ROW_ADDRESS))
        return replace(
            self, columns=stored, with_row_id=ROW_ID in names,
            with_row_address=ROW_ADDRESS in names, schema=schema,
        )  # fmt: skip

    def parts(self) -> list[tuple[int, ...]]:
        """Group the fragments into partitions of up to about 128 MB, enough for several cores.

        There is always at least one, because Spark requires it.
        """
        _, snapshot = self.pinned.open()
        part_bytes = min(TASK_BYTES, max(_PART_BYTES, _total_bytes(snapshot) // _PARTS))
        return [ids for ids, _ in fragment_groups(snapshot, part_bytes)] or [()]

    def batches(self, fragment_ids: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
        """Read some fragments in the types of Spark."""
        if not fragment_ids:
            return
        for batch in self._scanner(self.pinned.dataset(), fragment_ids).to_batches():
            yield to_spark(batch.select(self.schema.names), self.schema)

    def _scanner(self, dataset: LanceDataset, fragment_ids: tuple[int, ...] | None) -> Any:
        ids = None if fragment_ids is None else set(fragment_ids)
        wanted = None if ids is None else self.pinned.fragments(ids)
        return dataset.scanner(
            columns=None if self.columns is None else list(self.columns),
            filter=self.filter,
            fragments=wanted,
            with_row_id=self.with_row_id,
            with_row_address=self.with_row_address,
            batch_size=_batch_rows(self.pinned.open()[1]),
        )


@dataclass(frozen=True, slots=True)
class ReadPart:
    """One partition of a scan: the rows of some fragments."""

    plan: ReadPlan
    fragment_ids: tuple[int, ...]

    def schema(self) -> pa.Schema:
        """Return the columns."""
        return self.plan.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows."""
        return self.plan.batches(self.fragment_ids)


def _total_bytes(snapshot: Snapshot) -> int:
    return sum(fragment_bytes(one) for one in snapshot.manifest.fragments)


def _batch_rows(snapshot: Snapshot) -> int:
    """Return the rows per batch: many, because every batch has a fixed cost in the JVM."""
    num_rows = int(live_counts(snapshot).sum())
    row_bytes = max(1, _total_bytes(snapshot) // max(1, num_rows))
    return min(_BATCH_ROWS, max(DEFAULT_BATCH_ROWS, _BATCH_BYTES // row_bytes))


def metadata_table(dataset: LanceDataset, name: str) -> pa.Table:
    """Return a metadata table. Raises InvalidInputError for a name that does not exist."""
    inspected = {
        "history": dataset.inspect.versions,
        "fragments": dataset.inspect.fragments,
        "files": dataset.inspect.data_files,
        "columns": dataset.inspect.columns,
    }
    if name in inspected:
        return inspected[name]()
    if name == "tags":
        return _refs(dataset.tags.list(), ("branch", "version"))
    if name == "branches":
        return _refs(dataset.branches.list(), ("parent_branch", "parent_version"))
    if name == "indices":
        rows = [
            {"name": one["name"], "type": one["type"], "fields": list(one["fields"])}
            for one in dataset.list_indices()
        ]
        return pa.Table.from_pylist(rows, _INDICES)
    if name == "transactions":
        return _transactions(dataset)
    raise InvalidInputError(f"table {name!r} is not one of {', '.join(TABLES)}")


_INDICES = pa.schema(
    [("name", pa.string()), ("type", pa.string()), ("fields", pa.list_(pa.string()))]
)


_TRANSACTIONS = pa.schema(
    [
        ("version", pa.int64()), ("read_version", pa.int64()), ("uuid", pa.string()),
        ("operation", pa.string()), ("description", pa.string()), ("details", pa.string()),
        ("properties", pa.map_(pa.string(), pa.string())),
    ]
)  # fmt: skip


def _transactions(dataset: LanceDataset) -> pa.Table:
    rows = []
    for version in dataset.version_numbers():
        done = dataset.transaction(version)
        if done is not None:
            rows.append(
                {
                    "version": version, "read_version": done.read_version, "uuid": done.uuid,
                    "operation": done.operation, "description": done.description,
                    "details": json.dumps(done.details), "properties": dict(done.properties),
                }
            )  # fmt: skip
    return pa.Table.from_pylist(rows, _TRANSACTIONS)


def _refs(found: dict[str, dict[str, Any]], keys: tuple[str, str]) -> pa.Table:
    branch, version = keys
    return pa.table(
        {
            "name": pa.array(list(found), pa.string()),
            branch: pa.array([one[branch] for one in found.values()], pa.string()),
            version: pa.array([one[version] for one in found.values()], pa.int64()),
        }
    )

"""What a dataset must hold: plain rows in order, per version, per branch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from tests.faults.stateful.columns import UID, Values

ROW_ID, CREATED, UPDATED = "_rowid", "_row_created_at_version", "_row_last_updated_at_version"

LEARNED = -1  # a version that only reading tells, once


@dataclass(frozen=True)
class Row:
    """One row. ``row_id`` is None until it was read; lineage counts only if row ids are stable."""

    values: Values
    row_id: int | None
    created: int
    updated: int

    @property
    def uid(self) -> int:
        """What the model knows the row by."""
        return self.values[UID]


@dataclass(frozen=True)
class Snapshot:
    """One version."""

    version: int
    rows: tuple[Row, ...]
    schema: pa.Schema
    file_version: str
    stable: bool
    config: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def table(self) -> pa.Table:
        """The rows as Arrow, with the columns of row lineage if ids are stable."""
        made = pa.Table.from_pylist([one.values for one in self.rows], self.schema)
        if self.stable:
            for name, values in (
                (ROW_ID, [one.row_id for one in self.rows]),
                (CREATED, [one.created for one in self.rows]),
                (UPDATED, [one.updated for one in self.rows]),
            ):
                made = made.append_column(name, pa.array(values, pa.uint64()))
        return made

    @property
    def uids(self) -> list[int]:
        """The uids of the rows, in order."""
        return [one.uid for one in self.rows]

    def appended(self, values: Iterable[Values]) -> Snapshot:
        """Return the next version, with rows behind."""
        number = self.version + 1
        new = tuple(Row(one, None, number, number) for one in values)
        return replace(self, version=number, rows=self.rows + new)

    def replaced(self, values: Iterable[Values], **changes: Any) -> Snapshot:
        """Return the next version, with other rows and columns."""
        return replace(self, rows=(), **changes).appended(values)

    def with_rows(self, rows: Iterable[Row], **changes: Any) -> Snapshot:
        """Return the next version, with other rows."""
        return replace(self, version=self.version + 1, rows=tuple(rows), **changes)

    def with_columns(
        self, schema: pa.Schema, change: Callable[[Row], Values], *, written: bool = False
    ) -> Snapshot:
        """Return the next version, with other columns; rows whose data is written are updated."""
        number = self.version + 1
        return self.with_rows(
            (
                replace(one, values=change(one), updated=number if written else one.updated)
                for one in self.rows
            ),
            schema=schema,
        )

    def updated(
        self, passes: Callable[[Row], bool], change: Callable[[Values], Values]
    ) -> Snapshot:
        """Return the next version: rows that pass are changed and move behind the others."""
        changed = self.updated_in_place(passes, change)
        both = list(zip(self.rows, changed.rows, strict=True))
        kept = [new for old, new in both if not passes(old)]
        moved = [new for old, new in both if passes(old)]
        return replace(changed, rows=tuple(kept + moved))

    def updated_in_place(
        self, passes: Callable[[Row], bool], change: Callable[[Values], Values]
    ) -> Snapshot:
        """Return the next version: rows that pass are changed and stay where they are."""
        number = self.version + 1
        return self.with_rows(
            replace(one, values={**one.values, **change(one.values)}, updated=number)
            if passes(one)
            else one
            for one in self.rows
        )


@dataclass(frozen=True)
class Used:
    """Ids that were given up to a version; none of them may be given again."""

    row_ids: frozenset[int] = frozenset()
    fragment_ids: frozenset[int] = frozenset()


@dataclass
class Line:
    """A branch: its versions, what was used up to each, and the version that it started from."""

    versions: dict[int, Snapshot] = field(default_factory=dict)
    used: dict[int, Used] = field(default_factory=dict)
    parent: tuple[str | None, int] | None = None
    is_merged: bool = False  # into its parent, which is told apart only once

    def started(self, name: str | None, number: int) -> Line:
        """Return a branch of this one (whose name is given) that begins at a version."""
        return Line({number: self.versions[number]}, {number: self.used[number]}, (name, number))

    @property
    def given(self) -> Used:
        """Ids that were given up to the newest version."""
        return self.used[max(self.used)] if self.used else Used()

    @property
    def head(self) -> Snapshot:
        """The newest version."""
        return self.versions[max(self.versions)]


@dataclass
class Model:
    """A dataset: branches (None is main) and tags."""

    lines: dict[str | None, Line]
    tags: dict[str, tuple[str | None, int]] = field(default_factory=dict)

    def pinned(self, branch: str | None) -> set[int]:
        """Return the versions of a branch that have a tag."""
        return {number for place, number in self.tags.values() if place == branch}

    def forks(self, branch: str | None) -> set[int]:
        """Return the versions of a branch that others started from."""
        parents = [one.parent for one in self.lines.values() if one.parent is not None]
        return {number for place, number in parents if place == branch}

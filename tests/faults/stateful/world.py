"""A dataset on disk beside its model: who acts, what is written down, what is compared."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.faults.stateful.columns import UID, Values, schema_for, value_for
from tests.faults.stateful.model import (
    CREATED,
    LEARNED,
    ROW_ID,
    UPDATED,
    Line,
    Model,
    Row,
    Snapshot,
    Used,
)

OURS, PYLANCE = "ours", "pylance"


class DifferenceError(AssertionError):
    """The dataset is not what the model says."""


@dataclass
class World:
    """One dataset, its model, and the choices that are made once for a sequence."""

    folder: Path
    chance: random.Random
    engines: dict[str, Any]
    thorough: bool = True  # else a step's other columns are read in turns: check_all reads them all
    share_read: float = 0.2  # of the steps after which pylance reads as well
    log: list[str] = field(default_factory=list)
    actor: str = OURS
    branch: str | None = None
    next_uid: int = 0
    number: int = 0  # of the step

    def __post_init__(self) -> None:
        chance = self.chance
        self.file_version = chance.choice(("2.0", "2.1", "2.2", "2.2"))
        self.stable = chance.random() < 0.5
        self.v2_names = chance.random() < 0.75
        self.max_rows = chance.choice((7, 12, 100))
        self.uri = str(self.folder / "t.lance")
        self.actor = chance.choice((OURS, PYLANCE))
        self._handles: dict[tuple[str, str | None], Any] = {}
        self._create()

    def _create(self) -> None:
        schema = schema_for(self.chance, self.file_version)
        first = Snapshot(0, (), schema, self.file_version, self.stable)
        rows = self.new_rows(first, self.chance.randint(0, 20))
        self.engine.write_dataset(
            pa.Table.from_pylist(rows, schema),
            self.uri,
            max_rows_per_file=self.max_rows,
            data_storage_version=self.file_version,
            enable_stable_row_ids=self.stable,
            enable_v2_manifest_paths=self.v2_names,
        )
        self.log.append(
            f"{self.actor}: create {len(rows)} rows, {schema.names[2:]}, "
            f"files {self.file_version}, stable={self.stable}, v2={self.v2_names}, "
            f"max_rows={self.max_rows}"
        )
        self.model = Model({None: Line()})
        self.landed(first.appended(rows))

    # --- what steps use ---------------------------------------------------------------------------

    @property
    def engine(self) -> Any:
        """The module that acts."""
        return self.engines[self.actor]

    @property
    def line(self) -> Line:
        """The branch that the step is about."""
        return self.model.lines[self.branch]

    @property
    def head(self) -> Snapshot:
        """The newest version of the branch."""
        return self.line.head

    def says(self, text: str) -> None:
        """Write down what is about to be done."""
        where = "" if self.branch is None else f" on {self.branch}"
        self.log.append(f"{self.number:3} {self.actor}{where}: {text}")

    def new_rows(self, like: Snapshot, count: int) -> list[Values]:
        """Make up rows with uids of their own."""
        made = []
        for _ in range(count):
            values = {
                one.name: value_for(self.chance, one, like.file_version) for one in like.schema
            }
            made.append({**values, UID: self.next_uid})
            self.next_uid += 1
        return made

    def at(self, actor: str, version: int | None = None, branch: str | None = None) -> Any:
        """Open a version of a branch, the newest if none is said."""
        dataset = self.engines[actor].dataset(self.uri)
        if branch is None:
            return dataset if version is None else dataset.checkout_version(version)
        return dataset.checkout_version((branch, version))

    def dataset(self) -> Any:
        """The branch's newest version in the hands of who acts; a handle may have been kept."""
        kept = self._handles.get((self.actor, self.branch))
        if kept is not None and self.chance.random() < 0.5:
            kept.checkout_latest()
            return kept
        made = self.at(self.actor, branch=self.branch)
        self._handles[self.actor, self.branch] = made
        return made

    def forget(self, branch: str | None) -> None:
        """Give up handles to a branch that is no more."""
        self._handles = {key: one for key, one in self._handles.items() if key[1] != branch}

    def forget_pins(self) -> None:
        """Give up tags that merges made and that are no more: nothing needs them any longer."""
        left = set(self.at(OURS).tags.names())
        tags = self.model.tags
        gone = [name for name in tags if name.startswith("merged-") and name not in left]
        for name in gone:
            del tags[name]

    # --- what must be true after a step -----------------------------------------------------------

    def landed(self, expected: Snapshot, *, ordered: bool = True) -> None:
        """Compare the newest version with what the model says of it, and keep it."""
        dataset = self.at(OURS, branch=self.branch)
        if dataset.version != expected.version:
            raise DifferenceError(
                f"version {dataset.version} is the newest, not {expected.version}"
            )
        found = read(dataset, expected, None if self.thorough else self.number)
        expected = self._learned(expected, found, ordered)
        compare(expected, found, dataset)
        given = self.line.given
        used = Used(given.row_ids | row_ids_of(expected), self._fragments(dataset))
        if self.chance.random() < self.share_read:
            other = self.at(PYLANCE, branch=self.branch)
            compare(expected, read(other, expected), other)
        self.line.versions[expected.version] = expected
        self.line.used[expected.version] = used

    def _learned(self, expected: Snapshot, found: pa.Table, ordered: bool) -> Snapshot:
        """Take over what only reading can tell: the order after some verbs, the ids of new rows."""
        rows = expected.rows
        uids = found[UID].to_pylist()
        if not ordered:
            by_uid = {one.uid: one for one in rows}
            if sorted(by_uid) != sorted(uids):
                raise DifferenceError(f"uids are {uids}, not {list(by_uid)} in some order")
            rows = tuple(by_uid[one] for one in uids)
        if expected.stable and len(rows) == found.num_rows:
            rows = self._with_ids(rows, found[ROW_ID].to_pylist())
            rows = tuple(
                replace(
                    one,
                    created=created if one.created == LEARNED else one.created,
                    updated=updated if one.updated == LEARNED else one.updated,
                )
                for one, created, updated in zip(
                    rows, found[CREATED].to_pylist(), found[UPDATED].to_pylist(), strict=True
                )
            )
        return replace(expected, rows=rows)

    def _with_ids(self, rows: tuple[Row, ...], ids: list[int]) -> tuple[Row, ...]:
        new = {number for one, number in zip(rows, ids, strict=True) if one.row_id is None}
        used = new & self.line.given.row_ids
        if used:
            raise DifferenceError(f"new rows have row ids {sorted(used)}, which were given before")
        return tuple(
            replace(one, row_id=number) if one.row_id is None else one
            for one, number in zip(rows, ids, strict=True)
        )

    def _fragments(self, dataset: Any) -> frozenset[int]:
        """Check that ids are not used again and that counts are right; return all ids so far."""
        manifest = dataset.opened[1].manifest
        ids = [one.id for one in manifest.fragments]
        if len(set(ids)) < len(ids):
            raise DifferenceError(f"fragment ids {ids} repeat")
        known = self.line.given.fragment_ids
        new = set(ids) - known
        if known and new and min(new) <= max(known):
            raise DifferenceError(
                f"fragment ids {sorted(new)} are new, and {max(known)} was given before"
            )
        if ids and manifest.max_fragment_id < max(ids):
            raise DifferenceError(f"highest fragment id is said to be {manifest.max_fragment_id}")
        if dataset.count_rows() != sum(one.num_rows for one in manifest.fragments):
            raise DifferenceError("counts of rows differ")
        return known | new


def row_ids_of(snapshot: Snapshot) -> frozenset[int]:
    """Return the stable row ids of a version."""
    return frozenset(one.row_id for one in snapshot.rows if one.row_id is not None)


def columns_of(expected: Snapshot, turn: int | None = None) -> list[str]:
    """The columns that are compared; with a turn every other one, and the uid."""
    names = expected.schema.names
    if turn is not None:
        names = [one for at, one in enumerate(names) if one == UID or (at + turn) % 2]
    lineage = [ROW_ID, CREATED, UPDATED] if expected.stable else []
    return [*names, *lineage]


def read(dataset: Any, expected: Snapshot, turn: int | None = None) -> pa.Table:
    """Read what is compared. Columns must be those of the model."""
    if dataset.schema.names != expected.schema.names:
        raise DifferenceError(f"columns are {dataset.schema.names}, not {expected.schema.names}")
    asked = columns_of(expected, turn)
    found = dataset.to_table(columns=asked)
    if found.column_names != asked:
        raise DifferenceError(f"asked for {asked}, and got {found.column_names}")
    return found


def compare(expected: Snapshot, found: pa.Table, dataset: Any) -> None:
    """Raise DifferenceError unless rows, types and count are those of the model."""
    wanted = expected.table
    who = type(dataset).__module__.partition(".")[0]
    if dataset.count_rows() != wanted.num_rows or found.num_rows != wanted.num_rows:
        raise DifferenceError(
            f"{who}: version {expected.version} counts {dataset.count_rows()} rows, gives "
            f"{found.num_rows}, and has {wanted.num_rows}"
        )
    for name in found.column_names:
        if name in expected.schema.names and _nullable(dataset, name) != _nullable(expected, name):
            raise DifferenceError(f"{who}: {name} may be null, or may not be")
        if found.schema.field(name).type != wanted.schema.field(name).type:
            raise DifferenceError(f"{who}: {name} is {found.schema.field(name).type}")
        if not found[name].combine_chunks().equals(wanted[name].combine_chunks()):
            raise DifferenceError(
                f"{who}: version {expected.version}, {name} is\n  {found[name].to_pylist()}, not\n"
                f"  {wanted[name].to_pylist()}\n  uids {wanted[UID].to_pylist()}"
            )
    if dataset.data_storage_version != expected.file_version:
        raise DifferenceError(f"{who}: files are {dataset.data_storage_version}")
    if dict(expected.config) != {k: v for k, v in dataset.config().items() if k[:2] == "k_"}:
        raise DifferenceError(f"{who}: config is {dataset.config()}, not {expected.config}")
    if dict(expected.metadata) != dict(dataset.metadata):
        raise DifferenceError(f"{who}: metadata is {dataset.metadata}, not {expected.metadata}")


def _nullable(holder: Any, name: str) -> bool:
    return holder.schema.field(name).nullable

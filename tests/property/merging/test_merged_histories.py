"""Merges of generated histories against a model of rows: plain dictionaries.

Both sides append, delete, update, compact, add, drop and rename columns, restore and revert
versions, and are cleaned up; then one is merged into the other, and sometimes again after more
changes, also the other way. ``LANCE_NB_TEST_SCALE=125``: 3,000.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count

import pyarrow as pa

import lance_nb
from lance_nb.errors import (
    CommitConflictError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
    VersionNotFoundError,
)
from lance_nb.merging.merge_plan import MergePlan
from tests.support.examples import SCALE

SEED = 2020
NUM_HISTORIES = round(24 * SCALE)
Cells = dict[int, object]


@dataclass
class Model:
    """Rows by id, cells by the number of a column; what columns are called, in order."""

    rows: dict[int, Cells] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    def shown(self) -> list[dict[str, object]]:
        return [
            {"id": key, **{name: cells.get(one) for one, name in self.names.items()}}
            for key, cells in sorted(self.rows.items())
        ]


CleanUp = Callable[[lance_nb.LanceDataset], object]


def clean_up(ds: lance_nb.LanceDataset) -> None:
    """Keep the newest version only, and what refs and merges need."""
    ds.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)


class Side:
    """A branch and its model; every change is made on both.

    ``past``: the model of each version. ``numbers``: never the same twice in a history.
    """

    def __init__(
        self,
        ds: lance_nb.LanceDataset,
        model: Model,
        rng: random.Random,
        clean: CleanUp,
        numbers: Iterator[int],
    ) -> None:
        self.ds, self.model, self.rng, self._clean_up = ds, model, rng, clean
        self._numbers = numbers
        self.has_key = True
        self.past = {ds.version: deepcopy(model)}

    @property
    def name(self) -> str:
        return self.ds.branch or "main"

    def change(self) -> None:
        kinds = (
            "add", "delete", "update", "compact", "column", "drop", "name", "restore", "revert",
            "clean",
        )  # fmt: skip
        (kind,) = self.rng.choices(kinds, (3, 3, 12, 3, 1, 0.5, 0.5, 1.5, 1.5, 2.5))
        before = self.ds.version
        getattr(self, f"_{kind}")()
        self.ds = self.ds.checkout_latest()
        for version in range(before + 1, self.ds.version):  # a compaction makes two versions
            self.past[version] = self.past[before]
        self.past[self.ds.version] = deepcopy(self.model)

    def _restore(self) -> None:
        versions = sorted(self.past.keys() & set(self.ds.version_numbers()))
        version = self.rng.choice(versions)
        if version != self.ds.version:
            self.ds.checkout_version((self.ds.branch, version)).restore()
            self.model = deepcopy(self.past[version])

    def _revert(self) -> None:
        version = self.ds.version
        if not {version, version - 1} <= self.past.keys():
            return
        if self.past[version - 1].rows.keys() - self.model.rows.keys():
            return  # rows that live again have what the other side computed for them meanwhile
        try:
            self.ds.revert(version, key="id" if self.has_key else None)
        except (InvalidInputError, CommitConflictError, NotSupportedError, VersionNotFoundError):
            return  # a compaction, a first version, one that is gone or cannot be undone
        self.model = deepcopy(self.past[version - 1])

    def _clean(self) -> None:
        self._clean_up(self.ds)

    def _ids(self) -> list[int]:
        known = sorted(self.model.rows)
        return self.rng.sample(known, min(len(known), self.rng.choice((1, 1, 2, 4))))

    def _where(self, ids: list[int]) -> str:
        return f"id IN ({', '.join(map(str, ids))})"

    def _value(self) -> int:
        """Return what no cell has, also no computed one: to write the same again is a change."""
        return -1 - next(self._numbers)

    def _add(self) -> None:
        chosen = {self.rng.randrange(40, 48) if self.has_key else next(self._numbers) + 1000}
        new = sorted(chosen - self.model.rows.keys())
        if not new:
            return
        value = self._value()
        self.model.rows |= {one: dict.fromkeys(self.model.names, value) for one in new}
        table = {"id": pa.array(new, pa.int64())}
        table |= {
            name: pa.array([value] * len(new), pa.int64()) for name in self.model.names.values()
        }
        self.ds.insert(pa.table(table))

    def _delete(self) -> None:
        ids = self._ids()
        if ids:
            self._write(None, self._where(ids))
            for one in ids:
                del self.model.rows[one]

    def _write(self, values: dict[str, str] | None, where: str) -> None:
        """Update, or delete without values."""
        if values is None:
            self.ds.delete(where)
        else:
            self.ds.update(values, where=where)

    def _update(self) -> None:
        ids = self._ids()
        if ids and self.model.names:
            column = self.rng.choice(list(self.model.names))
            value = self._value()
            name = self.model.names[column]
            self._write({name: str(value)}, self._where(ids))
            for one in ids:
                self.model.rows[one][column] = value

    def _compact(self) -> None:
        self.ds.optimize.compact_files(target_rows_per_fragment=100)

    def _column(self) -> None:
        number = next(self._numbers) + 100
        self.ds.add_columns({f"c{number}": "id * 2"})
        self.model.names[number] = f"c{number}"
        for key, cells in self.model.rows.items():
            cells[number] = key * 2

    def _drop(self) -> None:
        if len(self.model.names) > 1:
            column = self.rng.choice(list(self.model.names))
            self.ds.drop_columns([self.model.names.pop(column)])
            for cells in self.model.rows.values():
                del cells[column]

    def _name(self) -> None:
        column = self.rng.choice(list(self.model.names))
        name = f"n{next(self._numbers)}"
        self.ds.alter_columns({"path": self.model.names[column], "name": name})
        self.model.names[column] = name


def merged(base: Model, ours: Model, theirs: Model, take: str, *, by_cell: bool) -> Model | None:
    """Merge models; None where a row or cell needs a choice and ``take`` makes none."""
    names = {
        one: name
        for one, name in ours.names.items()
        if one in theirs.names or one not in base.names
    }
    for one, name in theirs.names.items():
        if one not in base.names or (one in names and name != base.names[one]):
            names[one] = name
    found: dict[int, Cells] = {}
    for key in sorted({*base.rows, *ours.rows, *theirs.rows}):
        cells = _row((base, ours, theirs), key, list(names), take, by_cell=by_cell)
        if cells == "conflict":
            return None
        if isinstance(cells, dict):
            found[key] = cells
    return Model(found, names)


def _row(
    models: tuple[Model, Model, Model], key: int, names: list[int], take: str, *, by_cell: bool
) -> Cells | str | None:
    base, ours, theirs = (one.rows.get(key) for one in models)
    known = [[one for one in names if one in model.names] for model in models]
    sides = {"base": base, "ours": ours, "theirs": theirs}

    def changed(cells: Cells | None, columns: list[int]) -> bool:
        if base is None or cells is None:
            return base is not cells
        return any(cells.get(one) != base.get(one) for one in columns if one in known[0])

    if base is not None and (ours is None or theirs is None):
        rest, columns = (theirs, known[2]) if ours is None else (ours, known[1])
        if rest is None or not changed(rest, columns):
            return None
        return _picked(sides[take], names) if take != "fail" else "conflict"
    if ours is None or theirs is None:
        return _picked(theirs if ours is None else ours, names)
    common = [one for one in known[1] if one in known[2]]
    apart = [one for one in common if ours.get(one) != theirs.get(one)]
    before = base or {}
    both = base is None or (changed(ours, known[1]) and changed(theirs, known[2]))
    clash = [
        one
        for one in apart
        if base is None or (ours.get(one) != before.get(one) != theirs.get(one))
    ]
    clash = clash if by_cell else apart if both else []
    if clash and take == "fail":
        return "conflict"
    if base is None and clash and take == "base":
        return None
    cells: Cells = {}
    for one in names:
        if one in clash or (clash and not by_cell and one in common):
            cells[one] = (sides[take] or {}).get(one)
        elif one not in known[1] or (one in known[2] and theirs.get(one) != before.get(one)):
            cells[one] = theirs.get(one)
        else:
            cells[one] = ours.get(one)
    return cells


def _picked(cells: Cells | None, names: list[int]) -> Cells | None:
    return None if cells is None else {one: cells.get(one) for one in names}


def run_history(rng: random.Random, uri: str, clean: CleanUp, side_class: type[Side] = Side) -> str:
    """Generate a history, merge it, and compare; return the outcome."""
    stable = rng.random() < 0.5
    ids = range(12)
    table = {"id": pa.array(ids, pa.int64())}
    table |= {name: pa.array([0] * 12, pa.int64()) for name in ("v", "w")}
    model = Model({one: {0: 0, 1: 0} for one in ids}, {0: "v", 1: "w"})
    main = lance_nb.write_dataset(
        pa.table(table),
        uri,
        max_rows_per_file=4,
        enable_stable_row_ids=stable,
    )
    numbers = count()
    target = side_class(main, deepcopy(model), rng, clean, numbers)
    source = side_class(main.create_branch("dev"), deepcopy(model), rng, clean, numbers)
    key = None if rng.random() < (0.5 if stable else 0.2) else "id"
    target.has_key = source.has_key = key is not None
    copies = rng.random() < 0.4
    outcome = "merged"
    for _ in range(rng.choice((1, 2, 2, 3))):
        for side in (source, target):
            for _ in range(rng.choice((1, 2, 3))):
                side.change()
        if rng.random() < 0.25:
            source, target = target, source
        take = rng.choice(("fail", "ours", "theirs", "base"))
        by_cell = take == "base" or rng.random() < 0.5
        how = {"resolve": [] if take == "fail" else take} if by_cell else {"on_conflict": take}
        try:
            plan = target.ds.branches.plan_merge(source.name, key=key, copy=copies, **how)
        except VersionNotFoundError as error:
            if "base of this merge" not in str(error):
                raise
            return "refused: the base is gone"
        except InvalidInputError as error:  # ids that were given anew by the merge before
            if "was renamed or dropped" in str(error):
                return "refused: a column has another name"
            if key is not None or "name the columns that identify a row" not in str(error):
                raise
            return "refused: a key is asked for"
        wanted = merged(model, target.model, source.model, take, by_cell=by_cell)
        outcome = _compare(plan, wanted, has_identity=stable or key is not None)
        if outcome != "merged":
            return outcome
        committed = plan.commit()
        target.ds = target.ds.checkout_latest()
        if committed.version is None:  # the source has done nothing since
            assert wanted is not None, plan
            assert wanted.shown() == target.model.shown(), plan
            continue
        target.model, model = wanted or model, deepcopy(source.model)
        target.past[target.ds.version] = deepcopy(target.model)
        shown = target.ds.to_table().sort_by("id").to_pylist()
        assert shown == target.model.shown(), f"{plan}\n{key}, {how}"
        assert target.ds.count_rows() == plan.num_rows_after
        if stable:
            row_ids = target.ds.to_table(columns=[], with_row_id=True)["_rowid"].to_pylist()
            assert len(set(row_ids)) == len(row_ids), plan
    return outcome


def _compare(plan: MergePlan, wanted: Model | None, *, has_identity: bool) -> str:
    """Compare the verdicts; what only the schema or the files have against a merge is counted."""
    kinds = {one.kind for one in plan.unresolved}
    if kinds and not kinds <= {"rows", "keys"}:
        return f"refused: {', '.join(sorted(kinds))}"
    if kinds and not has_identity:
        return "refused: rows are not identified"
    if any(one.kind == "columns" for one in plan.conflicts):
        return "decided: columns"  # kept, or without values in some rows, as the plan says
    if wanted is None:
        assert kinds, f"the model has a conflict:\n{plan}"
        return "conflict"
    assert not kinds, f"the model has no conflict:\n{plan}"
    return "merged"


def test_merges_of_generated_histories_are_those_of_the_model() -> None:
    outcomes: Counter[str] = Counter()
    for number in range(NUM_HISTORIES):
        try:
            uri = f"memory://merged-history-{number}/rows"
            outcomes[run_history(random.Random(SEED + number), uri, clean_up)] += 1
        except (AssertionError, LanceError) as error:
            raise AssertionError(f"seed {SEED + number}: {error}") from error
    print(f"seeds {SEED} to {SEED + NUM_HISTORIES - 1}: {dict(outcomes)}")
    assert outcomes["merged"] > NUM_HISTORIES / 2

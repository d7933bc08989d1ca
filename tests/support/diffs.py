"""What every diff must be: applied to the rows of one version, it gives those of the other.

And random histories of versions that can be compared.
"""

from __future__ import annotations

import random
from itertools import count
from typing import Any

import pyarrow as pa

import lance_nb
from lance_nb.table.diff import Diff

Rows = dict[int, dict[str, Any]]  # by a column that no two rows ever share
_NUMBERS = count()


def check_diff(diff: Diff, a: Rows, b: Rows, by: str = "id") -> None:
    """Apply a diff to the rows of one version: the rows of the other must come out."""
    rows = diff.rows().read_all().to_pylist()
    cells = diff.cells().read_all().to_pylist()
    kinds = {
        kind: {row[by]: row for row in rows if row["_change"] == kind}
        for kind in ("changed", "added", "removed")
    }
    shared = {pair.name: pair.a.name for pair in diff.column_pairs if pair.is_shared and pair.a}
    shown = {pair.a.name: pair.name for pair in diff.column_pairs if pair.a}
    result = {number: {new: row[old] for new, old in shared.items()} for number, row in a.items()}
    expected = {number: {name: row[name] for name in shared} for number, row in b.items()}
    for number, row in kinds["removed"].items():
        assert a[number] == {name: row[shown[name]] for name in a[number]}
        del result[number]
    for (number, row), cell in zip(kinds["changed"].items(), cells, strict=True):
        old = result[number]
        assert row["_changed"] == [n for n in shared if old[n] != expected[number][n]]
        for name in row["_changed"]:
            assert cell[name] == {"old": old[name], "new": b[number][name]}
            old[name] = cell[name]["new"]
    for number, row in kinds["added"].items():
        assert b[number] == {name: row[name] for name in b[number]}
        result[number] = {name: row[name] for name in shared}
    assert result == expected
    _check_numbers(diff, {kind: len(found) for kind, found in kinds.items()})
    if diff.identity != "row address":
        assert kinds["added"].keys() == b.keys() - a.keys()
        assert kinds["removed"].keys() == a.keys() - b.keys()


def _check_numbers(diff: Diff, found: dict[str, int]) -> None:
    summary, counts = diff.summary(), diff.counts
    assert {
        "added": summary.added,
        "removed": summary.removed,
        "changed": summary.changed,
    } == found
    assert summary.added <= counts.rows_in
    assert summary.removed <= counts.rows_out
    if counts.rows_exact:
        assert (summary.added, summary.removed) == (counts.rows_in, counts.rows_out)


class History:
    """A dataset in memory, and what plain Python thinks that its versions hold."""

    def __init__(self, seed: int, *, stable: bool) -> None:
        self.random = random.Random(seed)
        self.uri = f"memory://diffs/{next(_NUMBERS)}.lance"
        self.next_id = 0
        self.rows: Rows = {}
        self.versions: dict[int, Rows] = {}
        table = self.new_rows(12)
        self.ds = lance_nb.write_dataset(
            table, self.uri, enable_stable_row_ids=stable, max_rows_per_file=5
        )
        self.note()

    def note(self) -> None:
        """Remember what the version holds."""
        self.versions[self.ds.version] = {key: dict(row) for key, row in self.rows.items()}

    def new_rows(self, number: int) -> pa.Table:
        """Make rows with the columns that there are now."""
        names = list(next(iter(self.rows.values()))) if self.rows else ["id", "v", "t"]
        made = []
        for _ in range(number):
            row = {"id": self.next_id, "v": self.value(), "t": self.text()}
            row |= {name: self.random.randint(0, 3) for name in names if name not in row}
            made.append({name: row[name] for name in names})
            self.next_id += 1
        self.rows |= {row["id"]: row for row in made}
        types = {"id": pa.int64(), "v": pa.float64(), "t": pa.list_(pa.string())}
        fields = [pa.field(name, types.get(name, pa.int64())) for name in names]
        return pa.Table.from_pylist(made, schema=pa.schema(fields))

    def value(self) -> float | None:
        return self.random.choice([None, 0.5, 1.0, 2.0])

    def text(self) -> list[str | None] | None:
        return self.random.choice([None, [], ["a"], ["a", None]])

    def step(self) -> None:
        """Do something, in the dataset and in the model."""
        verbs = [self.append, self.delete, self.update, self.add_column, self.compact,
                 self.restore, self.drop_column]  # fmt: skip
        self.random.choice(verbs)()
        self.ds = lance_nb.dataset(self.uri)
        self.note()

    def append(self) -> None:
        table = self.new_rows(self.random.randint(1, 6))
        lance_nb.write_dataset(table, self.uri, mode="append", max_rows_per_file=4)

    def some(self) -> tuple[int, int]:
        return self.random.randint(2, 4), self.random.randint(0, 3)

    def delete(self) -> None:
        every, rest = self.some()
        gone = {key for key in self.rows if key % every == rest}
        if len(gone) < len(self.rows):
            self.ds.delete(f"id % {every} = {rest}")
            self.rows = {key: row for key, row in self.rows.items() if key not in gone}

    def update(self) -> None:
        every, rest = self.some()
        value = self.random.choice([0.5, 1.0, 2.0])
        self.ds.update({"v": str(value)}, where=f"id % {every} = {rest}")
        for key, row in self.rows.items():
            if key % every == rest:
                row["v"] = value

    def add_column(self) -> None:
        name = f"c{self.ds.version}"
        self.ds.add_columns({name: "id % 3"})
        for key, row in self.rows.items():
            row[name] = key % 3

    def drop_column(self) -> None:
        names = [name for name in self.ds.schema.names if name.startswith("c")]
        if names:
            self.ds.drop_columns([names[0]])
            for row in self.rows.values():
                del row[names[0]]

    def compact(self) -> None:
        self.ds.optimize.compact_files()
        for version in range(max(self.versions) + 1, lance_nb.dataset(self.uri).version):
            self.versions[version] = {key: dict(row) for key, row in self.rows.items()}

    def restore(self) -> None:
        version = self.random.choice(list(self.versions))
        self.ds.checkout_version(version).restore()
        self.rows = {key: dict(row) for key, row in self.versions[version].items()}

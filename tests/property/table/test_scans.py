"""Random scans of random datasets: rows, order, columns and batches are those of plain Python."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb import ColumnOrdering
from lance_nb.table import filtered_scan

Row = dict[str, Any]
_NUMBERS = count()
POINT = pa.struct([("x", pa.int32()), ("in", pa.struct([("w", pa.string())]))])
SCHEMA = pa.schema(
    {
        "id": pa.int64(), "n": pa.int32(), "f": pa.float64(), "s": pa.string(), "b": pa.bool_(),
        "l": pa.list_(pa.int16()), "p": POINT, "v": pa.list_(pa.float32(), 2), "d": pa.date32(),
    }
)  # fmt: skip
# A filter as SQL, and what it means for a row; None counts as no.
FILTERS: list[tuple[str, Callable[[Row], Any]]] = [
    ("n > 1", lambda row: row["n"] is not None and row["n"] > 1),
    ("n IS NULL OR b", lambda row: row["n"] is None or row["b"]),
    ("s = 'a' AND id % 3 = 1", lambda row: row["s"] == "a" and row["id"] % 3 == 1),
    ("p.x = 2", lambda row: row["p"] is not None and row["p"]["x"] == 2),
    ("p.`in`.w IS NULL", lambda row: not (row["p"] and row["p"]["in"] and row["p"]["in"]["w"])),
    ("array_has(l, 3)", lambda row: row["l"] is not None and 3 in row["l"]),
    ("id >= 0", lambda _: True),
    ("id < 0", lambda _: False),
    ("id = 7", lambda row: row["id"] == 7),
    ("id NOT IN (1, 4, 8, 9, 10)", lambda row: row["id"] not in (1, 4, 8, 9, 10)),
]
COLUMNS: list[tuple[Any, Callable[[Row], Row]]] = [
    (None, lambda row: {name: row[name] for name in SCHEMA.names}),
    (["s"], lambda row: {"s": row["s"]}),
    (["l", "id", "p"], lambda row: {name: row[name] for name in ("l", "id", "p")}),
    (["p.x", "v"], lambda row: {"p.x": row["p"] and row["p"]["x"], "v": row["v"]}),
    (["p.in.w", "id"], lambda row: {"p.in.w": _deep(row), "id": row["id"]}),
    ({"twice": "id * 2", "s": "s"}, lambda row: {"twice": row["id"] * 2, "s": row["s"]}),
    ({"one": "1", "x": "p.x"}, lambda row: {"one": 1, "x": row["p"] and row["p"]["x"]}),
    (["id", "_rowaddr"], lambda row: {"id": row["id"], "_rowaddr": row["_rowaddr"]}),
    (["_rowid", "n"], lambda row: {"_rowid": row["_rowid"], "n": row["n"]}),
    (["_rowoffset", "b"], lambda row: {"_rowoffset": row["_rowoffset"], "b": row["b"]}),
]
ORDERS: list[list[tuple[str, bool, bool]]] = [
    [("n", True, False)], [("n", False, True), ("id", False, False)], [("f", True, True)],
    [("s", False, False)], [("b", True, False), ("n", True, True)], [("d", False, False)],
    [("f", False, False), ("s", True, True)],
]  # fmt: skip


def _deep(row: Row) -> Any:
    return row["p"] and row["p"]["in"] and row["p"]["in"]["w"]


class Stored:
    """A dataset in memory, and the rows that it must hold."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.stable = seed % 2 == 0
        self.version = ["2.0", "2.1", "2.2"][seed % 3]
        self.per_file = self.random.randint(3, 9)
        rows = [self._row(number) for number in range(self.random.randint(12, 30))]
        table = pa.Table.from_pylist(rows, schema=SCHEMA)
        self.ds = lance_nb.write_dataset(
            table, f"memory://scans/{next(_NUMBERS)}.lance", max_rows_per_file=self.per_file,
            enable_stable_row_ids=self.stable, data_storage_version=self.version,
        )  # fmt: skip
        self.physical = rows
        self.deleted = set(self.random.sample(range(len(rows)), self.random.randint(1, 6)))
        self.ds.delete(f"id IN ({', '.join(map(str, self.deleted))})")
        self.ds = lance_nb.dataset(self.ds.uri)
        for number, row in enumerate(rows):
            fragment, offset = divmod(number, self.per_file)
            row["_rowaddr"] = (fragment << 32) + offset
            row["_rowid"] = number if self.stable else row["_rowaddr"]
        self.live = [row for row in rows if row["id"] not in self.deleted]
        for place, row in enumerate(self.live):
            row["_rowoffset"] = place

    def _row(self, number: int) -> Row:
        pick = self.random.choice
        nulls = [None] * (self.version != "2.0")  # which has no null structs
        point = {"x": pick([None, 1, 2]), "in": pick([*nulls, {"w": None}, {"w": "q"}])}
        return {
            "id": number, "n": pick([None, -1, 0, 1, 2, 5]), "s": pick([None, "", "a", "bb"]),
            "f": pick([None, -1.5, 0.0, 2.5, math.inf, math.nan]), "b": pick([None, True, False]),
            "l": pick([None, [], [3], [1, None, 3]]), "p": pick([*nulls, point, point]),
            "v": pick([None, [0.0, 1.0], [2.0, 2.0], [1.0, -1.0]]), "d": pick([None, 5, 18000]),
        }  # fmt: skip


def _ordered(rows: list[Row], keys: list[tuple[str, bool, bool]]) -> list[Row]:
    for name, ascending, nulls_first in reversed(keys):
        known = [row for row in rows if row[name] is not None]
        nulls = [row for row in rows if row[name] is None]
        known.sort(key=lambda row: _rank(row[name]), reverse=not ascending)
        rows = nulls + known if nulls_first else known + nulls
    return rows


def _rank(value: Any) -> Any:
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0 if is_nan else value)


def _plain(table: pa.Table) -> list[Row]:
    """Return rows whose NaN are equal to one another; dates as days."""
    days = [
        table[name].cast(pa.int32()) if pa.types.is_date(table[name].type) else table[name]
        for name in table.column_names
    ]
    found = pa.table(days, names=table.column_names).to_pylist() if days else []
    return [_comparable(row) for row in found]


def _comparable(row: Row) -> Row:
    return {
        name: "NaN" if isinstance(value, float) and math.isnan(value) else value
        for name, value in row.items()
    }


class Asked:
    """The arguments of a scan, and the rows that they mean."""

    def __init__(self, stored: Stored) -> None:
        pick = stored.random.choice
        self.arguments: dict[str, Any] = {}
        rows = stored.live
        if stored.random.random() < 0.3:
            fragments = [one for one in stored.ds.get_fragments() if stored.random.random() < 0.6]
            self.arguments["fragments"] = fragments
            chosen = {one.fragment_id for one in fragments}
            rows = [row for row in rows if row["_rowaddr"] >> 32 in chosen]
        if stored.random.random() < 0.6:
            self.arguments["filter"], passes = pick(FILTERS)
            rows = [row for row in rows if passes(row)]
        self.count_arguments = dict(self.arguments)
        self.count = len(rows)
        if stored.random.random() < 0.4:
            keys = pick(ORDERS)
            self.arguments["order_by"] = [ColumnOrdering(*key) for key in keys]
            rows = _ordered(rows, keys)
        if stored.random.random() < 0.4:
            offset = self.arguments["offset"] = stored.random.randint(0, 12)
            rows = rows[offset:]
        if stored.random.random() < 0.4:
            limit = self.arguments["limit"] = stored.random.randint(0, 12)
            rows = rows[:limit]
        self.arguments["columns"], shown = pick(COLUMNS)
        more = []
        for argument, name in (("with_row_id", "_rowid"), ("with_row_address", "_rowaddr")):
            if stored.random.random() < 0.3 and name not in (self.arguments["columns"] or ()):
                self.arguments[argument] = True
                more.append(name)
        self.rows = [_comparable(shown(row) | {one: row[one] for one in more}) for row in rows]


@pytest.mark.parametrize("seed", range(9))
def test_a_scan_returns_the_rows_that_were_asked_for(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Stored(seed)
    for number in range(16):
        asked = Asked(stored)
        if number % 3 == 0:
            size = stored.random.randint(1, 4)
            monkeypatch.setattr(filtered_scan, "window_rows", lambda *_, size=size: size)
        scanner = stored.ds.scanner(**asked.arguments)
        table = scanner.to_table()
        assert _plain(table) == asked.rows, asked.arguments
        assert table.schema == scanner.projected_schema
        assert stored.ds.scanner(**asked.count_arguments).count_rows() == asked.count
        size = stored.random.randint(1, 7)
        strict = stored.random.random() < 0.5
        scanner = stored.ds.scanner(**asked.arguments, batch_size=size, strict_batch_size=strict)
        batches = list(scanner.to_batches())
        assert _plain(pa.Table.from_batches(batches, scanner.projected_schema)) == asked.rows
        assert all(0 < one.num_rows <= size for one in batches)
        if strict:
            assert all(one.num_rows == size for one in batches[:-1])
        monkeypatch.undo()


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_taken_by_position_and_by_id_in_the_order_asked_for(seed: int) -> None:
    stored = Stored(seed)
    flat = [one for one in COLUMNS if not {"p.x", "p.in.w"} & set(one[0] or ())]
    for _ in range(8):
        columns, shown = stored.random.choice(flat)
        some = range(stored.random.randint(0, 9))
        wanted = [stored.random.randrange(len(stored.live)) for _ in some]
        expected = [_comparable(shown(stored.live[place])) for place in wanted]
        assert _plain(stored.ds.take(wanted, columns)) == expected
        ids = [stored.live[place]["_rowid"] for place in wanted]
        gone = [row["_rowid"] for row in stored.physical if row["id"] in stored.deleted]
        if not stored.stable:  # an address names its fragment, which must be there
            there = {row["_rowaddr"] >> 32 for row in stored.live}
            gone = [one for one in gone if one >> 32 in there]
        assert _plain(stored.ds.take_rows([*gone, *ids], columns)) == expected
    for wrong in (-1, len(stored.live), 10**12):
        with pytest.raises(ValueError, match="does not exist"):
            stored.ds.take([0, wrong])


@pytest.mark.parametrize("seed", range(6))
def test_deleted_rows_are_returned_without_their_row_id_where_they_are_asked_for(seed: int) -> None:
    stored = Stored(seed)
    there = {row["_rowaddr"] >> 32 for row in stored.live}  # else the fragment is gone
    physical = [row for row in stored.physical if row["_rowaddr"] >> 32 in there]
    for text, passes in [("id >= 0", lambda _: True), *FILTERS[:5]]:
        expected = []
        for row in physical:
            if passes(row):
                is_gone = row["id"] in stored.deleted
                expected.append({"id": row["id"], "_rowid": None if is_gone else row["_rowid"]})
        scanner = stored.ds.scanner(["id"], text, include_deleted_rows=True, with_row_id=True)
        assert scanner.to_table().to_pylist() == expected
        part = stored.ds.scanner(
            ["id"], text, include_deleted_rows=True, with_row_id=True, offset=2, limit=5
        )
        assert part.to_table().to_pylist() == expected[2:7]


# Filters of the rows that a search has found see their distance.
NEAR: list[tuple[str, Callable[[Row], Any]]] = [
    ("_distance < 3", lambda row: row["_distance"] < 3),
    ("n > 0 AND _distance > 1", lambda row: row["n"] and row["n"] > 0 and row["_distance"] > 1),
]
METRICS: dict[str, Callable[[Any, Any], Any]] = {
    "l2": lambda one, other: ((one - other) ** 2).sum(),
    "dot": lambda one, other: 1 - one @ other,
    "cosine": lambda one, other: 1 - one @ other / np.sqrt((one @ one) * (other @ other)),
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_rows_are_those_of_a_loop_over_all(seed: int, metric: str) -> None:
    stored = Stored(seed)
    for _ in range(6):
        query = np.array([stored.random.choice([0.5, 1, -2]), stored.random.choice([0.25, 3])])
        k = stored.random.randint(1, 20)
        prefilter = stored.random.random() < 0.5
        text, passes = stored.random.choice(FILTERS if prefilter else FILTERS + NEAR)
        low, high = stored.random.choice([(None, None), (0.5, None), (None, 4.0), (0.25, 6.0)])
        near = []
        for row in stored.live:
            if row["v"] is None or (prefilter and not passes(row)):
                continue
            distance = METRICS[metric](np.array(row["v"], np.float32), query.astype(np.float32))
            if (low is None or distance >= low) and (high is None or distance < high):
                found = {**row, "_distance": float(distance)}
                near.append((float(distance), row["id"], bool(passes(found))))
        near.sort(key=lambda one: one[0])  # stable: the order of the scan decides among equals
        expected = [one for one in near[:k] if one[2]]
        nearest = {"column": "v", "q": query, "k": k, "metric": metric}
        if (low, high) != (None, None):
            nearest["distance_range"] = (low, high)
        scanner = stored.ds.scanner(["id"], text, nearest=nearest, prefilter=prefilter)
        table = scanner.to_table()
        assert table["id"].to_pylist() == [one[1] for one in expected]
        assert table["_distance"].to_pylist() == pytest.approx([one[0] for one in expected])
        assert scanner.count_rows() == len(expected)
        page = stored.ds.scanner(["id"], text, nearest=nearest, prefilter=prefilter,
                                 offset=1, limit=2).to_table()  # fmt: skip
        assert page["id"].to_pylist() == [one[1] for one in expected[1:3]]

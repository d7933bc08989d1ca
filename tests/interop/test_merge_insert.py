"""The same merge by pylance and by us on twin datasets: equal rows, counts, and kinds of errors.

Afterwards pylance finds ours valid and reads the same rows, and indices that it built answer right.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

ROWS = pa.table(
    {
        "a": pa.array(range(200), pa.int64()),
        "b": [None if n % 7 == 0 else f"name {n}" for n in range(200)],
        "c": [n * 1.5 for n in range(200)],
        "m": [{"k": n, "z": None if n % 3 else n} for n in range(200)],
    }
)
SOURCE = pa.table(
    {
        "a": pa.array([150, 3, 500, 77, None, 501], pa.int64()),
        "b": ["x", None, "new", "y", "null key", "new too"],
        "c": [0.5, -1.0, 2.5, None, 4.0, 5.0],
        "m": [{"k": 1, "z": 1}, None, {"k": None, "z": 3}, {"k": 4, "z": 4}, None, None],
    }
)
TWICE = pa.concat_tables([SOURCE, SOURCE.slice(0, 1)])
UPDATE, INSERT = "when_matched_update_all", "when_not_matched_insert_all"
DELETE, FAIL = "when_matched_delete", "when_matched_fail"
GONE = "when_not_matched_by_source_delete"


@dataclass(frozen=True)
class Case:
    """One merge: the key, the source, the calls on the builder."""

    on: Any
    source: pa.Table
    steps: tuple[tuple[Any, ...], ...]
    target: pa.Table


def case(*steps: Any, on: Any = "a", source: pa.Table = SOURCE, target: pa.Table = ROWS) -> Case:
    calls = tuple(step if isinstance(step, tuple) else (step,) for step in steps)
    return Case(on, source, calls, target)


def strict(table: pa.Table) -> pa.Table:
    fields = [one.with_nullable(one.name != "c") for one in table.schema]
    return table.cast(pa.schema(fields))


FILLED = strict(ROWS)
CASES = {
    "upsert": case(UPDATE, INSERT),
    "update": case(UPDATE),
    "insert": case(INSERT),
    "replace": case(UPDATE, INSERT, GONE),
    "replace a part": case(UPDATE, INSERT, (GONE, "c < 100 AND b IS NOT NULL")),
    "delete what is gone": case((GONE, "a > 10")),
    "delete matches": case(DELETE),
    "delete matches by the key alone": case(DELETE, source=SOURCE.select(["a"])),
    "delete matches, insert others": case(DELETE, INSERT),
    "the last matched clause counts": case(UPDATE, DELETE, INSERT),
    "fail": case(FAIL, INSERT),
    "fail without a match": case(FAIL, INSERT, source=SOURCE.slice(4)),
    "nothing to do": case(),
    "empty source": case(UPDATE, INSERT, source=SOURCE.slice(0, 0)),
    "no match": case(UPDATE, source=SOURCE.slice(5)),
    "condition": case((UPDATE, "source.c > 0 AND target.m.z IS NULL"), INSERT),
    "condition on both sides": case((UPDATE, "source.c < target.c"), INSERT),
    "condition by row id": case((UPDATE, "target._rowid = 77"), INSERT),
    "ambiguous condition": case((UPDATE, "c > 1"), INSERT),
    "condition on nothing": case((UPDATE, "source.zz > 1"), INSERT),
    "broken condition": case((UPDATE, "nonsense("), INSERT),
    "filter with a side": case((GONE, "target.c < 1")),
    "filter on nothing": case((GONE, "zz < 1")),
    "duplicates that match": case(UPDATE, INSERT, source=TWICE),
    "duplicates that match, deleted": case(DELETE, source=TWICE),
    "duplicates told apart by a condition": case(
        (UPDATE, "source.b = 'z'"),
        source=pa.concat_tables([SOURCE, SOURCE.slice(0, 1).set_column(1, "b", pa.array(["z"]))]),
    ),
    "duplicates that are new": case(
        UPDATE, INSERT, source=pa.concat_tables([SOURCE.slice(4), SOURCE.slice(4)])
    ),
    "duplicates in the target": case(
        UPDATE, INSERT, target=pa.concat_tables([ROWS.slice(0, 90), ROWS.slice(60, 90)])
    ),
    "two columns": case(UPDATE, INSERT, on=["b", "a"], source=ROWS.slice(40, 5)),
    "a struct as key": case(UPDATE, INSERT, on="m", source=ROWS.slice(190, 10)),
    "another case": case(UPDATE, INSERT, on="A"),
    "no key": case(UPDATE, INSERT, on=None),
    "an empty key": case(UPDATE, INSERT, on=[]),
    "a key that is not there": case(UPDATE, INSERT, on="zz"),
    "a key that the source lacks": case(UPDATE, INSERT, source=SOURCE.select(["b", "c", "m"])),
    "reordered": case(UPDATE, INSERT, source=SOURCE.select(["m", "c", "a", "b"])),
    "some columns": case(UPDATE, INSERT, source=SOURCE.select(["c", "a"])),
    "some columns, nothing inserted": case(UPDATE, source=SOURCE.select(["a", "b"])),
    "some fields of a struct": case(
        UPDATE, INSERT, source=pa.table({"a": [5, 900], "m": [{"z": 1}, {"z": 2}]})
    ),
    "some columns as columns": case(
        UPDATE, ("write_mode", "rewrite_columns"), source=SOURCE.select(["a", "m", "b"])
    ),
    "columns with a condition": case(
        (UPDATE, "target.c > 10"),
        ("write_mode", "rewrite_columns"),
        source=SOURCE.select(["a", "c"]),
    ),
    "columns of all columns": case(UPDATE, ("write_mode", "rewrite_columns")),
    "columns and inserts": case(
        UPDATE, INSERT, ("write_mode", "rewrite_columns"), source=SOURCE.select(["a", "c"])
    ),
    "a mode that is not there": case(UPDATE, ("write_mode", "zz")),
    "a column too many": case(UPDATE, INSERT, source=SOURCE.append_column("z", pa.array(range(6)))),
    "another type": case(
        UPDATE, INSERT, source=SOURCE.set_column(2, "c", pa.array([1.0] * 6, pa.float32()))
    ),
    "another type of key": case(
        UPDATE, INSERT, source=SOURCE.set_column(0, "a", pa.array(range(6), pa.int32()))
    ),
    "null where it must not be": case(UPDATE, INSERT, target=FILLED),
    "a column that must not be null is missing": case(
        UPDATE, INSERT, source=SOURCE.select(["a", "b"]), target=FILLED
    ),
    "it may be missing where nothing is inserted": case(
        UPDATE, source=SOURCE.select(["a", "b"]), target=FILLED
    ),
    "retries of another type": case(UPDATE, ("conflict_retries", "x")),
    "negative retries": case(UPDATE, ("conflict_retries", -1)),
    "a timeout of another type": case(UPDATE, ("retry_timeout", 3)),
}
KINDS = (ValueError, OSError, TypeError, OverflowError)


def rows_of(found: Any, *columns: str) -> Counter[str]:
    return Counter(map(repr, found.to_table([*ROWS.column_names, *columns]).to_pylist()))


def merged(engine: Any, uri: str, one: Case) -> tuple[dict[str, int] | Exception, Any]:
    opened = engine.dataset(uri)
    try:
        builder = opened.merge_insert(one.on)
        for name, *arguments in one.steps:
            builder = getattr(builder, name)(*arguments)
        return builder.execute(one.source), opened
    except Exception as error:  # noqa: BLE001 - compared with the other side's
        return error, opened


@pytest.mark.parametrize("name", CASES)
def test_twins_end_up_equal(name: str, tmp_path: Path) -> None:
    lance = require_pylance()
    one = CASES[name]
    places = [str(tmp_path / f"{side}.lance") for side in ("theirs", "ours")]
    stable = len(name) % 2 == 0
    lance.write_dataset(one.target, places[0], max_rows_per_file=64, enable_stable_row_ids=stable)
    lance.dataset(places[0]).delete("a = 150 OR a = 12")
    shutil.copytree(*places)
    theirs, their_dataset = merged(lance, places[0], one)
    ours, our_dataset = merged(lance_nb, places[1], one)
    if isinstance(theirs, Exception):
        kinds = tuple(kind for kind in KINDS if isinstance(theirs, kind))
        assert isinstance(ours, kinds), (theirs, ours)
        assert our_dataset.version == 2
        return
    assert ours == theirs
    assert our_dataset.version == their_dataset.version == 3
    judged = lance.dataset(places[1])
    judged.validate()
    lineage = ("_row_created_at_version", "_row_last_updated_at_version") if stable else ()
    assert rows_of(our_dataset, *lineage) == rows_of(their_dataset, *lineage)
    assert rows_of(judged, *lineage) == rows_of(their_dataset, *lineage)
    ids = judged.to_table([], with_row_id=True)["_rowid"].to_pylist()
    assert len(set(ids)) == len(ids)


def test_a_merge_that_pylance_plans_wrongly_works(tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(ROWS, uri)
    one = case(DELETE, GONE)
    assert isinstance(merged(lance, uri, one)[0], OSError)
    stats, made = merged(lance_nb, uri, one)
    assert stats == {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 200}
    assert lance.dataset(uri).count_rows() == made.count_rows() == 0


# --- indices --------------------------------------------------------------------------------------


def answers(lance: Any, uri: str) -> None:
    """Compare answers with and without the indices, for values that are there and others."""
    opened = lance.dataset(uri)
    for text in ("a = 3", "a IN (3, 150, 500, 12)", "c = 2.5", "c < 3", "c > 290", "b = 'x'"):
        quick = opened.scanner(filter=text, use_scalar_index=True).to_table()
        plain = opened.scanner(filter=text, use_scalar_index=False).to_table()
        found = lance_nb.dataset(uri).to_table(filter=text)
        tables = (quick, plain, found)
        expected, *others = (Counter(map(repr, one.to_pylist())) for one in tables)
        assert all(one == expected for one in others), text


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("name", ["upsert", "columns", "replace", "update by columns"])
def test_indices_of_pylance_answer_right_afterwards(
    name: str, stable: bool, tmp_path: Path
) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "t.lance")
    made = lance.write_dataset(ROWS, uri, max_rows_per_file=64, enable_stable_row_ids=stable)
    made.create_scalar_index("a", "BTREE")
    made.create_scalar_index("c", "BTREE")
    made.create_scalar_index("b", "BITMAP")
    ours = lance_nb.dataset(uri)
    if name == "update by columns":
        ours.update({"c": "c + 1"}, "a % 2 = 0", mode="columns")
    elif name == "columns":
        merge = ours.merge_insert("a").when_matched_update_all().write_mode("rewrite_columns")
        merge.execute(SOURCE.select(["a", "c"]))
    else:
        steps = CASES[name].steps
        builder = ours.merge_insert("a")
        for step, *arguments in steps:
            getattr(builder, step)(*arguments)
        builder.execute(SOURCE)
    answers(lance, uri)
    if "columns" in name:
        covered = {one["name"]: one["fragment_ids"] for one in lance_nb.dataset(uri).list_indices()}
        touched = {0, 1, 2, 3} if name == "update by columns" else {0, 1, 2}
        assert covered["a_idx"] == covered["b_idx"] == {0, 1, 2, 3}
        assert covered["c_idx"] == {0, 1, 2, 3} - touched
    lance.dataset(uri).optimize.optimize_indices()
    answers(lance, uri)


# --- the same new key, twice ----------------------------------------------------------------------


def keyed(kind: pa.DataType) -> pa.Schema:
    mark = {"lance-schema:unenforced-primary-key": "true"}
    return pa.schema([pa.field("k", kind, False, mark), pa.field("v", pa.int64())])


def one_row(kind: pa.DataType, key: int, value: int) -> pa.Table:
    keys = pa.array([key]).cast(kind)
    return pa.table([keys, pa.array([value])], schema=keyed(kind))


def inserting(opened: Any) -> Any:
    return opened.merge_insert().when_matched_update_all().when_not_matched_insert_all()


KEY_KINDS = [pa.int64(), pa.string(), pa.int16(), pa.float64(), pa.timestamp("us")]


@pytest.mark.parametrize("kind", KEY_KINDS, ids=str)
@pytest.mark.parametrize("order", ["ours, pylance", "pylance, ours", "ours, ours"])
def test_interleaved_inserts_of_one_key_leave_one_row(
    kind: pa.DataType, order: str, tmp_path: Path
) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(one_row(kind, 1, 0), uri)
    engines = [lance if name == "pylance" else lance_nb for name in order.split(", ")]
    handles = [engine.dataset(uri) for engine in engines]  # both at version 1
    for number, handle in enumerate(handles):
        inserting(handle).execute(one_row(kind, 7, number))
    found = lance.dataset(uri).to_table().sort_by("k").to_pydict()
    assert found["v"] == [0, 1]  # the second came later and updated the row of the first


@pytest.mark.parametrize("order", ["ours, pylance", "pylance, ours", "ours, ours"])
def test_different_keys_need_no_second_attempt(order: str, tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "t.lance")
    kind = pa.int64()
    lance.write_dataset(one_row(kind, 1, 0), uri)
    engines = [lance if name == "pylance" else lance_nb for name in order.split(", ")]
    handles = [engine.dataset(uri) for engine in engines]
    for number, handle in enumerate(handles):
        inserting(handle).conflict_retries(0).execute(one_row(kind, 7 + number, number))
    assert lance.dataset(uri).count_rows() == 3


KEYS: dict[str, list[pa.Array]] = {
    "int64": [pa.array([-1, 0, 2**62])],
    "int32": [pa.array([-1, 5, 7], pa.int32())],
    "uint32": [pa.array([2**32 - 1, 5, 7], pa.uint32())],
    "uint64": [pa.array([2**64 - 1, 5, 7], pa.uint64())],
    "texts": [pa.array(["", "ab", "ü" * 40])],
    "large texts": [pa.array(["", "ab", "x" * 99], pa.large_string())],
    "bytes": [pa.array([b"\0", b"ab" * 16, b"c" * 37])],
    "two columns": [pa.array(["a", "b", ""]), pa.array([1, 2, 3], pa.int32())],
    "three columns": [pa.array([1, 2, 3]), pa.array(["a", "", "c"]), pa.array([b"", b"x", b"y"])],
}


@pytest.mark.parametrize("name", KEYS)
def test_filters_of_inserted_keys_are_those_of_pylance(name: str, tmp_path: Path) -> None:
    lance = require_pylance()
    mark = {"lance-schema:unenforced-primary-key": "true"}
    fields = [pa.field(f"k{n}", one.type, False, mark) for n, one in enumerate(KEYS[name])]
    rows = pa.table(KEYS[name], schema=pa.schema(fields))
    filters = []
    for engine, side in ((lance, "theirs"), (lance_nb, "ours")):
        uri = str(tmp_path / side)
        lance.write_dataset(rows.slice(0, 1), uri)
        inserting(engine.dataset(uri)).execute(rows)
        filters.append(lance_nb.dataset(uri).read_transaction(2).operation.inserted_rows)
    assert filters[0] == filters[1]
    assert filters[0].bitmap.strip(b"\0")

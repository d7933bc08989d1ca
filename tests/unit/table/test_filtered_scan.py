from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_nb
from lance_nb.table import filtered_scan
from lance_nb.table.filtered_scan import RowChoice, read_columns, selected_table
from lance_nb.table.predicate import compile_filter
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID, ROW_OFFSET, project
from lance_nb.table.row_selection import count_selected, select_rows
from tests.golden.copies import expected
from tests.golden.opening import WatchedStore, snapshot_of

VERSION = 9  # four fragments, deletions of both kinds


def choice_of(snapshot, text, **more):
    schema = project(snapshot.manifest.schema, None).schema
    return RowChoice(None if text is None else compile_filter(text, schema), **more)


def rows_of(snapshot, text, columns=None, row_columns=(), **window):
    projection = project(snapshot.manifest.schema, columns, row_columns)
    choice = choice_of(snapshot, text)
    found = select_rows(snapshot, choice, projection, **window)
    tables = [selected_table(snapshot, projection, one) for one in found]
    return pa.concat_tables(tables) if tables else projection.schema.empty_table()


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("id > 30", lambda table: pc.greater(table["id"], 30)),
        ("amount IS NULL", lambda table: pc.is_null(table["amount"])),
        ("id % 7 = 3", lambda table: pa.array(table["id"].to_numpy() % 7 == 3)),
        ("point.x > 3", lambda table: pc.greater(pc.struct_field(table["point"], "x"), 3)),
        ("id >= 0", lambda table: pc.greater_equal(table["id"], 0)),
        ("id < 0", lambda table: pc.less(table["id"], 0)),
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.02, 2.0], ids=["whole range", "as shipped", "row by row"])
def test_the_rows_that_pass_come_whole_and_in_order(at, monkeypatch, text, mask, share):
    monkeypatch.setattr(filtered_scan, "DENSE_SHARE", share)
    whole = expected("history", VERSION)
    wanted = whole.filter(mask(whole))

    assert rows_of(at(VERSION), text, whole.column_names).equals(wanted)
    assert count_selected(at(VERSION), choice_of(at(VERSION), text)) == wanted.num_rows
    part = rows_of(at(VERSION), text, whole.column_names, limit=9, offset=4)
    assert part.equals(wanted.slice(4, 9))


@pytest.mark.parametrize("rows", [1, 3, 50])
def test_small_windows_change_nothing(at, monkeypatch, rows):
    monkeypatch.setattr(filtered_scan, "window_rows", lambda *_: rows)
    whole = rows_of(at(VERSION), "id % 3 = 1", ["id", "point.x"], [ROW_ID, ROW_OFFSET])
    monkeypatch.undo()

    assert whole.equals(rows_of(at(VERSION), "id % 3 = 1", ["id", "point.x"], [ROW_ID, ROW_OFFSET]))


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_offset_and_limit_reach_across_windows_and_fragments(at, monkeypatch, rows):
    monkeypatch.setattr(filtered_scan, "window_rows", lambda *_: rows)
    text = "id % 3 = 1 AND id < 60"
    whole = rows_of(at(VERSION), text, ["id"])

    assert whole.num_rows > 3 * rows
    for offset in range(whole.num_rows + 2):
        found = rows_of(at(VERSION), text, ["id"], limit=2 * rows, offset=offset)
        assert found.equals(whole.slice(offset, 2 * rows)), offset


def test_row_columns_are_those_of_the_surviving_rows(at):
    snapshot = at(VERSION)
    names = [ROW_ID, ROW_ADDRESS, ROW_OFFSET]
    whole = rows_of(snapshot, None, ["id"], names)

    found = rows_of(snapshot, "id % 5 = 2", ["id"], names)

    assert found.equals(whole.filter(pa.array(whole["id"].to_numpy() % 5 == 2)))
    assert whole[ROW_OFFSET].to_pylist() == list(range(whole.num_rows))


@pytest.mark.parametrize("name", [ROW_ID, ROW_ADDRESS, ROW_OFFSET])
def test_row_columns_can_be_filtered_by(at, name):
    whole = rows_of(at(VERSION), None, ["id"], [name])
    third = whole[name][len(whole) // 3].as_py()

    found = rows_of(at(VERSION), f"{name} > {third}", ["id"], [name])

    assert found.equals(whole.filter(pc.greater(whole[name], third)))


def test_stable_row_ids_can_be_filtered_by(stores):
    snapshot = snapshot_of(stores["stable_ids"])
    whole = rows_of(snapshot, None, ["id"], [ROW_ID])
    wanted = whole[ROW_ID][7].as_py()

    assert rows_of(snapshot, f"_rowid = {wanted}", ["id"], [ROW_ID]).equals(whole.slice(7, 1))


def test_deleted_rows_come_with_a_null_row_id(at):
    snapshot = at(VERSION)
    projection = project(snapshot.manifest.schema, ["id"], [ROW_ID, ROW_ADDRESS])
    choice = choice_of(snapshot, None, include_deleted=True)

    found = pa.concat_tables(
        selected_table(snapshot, projection, one)
        for one in select_rows(snapshot, choice, projection)
    )

    assert found.num_rows == sum(one.physical_rows for one in snapshot.manifest.fragments)
    live = found.filter(pc.is_valid(found[ROW_ID]))
    assert live["id"].equals(expected("history", VERSION)["id"])
    assert found[ROW_ADDRESS].null_count == found.num_rows - live.num_rows


@pytest.fixture
def decoded(monkeypatch):
    """What is decoded: (column, rows) of every read."""
    found = []
    read = filtered_scan.read_rows

    def spied(snapshot, fragment, columns, rows):
        found.extend((column.field.name, rows.num_rows) for column in columns)
        return read(snapshot, fragment, columns, rows)

    monkeypatch.setattr(filtered_scan, "read_rows", spied)
    return found


def test_columns_of_rows_that_do_not_pass_are_not_decoded(stores, decoded):
    snapshot = snapshot_of(stores["types_2_2"])

    rows_of(snapshot, "id < 0", ["id", "string", "list"])
    assert decoded == [("id", 24)]
    decoded.clear()
    rows_of(snapshot, "id = 3 OR id = 4", ["id", "string"])
    assert decoded == [("id", 24), ("string", 2)]


def test_rows_far_apart_are_decoded_one_by_one(stores, decoded, monkeypatch):
    monkeypatch.setattr(filtered_scan, "DENSE_SHARE", 0.5)

    rows_of(snapshot_of(stores["types_2_2"]), "id = 3 OR id = 20", ["string"])

    assert decoded == [("id", 24), ("string", 2)]


def test_a_limit_ends_the_scan(stores):
    store = WatchedStore(stores["history"], remote=True)
    snapshot = snapshot_of(store, VERSION)
    store.forget()

    assert rows_of(snapshot, "id >= 0", ["id"], limit=2).num_rows == 2
    assert len([path for path in store.reads if path.startswith("data/")]) == 1


def test_counting_decodes_the_columns_of_the_filter_alone(stores, decoded):
    snapshot = snapshot_of(stores["types_2_2"])

    assert count_selected(snapshot, choice_of(snapshot, "id > 3")) == 20
    assert decoded == [("id", 24)]


def test_parts_of_a_selection_keep_its_columns(at):
    snapshot = at(VERSION)
    projection = project(snapshot.manifest.schema, ["id"])
    found = next(iter(select_rows(snapshot, choice_of(snapshot, "id > 3"), projection)))

    part = found.part(2, 5)

    assert part.num_rows == 3
    np.testing.assert_array_equal(part.physical, found.physical[2:5])
    assert [values.to_pylist() for values in part.decoded.values()] == [
        values.to_pylist()[2:5] for values in found.decoded.values()
    ]


def test_windows_before_the_offset_give_no_empty_parts(at):
    snapshot = at(VERSION)
    projection = project(snapshot.manifest.schema, ["id"])
    choice = choice_of(snapshot, None)
    sizes = [one.num_rows for one in select_rows(snapshot, choice, projection)]

    later = select_rows(snapshot, choice, projection, offset=sum(sizes[:2]))

    assert [one.num_rows for one in later] == sizes[2:]


def test_columns_of_no_rows_are_empty_and_of_their_type(at):
    snapshot = at(VERSION)
    projection = project(snapshot.manifest.schema, ["id", "point"])
    found = next(iter(select_rows(snapshot, choice_of(snapshot, None), projection)))

    columns = read_columns(snapshot, projection.columns, found.part(0, 0))

    assert [len(one) for one in columns] == [0, 0]
    assert [one.type for one in columns] == projection.schema.types


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """A fragment of 60,000 rows, every 50th deleted, and one of 9; every other row passes."""
    path = str(tmp_path_factory.mktemp("limit") / "d.lance")
    numbers = np.arange(60_000)
    lance_nb.write_dataset(pa.table({"x": numbers, "y": numbers % 2}), path)
    dataset = lance_nb.dataset(path)
    dataset.delete("x % 50 = 1")
    lance_nb.write_dataset(pa.table({"x": numbers[:9], "y": numbers[:9] % 2}), path, mode="append")
    return lance_nb.dataset(path)


@pytest.mark.parametrize(
    "text", ["y = 1", "x > 29000 AND y = 1", "x = 59999", "x < 0", "y IN (0, 1)"]
)
@pytest.mark.parametrize(
    ("limit", "offset"), [(1, 0), (3, 2), (4000, 3000), (9000, 20_000), (28_700, 100), (99_999, 7)]
)
def test_a_limit_gives_the_first_rows_of_all(halves, text, limit, offset):
    every = halves.to_table(filter=text, with_row_address=True)
    found = halves.to_table(filter=text, with_row_address=True, limit=limit, offset=offset)
    assert found.equals(every.slice(offset, limit))
    address = halves.to_table(
        columns=[], filter=text, with_row_address=True, limit=limit, offset=offset
    )
    assert address["_rowaddr"].equals(found["_rowaddr"])


def test_a_limit_decodes_few_rows_where_few_are_needed(halves, monkeypatch):
    decoded = []
    read = filtered_scan.read_rows

    def counted(snapshot, fragment, columns, rows):
        decoded.append(rows.num_rows)
        return read(snapshot, fragment, columns, rows)

    monkeypatch.setattr(filtered_scan, "read_rows", counted)
    assert halves.to_table(filter="y = 1", limit=10).num_rows == 10
    assert sum(decoded) < 9000
    decoded.clear()
    assert halves.to_table(filter="x = 59998", limit=1).num_rows == 1
    assert len(decoded) < 6  # windows grow

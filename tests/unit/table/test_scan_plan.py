"""Plans of scans: options, plain scans, those that choose or order rows, batches, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.dataset.functions import write_dataset
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, PredicateError
from lance_nb.table.scan_plan import ScanOptions, plan_scan, strict_batches
from tests.golden.copies import expected

VERSION = 9


def batches(*sizes):
    rows = iter(range(1000))
    for size in sizes:
        yield pa.record_batch({"n": pa.array([next(rows) for _ in range(size)], pa.int64())})


@pytest.mark.parametrize("sizes", [(), (3,), (10, 10), (1,) * 25, (25,), (7, 0, 8, 40), (9, 1, 1)])
def test_strict_batches_are_full_but_for_the_last(sizes):
    found = list(strict_batches(batches(*sizes), 10))

    assert [one.num_rows for one in found[:-1]] == [10] * max(len(found) - 1, 0)
    numbers = [n for one in found for n in one["n"].to_pylist()]
    assert numbers == list(range(sum(sizes)))


@pytest.mark.parametrize(
    "options",
    [
        ScanOptions(), ScanOptions(["id"]), ScanOptions(filter="id > 5"), ScanOptions([]),
        ScanOptions({"a": "id + 1"}, limit=5), ScanOptions(["id"], order_by=["id"], limit=9),
        ScanOptions(["id"], "id > 5", offset=3), ScanOptions([], "id > 5"),
    ],
    ids=str,
)  # fmt: skip
def test_the_table_and_the_batches_hold_the_same_rows(at, options):
    plan = plan_scan(at(VERSION), options)
    table = plan.table()

    assert table.schema.equals(plan.schema)
    assert sum(batch.num_rows for batch in plan.batches()) == table.num_rows
    if table.num_columns:
        assert pa.Table.from_batches(plan.batches(), table.schema).equals(table)


def test_an_order_by_nothing_is_a_plain_scan(at):
    plain, ordered = (plan_scan(at(VERSION), ScanOptions(["id"], limit=3, order_by=order))
                      for order in (None, []))  # fmt: skip

    assert ordered.shape is None
    assert ordered.schema.equals(plain.schema, check_metadata=True)
    assert ordered.table().equals(plain.table())
    assert plan_scan(at(VERSION), ScanOptions({"a": "id"})).shape is not None


def test_strict_batches_of_a_plain_scan_are_full_but_for_the_last(at):
    options = ScanOptions(["id"], batch_size=4, strict_batch_size=True)
    plan = plan_scan(at(VERSION), options)
    *full, last = (batch.num_rows for batch in plan.batches())

    assert plan.shape is None
    assert set(full) == {4}
    assert 0 < last <= 4
    assert sum(full) + last == plan.table().num_rows


def test_explain_names_the_columns_of_a_plain_scan(at):
    lines = plan_scan(at(VERSION), ScanOptions(["id"], with_row_id=True)).explain().splitlines()

    assert lines[1:] == ["  decoded: id, _rowid", "  result: id, _rowid"]


def test_counting_needs_no_limit(at):
    assert plan_scan(at(VERSION), ScanOptions()).count() == expected("history", VERSION).num_rows
    with pytest.raises(InvalidInputError):
        plan_scan(at(VERSION), ScanOptions(limit=3)).count()


@pytest.mark.parametrize(
    "options",
    [
        ScanOptions(limit=-1), ScanOptions(offset=-1), ScanOptions(batch_size=0),
        ScanOptions(filter=5), ScanOptions(filter="nope = 1"), ScanOptions(filter="id"),
        ScanOptions(include_deleted_rows=True), ScanOptions(batch_size=1 << 32),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_wrong_is_refused_before_anything_is_read(at, options):
    with pytest.raises((InvalidInputError, PredicateError)):
        plan_scan(at(VERSION), options)


def test_a_plan_says_what_is_decoded_when(at):
    options = ScanOptions(["id", "amount"], "point.x > 1", 5, order_by=["id"])
    lines = plan_scan(at(VERSION), options).explain().splitlines()

    assert "  filter: point.x > 1" in lines
    assert "  decoded first, for every row: `point`.`x`, id" in lines
    assert "  decoded for the rows that are left: amount" in lines
    assert "  offset 0, limit 5" in lines


@pytest.mark.parametrize(
    "options",
    [
        ScanOptions(filter="id > 1"), ScanOptions(nearest={}), ScanOptions(order_by=["id"]),
        ScanOptions(include_deleted_rows=True), ScanOptions({"a": "id"}),
    ],
    ids=str,
)  # fmt: skip
def test_whatever_needs_more_than_stored_columns_in_order_is_not_plain(options):
    assert not options.is_plain


def test_limits_and_row_columns_stay_plain():
    assert ScanOptions(["a"], limit=3, offset=2, with_row_id=True, batch_size=7).is_plain


def test_row_columns_come_in_the_order_of_pylance():
    assert ScanOptions(with_row_id=True, with_row_address=True).row_columns == [
        "_rowid",
        "_rowaddr",
    ]
    assert ScanOptions().row_columns == []


def test_a_batch_has_at_least_one_row():
    with pytest.raises(InvalidInputError, match="batch_size must be positive, got 0"):
        ScanOptions(batch_size=0).check_batch_size()
    ScanOptions(batch_size=1).check_batch_size()


PLAIN = [
    ScanOptions(), ScanOptions(["id"]), ScanOptions([]), ScanOptions("id"), ScanOptions(limit=0),
    ScanOptions(["id"], limit=4, offset=3), ScanOptions(["id"], with_row_id=True),
    ScanOptions(["_rowaddr", "id"], with_row_address=True, with_row_id=True),
    ScanOptions(["id"], batch_size=2), ScanOptions(offset=10_000),
]  # fmt: skip


@pytest.mark.parametrize("options", PLAIN, ids=str)
def test_a_plain_scan_returns_what_a_filter_that_all_rows_pass_returns(at, options):
    plain = plan_scan(at(VERSION), options)
    full = plan_scan(at(VERSION), replace(options, filter="true"))

    assert options.is_plain
    assert plain.shape is None
    assert full.shape is not None
    assert plain.schema.equals(full.schema, check_metadata=True)
    assert plain.table().equals(full.table())
    assert [one.num_rows for one in plain.batches()] == [one.num_rows for one in full.batches()]


def test_only_the_wanted_fragments_are_read(at):
    fragments = tuple(at(VERSION).manifest.fragments)[1:]
    table = plan_scan(at(VERSION), ScanOptions(fragments=fragments)).table()

    assert 0 < table.num_rows == sum(one.num_rows for one in fragments)
    whole = expected("history", VERSION)
    assert table.equals(whole.slice(whole.num_rows - table.num_rows))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (ScanOptions(limit=-1), InvalidInputError),
        (ScanOptions(offset=-1), InvalidInputError),
        (ScanOptions(batch_size=0), InvalidInputError),
        (ScanOptions(batch_size=1 << 32), InvalidInputError),
        (ScanOptions(["id", "id"]), InvalidInputError),
        (ScanOptions(["nope"]), ColumnNotFoundError),
    ],
    ids=str,
)
def test_bad_arguments_are_refused_alike(at, options, error):
    with pytest.raises(error) as plain:
        plan_scan(at(VERSION), options)
    with pytest.raises(error) as full:
        plan_scan(at(VERSION), replace(options, filter="true"))
    assert str(plain.value) == str(full.value)


@pytest.mark.parametrize("values", ["constant", "different"])
@pytest.mark.parametrize(("limit", "offset"), [(None, 5), (7, 5), (7, None), (0, 3), (9, 99)])
def test_limit_and_offset_of_many_tiny_fragments(values, limit, offset):
    """Fragments of a few rows are read in one piece where a scan wants all rows, and only there."""
    rows = [[at, at] if values == "constant" else [at, at + 50] for at in range(20)]
    made = write_dataset(
        pa.table({"id": np.concatenate(rows)}), "memory://tiny", mode="overwrite",
        max_rows_per_file=2,
    )  # fmt: skip
    options = ScanOptions(limit=limit, offset=offset)
    snapshot = made.opened[1]

    assert len(snapshot.manifest.fragments) == 20
    whole = plan_scan(snapshot, ScanOptions()).table()["id"].to_pylist()
    assert whole == [number for pair in rows for number in pair]
    start = offset or 0
    stop = None if limit is None else start + limit
    for plan in (options, replace(options, filter="true")):
        assert plan_scan(snapshot, plan).table()["id"].to_pylist() == whole[start:stop]


def test_wanted_fragments_of_many_tiny_ones():
    made = write_dataset(
        pa.table({"id": range(40)}), "memory://tiny", mode="overwrite", max_rows_per_file=2
    )
    fragments = tuple(made.opened[1].manifest.fragments)[3:5]

    table = plan_scan(made.opened[1], ScanOptions(fragments=fragments)).table()

    assert table["id"].to_pylist() == [6, 7, 8, 9]

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import InvalidInputError, PredicateError
from lance_nb.table.scan_options import ScanOptions
from lance_nb.table.scan_request import plan_request, strict_batches
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
    request = plan_request(at(VERSION), options)
    table = request.table()

    assert table.schema.equals(request.shape.schema)
    assert sum(batch.num_rows for batch in request.batches()) == table.num_rows
    if table.num_columns:
        assert pa.Table.from_batches(request.batches(), table.schema).equals(table)


def test_a_plain_scan_keeps_its_shorter_way(at):
    assert plan_request(at(VERSION), ScanOptions(["id"], limit=3)).is_plain
    assert not plan_request(at(VERSION), ScanOptions({"a": "id"})).is_plain
    assert not plan_request(at(VERSION), ScanOptions(filter="true")).is_plain


def test_counting_needs_no_limit(at):
    assert plan_request(at(VERSION), ScanOptions()).count() == expected("history", VERSION).num_rows
    with pytest.raises(InvalidInputError):
        plan_request(at(VERSION), ScanOptions(limit=3)).count()


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
        plan_request(at(VERSION), options)


def test_a_plan_says_what_is_decoded_when(at):
    options = ScanOptions(["id", "amount"], "point.x > 1", 5, order_by=["id"])
    lines = plan_request(at(VERSION), options).explain().splitlines()

    assert "  filter: point.x > 1" in lines
    assert "  decoded first, for every row: `point`.`x`, id" in lines
    assert "  decoded for the rows that are left: amount" in lines
    assert "  offset 0, limit 5" in lines

"""The plain scan agrees with the full request, and refuses the same arguments."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.dataset.functions import write_dataset
from lance_nb.errors import ColumnNotFoundError, InvalidInputError
from lance_nb.table.plain_scan import plan_plain
from lance_nb.table.scan_options import ScanOptions
from lance_nb.table.scan_request import plan_request
from tests.golden.copies import expected

VERSION = 9
PLAIN = [
    ScanOptions(), ScanOptions(["id"]), ScanOptions([]), ScanOptions("id"), ScanOptions(limit=0),
    ScanOptions(["id"], limit=4, offset=3), ScanOptions(["id"], with_row_id=True),
    ScanOptions(["_rowaddr", "id"], with_row_address=True, with_row_id=True),
    ScanOptions(["id"], batch_size=2), ScanOptions(offset=10_000),
]  # fmt: skip


@pytest.mark.parametrize("options", PLAIN, ids=str)
def test_a_plain_scan_returns_what_the_full_request_returns(at, options):
    plain, full = plan_plain(at(VERSION), options), plan_request(at(VERSION), options)

    assert options.is_plain
    assert plain.schema.equals(full.schema, check_metadata=True)
    assert plain.table().equals(full.table())
    assert [one.num_rows for one in plain.batches()] == [one.num_rows for one in full.batches()]


def test_only_the_wanted_fragments_are_read(at):
    fragments = tuple(at(VERSION).manifest.fragments)[1:]
    table = plan_plain(at(VERSION), ScanOptions(fragments=fragments)).table()

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
        plan_plain(at(VERSION), options)
    with pytest.raises(error) as full:
        plan_request(at(VERSION), options)
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
    whole = plan_plain(snapshot, ScanOptions()).table()["id"].to_pylist()
    assert whole == [number for pair in rows for number in pair]
    start = offset or 0
    stop = None if limit is None else start + limit
    assert plan_plain(snapshot, options).table()["id"].to_pylist() == whole[start:stop]
    assert plan_request(snapshot, options).table()["id"].to_pylist() == whole[start:stop]


def test_wanted_fragments_of_many_tiny_ones():
    made = write_dataset(
        pa.table({"id": range(40)}), "memory://tiny", mode="overwrite", max_rows_per_file=2
    )
    fragments = tuple(made.opened[1].manifest.fragments)[3:5]

    table = plan_plain(made.opened[1], ScanOptions(fragments=fragments)).table()

    assert table["id"].to_pylist() == [6, 7, 8, 9]

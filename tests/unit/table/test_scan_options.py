"""Options of a scan: which scans are plain, and what is checked early."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.table.scan_options import ScanOptions


@pytest.mark.parametrize(
    "options",
    [
        ScanOptions(filter="id > 1"), ScanOptions(nearest={}), ScanOptions(order_by=["id"]),
        ScanOptions(include_deleted_rows=True), ScanOptions(strict_batch_size=True),
        ScanOptions({"a": "id"}),
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

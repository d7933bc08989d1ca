"""The forms of columns that hold payloads; tests/interop/test_blob_payloads.py compares values."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.table.blob_columns import DESCRIPTION, scanned_form
from lance_nb.table.blob_scan import binary_form, fragment_addresses

BLOB = {"lance-encoding:blob": "true", "made": "here"}


def form(arrow: pa.Field) -> pa.Field:
    field = Schema.from_arrow(pa.schema([arrow])).field(arrow.name)
    return binary_form(field, scanned_form(field, arrow))


def test_descriptions_become_bytes_and_keep_the_metadata_of_the_column() -> None:
    arrow = pa.field("blob", pa.large_binary(), nullable=False, metadata=BLOB)

    assert form(arrow).equals(arrow, check_metadata=True)


def test_descriptions_inside_structs_become_bytes() -> None:
    inner = pa.field("data", pa.large_binary(), metadata=BLOB)
    arrow = pa.field("s", pa.struct([inner, pa.field("n", pa.int8())]))

    assert form(arrow).equals(arrow, check_metadata=True)


def test_columns_that_look_like_descriptions_stay_as_they_are() -> None:
    arrow = pa.field("pair", DESCRIPTION)

    assert form(arrow).equals(arrow, check_metadata=True)


def test_the_address_of_a_row_has_its_fragment_in_the_upper_half() -> None:
    assert fragment_addresses(Fragment(3, (), 5), 2) == [3 << 32, 3 << 32]


@pytest.mark.parametrize("kind", ["v1", "v2"])
def test_deleted_rows_have_their_payloads_too(kind: str) -> None:
    """They had no address, which ended in a TypeError; pylance returns them."""
    payloads = [b"a", None, b"ccc", b"d"]
    ids = pa.array(range(4))
    if kind == "v2":
        schema = pa.schema([("id", pa.int64()), lance_nb.blob_field("blob")])
        rows = pa.table([ids, lance_nb.blob_array(payloads)], schema=schema)
    else:
        field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        schema = pa.schema([("id", pa.int64()), field])
        rows = pa.table([ids, pa.array(payloads, pa.large_binary())], schema=schema)
    uri = f"memory://unit-deleted-blobs/{kind}.lance"
    dataset = lance_nb.write_dataset(rows, uri, data_storage_version="2.2", max_rows_per_file=2)
    dataset.delete("id in (2)")
    options = {"blob_handling": "all_binary", "with_row_id": True, "include_deleted_rows": True}
    found = dataset.scanner(with_row_address=True, **options).to_table()
    assert found["blob"].to_pylist() == payloads
    assert found["_rowid"].to_pylist() == [0, 1, None, (1 << 32) + 1]
    assert found["_rowaddr"].to_pylist() == found["_rowid"].to_pylist()

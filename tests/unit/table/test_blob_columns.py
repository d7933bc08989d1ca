"""What a blob's description says about where its payload lies."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.format.schema import Schema
from lance_nb.table.blob_columns import (
    DESCRIPTION,
    DESCRIPTION_V2,
    BlobPlace,
    is_blob,
    place_of,
    scanned_form,
)

FILE = "data/0101.lance"
BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
BLOB_V2 = pa.field(
    "b",
    pa.struct([("data", pa.large_binary()), ("uri", pa.string())]),
    metadata={"ARROW:extension:name": "lance.blob.v2"},
)


def v2(kind, position=0, size=0, blob_id=0, uri=""):
    return {
        "kind": kind,
        "position": position,
        "size": size,
        "blob_id": blob_id,
        "blob_uri": uri,
    }


@pytest.mark.parametrize(
    ("description", "place"),
    [
        (None, None),
        ({"position": 64, "size": 5}, BlobPlace(64, 5)),
        ({"position": 0, "size": 0}, BlobPlace(0, 0)),
        ({"position": 1, "size": 0}, None),
        (v2(0, 64, 5), BlobPlace(64, 5)),
        (v2(1, 100, 5, 1), BlobPlace(100, 5, sidecar=f"data/0101/1{'0' * 31}.blob")),
        (v2(2, 0, 9, 2), BlobPlace(0, 9, sidecar=f"data/0101/01{'0' * 30}.blob")),
        (v2(3, 0, 0, 0, "s3://b/x"), BlobPlace(0, None, uri="s3://b/x")),
        (v2(3, 4, 9, 7, "x/y"), BlobPlace(4, 9, uri="x/y", base_id=7)),
    ],
)
def test_descriptions_lead_to_payloads(description, place):
    assert place_of(description, FILE) == place


def test_a_later_kind_is_refused_by_name():
    with pytest.raises(NotSupportedError, match="kind 4"):
        place_of(v2(4), FILE)


def test_a_description_with_holes_is_refused():
    with pytest.raises(CorruptFileError):
        place_of({"position": None, "size": 1}, FILE)


@pytest.mark.parametrize(("field", "form"), [(BLOB, DESCRIPTION), (BLOB_V2, DESCRIPTION_V2)])
def test_a_scan_returns_descriptions_also_inside_structs(field, form):
    schema = Schema.from_arrow(
        pa.schema([field, pa.field("s", pa.struct([field, ("x", pa.int8())]))])
    )
    arrow = schema.to_arrow(storage=True)
    assert is_blob(schema.fields[0])
    assert scanned_form(schema.fields[0], arrow.field(0)).type == form
    assert scanned_form(schema.fields[1], arrow.field(1)).type.field(0).type == form


def test_other_columns_stay_as_they_are():
    schema = Schema.from_arrow(pa.schema([("a", pa.int32()), ("s", pa.struct([("x", pa.int8())]))]))
    for field, arrow in zip(schema.fields, schema.to_arrow(), strict=True):
        assert not is_blob(field)
        assert scanned_form(field, arrow).equals(arrow, check_metadata=True)

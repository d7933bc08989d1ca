"""How blob columns are marked in schemas."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.blob_fields import (
    BLOB_V2_EXTENSION,
    BLOB_VALUES,
    blob_threshold,
    descriptor_field,
    input_type,
    is_blob_v1,
    is_blob_v2,
    with_blobs,
)
from lance_nb.format.schema import Schema

MARKED = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true", "k": "v"})


def field_of(field: pa.Field, version: tuple[int, int] = (2, 2)):
    return Schema.from_arrow(with_blobs(pa.schema([field]), version)).fields[0]


def test_marked_columns_become_structs_in_2_2():
    field = field_of(MARKED)
    assert is_blob_v2(field)
    assert not is_blob_v1(field)
    assert [child.name for child in field.children] == ["data", "uri"]
    assert field.metadata == {"k": b"v", "ARROW:extension:name": BLOB_V2_EXTENSION.encode()}


@pytest.mark.parametrize("version", [(2, 0), (2, 1)])
def test_marked_columns_stay_before(version: tuple[int, int]):
    field = field_of(MARKED, version)
    assert is_blob_v1(field)
    assert field.logical_type == "large_binary"


def test_blobs_inside_structs_are_found():
    field = field_of(pa.field("s", pa.struct([MARKED, ("a", pa.int8())])))
    assert is_blob_v2(field.children[0])
    storage = Schema((field,)).to_arrow(storage=True).field(0).type
    assert input_type(field, storage) == pa.struct([("b", BLOB_VALUES), ("a", pa.int8())])


def test_the_second_generation_needs_2_2():
    marks = {"ARROW:extension:name": BLOB_V2_EXTENSION}
    field = pa.field("b", pa.struct([("data", pa.large_binary())]), metadata=marks)
    assert is_blob_v2(field_of(field))
    with pytest.raises(NotSupportedError, match=r"'b'.*2\.2"):
        field_of(field, (2, 1))


def test_files_describe_five_parts_without_identity():
    field = descriptor_field(field_of(pa.field("s", pa.struct([MARKED])))).children[0]
    assert [part.name for part in field.children] == [
        "kind",
        "position",
        "size",
        "blob_id",
        "blob_uri",
    ]
    assert {(part.id, part.parent_id, part.nullable) for part in field.children} == {
        (-1, -1, False)
    }
    assert field.extension_name == ""
    assert set(field.metadata) == {"lance-encoding:packed", "lance-encoding:blob"}


def test_other_fields_are_described_as_they_are():
    field = field_of(pa.field("a", pa.list_(pa.int8())))
    assert descriptor_field(field) == field


def test_thresholds_are_numbers():
    key = "lance-encoding:blob-inline-size-threshold"
    assert blob_threshold(field_of(MARKED.with_metadata({key: "12"})), "inline", 5) == 12
    assert blob_threshold(field_of(MARKED), "inline", 5) == 5
    with pytest.raises(InvalidInputError, match="a number of bytes"):
        blob_threshold(field_of(MARKED.with_metadata({key: "-1"})), "inline", 5)

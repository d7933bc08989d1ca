"""How blob columns are marked in schemas."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.blob_fields import (
    BLOB_V2_EXTENSION,
    BLOB_VALUES,
    DESCRIPTION_V2,
    blob_threshold,
    descriptor_field,
    descriptor_fields,
    holds_blobs,
    input_type,
    is_blob,
    is_blob_v1,
    is_blob_v2,
    with_blobs,
    without_descriptors,
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
    assert not any(part.nullable for part in DESCRIPTION_V2)


def test_other_fields_are_described_as_they_are():
    field = field_of(pa.field("a", pa.list_(pa.int8())))
    assert descriptor_field(field) == field


def test_thresholds_are_numbers():
    key = "lance-encoding:blob-inline-size-threshold"
    assert blob_threshold(field_of(MARKED.with_metadata({key: "12"})), "inline", 5) == 12
    assert blob_threshold(field_of(MARKED), "inline", 5) == 5
    with pytest.raises(InvalidInputError, match="a number of bytes"):
        blob_threshold(field_of(MARKED.with_metadata({key: "-1"})), "inline", 5)


@pytest.mark.parametrize(("file_version", "second"), [((2, 2), True), ((2, 1), False)])
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_marks_are_read_in_any_case(kind: pa.DataType, file_version: tuple[int, int], second: bool):
    for text in ("true", "TRUE", "True"):
        field = pa.field("b", kind, metadata={"lance-encoding:blob": text})
        assert is_blob_v2(field_of(field, file_version)) is second
    for text in ("false", "1", ""):
        field = pa.field("b", kind, metadata={"lance-encoding:blob": text})
        assert not is_blob(field_of(field, file_version))


def test_null_and_order_stay_when_a_column_is_converted():
    schema = with_blobs(
        pa.schema([("a", pa.int8()), MARKED.with_nullable(False)], {"k": "v"}), (2, 2)
    )
    assert (schema.names, schema.metadata) == (["a", "b"], {b"k": b"v"})
    assert not schema.field("b").nullable
    assert "lance-encoding:blob" not in Schema.from_arrow(schema).field("b").metadata


@pytest.mark.parametrize("lists", [pa.list_, pa.large_list])
def test_blobs_inside_lists_are_found(lists):
    field = field_of(pa.field("l", lists(MARKED)))
    assert is_blob_v2(field.children[0])
    assert holds_blobs(field)
    assert not is_blob(field)
    storage = Schema((field,)).to_arrow(storage=True).field(0).type
    found = input_type(field, storage)
    assert found == lists(pa.field("b", BLOB_VALUES, metadata=found.value_field.metadata))
    described = descriptor_field(field).children[0]
    assert [part.name for part in described.children] == DESCRIPTION_V2.names


def test_lists_and_structs_without_blobs_stay_as_they_are():
    schema = pa.schema(
        [("l", pa.list_(pa.int8())), ("s", pa.struct([("x", pa.large_list(pa.string()))]))]
    )
    assert with_blobs(schema, (2, 2)).equals(schema, check_metadata=True)
    for arrow, field in zip(schema, Schema.from_arrow(schema), strict=True):
        assert not holds_blobs(field)
        assert input_type(field, arrow.type) == arrow.type


def test_types_that_do_not_fit_a_field_are_left_to_the_caller():
    struct = field_of(pa.field("s", pa.struct([MARKED, ("a", pa.int8())])))
    for other in (pa.int8(), pa.struct([("b", pa.int8())]), pa.list_(pa.int8())):
        assert input_type(struct, other) == other
    lists = field_of(pa.field("l", pa.list_(MARKED)))
    assert input_type(lists, pa.int8()) == pa.int8()
    marked = field_of(MARKED, (2, 1))
    assert input_type(marked, pa.large_binary()) == BLOB_VALUES
    assert input_type(marked, pa.string()) == pa.string()


def test_descriptors_are_recognised_in_files():
    """Their parts have neither id nor parent, and stand among the fields at the top."""
    columns = [MARKED, ("a", pa.int8()), pa.field("s", pa.struct([MARKED, ("kind", pa.int8())]))]
    arrow = with_blobs(pa.schema(columns), (2, 2))
    fields = Schema.from_arrow(arrow).fields
    described = [descriptor_field(one) for one in fields]
    flat = [replace(one, children=()) for top in described for one in top.walk()]
    parts = [one for one in flat if one.id == -1]
    assert [one.name for one in parts] == DESCRIPTION_V2.names * 2
    assert [one.encoding for one in parts[:5]] == [1, 1, 1, 1, 2]
    tops = [replace(described[0], children=()), described[1], *parts[:5]]
    found = without_descriptors(tops)
    assert [one.name for one in found] == ["b", "a"]
    assert is_blob_v2(found[0])
    assert not is_blob_v2(found[1])
    inner = replace(described[2].children[0], children=())
    nested = replace(described[2], children=(inner, described[2].children[1]))
    (struct,) = without_descriptors([nested])
    assert [is_blob_v2(one) for one in struct.children] == [True, False]
    other = replace(described[1], id=-1)
    assert without_descriptors([other]) == (other,)  # no part of a description has this name


def test_a_struct_with_one_of_the_marks_is_no_descriptor():
    field = replace(descriptor_field(field_of(MARKED)), children=())
    for gone in list(field.metadata):
        marks = {key: one for key, one in field.metadata.items() if key != gone}
        (found,) = without_descriptors([replace(field, metadata=marks)])
        assert not is_blob_v2(found)
    (found,) = without_descriptors([replace(field, logical_type="string")])
    assert not is_blob_v2(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("9" * 18, 10**18 - 1), ("9" * 19, None), ("1.5", None), ("", None), (" 1", None)],
)
def test_thresholds_have_at_most_eighteen_digits(text: str, expected: int | None):
    key = "lance-encoding:blob-pack-file-size-threshold"
    field = field_of(MARKED.with_metadata({key: text}))
    if expected is not None:
        assert blob_threshold(field, "pack-file", 5) == expected
        return
    with pytest.raises(InvalidInputError, match="pack-file-size-threshold"):
        blob_threshold(field, "pack-file", 5)


@pytest.mark.parametrize("version", [(2, 0), (2, 1), (2, 2)])
@pytest.mark.parametrize("kind", [pa.struct([("x", pa.int8())]), pa.list_(pa.uint8())], ids=str)
def test_marked_columns_that_are_not_bytes_are_refused(kind, version: tuple[int, int]):
    with pytest.raises(NotSupportedError, match=r"'b' is marked as blobs, which are bytes"):
        field_of(MARKED.with_type(kind), version)


def test_what_a_scan_of_blobs_returns_is_no_column_of_blobs(tmp_path):
    table = pa.table([pa.array([b"a", None, b"c" * 99], pa.large_binary())], pa.schema([MARKED]))
    for version in ("2.1", "2.2"):
        dataset = lance_nb.write_dataset(table, tmp_path / version, data_storage_version=version)
        for source in (dataset, dataset.scanner(), dataset.to_table()):
            with pytest.raises(NotSupportedError, match="places of blobs in the dataset they"):
                lance_nb.write_dataset(source, tmp_path / "copy")
            assert not (tmp_path / "copy").exists()
        payloads = dataset.to_table(blob_handling="all_binary")
        copy = lance_nb.write_dataset(payloads, tmp_path / f"bytes {version}")
        assert copy.to_table(blob_handling="all_binary")["b"].to_pylist() == table["b"].to_pylist()


def test_fields_without_blobs_are_their_own_descriptors():
    plain = Schema.from_arrow(pa.schema([pa.field("s", pa.struct([("a", pa.int32())]))])).fields
    assert descriptor_fields(plain) is plain
    blobs = Schema.from_arrow(with_blobs(pa.schema([MARKED]), (2, 2))).fields
    assert descriptor_fields(blobs) == tuple(map(descriptor_field, blobs)) != blobs

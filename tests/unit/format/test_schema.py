"""Schemas: the tree, column paths, projection, Arrow types, metadata that must be text."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_nb
from lance_nb._pb import file as pb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    ColumnNotFoundError,
    CorruptFileError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
)
from lance_nb.format.schema import Schema, format_column_path, parse_column_path

ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("s", pa.struct([pa.field("a", pa.int8(), False), ("b", pa.list_(pa.string()))])),
        pa.field("m", pa.map_(pa.string(), pa.struct([("x", pa.float32())]))),
        pa.field("l", pa.list_(pa.struct([("p", pa.int8()), ("q", pa.int8())]))),
        pa.field("v", pa.list_(pa.float32(), 4), metadata={"k": "v"}),
    ],
    metadata={"owner": "tests"},
)


@pytest.fixture
def schema() -> Schema:
    return Schema.from_arrow(ARROW)


def test_fields_are_numbered_depth_first(schema: Schema):
    listed = [(one.id, one.parent_id, one.name, one.logical_type) for one in schema.walk()]
    assert listed == [
        (0, -1, "id", "int64"),
        (1, -1, "s", "struct"),
        (2, 1, "a", "int8"),
        (3, 1, "b", "list"),
        (4, 3, "item", "string"),
        (5, -1, "m", "map"),
        (6, 5, "entries", "struct"),
        (7, 6, "key", "string"),
        (8, 6, "value", "struct"),
        (9, 8, "x", "float"),
        (10, -1, "l", "list.struct"),
        (11, 10, "item", "struct"),
        (12, 11, "p", "int8"),
        (13, 11, "q", "int8"),
        (14, -1, "v", "fixed_size_list:float:4"),
    ]
    assert schema.max_field_id == 14
    assert [one.id for one in schema.leaves()] == [0, 2, 4, 7, 9, 12, 13, 14]


def test_arrow_and_messages_round_trip(schema: Schema):
    assert schema.to_arrow().equals(ARROW, check_metadata=True)
    assert Schema.from_pb(schema.to_pb(), schema.metadata) == schema


def test_the_order_of_the_flat_list_does_not_matter(schema: Schema):
    messages = schema.to_pb()
    assert Schema.from_pb(messages[::-1], {}).field("s.b.item").id == 4


def test_unknown_fields_and_old_ones_are_carried(schema: Schema):
    message = schema.to_pb()[0]
    message.dictionary.offset, message.dictionary.length = 7, 9
    message.unenforced_primary_key = True
    message.unenforced_primary_key_position = 3
    raw = message.SerializeToString() + b"\xfa\x3f\x03abc"  # field 1023
    again = Schema.from_pb([pb.Field.FromString(raw)], {})
    assert again.fields[0].dictionary == (7, 9)
    assert again.fields[0].keys.primary_position == 3
    assert again.fields[0].unknown == b"\xfa\x3f\x03abc"
    assert again.to_pb()[0].SerializeToString() == raw


def test_columns_are_found_by_path(schema: Schema):
    assert schema.field("id").id == 0
    assert schema.field("s.b.item").id == 4
    assert [one.id for one in schema.resolve("s.a")] == [1, 2]
    assert schema.field("`s`.`a`").id == 2
    assert schema.field("S.A").id == 2
    assert schema.path_of(4) == "s.b.item"
    assert schema.path_of(99) is None
    for missing in ("nope", "s.nope", "id.x", "", "s."):
        with pytest.raises(ColumnNotFoundError):
            schema.field(missing)
    for broken in ("`s", "`s`x"):
        with pytest.raises(InvalidInputError):
            schema.field(broken)


def test_names_that_differ_in_case_only_need_the_exact_spelling():
    schema = Schema.from_arrow(pa.schema([("Name", pa.int8()), ("NAME", pa.int8())]))
    assert schema.field("NAME").id == 1
    with pytest.raises(InvalidInputError, match="fits several"):
        schema.field("name")


@given(st.lists(st.text(max_size=8), min_size=1, max_size=4))
def test_column_paths_round_trip(segments: list[str]):
    assert parse_column_path(format_column_path(segments)) == segments


def test_projection_keeps_the_order_asked_for(schema: Schema):
    chosen = schema.project(["v", "s.b", "id"])
    assert chosen.names == ["v", "s", "id"]
    assert [one.id for one in chosen.walk()] == [14, 1, 3, 4, 0]
    assert chosen.metadata == schema.metadata
    assert [one.id for one in schema.project(["s.b", "s.a"]).walk()] == [1, 2, 3, 4]
    assert schema.project(["s.a", "s"]).fields == (schema.field("s"),)
    assert schema.project([]).fields == ()
    assert [one.id for one in schema.project_by_ids([12, 0]).walk()] == [0, 10, 11, 12]
    with pytest.raises(InvalidInputError, match="twice"):
        schema.project(["id", "id"])
    with pytest.raises(ColumnNotFoundError, match="nope"):
        schema.project(["nope"])


def message(identity: int, parent: int, name: str, kind: str = "int8") -> pb.Field:
    return pb.Field(id=identity, parent_id=parent, name=name, logical_type=kind)


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([message(0, -1, "a"), message(0, -1, "b")], "id 0 twice"),
        ([message(-1, -1, "x"), message(0, -1, "a"), message(0, -1, "b")], "id 0 twice"),
        ([message(0, -1, "a"), message(1, -1, "a")], "'a' twice"),
        ([message(0, 5, "a")], "parent id 5"),
        ([message(0, -7, "a")], "parent id -7"),
        ([message(0, 1, "a"), message(1, 0, "b")], "own ancestors"),
        ([message(3, 3, "a")], "own ancestors"),
        ([message(i, i - 1, "a", "struct") for i in range(3000)], "100 levels"),
    ],
    ids=[
        "id",
        "id after one that is not set",
        "name",
        "parent",
        "odd parent",
        "cycle",
        "self",
        "deep",
    ],
)
def test_broken_trees_are_damage(messages: list[pb.Field], reason: str):
    with pytest.raises(CorruptFileError, match=reason):
        Schema.from_pb(messages, {}, "1.manifest")


@pytest.mark.parametrize(
    "messages",
    [
        [message(0, -1, "a", "list")],
        [message(0, -1, "a", "int8"), message(1, 0, "b")],
        [message(0, -1, "a", "map"), message(1, 0, "entries", "struct")],
        [message(0, -1, "a", "no such type")],
        [message(0, -1, "a", "fixed_size_list:struct:2")],
    ],
)
def test_types_with_the_wrong_children_are_refused_with_the_column(messages: list[pb.Field]):
    schema = Schema.from_pb(messages, {})
    with pytest.raises((CorruptFileError, NotSupportedError)) as caught:
        schema.to_arrow()
    assert any("column 'a'" in note for note in caught.value.__notes__)


@pytest.mark.slow
def test_two_hundred_thousand_columns_open_quickly():
    messages = [message(number, -1, f"column {number}", "int32") for number in range(200_000)]
    started = time.process_time()
    schema = Schema.from_pb(messages, {})
    arrow = schema.to_arrow()
    assert len(arrow) == 200_000
    assert schema.field("column 199999").id == 199_999
    assert time.process_time() - started < 8  # under 2 s on a quiet machine


def test_a_hundred_levels_are_fine():
    arrow = pa.int8()
    for _ in range(99):
        arrow = pa.struct([("x", arrow)])
    schema = Schema.from_arrow(pa.schema([("x", arrow)]))
    assert Schema.from_pb(schema.to_pb(), {}).to_arrow().field("x").type == arrow
    with pytest.raises(InvalidInputError, match="levels deep"):
        Schema.from_arrow(pa.schema([("x", pa.struct([("x", arrow)]))]))


@pytest.mark.parametrize("name", ["a.b", "."])
def test_dots_at_the_top_level_are_refused(name: str):
    with pytest.raises(InvalidInputError, match="struct"):
        Schema.from_arrow(pa.schema([(name, pa.int8())]))


def test_duplicate_names_are_refused():
    twice = pa.schema([("a", pa.int8()), ("a", pa.int8())])
    with pytest.raises(InvalidInputError, match="twice"):
        Schema.from_arrow(twice)
    with pytest.raises(InvalidInputError, match="twice"):
        Schema.from_arrow(pa.schema([("s", pa.struct(list(twice)))]))


def test_extension_types_are_resolved_outside_and_kept_as_metadata_in_storage():
    arrow = pa.schema([("u", pa.uuid()), ("j", pa.json_()), ("s", pa.struct([("u", pa.uuid())]))])
    schema = Schema.from_arrow(arrow)
    assert schema.to_arrow().equals(arrow)
    storage = schema.to_arrow(storage=True)
    assert storage.field("u").type == pa.binary(16)
    assert storage.field("j").type == pa.large_binary()
    assert storage.field("j").metadata[b"ARROW:extension:name"] == b"lance.json"


def test_an_extension_that_arrow_refuses_shows_its_storage():
    metadata = {"ARROW:extension:name": b"arrow.fixed_shape_tensor"}
    metadata["ARROW:extension:metadata"] = b"{not json"
    field = pb.Field(
        id=0, parent_id=-1, name="t", logical_type="fixed_size_list:int8:4", metadata=metadata
    )
    assert Schema.from_pb([field], {}).to_arrow().field("t").type == pa.list_(pa.int8(), 4)


FIELDS = st.builds(
    message,
    st.integers(-3, 6),
    st.integers(-2, 6),
    st.sampled_from("abc"),
    st.sampled_from(["int8", "list", "struct", "map", "dict:x", "fixed_size_list:struct:2"]),
)


@given(st.lists(FIELDS, max_size=8))
def test_any_list_of_fields_is_a_schema_or_refused(messages: list[pb.Field]):
    try:
        schema = Schema.from_pb(messages, {})
        schema.to_arrow()
    except LanceError:
        return
    assert len(list(schema.walk())) == len(messages)


def test_what_is_shown_of_a_schema_are_its_fields():
    schema = Schema.from_arrow(pa.schema([("a", pa.int64())]))
    assert "'a'" in repr(schema)
    assert "_by" not in repr(schema)


def test_a_column_that_is_asked_for_twice_is_named():
    schema = Schema.from_arrow(pa.schema([(name, pa.int8()) for name in "abc"]))
    with pytest.raises(InvalidInputError, match="column 'b' is asked for twice"):
        schema.project(["a", "b", "c", "b"])


def test_fields_without_an_id_may_be_several():
    """Parts of descriptions of blobs have none; ids that count occur once."""
    parts = [pb.Field(id=-1, parent_id=-1, name=name, logical_type="uint8") for name in "ab"]
    assert [one.name for one in Schema.from_pb(parts, {}, "m").fields] == ["a", "b"]
    zeros = [pb.Field(id=0, parent_id=-1, name=name, logical_type="uint8") for name in "ab"]
    with pytest.raises(CorruptFileError, match="id 0 twice"):
        Schema.from_pb(zeros, {}, "m")


def test_fields_without_an_id_may_share_a_name() -> None:
    """Files list the parts of descriptions at the top, once for each blob column."""
    parts = [message(0, -1, "a"), *[message(-1, -1, "kind")] * 2, message(1, -1, "b")]
    schema = Schema.from_pb(parts, {})
    assert schema.names == ["a", "kind", "kind", "b"]
    assert schema.field_by_id(-1) is None
    with pytest.raises(CorruptFileError, match="'b' twice"):
        Schema.from_pb([*parts, message(2, -1, "b")], {})


@pytest.mark.parametrize(
    ("path", "segments"),
    [
        ("`a``b`", ["a`b"]),
        ("`a````b`.`c.d`", ["a``b", "c.d"]),
        ("`` ` ``", None),
        ("````", ["`"]),
        ("x.`y```", ["x", "y`"]),
        ("`a``b", None),
        ("`a`b", None),
    ],
)
def test_a_doubled_backtick_is_one(path: str, segments: list[str] | None) -> None:
    if segments is None:
        with pytest.raises(InvalidInputError):
            parse_column_path(path)
    else:
        assert parse_column_path(path) == segments


def test_the_largest_id_of_no_fields_is_minus_one(schema: Schema) -> None:
    assert Schema(()).max_field_id == -1
    assert schema.max_field_id == len(list(schema.walk())) - 1
    assert len(schema) == 5
    assert [one.name for one in schema.leaves()] == [
        "id", "a", "item", "key", "x", "p", "q", "v"
    ]  # fmt: skip


BAD_VALUE = {b"good": b"ok", b"k": b"\xff\x00"}
BAD_KEY = {b"\xff": b"v"}
NUMBER = pa.int64()


def schemas(metadata: dict[bytes, bytes]) -> list[pa.Schema]:
    field = pa.field("x", NUMBER, metadata=metadata)
    return [
        pa.schema([("a", NUMBER)], metadata=metadata),
        pa.schema([field]),
        pa.schema([("a", pa.struct([field]))]),
        pa.schema([("a", pa.list_(field))]),
    ]


WRITES: dict[str, Callable[[pa.Schema, str], Any]] = {
    "create": lambda schema, uri: lance_nb.write_dataset(schema.empty_table(), uri),
    "file": lambda schema, uri: lance_nb.LanceFileWriter(f"{uri}.lance", schema),
    "commit": lambda schema, uri: LanceDataset.commit(
        uri, lance_nb.LanceOperation.Overwrite(schema, [])
    ),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(
    ("metadata", "message"),
    [(BAD_VALUE, r"metadata 'k' of .* is not UTF-8 text.*base64"), (BAD_KEY, "key .* not UTF-8")],
)
def test_metadata_that_is_no_text_is_not_written(write: str, metadata: Any, message: str) -> None:
    for schema in schemas(metadata):
        uri = f"memory://{uuid4().hex}/d"
        with pytest.raises(InvalidInputError, match=message):
            WRITES[write](schema, uri)
        with pytest.raises(lance_nb.DatasetNotFoundError):
            lance_nb.dataset(uri)


def test_new_columns_and_settings_are_text_too() -> None:
    made = lance_nb.write_dataset(pa.table({"a": [1]}), f"memory://{uuid4().hex}/d")
    with pytest.raises(InvalidInputError, match="metadata 'k' of column 'x'"):
        made.add_columns(pa.field("x", NUMBER, metadata=BAD_VALUE))
    for verb in (made.update_config, made.update_metadata, made.update_schema_metadata):
        for key, value in (("k", "\udcff"), ("\udcff", "v"), ("\udcff", None)):
            with pytest.raises(InvalidInputError, match="UTF-8"):
                verb({key: value})
    with pytest.raises(InvalidInputError, match="UTF-8"):
        made.update_field_metadata({"a": {"k": "\udcff"}})
    assert made.version == 1


def forged(monkeypatch: pytest.MonkeyPatch) -> LanceDataset:
    """Write a dataset as a writer would that stores bytes."""
    with monkeypatch.context() as patch:
        patch.setattr(Schema, "check_text_metadata", lambda _: None)
        field = pa.field("a", NUMBER, metadata=BAD_VALUE)
        table = pa.table({"a": range(6)}, schema=pa.schema([field], metadata=BAD_VALUE))
        return lance_nb.write_dataset(table, f"memory://{uuid4().hex}/d")


CHANGES: dict[str, Callable[[LanceDataset], Any]] = {
    "config": lambda one: one.update_config({"n": "1"}),
    "schema": lambda one: one.update_schema_metadata({"n": "1"}),
    "field": lambda one: one.update_field_metadata({"a": {"n": "1"}}),
    "rows": lambda one: one.insert(one.to_table()),
    "delete": lambda one: one.delete("a = 1"),
    "update": lambda one: one.update({"a": "a + 1"}, mode="rows"),
    "columns": lambda one: one.update({"a": "a + 1"}, mode="columns"),
    "column": lambda one: one.add_columns({"b": "a"}),
    "renamed": lambda one: one.alter_columns({"path": "a", "name": "c"}),
    "compaction": lambda one: (one.insert(one.to_table()), one.optimize.compact_files()),
    "upsert": lambda one: one.merge_insert("a").when_not_matched_insert_all().execute(
        pa.table({"a": [1, 99]})
    ),
    "branch": lambda one: one.create_branch("side").insert(pa.table({"a": [7]})),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_bytes_that_others_stored_stay(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = forged(monkeypatch)
    assert made.schema.metadata == made.schema.field("a").metadata == BAD_VALUE
    CHANGES[change](made)
    found = lance_nb.dataset(made.uri, ("side", None) if change == "branch" else None)
    added = {b"n": b"1"}
    assert found.version > 1
    assert found.schema.metadata == {**BAD_VALUE, **(added if change == "schema" else {})}
    metadata = found.schema.field(0).metadata
    assert metadata == {**BAD_VALUE, **(added if change == "field" else {})}
    assert found.schema_metadata["k"] == "\ufffd\x00"
    if change == "schema":
        made.update_schema_metadata({"k": None})
        assert made.update_schema_metadata({"k": "text"})["k"] == "text"


def test_what_a_schema_is_checked_for() -> None:
    schema = Schema.from_arrow(pa.schema([("a", NUMBER)], metadata={"k": "é"}))
    schema.check_text_metadata()
    with pytest.raises(InvalidInputError, match="metadata 'k' of the schema"):
        replace(schema, metadata={"k": b"\xe9"}).check_text_metadata()


@pytest.mark.parametrize(
    ("storage", "name", "logical_type"),
    [
        (pa.large_binary(), "lance.json", "json"),
        (pa.binary(), "lance.json", "binary"),
        (pa.string(), "lance.json", "string"),
        (pa.string(), "arrow.json", "json"),
        (pa.string_view(), "arrow.json", "json"),
        (pa.int64(), "arrow.json", "int64"),
    ],
)
def test_the_name_of_json_counts_on_the_types_that_can_hold_it(
    storage: pa.DataType, name: str, logical_type: str
):
    column = pa.field("j", storage, metadata={"ARROW:extension:name": name})
    assert Schema.from_arrow(pa.schema([column])).field("j").logical_type == logical_type


def test_messages_of_a_schema_are_built_once_and_never_those_of_another():
    schemas = [Schema.from_arrow(pa.schema([(name, pa.int8())])) for name in "abcdefg"]
    assert schemas[-1].to_pb() is schemas[-1].to_pb()
    for _ in range(2):
        for schema in schemas:
            assert Schema.from_pb(schema.to_pb(), {}) == schema


def test_types_alike_are_numbered_and_named_by_their_field():
    kinds = [pa.int8(), pa.timestamp("us", "UTC"), pa.decimal128(5, 1), pa.binary(3), pa.string()]
    fields = [pa.field(f"{n}{k}", kind, k > 0) for k in range(2) for n, kind in enumerate(kinds)]
    schema = Schema.from_arrow(pa.schema(fields))
    assert [(field.id, field.name, field.nullable) for field in schema] == [
        (number, field.name, field.nullable) for number, field in enumerate(fields)
    ]
    assert schema.to_arrow() == pa.schema(fields)
    with pytest.raises(NotSupportedError, match="month_day_nano"):
        Schema.from_arrow(pa.schema([("x", pa.month_day_nano_interval())]))

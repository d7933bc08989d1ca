""" """

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import (
    ColumnNotFoundError,
    InvalidInputError,
    NotSupportedError,
    PredicateError,
    SchemaMismatchError,
)
from lance_nb.transactions.schema_change import Alteration
from lance_nb.writing.schema_evolution import look, partners


def test_a_cast_names_the_columns_to_write_and_their_new_ids(make):
    snapshot = make().opened[1]
    asked = [Alteration.of({"path": "id", "data_type": pa.int32(), "name": "number"})]
    found = look(snapshot, asked)
    assert found.schema.names[0] == "number"
    assert found.cast is not None
    assert found.cast.part.names == ["id"]  # as it is read
    assert found.cast.part.fields[0].id > snapshot.manifest.schema.max_field_id


def test_a_new_name_is_the_schema_alone(make):
    found = look(make().opened[1], [Alteration.of({"path": "id", "name": "number"})])
    assert found.cast is None
    assert found.keeps_nullability


def test_what_cannot_be_is_refused(make):
    snapshot = make().opened[1]
    with pytest.raises(ColumnNotFoundError):
        look(snapshot, [Alteration.of({"path": "nope", "name": "x"})])
    with pytest.raises(SchemaMismatchError):
        look(snapshot, [Alteration.of({"path": "id", "data_type": pa.binary()})])


NESTED = pa.table(
    {
        "id": [1, 2, 3],
        "s": [{"x": 1, "y": "a"}, None, {"x": 3, "y": None}],
        "l": [[1, None], [], None],
    }
)


def test_dropping_a_column_writes_no_data(make, files):
    made = make()
    before = {path for path in files() if path.startswith("data/")}
    made.drop_columns(["name"])
    assert made.schema.names == ["id"]
    assert {path for path in files() if path.startswith("data/")} == before
    assert made.checkout_version(1).schema.names == ["id", "name"]


def test_a_struct_without_fields_goes_too(make):
    made = make(NESTED)
    made.drop_columns(["s.x"])
    assert made.to_table()["s"].to_pylist() == [{"y": "a"}, None, {"y": None}]
    made.drop_columns(["s.y"])
    assert made.schema.names == ["id", "l"]


def test_a_column_that_comes_back_is_a_new_one(make):
    made = make()
    made.drop_columns(["name"])
    made.add_columns(pa.field("name", pa.string()))
    assert made.to_table()["name"].null_count == 10


def test_renaming_keeps_values_and_ids(make):
    made = make(NESTED)
    before = {one.id for one in made.lance_schema.tree.walk()}
    made.alter_columns({"path": "id", "name": "key"}, {"path": "s.y", "name": "text"})
    assert {one.id for one in made.lance_schema.tree.walk()} == before
    assert made.to_table()["key"].to_pylist() == [1, 2, 3]
    assert made.to_table()["s"].to_pylist()[0] == {"x": 1, "text": "a"}


def test_casting_writes_the_column_and_no_other(make, files):
    made = make(max_rows_per_file=4)
    before = len([path for path in files() if path.startswith("data/")])
    made.delete("id = 2")
    made.alter_columns({"path": "id", "data_type": pa.int16(), "name": "small"})
    assert made.schema.field("small").type == pa.int16()
    assert made.to_table()["small"].to_pylist() == [0, 1, 3, 4, 5, 6, 7, 8, 9]
    assert len([path for path in files() if path.startswith("data/")]) == before + 3


def test_a_field_of_a_struct_is_cast_with_its_nulls(make):
    made = make(NESTED)
    made.alter_columns({"path": "s.x", "data_type": pa.int8()})
    assert made.schema.field("s").type.field("x").type == pa.int8()
    assert made.to_table()["s"].to_pylist() == NESTED["s"].to_pylist()
    made.alter_columns({"path": "l", "data_type": pa.large_list(pa.int32())})
    assert made.to_table()["l"].to_pylist() == NESTED["l"].to_pylist()


def test_a_field_of_a_struct_in_files_of_2_0_is_refused(make):
    made = make(NESTED.slice(0, 1), data_storage_version="2.0")
    with pytest.raises(NotSupportedError, match=r"2\.0"):
        made.alter_columns({"path": "s.x", "data_type": pa.int8()})


def test_a_value_that_does_not_fit_changes_nothing(make, files):
    made = make(pa.table({"n": [1, 300]}))
    before = files()
    with pytest.raises(PredicateError, match="int8"):
        made.alter_columns({"path": "n", "data_type": pa.int8()})
    assert files() == before


def test_a_column_may_lose_its_right_to_nulls(make):
    made = make()
    made.alter_columns({"path": "id", "nullable": False})
    assert not made.schema.field("id").nullable
    with pytest.raises(InvalidInputError, match="has 1 null and"):
        made.alter_columns({"path": "name", "nullable": False})
    made.alter_columns({"path": "id", "nullable": True})
    assert made.schema.field("id").nullable


@pytest.mark.parametrize("name", ["a b", "select", "it's", "null", "x-y", "1st"])
def test_a_column_of_any_name_may_lose_its_right_to_nulls(make, name):
    made = make(pa.table({name: [1, 2], "other": [1, None]}))
    made.alter_columns({"path": name, "nullable": False})
    assert [field.nullable for field in made.schema] == [False, True]


@pytest.mark.parametrize(
    ("alterations", "error"),
    [
        ([{"path": "id"}], InvalidInputError),
        ([{"name": "x"}], InvalidInputError),
        ([{"path": "id", "nonsense": 1}], InvalidInputError),
        ([{"path": "nope", "name": "x"}], ColumnNotFoundError),
        ([{"path": "id", "name": "name"}], InvalidInputError),
        ([{"path": "id", "name": ""}], InvalidInputError),
        ([{"path": "id", "name": "a.b"}], SchemaMismatchError),
        ([{"path": "id", "data_type": pa.string()}], InvalidInputError),
        ([{"path": "name", "data_type": pa.binary()}], InvalidInputError),
        (["id"], InvalidInputError),
    ],
)
def test_bad_alterations_change_nothing(make, files, alterations, error):
    made = make()
    before = files()
    with pytest.raises(error):
        made.alter_columns(*alterations)
    assert files() == before


def test_columns_are_added_in_every_way(make):
    made = make(max_rows_per_file=4)
    made.delete("id = 5")
    made.add_columns({"twice": "id * 2"})
    made.add_columns(pa.schema([("empty", pa.string())]))
    made.add_columns(lambda batch: pa.record_batch({"same": batch["id"]}), read_columns=["id"])
    made.add_columns(pa.table({"n": list(range(9))}))
    found = made.to_table().to_pydict()
    assert found["twice"] == [0, 2, 4, 6, 8, 12, 14, 16, 18]
    assert found["empty"] == [None] * 9
    assert found["same"] == found["id"]
    assert found["n"] == list(range(9))
    assert made.version == 6


def test_streams_have_as_many_rows_as_the_dataset(make, files):
    made = make(max_rows_per_file=4)
    before = files()
    for count, reason in ((9, "too early"), (11, "too many rows")):
        with pytest.raises(InvalidInputError, match=reason):
            made.add_columns(pa.table({"n": list(range(count))}))
    assert files() == before
    assert made.version == 1


def test_null_columns_may_be_null(make):
    with pytest.raises(InvalidInputError, match="'x'"):
        make().add_columns(pa.field("x", pa.int8(), nullable=False))


def test_rows_appended_later_may_miss_the_new_column(make, rows, uri):
    made = make()
    made.add_columns({"twice": "id * 2"})
    made.insert(rows.slice(0, 1))
    assert made.to_table()["twice"].to_pylist() == [*range(0, 20, 2), None]


def test_a_table_is_joined(make):
    made = make(max_rows_per_file=4)
    made.merge(pa.table({"key": [9, 1, 1], "note": ["nine", "one", "uno"]}), "id", "key")
    found = dict(zip(*(made.to_table()[name].to_pylist() for name in ("id", "note")), strict=True))
    assert {key: note for key, note in found.items() if note} == {1: "uno", 9: "nine"}


def test_a_change_of_columns_is_planned_again_after_others_wrote(make, rows, uri):
    made = make()
    lance_nb.dataset(uri).insert(rows)
    made.add_columns({"twice": "id * 2"})
    assert made.version == 3
    assert made.to_table()["twice"].to_pylist() == [*range(0, 20, 2), *range(0, 20, 2)]


def test_a_struct_gets_new_fields(make):
    made = make(NESTED)
    made.add_columns(pa.field("s", pa.struct([("z", pa.int32())])))
    assert made.to_table()["s"].to_pylist()[0] == {"x": 1, "y": "a", "z": None}
    made.add_columns(pa.table({"s": [{"w": 7}, {"w": 8}, None], "n": [1, 2, 3]}))
    assert made.schema.names == ["id", "s", "l", "n"]
    assert made.to_table()["s"].to_pylist() == [
        {"x": 1, "y": "a", "z": None, "w": 7},
        {"x": None, "y": None, "z": None, "w": 8},  # the struct is there where either part is
        {"x": 3, "y": None, "z": None, "w": None},
    ]
    ids = [one.id for one in made.lance_schema.tree.walk()]
    assert len(ids) == len(set(ids))
    for again in (pa.field("s", pa.struct([("x", pa.int64())])), pa.field("id", pa.int64())):
        with pytest.raises(SchemaMismatchError, match="already exists"):
            made.add_columns(again)


def test_structs_of_older_files_get_none(make):
    made = make(NESTED, data_storage_version="2.1")
    with pytest.raises(SchemaMismatchError, match=r"version 2\.2"):
        made.add_columns(pa.field("s", pa.struct([("z", pa.int32())])))


def test_structs_in_lists_get_fields_of_nulls_only(make):
    made = make(pa.table({"l": [[{"a": 1}], []]}))
    made.add_columns(pa.field("l", pa.list_(pa.struct([("b", pa.int32())]))))
    assert made.to_table()["l"].to_pylist() == [[{"a": 1, "b": None}], []]
    with pytest.raises(NotSupportedError, match="list"):
        made.add_columns(pa.table({"l": [[{"c": 1}], []]}))


def test_a_change_tells_how_far_it_is(make):
    seen = []
    made = make(max_rows_per_file=4)
    for change in (
        lambda tell: made.add_columns({"twice": "id * 2"}, progress=tell),
        lambda tell: made.alter_columns({"path": "id", "data_type": pa.int16()}, progress=tell),
        lambda tell: made.merge(pa.table({"name": ["n1"], "x": [1]}), "name", progress=tell),
    ):
        change(lambda done, total: seen.append((done, total)))
        assert seen[-1] == (10, 10)


def test_an_interrupt_leaves_no_new_file(make, files):
    made = make(max_rows_per_file=4)
    before = files()

    def stop(done, _total):
        if done > 4:
            raise KeyboardInterrupt

    for change in (
        lambda: made.add_columns({"twice": "id * 2"}, progress=stop),
        lambda: made.alter_columns({"path": "id", "data_type": pa.int16()}, progress=stop),
    ):
        with pytest.raises(KeyboardInterrupt):
            change()
        assert files() == before


def test_joins_that_make_no_sense_say_so(make, files):
    made = make()
    before = files()
    for right, on, error, reason in (
        ({"id": [1], "x": [1]}, ("none", "id"), ColumnNotFoundError, "'none'"),
        ({"id": [1], "x": [1]}, ("id", "none"), ColumnNotFoundError, "'none'"),
        ({"id": [1], "name": ["a"]}, ("id", "id"), SchemaMismatchError, "already exists"),
        ({"id": ["a"], "x": [1]}, ("id", "id"), SchemaMismatchError, "has type string"),
        ({"id": [1]}, ("id", "id"), SchemaMismatchError, "besides the key"),
    ):
        with pytest.raises(error, match=reason):
            made.merge(pa.table(right), *on)
    assert files() == before


def test_nothing_to_change_is_no_mistake(make):
    made = make()
    made.alter_columns()
    made.add_columns({})
    made.drop_columns([])
    assert made.schema.names == ["id", "name"]
    with pytest.raises(NotSupportedError, match="update_schema_metadata"):
        made.replace_schema(made.schema)


def test_truncating_keeps_the_schema(make, rows):
    made = make()
    made.truncate_table()
    assert (made.count_rows(), made.schema) == (0, rows.schema)


# --- rows that are deleted -----------------------------------------------------------------------


def _half_deleted(make, values: list[int | None]):
    made = make(pa.table({"id": pa.array(range(len(values))), "n": pa.array(values, pa.int64())}))
    made.delete("n IS NULL OR n > 100")
    return made


@pytest.mark.parametrize("values", [[None, 1, 2], [1, None, 2], [1, 2, None], [None, None, 7]])
def test_nulls_in_deleted_rows_are_no_nulls_of_a_column_without(make, values):
    made = _half_deleted(make, values)
    kept = [one for one in values if one is not None]
    made.alter_columns({"path": "n", "nullable": False})
    made.alter_columns({"path": "n", "data_type": pa.int16()})
    made.add_columns({"twice": "n * 2"})
    made.add_columns(lambda batch: pa.record_batch({"m": batch["n"]}), read_columns=["n"])
    stream = pa.table({"s": kept}, pa.schema([pa.field("s", pa.int64(), nullable=False)]))
    made.add_columns(stream.to_reader())
    assert made.to_table().select(["n", "m", "s"]).to_pydict() == {"n": kept, "m": kept, "s": kept}
    assert made.to_table()["twice"].to_pylist() == [2 * one for one in kept]


def test_numbers_in_deleted_rows_need_not_fit_a_type(make):
    made = _half_deleted(make, [1, 40_000, 3])
    made.alter_columns({"path": "n", "data_type": pa.int16()})
    assert made.to_table()["n"].to_pylist() == [1, 3]


def test_lists_and_vectors_are_no_keys_of_a_merge(uri):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([1.5, 2.5], pa.float32()), 2)
    rows = pa.table({"tags": [["a"]], "vector": vectors})
    made = lance_nb.write_dataset(rows, uri)
    for name in rows.column_names:
        with pytest.raises(
            NotSupportedError, match=f"key '{name}' has type .*a nested or extension type"
        ):
            made.merge(rows.append_column("x", pa.array([1])), name)


def test_a_deleted_row_has_no_partner_with_a_null_row_id(tmp_path: Path) -> None:
    dataset = lance_nb.write_dataset(pa.table({"a": [1, 2, 3]}), tmp_path / "d")
    dataset.delete("a = 2")
    snapshot = dataset.opened[1]
    right = pa.table({"_rowid": pa.array([None, 2], pa.uint64()), "w": [7, 8]})

    found = partners(snapshot, snapshot.manifest.fragments[0], right, ("_rowid", "_rowid"))

    assert found.tolist() == [-1, -1, 1]

"""Manifests whose fields lie: counts, ids, schemas, sizes."""

from __future__ import annotations

import pytest

import lance_nb
from lance_nb._pb import file as file_pb
from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError
from tests.faults.lies.conftest import LATEST
from tests.faults.lies.reading import (
    bounded,
    edit_fragment,
    edit_manifest,
    read_everything,
    refused,
)
from tests.golden.copies import edited_fragment

pytestmark = pytest.mark.slow


def change_fragment(root, change, number=0):
    edit_fragment(root, LATEST, change, number)


def field_of(manifest, name):
    return next(field for field in manifest.fields if field.name == name)


# --- fragments ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [2**60, 108, 106, 10, 1])
def test_a_row_count_that_the_data_file_does_not_have_is_refused(root, rows):
    change_fragment(root, lambda one: setattr(one, "physical_rows", rows))
    error = refused(lambda: lance_nb.dataset(root).to_table(), f"{rows} rows", "107 rows")
    assert isinstance(error, CorruptFileError)
    refused(lambda: lance_nb.dataset(root).head(1), "107 rows")
    refused(lambda: lance_nb.dataset(root).take([0]), "107 rows")


def test_row_counts_beyond_sense_are_refused_when_counting(root):
    change_fragment(root, lambda one: setattr(one, "physical_rows", 2**62))
    refused(lambda: lance_nb.dataset(root).count_rows(), "sums below")


def test_a_file_size_that_differs_from_the_manifest_is_refused(root):
    change_fragment(root, lambda one: setattr(one.files[0], "file_size_bytes", 77))
    refused(lambda: lance_nb.dataset(root).to_table(), "77 bytes as the manifest says")


@pytest.mark.parametrize(
    "read",
    [lambda ds: ds.count_rows(), lambda ds: ds.to_table(), lambda ds: ds.head(1),
     lambda ds: ds.take([0]), lambda ds: ds.inspect.fragments()],
    ids=["count_rows", "to_table", "head", "take", "inspect"],
)  # fmt: skip
@pytest.mark.parametrize(("identity", "words"), [(2**40, "32-bit"), (2**64 - 1, "2**63")])
def test_an_impossible_fragment_id_is_refused_by_every_reading(root, identity, words, read):
    def change(manifest):
        manifest.fragments[1] = edited_fragment(
            manifest.fragments[1], lambda one: setattr(one, "id", identity)
        )

    edit_manifest(root, LATEST, change)
    refused(lambda: read(lance_nb.dataset(root)), words)


@pytest.mark.parametrize("deleted", [2**60, 108])
def test_more_deleted_rows_than_rows_are_refused(root, deleted):
    change_fragment(root, lambda one: setattr(one.deletion_file, "num_deleted_rows", deleted))
    refused(lambda: lance_nb.dataset(root).count_rows(), f"{deleted} deleted rows")
    refused(lambda: lance_nb.dataset(root).to_table(), f"{deleted} deleted rows")
    refused(lambda: lance_nb.dataset(root).stats(), f"{deleted} deleted rows")
    refused(lambda: lance_nb.dataset(root).version_info(LATEST), f"{deleted} deleted rows")


def test_a_missing_deletion_file_is_named_with_its_fragment(root):
    change_fragment(root, lambda one: setattr(one.deletion_file, "num_deleted_rows", 3))
    refused(lambda: lance_nb.dataset(root).to_table(), "_deletions/", "fragment ")


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_deletion_file_with_another_number_of_rows_is_refused(root, count):
    edit_fragment(root, 3, lambda one: setattr(one.deletion_file, "num_deleted_rows", count))
    refused(lambda: lance_nb.dataset(root, 3).to_table(), f"{count} deleted rows")


def test_a_deletion_file_of_the_other_kind_is_refused(root):
    other = pb.DeletionFile.BITMAP
    edit_fragment(root, 3, lambda one: setattr(one.deletion_file, "file_type", other))
    for path in (root / "_deletions").glob("*.arrow"):
        path.rename(path.with_suffix(".bin"))
    refused(lambda: lance_nb.dataset(root, 3).to_table(), "Roaring")


@pytest.mark.parametrize("index", [-7, -2, 10**6, 2**31 - 1])
def test_a_column_number_that_no_file_has_is_refused(root, index):
    def change(one):
        one.files[0].column_indices[0] = index

    change_fragment(root, change)
    refused(lambda: lance_nb.dataset(root).to_table(), str(index))


def test_a_leaf_that_claims_to_own_no_column_is_refused(root):
    def change(one):
        one.files[0].column_indices[0] = -1

    change_fragment(root, change)
    refused(lambda: lance_nb.dataset(root).to_table(["id"]), "column number", "-1")


def test_fields_without_column_numbers_are_refused(root):
    change_fragment(root, lambda one: one.files[0].column_indices.pop())
    refused(lambda: lance_nb.dataset(root).to_table(), "column indices")


def test_a_data_file_of_another_version_than_the_manifest_says_is_refused(root):
    def change(one):
        one.files[0].ClearField("column_indices")
        one.files[0].file_major_version, one.files[0].file_minor_version = 0, 2

    change_fragment(root, change)
    refused(lambda: lance_nb.dataset(root).to_table(), "file version 0.2, as the manifest says")


def test_swapped_column_numbers_are_refused_or_read_but_never_leak(root):
    def change(one):
        indices = list(one.files[0].column_indices)
        one.files[0].ClearField("column_indices")
        one.files[0].column_indices.extend(reversed(indices))

    change_fragment(root, change)
    refused(lambda: lance_nb.dataset(root).to_table())


def test_a_base_id_that_is_not_in_the_manifest_is_refused(root):
    change_fragment(root, lambda one: setattr(one.files[0], "base_id", 7))
    refused(lambda: lance_nb.dataset(root).to_table(), "id 7")


def test_bytes_that_are_no_fragment_are_refused(root):
    def change(manifest):
        manifest.fragments[0] = b"\xff\xff\xff"

    edit_manifest(root, LATEST, change)
    refused(lambda: lance_nb.dataset(root).count_rows(), "DataFragment")
    refused(lambda: lance_nb.dataset(root).to_table(), "DataFragment")


def test_row_ids_that_do_not_fit_the_fragment_are_refused(root):
    change_fragment(
        root, lambda one: setattr(one, "inline_row_ids", b"\x0a\x06\x0a\x04\x08\x00\x10\x05")
    )
    refused(lambda: lance_nb.dataset(root).to_table(with_row_id=True), "row ids")


def test_row_ids_that_are_no_message_are_refused(root):
    change_fragment(root, lambda one: setattr(one, "inline_row_ids", b"\xff" * 9))
    refused(lambda: lance_nb.dataset(root).to_table(with_row_id=True))


# --- schema -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["", "garbage", "fixed_size_list", "fixed_size_list:x:3", "decimal:128:999:1", "struct",
             "list", "map", "dict:string:int8", "timestamp:eons:UTC", "fixed_size_binary:-1",
             "fixed_size_list:float:99999999999999999999", "decimal:128:9", "int32:7", "é" * 9000],
)  # fmt: skip
def test_a_type_that_makes_no_sense_is_refused_and_names_the_column(root, kind):
    edit_manifest(root, LATEST, lambda one: setattr(field_of(one, "amount"), "logical_type", kind))
    with bounded():
        dataset = lance_nb.dataset(root)
        assert dataset.count_rows() == 110
    error = refused(lambda: dataset.to_table(["amount"]))
    shown = " ".join([str(error), *getattr(error, "__notes__", ())])
    assert "amount" in shown


@pytest.mark.parametrize(
    "kind", ["fixed_size_list:float:2147483647", "fixed_size_binary:2147483647"]
)
def test_a_type_as_large_as_memory_is_refused_before_memory_is_taken(root, kind):
    edit_manifest(root, LATEST, lambda one: setattr(field_of(one, "amount"), "logical_type", kind))
    refused(lambda: lance_nb.dataset(root).to_table(["amount"]))
    refused(lambda: lance_nb.dataset(root).head(1))


def test_another_type_of_the_same_family_is_refused_or_read_within_bounds(root):
    for kind in ("float", "int64", "int8", "string", "binary", "bool", "date32:day", "null"):
        edit_manifest(
            root, LATEST, lambda one, kind=kind: setattr(field_of(one, "id"), "logical_type", kind)
        )
        with bounded():
            try:
                table = lance_nb.dataset(root).to_table(["id"])
            except lance_nb.LanceError:
                continue
            table.validate(full=True)


def test_columns_of_one_name_are_refused(root):
    edit_manifest(root, LATEST, lambda one: setattr(field_of(one, "amount"), "name", "id"))
    refused(lambda: read_everything(root), "'id' twice")


def test_fields_of_one_id_are_refused(root):
    edit_manifest(root, LATEST, lambda one: setattr(field_of(one, "amount"), "id", 0))
    refused(lambda: read_everything(root), "id 0 twice")


@pytest.mark.parametrize("parent", [77, 10**9, -2])
def test_a_field_below_a_parent_that_is_not_there_is_refused(root, parent):
    edit_manifest(root, LATEST, lambda one: setattr(field_of(one, "x"), "parent_id", parent))
    refused(lambda: read_everything(root), f"parent id {parent}")


def test_fields_that_are_their_own_ancestors_are_refused(root):
    def change(manifest):
        field_of(manifest, "point").parent_id = field_of(manifest, "x").id

    edit_manifest(root, LATEST, change)
    refused(lambda: read_everything(root), "ancestors")


@pytest.mark.parametrize(
    "name", ["\0", "a" * 100_000, "<script>alert(1)</script>", "\u202egpj", " "]
)
def test_odd_column_names_are_names(root, name):
    edit_manifest(root, LATEST, lambda one: setattr(field_of(one, "amount"), "name", name))
    with bounded():
        assert lance_nb.dataset(root).to_table(["id", f"`{name}`"]).num_rows == 110


def deep_fields(depth):
    return [
        file_pb.Field(name="f", id=100 + at, parent_id=99 + at if at else -1, nullable=True,
                      logical_type="struct" if at + 1 < depth else "int32")
        for at in range(depth)
    ]  # fmt: skip


@pytest.mark.parametrize("depth", [101, 3000, 50_000])
def test_a_schema_deeper_than_any_sense_is_refused(root, depth):
    edit_manifest(root, LATEST, lambda one: one.fields.extend(deep_fields(depth)))
    refused(lambda: read_everything(root), "at most 100 levels")


def test_a_schema_as_deep_as_allowed_is_read(root):
    edit_manifest(root, LATEST, lambda one: one.fields.extend(deep_fields(100)))
    with bounded():
        table = lance_nb.dataset(root).to_table(["f"])
    assert table["f"].null_count == 110


def test_fifty_thousand_columns_open_and_count_in_time(root):
    fields = [
        file_pb.Field(name=f"c{at}", id=100 + at, parent_id=-1, nullable=True, logical_type="int32")
        for at in range(50_000)
    ]
    edit_manifest(root, LATEST, lambda one: one.fields.extend(fields))
    with bounded():
        dataset = lance_nb.dataset(root)
        assert dataset.count_rows() == 110
        assert dataset.head(2, columns=["id", "c49999"]).to_pylist()[0]["c49999"] is None
        assert len(dataset.schema) == 50_004


@pytest.mark.parametrize("columns", [["c"], []], ids=["a column that no file holds", "no column"])
def test_rows_that_no_file_confirms_are_not_made_up(root, columns):
    def add(manifest):
        manifest.fields.add(name="c", id=99, parent_id=-1, nullable=True, logical_type="int64")
        manifest.fragments[0] = edited_fragment(
            manifest.fragments[0], lambda one: setattr(one, "physical_rows", 2**40)
        )

    edit_manifest(root, LATEST, add)
    refused(lambda: lance_nb.dataset(root).to_table(columns, with_row_id=True), "107 rows")


def test_a_fragment_without_data_files_is_refused(root):
    change_fragment(root, lambda one: one.ClearField("files"))
    refused(lambda: lance_nb.dataset(root).to_table(), "at least one data file")


@pytest.mark.parametrize("rows", [2**31, 2**48])
def test_a_row_count_beside_a_deletion_file_is_checked_before_memory_is_taken(root, rows):
    edit_fragment(root, 5, lambda one: setattr(one, "physical_rows", rows), 2)
    for read in (
        lambda: lance_nb.dataset(root, 5).to_table(),
        lambda: lance_nb.dataset(root, 5).head(2000),
        lambda: lance_nb.dataset(root, 5).take([90]),
        lambda: list(lance_nb.dataset(root, 5).to_batches(["id"])),
        lambda: lance_nb.dataset(root, 5).to_table(filter="id > 5000"),
        lambda: lance_nb.dataset(root, 5).to_table(include_deleted_rows=True, with_row_id=True),
    ):
        refused(read, f"{rows} rows", "5060 rows")


def test_a_hundred_thousand_huge_fragments_open_and_count_in_time(root):
    def change(manifest):
        template = manifest.fragments[0]
        manifest.ClearField("fragments")
        for at in range(100_000):
            fragment = pb.DataFragment.FromString(template)
            fragment.id, fragment.physical_rows = at, 2**40
            fragment.files[0].path = f"{at}.lance"
            manifest.fragments.append(fragment.SerializeToString())

    edit_manifest(root, LATEST, change)
    with bounded():
        dataset = lance_nb.dataset(root)
        assert dataset.count_rows() == 100_000 * 2**40
        assert dataset.stats().num_fragments == 100_000
    refused(lambda: dataset.head(5), "0.lance", "fragment 0")
    refused(lambda: dataset.take([2**50]), ".lance")


# --- index section ------------------------------------------------------------------------------


def test_an_index_section_that_is_no_message_is_refused(root):
    def change(manifest):
        manifest.index_section = manifest.transaction_section

    edit_manifest(root, LATEST, change)
    with bounded():
        try:
            lance_nb.dataset(root).list_indices()
        except lance_nb.LanceError as error:
            assert "manifest" in str(error)  # noqa: PT017
    assert lance_nb.dataset(root).count_rows() == 110

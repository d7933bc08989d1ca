"""What old releases left wrong is repaired by the next version, or refused in plain words."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, ObjectNotFoundError
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest, WriterVersion
from lance_nb.format.schema import Schema
from lance_nb.transactions import old_manifests
from lance_nb.transactions.old_manifests import may_need_repair, repaired
from lance_nb.transactions.operation import Built
from tests.support.old_releases import PATHS

OLD = WriterVersion("lance", "0.10.5")
Copy = Callable[[str], str]


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    def make(name: str) -> str:
        return str(shutil.copytree(PATHS[name], tmp_path / "d.lance"))

    return make


def manifest_of(path: str) -> Manifest:
    return lance_nb.dataset(path).opened[1].manifest


@pytest.mark.parametrize(
    ("library", "version", "expected"),
    [
        ("lance", "0.10.5", True), ("lance", "13.0.0", True), ("lance", "14.0.2", False),
        ("lance", "15.1.0-beta.1", False), ("lance", "", True), ("other", "20", True),
        ("lance_nb", "0.1.0", False),
    ],
)  # fmt: skip
def test_writers_of_today_are_trusted(library: str, version: str, expected: bool) -> None:
    assert may_need_repair(WriterVersion(library, version)) is expected


def test_a_manifest_without_a_writer_is_not_trusted() -> None:
    assert may_need_repair(None)


def test_wrong_counts_are_counted_and_sizes_looked_up(copy: Copy) -> None:
    path = copy("pylance_0_8_0/wrong_counts")
    before = lance_nb.dataset(path)
    assert (before.count_rows(), before.to_table().num_rows) == (96, 96)
    before.update_config({"a": "b"})

    made = manifest_of(path)
    assert [one.physical_rows for one in made.fragments] == [100, 16, 2]
    assert [one.num_deleted_rows for one in made.fragments] == [10, 12, 0]
    sizes = {one.files[0].path: one.files[0].size_bytes for one in made.fragments}
    assert sizes == {name: Path(path, "data", name).stat().st_size for name in sizes}
    assert made.data_format is not None
    assert made.data_format.version == "0.1"
    assert made.fragments.has_counts


def test_a_fragment_without_a_live_row_leaves(copy: Copy) -> None:
    path = copy("pylance_0_8_0/wrong_counts")
    lance_nb.dataset(path).delete("x < 200")
    made = manifest_of(path)
    assert [(one.id, one.physical_rows) for one in made.fragments] == [(2, 2)]
    assert (made.reader_feature_flags, made.max_fragment_id) == (0, 2)


def test_branches_and_clones_of_old_versions_are_counted(copy: Copy, tmp_path: Path) -> None:
    path = copy("pylance_0_8_0/wrong_counts")
    branch = lance_nb.dataset(path).create_branch("b")
    clone = lance_nb.dataset(path).deep_clone(str(tmp_path / "clone"))
    for one in (branch, clone):
        assert one.count_rows() == 96
        assert [f.physical_rows for f in one.opened[1].manifest.fragments] == [100, 16, 2]


def test_a_missing_file_is_named_and_nothing_is_written(copy: Copy) -> None:
    path = copy("pylance_0_8_0/wrong_counts")
    dataset = lance_nb.dataset(path)
    name = dataset.opened[1].manifest.fragments[1].files[0].path
    Path(path, "data", name).unlink()
    with pytest.raises(ObjectNotFoundError, match=name):
        dataset.update_config({"a": "b"})
    assert lance_nb.dataset(path).version == dataset.version


@pytest.mark.parametrize(
    ("state", "ids", "files"),
    [
        ("ids_of_dropped_columns", [0, 1, 4, 5], [(0,), (1, 2), (4, 5)]),
        ("id_of_a_dropped_column", [0, 1, 4, 5], [(0,), (1, 2), (4, 5)]),
    ],
)
def test_an_id_in_two_files_goes_to_the_last(
    copy: Copy, state: str, ids: list[int], files: list[tuple[int, ...]]
) -> None:
    path = copy(f"pylance_0_10_5/{state}")
    assert lance_nb.dataset(path).to_table()["b"].to_pylist() == [0, 3, 6]
    lance_nb.dataset(path).update_config({"a": "b"})

    made = manifest_of(path)
    assert [one.id for one in made.schema] == ids
    assert [one.fields for one in made.fragments[0].files] == files
    table = lance_nb.dataset(path).to_table()
    assert table.select(["b", "c"]).to_pydict() == {"b": [0, 4, 8], "c": [0, 5, 10]}
    assert lance_nb.dataset(path).to_table(filter="c > 5")["x"].to_pylist() == [2]
    lance_nb.dataset(path).validate()


def test_an_id_that_cannot_change_is_refused_and_the_dataset_can_be_rewritten(copy: Copy) -> None:
    path = copy("pylance_0_10_5/id_of_a_dropped_column_appended")
    dataset = lance_nb.dataset(path)
    table = dataset.to_table()
    with pytest.raises(InvalidInputError, match="no new id fits the files of fragment 0"):
        dataset.delete("x = 1")
    dataset.tags.create("t", dataset.version)
    assert lance_nb.write_dataset(dataset, path, mode="overwrite").to_table().equals(table)


def data_file(fields: tuple[int, ...], *, legacy: bool = False, size_bytes: int = 9) -> DataFile:
    columns = () if legacy else tuple(range(len(fields)))
    version = (0, 2) if legacy else (2, 0)
    return DataFile(f"{fields}.lance", fields, columns, *version, size_bytes)


def built_of(schema: pa.Schema, *fragments: Fragment, indices: tuple[IndexMetadata, ...] = ()):
    manifest = Manifest(5, Schema.from_arrow(schema), FragmentList.of(fragments))
    return Built(manifest, indices, fragments, writers=(OLD, OLD))


STRUCT = pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.int64()), ("y", pa.int64())]))])


def test_fields_below_a_struct_keep_their_parent() -> None:
    files = (data_file((0,)), data_file((1, 2, 3)), data_file((1, 2, 3)))
    made = repaired(built_of(STRUCT, Fragment(0, files, 5)), None).manifest
    (_, struct) = made.schema
    assert [(one.id, one.parent_id) for one in struct.walk()] == [(4, -1), (5, 4), (6, 4)]
    assert [one.fields for one in made.fragments[0].files] == [(0,), (4, 5, 6)]


def test_an_index_on_values_of_another_column_is_dropped() -> None:
    indices = tuple(IndexMetadata(f"u{at}", f"i{at}", (at,), 1, b"") for at in (0, 1))
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    files = (data_file((0,)), data_file((1,)), data_file((1,)))
    made = repaired(built_of(schema, Fragment(0, files, 5), indices=indices), None)
    assert [one.name for one in made.indices] == ["i0"]
    assert [one.id for one in made.manifest.schema] == [0, 2]


def test_ids_of_columns_that_are_gone_stay() -> None:
    files = (data_file((0, 1, 7)), data_file((2, 3, 7)))
    built = built_of(STRUCT, Fragment(0, files, 5))
    assert repaired(built, None).manifest.schema == built.manifest.schema


def test_two_fragments_of_one_id_are_refused_unless_they_are_only_copied() -> None:
    one = Fragment(3, (data_file((0, 1, 2, 3)),), 5)
    built = built_of(STRUCT, one, replace(one, physical_rows=7))
    with pytest.raises(InvalidInputError, match="two fragments with id 3"):
        repaired(built, None)
    copied = repaired(built, None, is_clone=True)
    assert [one.physical_rows for one in copied.manifest.fragments] == [5, 7]


@pytest.mark.parametrize(("version", "kept"), [("0.8.14", b""), ("0.8.15", b"x"), ("0.9.0", b"x")])
def test_coverage_that_can_be_wrong_is_forgotten(version: str, kept: bytes) -> None:
    old = IndexMetadata("u", "i", (0,), 1, b"x")
    new = replace(old, uuid="v", dataset_version=4)
    built = built_of(STRUCT, Fragment(0, (data_file((0, 1, 2, 3)),), 5), indices=(old, new))
    built = replace(built, writers=(WriterVersion("lance", version),))
    assert [one.fragment_bitmap for one in repaired(built, None).indices] == [kept, b"x"]


def test_sizes_of_index_files_are_looked_up(copy: Copy) -> None:
    path = copy("pylance_0_21_0/storage_class")
    lance_nb.dataset(path).delete("x = 9")
    (index,) = lance_nb.table.indices.read_indices(lance_nb.dataset(path).opened[1])
    folder = Path(path, "_indices", index.uuid)
    assert {one.path: one.size_bytes for one in index.files} == {
        one.name: one.stat().st_size for one in folder.iterdir()
    }


def test_datasets_with_a_storage_class_can_be_written(copy: Copy) -> None:
    """Releases of 2024 wrote ``storage_class``, a field that has no meaning any more."""
    path = copy("pylance_0_21_0/storage_class")
    assert not manifest_of(path).has_unknown_fields
    lance_nb.write_dataset(pa.table({"x": [100]}), path, mode="append")
    lance_nb.dataset(path).add_columns({"y": "x * 2"})
    assert lance_nb.dataset(path).to_table(filter="y > 45").to_pydict() == {
        "x": [23, 24, 100], "y": [46, 48, 200],
    }  # fmt: skip


def test_fragments_out_of_order_are_sorted_and_read_as_before(copy: Copy) -> None:
    path = copy("pylance_0_8_0/compacted")
    rows = sorted(lance_nb.dataset(path).to_table()["x"].to_pylist())
    assert [one.id for one in manifest_of(path).fragments] == [3, 2]
    lance_nb.dataset(path).update_config({"a": "b"})
    assert [one.id for one in manifest_of(path).fragments] == [2, 3]
    assert sorted(lance_nb.dataset(path).to_table()["x"].to_pylist()) == rows
    lance_nb.dataset(path).validate()


def test_what_was_new_is_named_as_it_is_after_the_repair() -> None:
    file = data_file((0, 1, 2, 3))
    one, two = Fragment(4, (file,), 5), Fragment(2, (file,), 6)
    built = replace(built_of(STRUCT, one, two), fresh=(one,))
    made = repaired(built, None)
    assert [part.id for part in made.fresh] == [4]
    assert [part.id for part in made.manifest.fragments] == [2, 4]
    assert not made.only_appended
    twice = replace(built_of(STRUCT, one, one), fresh=(one,))
    assert repaired(twice, None, is_clone=True).fresh == ()
    assert repaired(replace(built, fresh=()), None).fresh == ()


@pytest.mark.parametrize(
    ("library", "version", "kept"),
    [("lance", "0.8.14", b""), ("lance", "0.8.15-beta", b"x"), ("other", "0.1.0", b"x"),
     ("lance", "one", b"x"), (None, "", b"")],
)  # fmt: skip
def test_who_covers_wrongly_is_known_by_name_and_number(
    library: str | None, version: str, kept: bytes
) -> None:
    old = IndexMetadata("u", "i", (0,), 1, b"x")
    built = built_of(STRUCT, Fragment(0, (data_file((0, 1, 2, 3)),), 5), indices=(old,))
    writer = None if library is None else WriterVersion(library, version)
    (found,) = repaired(replace(built, writers=(writer,)), None).indices
    assert found.fragment_bitmap == kept


def test_fields_that_several_files_hold_are_named_and_tombstones_are_not():
    files = tuple(
        DataFile(f"{at}.lance", fields, tuple(range(len(fields))), 2, 0)
        for at, fields in enumerate([(0, -1, -2, 5), (5, -1, -2, 3), (0,)])
    )
    assert old_manifests.repeated_fields(Fragment(0, files, 1)) == [0, 5]


def test_a_fragment_is_incomplete_without_the_size_of_a_file() -> None:
    def fragment(number: int, *sizes: int) -> Fragment:
        files = [data_file((at,), size_bytes=size) for at, size in enumerate(sizes)]
        return Fragment(number, files, 10)

    fragments = FragmentList.of([fragment(0, 9), fragment(1, 0), fragment(2, 9, 0)])

    assert old_manifests._incomplete(fragments).tolist() == [1, 2]

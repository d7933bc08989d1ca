from __future__ import annotations

import pyarrow as pa

import lance_nb
from lance_nb.table import metadata_tables
from lance_nb.table.history import VERSIONS_SCHEMA


def test_every_table_is_reached_from_the_dataset(at):
    found = at(9).inspect
    assert found.versions().schema.equals(VERSIONS_SCHEMA)
    assert found.fragments().schema.equals(metadata_tables.FRAGMENTS)
    assert found.data_files().schema.equals(metadata_tables.DATA_FILES)
    assert found.columns().schema.equals(metadata_tables.COLUMNS)
    path = found.data_files()["path"][0].as_py()
    assert found.pages(path).schema.equals(metadata_tables.PAGES)


def test_versions_are_those_of_the_branch_with_their_tags(at):
    side = at(("side", None)).inspect.versions()
    assert side["version"].to_pylist() == [2, 3]
    assert side["tags"].to_pylist() == [[], ["on-side"]]
    assert at(1).inspect.versions().num_rows == 14


def test_the_other_tables_are_about_this_version(at):
    assert at(1).inspect.fragments().num_rows == 1
    assert at(9).inspect.fragments().num_rows == 4
    assert at(6).inspect.data_files().num_rows > at(5).inspect.data_files().num_rows


def test_values_that_are_equally_frequent_stay_in_the_order_in_which_they_come():
    values = ["b", "a", "c"] * 20 + ["x"] * 30
    ds = lance_nb.write_dataset(
        pa.table({"v": values}), "memory://equal-counts", max_rows_per_file=7
    )

    for _ in range(10):  # threads of Arrow would change it now and then
        assert ds.value_counts("v").to_pydict() == {
            "value": ["x", "b", "a", "c"], "count": [30, 20, 20, 20],
        }  # fmt: skip

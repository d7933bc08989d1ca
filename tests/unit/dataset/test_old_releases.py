"""Datasets of releases of 2023 to 2026 read as the release that wrote them read them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from tests.support.old_releases import PATHS
from tests.support.reading import first_difference, same


def expected(path: Path) -> Iterator[tuple[int, pa.Table]]:
    for file in sorted(path.with_suffix(".expected").iterdir()):
        with pa.ipc.open_file(file) as reader:
            yield int(file.stem), reader.read_all()


def test_there_are_datasets_of_many_years() -> None:
    assert len(PATHS) >= 20
    assert len({path.parent for path in PATHS.values()}) >= 8


@pytest.mark.parametrize("name", PATHS)
def test_every_version_reads_as_it_was(name: str) -> None:
    for version, theirs in expected(PATHS[name]):
        dataset = lance_nb.dataset(PATHS[name], version=version)
        ours = dataset.to_table(with_row_id="_rowid" in theirs.column_names)

        assert ours.column_names == theirs.column_names, version
        assert ours.schema.types == theirs.schema.types, version
        for column in ours.column_names:
            got, wanted = ours[column], theirs[column]
            assert same(got, wanted), (version, column, first_difference(got, wanted))
        ours.validate(full=True)


@pytest.mark.parametrize("name", PATHS)
def test_every_version_is_listed_and_described(name: str) -> None:
    dataset = lance_nb.dataset(PATHS[name])

    assert [one["version"] for one in dataset.versions()] == dataset.version_numbers()
    assert {one.version for one in dataset.history()} == set(dataset.version_numbers())
    for index in dataset.list_indices():
        assert index["fields"] in (["id"], ["x"], ["v"])
    for fragment in dataset.get_fragments():
        assert fragment.to_table().num_rows <= fragment.physical_rows


@pytest.mark.parametrize("name", [name for name in PATHS if "types" in name])
def test_rows_chosen_and_filtered_are_those_of_the_scan(name: str) -> None:
    dataset = lance_nb.dataset(PATHS[name])
    table = dataset.to_table()
    picked = [59, 0, 36, 36, 7]

    assert dataset.take(picked).equals(table.take(picked))
    assert dataset.to_table(offset=33, limit=9).equals(table.slice(33, 9).combine_chunks())
    chosen = dataset.to_table(filter="runs = 1", columns=["constant", "runs", "numbers"])
    assert chosen.equals(table.slice(40).select(chosen.column_names))


def test_rows_deleted_by_their_ids_are_still_there() -> None:
    path = PATHS["pylance_0_26_1/stable_ids_2_0"]
    counts = []
    for version, theirs in expected(path):
        dataset = lance_nb.dataset(path, version=version)
        table = dataset.to_table(["id"], filter="id >= 0")
        assert sorted(table["id"].to_pylist()) == sorted(theirs["id"].to_pylist())
        counts.append(dataset.count_rows() - theirs.num_rows)

    # The manifest counts deletions of rows that the fragment does not have, as pylance still does.
    assert min(counts) < 0 == max(counts)


def test_values_of_dictionaries_stay_where_fields_say_they_are(tmp_path: Path) -> None:
    """In 0.1 datasets the manifest holds them before its sections; pylance reads them there."""
    path = tmp_path / "d.lance"
    shutil.copytree(PATHS["pylance_0_10_5/dictionaries"], path)
    for _ in range(2):
        before = lance_nb.dataset(path).opened[1].manifest
        (place,) = (one.dictionary for one in before.schema if one.dictionary is not None)
        assert before.preamble[: place[0]] == b"xyz"
        made = lance_nb.dataset(path)
        made.update_config({"a": "b" * 70_000})  # the manifest takes more than one read
        after = lance_nb.dataset(path).opened[1].manifest
        assert after.preamble == before.preamble
        data = Path(path, "_versions", f"{after.version}.manifest").read_bytes()
        assert data.startswith(before.preamble)
        assert after.transaction_section is not None
        assert after.index_section is not None
        assert after.index_section.offset_bytes == len(before.preamble)
    lance_nb.dataset(path).drop_columns(["c"])
    assert lance_nb.dataset(path).opened[1].manifest.live_preamble == b""
    assert lance_nb.dataset(path).to_table()["x"].to_pylist() == [0, 1, 2, *range(4, 12)]

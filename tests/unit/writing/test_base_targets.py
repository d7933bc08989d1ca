"""Files under several base paths: which of them, and only where the caller trusts the place."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

import lance_nb
from lance_nb import DatasetBasePath, InvalidInputError
from lance_nb.errors import BasePathError

_NUMBERS = count()


def bases_of(dataset: lance_nb.LanceDataset) -> list[int | None]:
    return [file.base_id for one in dataset.get_fragments() for file in one.data_files()]


@pytest.fixture
def places() -> list[DatasetBasePath]:
    number = next(_NUMBERS)
    paths = [f"memory://bases/{number}/{name}" for name in ("hot", "cold")]
    return [DatasetBasePath(paths[0], "hot"), DatasetBasePath(paths[1], "cold", True)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [None, None, None]),
        ({"target_bases": ["hot"]}, [1, 1, 1]),
        ({"target_bases": ["cold", "hot"]}, [2, 1, 2]),
        ({"target_bases": []}, [None, None, None]),
        ({"target_all_bases": True}, [None, 1, 2]),
        ({"target_all_bases": False}, [1, 2, 1]),
    ],
)
def test_files_go_to_the_bases_in_turn(make, rows, places, options: Any, expected: Any) -> None:
    made = make(initial_bases=places, max_rows_per_file=4, **options)
    assert bases_of(made) == expected
    assert made.to_table() == rows


def test_a_place_is_trusted_by_its_path_or_when_it_is_allowed(
    make, rows, places, uri, as_another_process
) -> None:
    make(initial_bases=places)
    as_another_process()
    with pytest.raises(InvalidInputError, match="allow_bases"):
        lance_nb.write_dataset(rows, uri, mode="append", target_bases=["hot"])
    by_path = lance_nb.write_dataset(rows, uri, mode="append", target_bases=[places[0].path])
    allowed = lance_nb.write_dataset(
        rows, uri, mode="overwrite", target_bases=["cold"], allow_bases=["memory://bases"]
    )
    assert (bases_of(by_path), bases_of(allowed)) == ([None, 1], [2])
    assert by_path.count_rows("id >= 0") == 20


@pytest.mark.parametrize(
    "options",
    [
        {"target_bases": ["nope"]},
        {"target_bases": ["hot"], "target_all_bases": True},
        {"initial_bases": [DatasetBasePath("memory://bases/more", "more")]},
    ],
)
def test_what_fits_no_base_is_refused_and_changes_nothing(
    make, rows, places, files, options: Any
) -> None:
    made = make(initial_bases=places)
    before = files()
    with pytest.raises(BasePathError):
        lance_nb.write_dataset(rows, made, mode="append", **options)
    assert files() == before


def test_all_bases_but_the_own_folder_need_one(make) -> None:
    with pytest.raises(BasePathError, match="add_bases"):
        make(target_all_bases=False)


def test_bases_are_added_later(make, rows, places) -> None:
    made = make()
    assert made.add_bases(places, {"why": "room"}) is made
    made.insert(rows, target_bases=["hot"])
    assert bases_of(made) == [None, 1]
    assert made.read_transaction(2).properties["why"] == "room"
    with pytest.raises(BasePathError, match="there already"):
        made.add_bases(places[:1])
    assert made.version == 3


def test_upserts_put_new_rows_where_they_are_reported_to(make, rows, places) -> None:
    made = make(initial_bases=places)
    merge = made.merge_insert("id").when_not_matched_insert_all()
    merge.target_bases(["cold"]).execute(rows.set_column(0, "id", [range(100, 110)]))
    assert bases_of(made) == [None, 2]
    assert made.count_rows() == 20


def test_fragments_for_a_later_commit_lie_there_too(make, rows, places, uri) -> None:
    made = make(initial_bases=places)
    (fragment,) = lance_nb.write_fragments(rows, made, target_bases=["hot"])
    operation = lance_nb.LanceOperation.Append((fragment,))
    after = lance_nb.LanceDataset.commit(made, operation, read_version=1)
    assert bases_of(after) == [None, 1]
    assert after.to_table().num_rows == 20

"""Row ids and row versions of datasets that pylance wrote, with and without stable row ids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

NUM_ROWS = 10_000
Change = Callable[[Any], object]

COLUMNS = ["_row_created_at_version", "_row_last_updated_at_version", "a", "_rowid", "_rowaddr"]


def write(path: Path, *, stable: bool) -> Any:
    """Write appends, updates, deletes, a compaction and more of them."""
    lance = require_pylance()
    rows = pa.table({"a": range(20)})
    lance.write_dataset(rows, str(path), enable_stable_row_ids=stable, max_rows_per_file=8)
    lance.write_dataset(rows, str(path), mode="append")
    dataset = lance.dataset(str(path))
    dataset.update({"a": "a + 100"}, where="a < 3")
    dataset.delete("a = 5 OR a = 19")
    dataset.optimize.compact_files()
    dataset.update({"a": "a + 1000"}, where="a > 100")
    dataset.delete("a = 7")
    dataset.insert(rows)
    return lance


@pytest.mark.parametrize("stable", [False, True])
def test_row_columns_of_every_version_are_pylances(tmp_path: Path, stable: bool) -> None:
    lance = write(tmp_path, stable=stable)

    for version in lance_nb.dataset(tmp_path).version_numbers():
        ours = lance_nb.dataset(tmp_path, version=version)
        theirs = lance.dataset(str(tmp_path), version=version)
        assert ours.to_table(columns=COLUMNS).equals(theirs.to_table(columns=COLUMNS))
        assert ours.take([3, 0], COLUMNS).equals(theirs.take([3, 0], COLUMNS))


@pytest.mark.parametrize("ids", [[0], [19, 0, 0, 12], list(range(70)), [25, 10**9], []])
def test_rows_are_taken_by_stable_id_and_lost_ones_left_out(tmp_path: Path, ids: list[int]) -> None:
    lance = write(tmp_path, stable=True)
    theirs = lance.dataset(str(tmp_path))

    got = lance_nb.dataset(tmp_path).take_rows(ids, ["a"])["a"].to_pylist()

    held = dict(zip(*theirs.to_table(columns=["_rowid", "a"]).to_pydict().values(), strict=True))
    assert got == [held[one] for one in ids if one in held]


def test_without_stable_ids_an_id_is_an_address(tmp_path: Path) -> None:
    lance = write(tmp_path, stable=False)
    rows = lance.dataset(str(tmp_path)).to_table(columns=["_rowid", "a"])
    dataset = lance_nb.dataset(tmp_path)

    got = dataset.take_rows(rows["_rowid"].to_numpy()[::-1], ["a"])

    assert got["a"].to_pylist() == rows["a"].to_pylist()[::-1]
    with pytest.raises(InvalidInputError, match="does not have"):
        dataset.take_rows([99 << 32])
    with pytest.raises(InvalidInputError, match="whole numbers"):
        dataset.take_rows([-1])


def test_blobs_are_opened_by_id_address_or_position(tmp_path: Path) -> None:
    lance = require_pylance()
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    payloads = [b"one", None, b"three", b"four"]
    table = pa.table([pa.array(payloads, pa.large_binary())], schema=pa.schema([blob]))
    written = lance.write_dataset(table, str(tmp_path), enable_stable_row_ids=True)
    written.delete("_rowid = 0")
    dataset = lance_nb.dataset(tmp_path)

    by_id = dataset.take_blobs("b", ids=[3, 2])
    by_address = dataset.take_blobs("b", addresses=[1, 3])
    by_position = dataset.take_blobs("b", indices=[2])

    assert [one and one.readall() for one in by_id] == [b"four", b"three"]
    assert [one and one.readall() for one in by_address] == [None, b"four"]
    assert [one and one.readall() for one in by_position] == [b"four"]
    for library in (lance, lance_nb):
        with pytest.raises(ValueError, match="row"):
            library.dataset(str(tmp_path)).take_blobs("b", ids=[3, 0, 2])
    with pytest.raises(InvalidInputError, match="exactly one"):
        dataset.take_blobs("b")


def update(where: str) -> Change:
    return lambda dataset: dataset.update({"a": "a + 0"}, where=where)


def delete(where: str) -> Change:
    return lambda dataset: dataset.delete(where)


def upsert(*keys: int) -> Change:
    def execute(dataset: Any) -> object:
        merge = dataset.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
        return merge.execute(pa.table({"a": list(keys)}))

    return execute


def insert(dataset: Any) -> object:
    return dataset.insert(pa.table({"a": range(100)}))


def compact(dataset: Any) -> object:
    return dataset.optimize.compact_files()


HISTORIES: dict[str, list[Change]] = {
    "one row updated": [update("a = 5000")],
    "a tenth deleted": [delete("a % 10 = 3")],
    "every other row deleted": [delete("a % 2 = 0")],
    "the last rows updated": [update("a >= 9900")],
    "scattered rows updated": [update("a % 97 = 1")],
    "scattered rows updated three times": [update(f"a % 101 = {i}") for i in range(3)],
    "blocks updated": [update(f"a >= {i} AND a < {i + 200}") for i in range(0, 8000, 1000)],
    "half updated": [update("a % 2 = 1")],
    "small appends": [insert] * 4,
    "upserts": [upsert(i * 999, i * 999 + 5, NUM_ROWS + i) for i in range(1, 4)],
    "one per cent updated, compacted, again": [
        change
        for i in range(4)
        for change in (
            update(f"a * 7919 % 100 = {i}"),
            update(f"a * 7919 % 100 = {i + 9}"),
            compact,
        )
    ],
    "deleted, updated, appended": [delete("a % 7 = 0"), update("a % 5 = 1"), insert],
}


@pytest.mark.parametrize("changes", HISTORIES.values(), ids=HISTORIES.keys())
def test_row_ids_take_no_more_bytes_than_pylances(tmp_path: Path, changes: list[Change]) -> None:
    lance = require_pylance()
    sizes = []
    contents = []
    for library in (lance_nb, lance):
        path = tmp_path / library.__name__
        rows = pa.table({"a": range(NUM_ROWS)})
        dataset = library.write_dataset(rows, str(path), enable_stable_row_ids=True)
        for change in (*changes, compact):
            change(dataset)
        manifest = lance_nb.dataset(path)._snapshot.manifest
        sizes.append(sum(len(fragment.row_ids.data) for fragment in manifest.fragments))
        contents.append(
            lance.dataset(str(path)).to_table(columns=["_rowid", "a"]).sort_by("_rowid")
        )
        ids = contents[-1]["_rowid"].to_pylist()[::997]
        taken = lance.dataset(str(path))._take_rows(ids)
        assert taken["a"].to_pylist() == contents[-1]["a"].to_pylist()[::997]

    assert sizes[0] <= sizes[1] + 8
    assert contents[0].num_rows == contents[1].num_rows
    assert lance_nb.dataset(tmp_path / "lance_nb").verify().ok

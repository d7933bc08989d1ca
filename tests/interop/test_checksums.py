"""Checksums of our files outlive what pylance does to the dataset; its own files have none."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.format.checksums import ALGORITHM, CONFIG_KEY


def rows(first: int, count: int = 50) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"id": pa.array(numbers, pa.int64()), "name": [f"name {n}" for n in numbers]})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = str(tmp_path / "shared.lance")
    lance_nb.write_dataset(rows(0), uri, checksums=True)
    lance_nb.write_dataset(rows(50), uri, mode="append")
    lance_nb.dataset(uri).delete("id = 3")
    return uri


def counts(uri: str) -> tuple[int, int]:
    """Return how many files were compared, and how many have no checksum."""
    report = lance_nb.verify(uri)
    assert report.ok, report
    return report.num_files_checked, report.num_files_without_checksum


def test_pylance_reads_a_dataset_with_checksums(uri: str) -> None:
    assert lance.dataset(uri).to_table() == lance_nb.dataset(uri).to_table()
    assert lance.dataset(uri).config() == {CONFIG_KEY: ALGORITHM}


def test_sums_outlive_every_commit_of_pylance(uri: str) -> None:
    assert counts(uri) == (3, 0)

    lance.write_dataset(rows(100), uri, mode="append")
    assert counts(uri) == (3, 1)
    lance.dataset(uri).delete("id = 51")  # writes one deletion file
    assert counts(uri) == (3, 2)
    lance.dataset(uri).update({"name": "'x'"}, where="id = 52")
    lance.dataset(uri).add_columns({"twice": "id * 2"})
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    checked, without = counts(uri)
    assert checked == 3
    assert without > 4

    lance_nb.write_dataset(
        rows(150).append_column("twice", pa.array(range(50), pa.int64())), uri, mode="append"
    )
    assert counts(uri) == (4, without)


def test_sums_of_files_that_live_on_outlive_compaction_and_cleanup(uri: str) -> None:
    ds = lance.dataset(uri)
    ds.delete("id = 4")
    lance.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
    # Our two data files and the deletion file that pylance wrote live on; ours is gone.
    assert counts(uri) == (2, 1)

    lance.dataset(uri).optimize.compact_files()
    lance.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert counts(uri) == (0, 1)
    assert lance.dataset(uri).config() == {CONFIG_KEY: ALGORITHM}
    assert lance_nb.dataset(uri).add_checksums().num_files == 1
    assert counts(uri) == (1, 0)


def test_sums_outlive_restores_and_branches_and_overwrites_of_pylance(uri: str) -> None:
    lance.dataset(uri, version=2).restore()
    lance.dataset(uri).create_branch("dev").delete("id = 7")
    assert counts(uri) == (3, 1)

    lance.write_dataset(rows(0), uri, mode="overwrite")
    assert counts(uri) == (3, 2)
    assert lance.dataset(uri).config() == {CONFIG_KEY: ALGORITHM}


def test_clones_of_pylance(uri: str, tmp_path: Path) -> None:
    shallow, deep = str(tmp_path / "shallow.lance"), str(tmp_path / "deep.lance")
    lance.dataset(uri).shallow_clone(shallow, 3)
    lance.dataset(uri).deep_clone(deep, 3)

    report = lance_nb.verify(shallow, allow_bases=[uri])

    assert report.ok
    assert (report.num_files_checked, report.num_files_without_checksum) == (3, 0)
    assert counts(deep) == (0, 3)  # pylance does not copy what it does not know
    assert lance_nb.dataset(deep).add_checksums().num_files == 3
    assert counts(deep) == (3, 0)


def test_damage_is_reported_of_our_files_and_never_of_those_of_pylance(uri: str) -> None:
    root = Path(uri)
    lance.write_dataset(rows(100), uri, mode="append")
    lance.dataset(uri).delete("id = 51")
    known = {one for one in root.rglob("*") if one.parent.name in ("data", "_deletions")}
    lance_nb.dataset(uri).insert(rows(150))
    lance_nb.dataset(uri).delete("id = 151")
    files = {one for one in root.rglob("*") if one.parent.name in ("data", "_deletions")}
    assert len(files - known) == 2
    assert counts(uri) == (5, 2)
    for path in files:
        data = bytearray(path.read_bytes())
        data[9] ^= 1
        path.write_bytes(data)

    report = lance_nb.verify(uri, values=False, checksums=True)

    wrong = {one.path for one in report.findings if one.code == "checksum-wrong"}
    assert len(wrong) == 5
    assert {one.relative_to(root).as_posix() for one in files - known} < wrong
    assert report.num_files_without_checksum == 2

"""Checksums: every flipped bit is found, wherever the file lies and whoever refers to it."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_nb.format.checksums import CONFIG_KEY, FOLDER
from lance_nb.table.verification.findings import Finding, Verification

FLIPS = int(os.environ.get("CHECKSUM_FLIPS", "120"))  # 1,200 before a release
FOLDERS = ("data", "_deletions", "_indices")
ROWS = 400


def rows(first: int = 0, count: int = ROWS) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"id": pa.array(numbers, pa.int64()), "name": [f"name {n}" for n in numbers]})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Return a dataset with data files of every writer, deletion files and an index."""
    uri = str(tmp_path / "whole.lance")
    ds = lance_nb.write_dataset(rows(), uri, checksums=True, max_rows_per_file=ROWS // 2)
    ds = lance_nb.write_dataset(rows(ROWS), uri, mode="append")
    ds.delete("id = 5")
    ds.update({"name": "'new'"}, where="id = 7")
    keys = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    keys.execute(rows(2 * ROWS - 1, 3))
    ds = lance_nb.dataset(uri)
    ds.add_columns({"twice": "id * 2"})
    ds.create_scalar_index("id", "BTREE")
    return uri


def stored(uri: str) -> list[Path]:
    """Return the data files, deletion files and index files of a dataset and its branches."""
    root = Path(uri)
    found = [one for one in root.rglob("*") if one.is_file()]
    return sorted(one for one in found if set(FOLDERS) & set(one.relative_to(root).parts[:-1]))


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def wrong(report: Verification) -> list[Finding]:
    return [one for one in report.findings if one.code == "checksum-wrong"]


def test_every_flipped_bit_is_reported_with_the_name_of_its_file(uri: str) -> None:
    files = stored(uri)
    chance = random.Random(4)
    planted = 0

    while planted < FLIPS:
        harmed = files[: FLIPS - planted]
        whole = {one: one.read_bytes() for one in harmed}
        for path, data in whole.items():
            flip(path, chance.randrange(len(data) * 8))
        report = lance_nb.verify(uri, values=False, checksums=True)
        for path, data in whole.items():
            path.write_bytes(data)
        planted += len(harmed)
        assert sorted(one.path for one in wrong(report)) == sorted(
            path.relative_to(uri).as_posix() for path in harmed
        )

    assert planted == FLIPS


def test_a_finding_says_what_was_expected_and_found(uri: str) -> None:
    path = next(one for one in stored(uri) if one.suffix == ".lance")
    record = "\n".join(one.read_text() for one in Path(uri, "_checksums").iterdir())
    (line,) = [one for one in record.split("\n") if path.name in one]
    digest, size, _ = line.split(" ")
    flip(path, 80)

    (found,) = wrong(lance_nb.verify(uri))

    assert found.severity == "error"
    assert f"expected xxh128 {digest} of {size} bytes, found xxh128 " in found.message
    assert path.name in found.message


def test_a_file_that_was_cut_is_reported_by_its_size(uri: str) -> None:
    path = next(one for one in stored(uri) if one.suffix == ".arrow")
    size = path.stat().st_size
    os.truncate(path, size - 1)

    (found,) = wrong(lance_nb.verify(uri))

    assert f"of {size} bytes, found {size - 1} bytes" in found.message


def test_a_whole_dataset_says_how_many_files_were_checked(uri: str) -> None:
    report = lance_nb.verify(uri)

    assert report.ok
    assert report.num_files_checked == len(stored(uri))
    assert report.num_files_without_checksum == 0
    assert f"{len(stored(uri))} files checked, 0 without checksum" in repr(report)


def test_without_checksums_nothing_is_recorded_or_said(tmp_path: Path) -> None:
    ds = lance_nb.write_dataset(rows(), str(tmp_path / "plain.lance"))

    report = ds.verify()

    assert not Path(ds.uri, "_checksums").exists()
    assert report.ok
    assert (report.num_files_checked, report.num_files_without_checksum) == (0, 1)


def test_checksums_can_be_left_out(uri: str) -> None:
    flip(stored(uri)[0], 3)

    assert not wrong(lance_nb.verify(uri, values=False))
    assert not wrong(lance_nb.verify(uri, checksums=False))
    assert wrong(lance_nb.verify(uri, values=False, checksums=True))


def test_compacted_files_are_recorded_and_cleaning_merges_the_records(uri: str) -> None:
    ds = lance_nb.dataset(uri)
    for number in range(20):
        ds.delete(f"id = {20 + number}")
    ds.optimize.compact_files()
    before = len(list(Path(uri, "_checksums").iterdir()))
    ds.cleanup_old_versions(retain_versions=1, delete_unverified=True)

    report = lance_nb.verify(uri)
    (record,) = Path(uri, "_checksums").iterdir()

    assert before > 20
    assert report.ok
    assert (report.num_files_checked, report.num_files_without_checksum) == (len(stored(uri)), 0)
    assert len(record.read_text().splitlines()) == 1 + len(stored(uri))


def test_branches_and_clones_find_the_sums_of_files_they_share(uri: str, tmp_path: Path) -> None:
    ds = lance_nb.dataset(uri)
    branch = ds.create_branch("dev")
    branch.delete("id = 11")
    shallow = ds.shallow_clone(str(tmp_path / "shallow.lance"))
    deep = ds.deep_clone(str(tmp_path / "deep.lance"))
    shared = next(one for one in stored(uri) if one.parent.name == "data")

    reports = [lance_nb.verify(uri), shallow.verify(), deep.verify()]

    assert [one.num_files_without_checksum for one in reports] == [0, 0, 0]
    assert all(one.num_files_checked > 5 for one in reports)
    flip(shared, 99)
    assert wrong(lance_nb.verify(uri))
    assert wrong(shallow.verify())
    assert not wrong(deep.verify())


def test_a_deep_clone_does_not_take_the_sum_of_damage(uri: str, tmp_path: Path) -> None:
    damaged = next(one for one in stored(uri) if one.parent.name == "data")
    flip(damaged, 99)

    with pytest.raises(CorruptFileError, match="expected xxh128") as caught:
        lance_nb.dataset(uri).deep_clone(str(tmp_path / "deep.lance"))

    assert damaged.name in caught.value.path


def test_add_checksums_begins_with_a_dataset_that_has_none(tmp_path: Path) -> None:
    ds = lance_nb.write_dataset(rows(), str(tmp_path / "old.lance"))
    ds.delete("id = 3")
    old = stored(ds.uri)
    steps: list[tuple[int, int]] = []

    added = ds.add_checksums(progress=lambda *step: steps.append(step))
    again = ds.add_checksums()
    lance_nb.write_dataset(rows(ROWS), ds, mode="append")
    report = ds.verify()

    assert added.num_files == 2
    assert added.size_bytes == sum(one.stat().st_size for one in old)
    assert steps == [(1, 2), (2, 2)]
    assert (again.num_files, again.num_known) == (0, 2)
    assert (report.num_files_checked, report.num_files_without_checksum) == (3, 0)


def test_a_record_that_was_changed_is_a_finding_and_tells_nothing(uri: str) -> None:
    record = max(Path(uri, "_checksums").iterdir(), key=lambda one: one.stat().st_size)
    flip(record, 8 * 40)

    report = lance_nb.verify(uri)
    (found,) = report.findings

    assert found.code == "checksum-record-damaged"
    assert found.path == f"_checksums/{record.name}"
    assert report.num_files_without_checksum > 0
    assert not wrong(report)


def test_a_sample_reads_some_files_and_says_how_much(uri: str) -> None:
    files = stored(uri)

    report = lance_nb.verify(uri, sample=3, seed=1)
    share = lance_nb.verify(uri, sample=0.5)

    assert report.sample is not None
    assert share.sample is not None
    assert report.sample.num_files == 3
    assert report.sample.seed == 1
    assert report.num_files_checked <= 3 + 1  # an index has two files
    assert 0 < report.sample.size_bytes < report.sample.size_bytes_in_all
    assert report.sample.size_bytes_in_all == sum(one.stat().st_size for one in files)
    assert "content read: a sample of 3 of " in repr(report)
    assert f"seed {share.sample.seed}" in repr(share)
    again = lance_nb.verify(uri, sample=0.5, seed=share.sample.seed)
    assert again.sample == share.sample


@pytest.mark.parametrize("sample", [1, 1.0, 10**9], ids=str)
def test_a_sample_may_be_one_file_or_all(uri: str, sample: float) -> None:
    read = lance_nb.verify(uri, values=False, checksums=True, sample=sample, seed=1).sample
    assert read is not None
    wanted = 1 if sample == 1 and isinstance(sample, int) else read.num_files_in_all
    assert read.num_files == wanted


@pytest.mark.parametrize("sample", [0, 0.0, -1, 1.5, True], ids=str)
def test_a_sample_of_another_size_is_refused(uri: str, sample: float) -> None:
    with pytest.raises(InvalidInputError, match="sample is a share of the bytes"):
        lance_nb.verify(uri, sample=sample)


def test_an_unknown_kind_of_checksum_refuses_writes_and_lets_reads_be(tmp_path: Path) -> None:
    ds = lance_nb.write_dataset(rows(), str(tmp_path / "new.lance"))
    ds.update_config({CONFIG_KEY: "sha512"})

    with pytest.raises(NotSupportedError, match="sha512"):
        lance_nb.write_dataset(rows(), ds, mode="append")

    assert ds.count_rows() == ROWS
    assert ds.verify().ok


def test_records_are_read_up_to_a_size(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [one.stat().st_size for one in (Path(uri) / FOLDER).iterdir()]
    for most, is_read in ((max(sizes), True), (max(sizes) - 1, False)):
        monkeypatch.setattr("lance_nb.table.checksums.RECORD_BYTES_MAX", most)
        codes = {one.code for one in lance_nb.verify(uri, values=False, checksums=True).findings}
        assert ("checksum-record-damaged" not in codes) == is_read

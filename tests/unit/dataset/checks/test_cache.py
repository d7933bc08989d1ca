from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.checks.evaluation import Checker

VERSIONS = int(os.environ.get("LANCE_NB_CHECK_VERSIONS", "20"))
SECRET = "very-secret-value"


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    """Three fragments on disk, and expectations of the kinds that are cached by fragment."""
    uri = str(tmp_path / "a.lance")
    for start in (0, 10, 20):
        rows = pa.table({"id": range(start, start + 10), "name": [f"{SECRET}{start}"] * 10})
        made = lance_nb.write_dataset(rows, uri, mode="append" if start else "create")
    made.expectations.add("id < 100", name="bound")
    made.expectations.add_not_null("name", name="named")
    made.expectations.add_unique("id", name="key")
    return made


def read_counts(dataset: LanceDataset) -> dict[str, int]:
    """Return how many fragments each outcome read, in a session of its own."""
    opened = lance_nb.dataset(dataset.uri)
    return {one.name: one.num_fragments_read for one in opened.check().outcomes}


def checks_folder(cache_home: Path) -> Path:
    return cache_home / "lance_nb" / "checks"


def test_a_commit_checks_only_what_it_touched(dataset: LanceDataset) -> None:
    assert read_counts(dataset) == {"bound": 3, "named": 3, "key": 3}
    assert read_counts(dataset) == {"bound": 0, "named": 0, "key": 0}
    dataset.insert(pa.table({"id": [500], "name": ["x"]}))
    assert read_counts(dataset) == {"bound": 1, "named": 1, "key": 1}
    dataset.delete("id = 12")
    assert read_counts(dataset) == {"bound": 1, "named": 1, "key": 1}
    dataset.add_columns({"twice": "id * 2"})
    assert read_counts(dataset) == {"bound": 0, "named": 0, "key": 0}
    dataset.update({"name": "'y'"}, where="id = 25")
    assert read_counts(dataset)["bound"] == 2  # the fragment with a row less, and the new one


def test_a_column_of_the_same_name_is_another_column(dataset: LanceDataset) -> None:
    dataset.check()
    dataset.drop_columns(["name"])
    dataset.add_columns({"name": "CAST(NULL AS string)"})
    found = {one.name: one for one in lance_nb.dataset(dataset.uri).check().outcomes}
    assert (found["named"].status, found["named"].num_failed) == ("fail", 30)
    assert found["named"].num_fragments_read
    assert found["bound"].num_fragments_read == 0


def test_the_text_of_an_expectation_is_part_of_the_key(dataset: LanceDataset) -> None:
    dataset.check()
    dataset.expectations.remove("bound")
    dataset.expectations.add("id < 5", name="bound")
    assert dataset.check(names=["bound"]).outcomes[0].num_failed == 25


def test_without_the_cache_nothing_is_read_or_kept(dataset: LanceDataset, cache_home: Path) -> None:
    for _ in range(2):
        found = dataset.check(cache=False)
        assert [one.num_fragments_read for one in found.outcomes] == [3, 3, 3]
    assert not checks_folder(cache_home).exists()


def test_the_files_are_the_users_own_and_hold_no_values(
    dataset: LanceDataset, cache_home: Path
) -> None:
    dataset.check()
    folder = checks_folder(cache_home)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = sorted(folder.iterdir())
    assert {one.suffix for one in files} == {".json", ".arrow"}
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert SECRET.encode() not in file.read_bytes()
        assert str(dataset.uri).encode() not in file.read_bytes()


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"[" * 100_000, b'{"format": 2, "results": {}}', b"\xff" * 100,
     b'{"format": 1, "results": {"a": ["x"], "b": [true], "c": 1}}', b"ARROW1\0\0" * 9],
)  # fmt: skip
def test_a_damaged_file_counts_as_empty(
    dataset: LanceDataset, cache_home: Path, data: bytes
) -> None:
    before = dataset.check()
    for file in checks_folder(cache_home).iterdir():
        file.write_bytes(data)
    found = lance_nb.dataset(dataset.uri).check()
    assert [one.status for one in found.outcomes] == [one.status for one in before.outcomes]
    assert [one.num_fragments_read for one in found.outcomes] == [3, 3, 3]
    assert read_counts(dataset) == {"bound": 0, "named": 0, "key": 0}


def test_flipped_and_truncated_hashes_never_end_in_a_fault(
    dataset: LanceDataset, cache_home: Path
) -> None:
    dataset.check()
    file = next(checks_folder(cache_home).glob("*.arrow"))
    data = file.read_bytes()
    for at in range(0, len(data), 31):
        changed = data[:at] if at % 2 else data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]
        file.write_bytes(changed)
        assert lance_nb.dataset(dataset.uri).check(names=["key"]).outcomes[0].num_rows == 30


def test_a_folder_of_somebody_else_is_not_used(
    dataset: LanceDataset, cache_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.check()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert read_counts(dataset) == {"bound": 3, "named": 3, "key": 3}


def test_datasets_in_memory_leave_nothing_on_disk(
    make: Callable[..., LanceDataset], cache_home: Path
) -> None:
    dataset = make()
    dataset.expectations.add("id >= 0")
    assert dataset.check().outcomes[0].num_fragments_read == 1
    assert dataset.check().outcomes[0].num_fragments_read == 0
    assert not checks_folder(cache_home).exists()


def test_versions_share_what_was_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes read by checking every version; LANCE_NB_CHECK_VERSIONS=1000 is the full size."""
    count = VERSIONS
    uri = str(tmp_path / "many.lance")
    size = 200
    for start in range(count):
        ids = range(start * size, (start + 1) * size)
        rows = pa.table(
            {"id": ids, "score": [n / (count * size) for n in ids], "more": ["x" * 90] * size}
        )
        made = lance_nb.write_dataset(rows, uri, mode="append" if start else "create")
    made.expectations.add("score BETWEEN 0 AND 1")
    made.expectations.add_unique("id")
    found = made.check_versions()
    assert len(found) == count + 2
    assert all(one.ok for one in found)
    cold = sum(one.bytes_read for one in found)
    warm = sum(one.bytes_read for one in lance_nb.dataset(uri).check_versions())
    # What one version costs alone, halfway: the mean of all.
    alone = lance_nb.dataset(uri).check(count // 2, cache=False)
    naive = alone.bytes_read * len(found)
    opened = lance_nb.dataset(uri)
    opened.insert(pa.table({"id": [-1], "score": [0.5], "more": ["x"]}))
    after = opened.check().bytes_read
    with capsys.disabled():
        if count > 20:
            print(
                f"\n{count} versions: first {cold:,} bytes, again {warm:,}, "
                f"one more commit {after:,}; each version alone {naive:,}"
            )
    assert warm == 0
    assert naive > 5 * cold
    assert 0 < after < 10_000
    # Both columns of every fragment once, with the metadata of its file.
    assert cold < count * 8_000


def test_what_repeats_is_known_as_well(dataset: LanceDataset) -> None:
    dataset.insert(pa.table({"id": [5, 25], "name": ["x", "y"]}))

    def found(names: list[str]) -> tuple[int, int | None, tuple[int, ...]]:
        result = lance_nb.dataset(dataset.uri).check(names=names)
        (one,) = result.outcomes
        return result.bytes_read, one.num_failed, one.fragments

    first, *first_found = found(["key"])
    again, *again_found = found(["key"])
    assert first_found == again_found == [4, (0, 2, 3)]
    assert first > 0
    assert again == 0


def test_bytes_that_are_not_known_yet(dataset: LanceDataset) -> None:
    dataset.expectations.add_row_count(1, name="rows")

    def unread(version: int | None = None) -> int:
        opened = lance_nb.dataset(dataset.uri)
        return Checker(opened).unread_bytes(opened.checkout_version((None, version)))

    files = [one for fragment in dataset.get_fragments() for one in fragment.metadata.files]
    sizes = [one.file_size_bytes or 0 for one in files]
    assert unread() == sum(sizes)
    assert unread(1) == sizes[0]
    lance_nb.dataset(dataset.uri).check(1)
    assert unread(1) == 0 < unread() < sum(sizes)
    dataset.check()
    assert unread() == 0
    dataset.expectations.add_drift("id", name="drift")
    assert unread() == 0  # a change of the configuration moves no values
    dataset.insert(pa.table({"id": [900], "name": ["z"]}))
    lance_nb.dataset(dataset.uri).check(names=["bound", "named", "key"])
    assert unread() > 0
    dataset.check()
    assert unread() == 0

"""Verification: what is whole is whole; each kind of damage is listed where it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset, verifying
from lance_nb.errors import CorruptFileError, LanceError
from lance_nb.format.fragment import Fragment
from lance_nb.table import versions
from lance_nb.table.verification import fragments


@pytest.fixture
def grown(make: Callable[..., LanceDataset], rows: Any) -> LanceDataset:
    """Return three versions: rows, more rows, deletions."""
    found = make(enable_stable_row_ids=True)
    found.insert(rows)
    found.delete("id = 3")
    return found


def root_of(dataset: LanceDataset) -> Any:
    return dataset.opened[0].root


def one_of(dataset: LanceDataset, folder: str) -> str:
    return f"{folder}/{min(root_of(dataset).list_names(folder))}"


def kinds(dataset: LanceDataset) -> set[str]:
    return {one.code for one in dataset.verify().findings}


def test_a_whole_dataset_is_whole(grown: LanceDataset):
    grown.tags.create("t", 1)
    grown.create_branch("dev", 2).insert(pa.table({"id": [7], "name": ["x"]}))
    seen: list[tuple[int, int]] = []
    found = grown.verify(progress=lambda *step: seen.append(step), raise_on_error=True)
    assert found.ok
    assert (found.num_versions, found.num_data_files, found.num_deletion_files) == (5, 3, 2)
    assert found.num_values == 2 * 21
    assert found.to_table().num_rows == 0
    assert "whole" in repr(found)
    assert seen[-1] == (10, 10)
    assert grown.validate() is None


def test_without_values_nothing_is_decoded(grown: LanceDataset):
    assert grown.verify(values=False).num_values == 0


def test_a_missing_data_file_is_listed_once(grown: LanceDataset):
    path = one_of(grown, "data")
    root_of(grown).delete(path)
    found = grown.verify()
    assert [(one.code, one.path) for one in found.findings] == [("data-file-missing", path)]
    assert "data-file-missing" in repr(found)
    with pytest.raises(LanceError):
        grown.verify(raise_on_error=True)
    with pytest.raises(FileNotFoundError):
        grown.validate()


def test_a_cut_data_file_is_listed(grown: LanceDataset):
    path = one_of(grown, "data")
    root_of(grown).write(path, bytes(root_of(grown).read(path))[:100])
    assert kinds(grown) == {"data-file-size"}
    with pytest.raises(CorruptFileError):
        grown.validate()


def test_damaged_pages_are_found_by_decoding(make: Callable[..., LanceDataset]):
    values = pa.array(np.random.default_rng(1).integers(0, 2**40, 20_000))
    found = make(pa.table({"s": values.cast(pa.string())}))
    path = one_of(found, "data")
    data = bytearray(root_of(found).read(path))
    data[64:4000] = b"\xff" * (4000 - 64)
    root_of(found).write(path, bytes(data))
    again = lance_nb.dataset(found.uri)
    assert again.validate() is None
    assert kinds(again) == {"values-damaged"}


def test_damaged_deletions_are_listed(grown: LanceDataset):
    path = one_of(grown, "_deletions")
    whole = bytes(root_of(grown).read(path))
    root_of(grown).write(path, whole[:10])
    assert kinds(grown) == {"deletion-file-damaged"}
    root_of(grown).delete(path)
    assert kinds(grown) == {"deletion-file-missing"}


def test_a_damaged_manifest_is_listed_and_the_others_are_read(grown: LanceDataset):
    root_of(grown).write(one_of(grown, "_versions").replace("12", "13"), b"damaged")
    found = grown.verify()
    assert [(one.code, one.version) for one in found.findings] == [("manifest-unreadable", 2)]
    assert found.num_versions == 2


def test_damaged_transactions_of_several_versions_are_all_listed(grown: LanceDataset):
    paths = [f"_transactions/{name}" for name in root_of(grown).list_names("_transactions")]
    for path in paths:
        root_of(grown).write(path, b"\xff" * 9)
    found = grown.verify().findings
    assert {one.code for one in found} == {"transaction-unreadable"}
    assert sorted(one.path for one in found) == sorted(paths)


def test_refs_that_point_nowhere_are_listed(grown: LanceDataset):
    grown.tags.create("gone", 1)
    grown.create_branch("dev", 2)
    names = sorted(root_of(grown).list_names("_versions"))
    for name in names[1:3]:
        root_of(grown).delete(f"_versions/{name}")
    found = grown.verify()
    assert {(one.code, one.path) for one in found.findings} == {
        ("tag-dangling", "_refs/tags/gone.json"),
        ("branch-parent-missing", "_refs/branches/dev.json"),
    }


def test_orphans_are_counted_and_no_problem(grown: LanceDataset):
    root_of(grown).write("data/orphan.lance", b"orphan")
    root_of(grown).write("_indices/gone/page.lance", b"orphan")
    found = grown.verify()
    assert found.ok
    assert (found.num_orphans, found.orphan_bytes) == (2, 12)
    assert found.orphans == ("_indices/gone/page.lance", "data/orphan.lance")


def test_a_base_that_was_not_allowed_is_reported(grown: LanceDataset, uri: str, as_another_process):
    grown.shallow_clone(f"{uri}-clone")
    as_another_process()
    found = lance_nb.dataset(f"{uri}-clone").verify()
    assert "base-not-allowed" in {one.code for one in found.findings}
    assert lance_nb.dataset(f"{uri}-clone", allow_bases=[uri]).verify().ok


def test_an_interrupted_verification_changes_nothing(grown: LanceDataset, files: Any):
    before = files()

    def stop(*_step: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grown.verify(progress=stop)
    assert files() == before


def test_old_files_are_verified_beyond_versions_without_any_of_their_own(two_fragments) -> None:
    lance_nb.write_dataset(
        two_fragments.to_table().slice(0, 3), two_fragments.uri, mode="overwrite"
    )
    newest = lance_nb.dataset(two_fragments.uri)
    newest.update_config({"a": "1"})
    newest.update_config({"a": "2"})
    assert newest.verify().num_values == 2 * (4 + 3)


def test_damage_is_found_in_every_version_that_has_it(two_fragments) -> None:
    for _ in range(3):
        lance_nb.write_dataset(two_fragments.to_table(), two_fragments.uri, mode="overwrite")
    newest = lance_nb.dataset(two_fragments.uri)
    root = newest.opened[0].root
    numbers = (1, 3)
    files = [newest.checkout_version(one).get_fragments()[0].data_files()[0] for one in numbers]
    for file in files:
        whole = bytes(root.read(f"data/{file.path}"))
        root.write(f"data/{file.path}", whole[:40] + bytes(8) + whole[48:-4] + b"FAIL")
    found = {(one.version, one.path) for one in newest.verify().findings}
    assert {
        (number, f"data/{file.path}") for number, file in zip(numbers, files, strict=True)
    } <= found


def test_fragments_are_decoded_once_whatever_the_number_of_versions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Count decoded descriptions: versions times fragments of them would be quadratic."""
    uri = "memory://verified/many_versions.lance"
    dataset = lance_nb.write_dataset(pa.table({"n": range(30)}), uri, max_rows_per_file=1)
    decoded: list[object] = []
    from_bytes = Fragment.from_bytes
    monkeypatch.setattr(
        Fragment, "from_bytes", lambda *given: (decoded.append(given[0]), from_bytes(*given))[1]
    )
    counts = []
    for _ in range(2):
        for number in range(20):
            dataset.update_config({"k": str(number)})
        decoded.clear()
        report = lance_nb.dataset(uri).verify()
        assert (report.verdict, report.num_fragments) == ("whole", 30)
        counts.append(len(decoded))
    assert report.num_versions == 41
    # The newest version is decoded once more as a whole, and no other one.
    assert counts[0] == counts[1] <= 3 * 30


def test_each_file_is_read_once(grown: LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Manifests are also read for the files that they name."""
    reads: Counter[str] = Counter()
    for module, name in ((versions, "read_marked_tail"), (fragments, "read_rows")):
        function = getattr(module, name)

        def counted(*arguments: Any, function: Any = function, name: str = name) -> Any:
            reads[arguments[1] if name == "read_marked_tail" else "columns"] += 1
            return function(*arguments)

        monkeypatch.setattr(module, name, counted)
    report = grown.verify()
    assert report.ok
    assert reads.pop("columns") == report.num_data_files == 2
    assert list(reads.values()) == [1, 1, 1]
    monkeypatch.setattr(verifying, "_MANIFEST_BYTES_MAX", 0)
    assert grown.verify() == report
    assert reads.pop("columns") == 2
    assert min(reads.values()) > 2

"""Several base paths and clean-ups by themselves: what pylance does, by the same calls."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

ROWS = pa.table({"a": range(10), "s": [f"text {n}" for n in range(10)]})
WRITES: list[dict[str, Any]] = [
    {"target_bases": ["two"]},
    {"target_bases": ["one", "two"]},
    {"target_all_bases": True},
    {"target_all_bases": False, "max_rows_per_file": 5},
    {"mode": "overwrite", "target_bases": ["two", "one"]},
    {"target_bases": []},
]


def opened(module: ModuleType, place: Path) -> Any:
    options = {"allow_bases": [str(place.parent)]} if module is lance_nb else {}
    return module.dataset(str(place), **options)


def written(module: ModuleType, place: Path, **options: Any) -> None:
    if module is lance_nb:
        options["allow_bases"] = [str(place.parent)]
    module.write_dataset(ROWS, str(place), **{"mode": "append", **options})


def bases_of(dataset: Any) -> list[int | None]:
    return [file.base_id for one in dataset.get_fragments() for file in one.data_files()]


def in_any_order(bases: list[int | None]) -> list[int]:
    """Which base of "all" comes next is left to chance in pylance."""
    return sorted(one or 0 for one in bases)


@pytest.mark.parametrize("turns", ["to", "ot"])  # our writes and theirs, alternating
def test_files_lie_where_pylance_puts_them(tmp_path: Path, turns: str) -> None:
    lance = require_pylance()
    modules = {"t": lance, "o": lance_nb}
    place, alone = tmp_path / "mixed", tmp_path / "pylance"
    for module, path in ((modules[turns[0]], place), (lance, alone)):
        base = module.DatasetBasePath
        folders = [f"{path}-{name}" for name in ("one", "two")]
        bases = [base(folders[0], "one"), base(folders[1], "two", is_dataset_root=True)]
        module.write_dataset(
            ROWS, str(path), initial_bases=bases, target_bases=["one"], max_rows_per_file=4
        )
    for number, options in enumerate(WRITES):
        how = {"max_rows_per_file": 4, **options}
        written(modules[turns[(number + 1) % 2]], place, **how)
        written(lance, alone, **how)
        theirs, ours = opened(lance, place), opened(lance_nb, place)
        assert bases_of(ours) == bases_of(theirs)
        assert in_any_order(bases_of(ours)) == in_any_order(bases_of(opened(lance, alone)))
        assert ours.to_table() == theirs.to_table() == opened(lance, alone).to_table()
    theirs.validate()


def test_bases_added_by_us_are_written_to_by_pylance(tmp_path: Path) -> None:
    lance = require_pylance()
    ours = lance_nb.write_dataset(ROWS, tmp_path / "d")
    ours.add_bases([lance_nb.DatasetBasePath(f"{tmp_path}/more", "more")])
    theirs = lance.write_dataset(ROWS, str(tmp_path / "d"), mode="append", target_bases=["more"])
    theirs.add_bases([lance.DatasetBasePath(f"{tmp_path}/most", "most")])
    ours = lance_nb.write_dataset(
        ROWS, tmp_path / "d", mode="append", target_bases=[f"{tmp_path}/most"],
        allow_bases=[f"{tmp_path}/more"],
    )  # fmt: skip
    assert bases_of(ours) == [None, 1, 2]
    assert lance.dataset(str(tmp_path / "d")).to_table() == ours.to_table()


def test_blobs_lie_beside_their_data_file(tmp_path: Path) -> None:
    lance = require_pylance()
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    payloads = [b"x" * 10, b"y" * 100_000, b"z" * 5_000_000]
    table = pa.table([pa.array(payloads, pa.large_binary())], schema=pa.schema([field]))
    bases = [lance_nb.DatasetBasePath(f"{tmp_path}/media", "media")]
    ours = lance_nb.write_dataset(
        table, tmp_path / "d", initial_bases=bases, target_bases=["media"]
    )
    theirs = lance.dataset(str(tmp_path / "d"))
    for dataset in (ours, theirs):
        found = [one.readall() for one in dataset.take_blobs("b", indices=[0, 1, 2])]
        assert found == payloads


@pytest.mark.parametrize("retained", [None, "3"])
def test_versions_go_when_pylance_lets_them_go(tmp_path: Path, retained: str | None) -> None:
    lance = require_pylance()
    kept = []
    for module in (lance, lance_nb):
        path = str(tmp_path / module.__name__)
        options = {"interval": 3, "older_than_seconds": 0}
        dataset = module.write_dataset(ROWS, path, auto_cleanup_options=options)
        assert dataset.config() == {
            "lance.auto_cleanup.interval": "3", "lance.auto_cleanup.older_than": "0s",
        }  # fmt: skip
        if retained is not None:
            dataset.update_config({"lance.auto_cleanup.retain_versions": retained})
        numbers = []
        for turn in range(7):
            if turn == 4:
                dataset.optimize.enable_auto_cleanup({"interval": 2, "older_than_seconds": 0})
            dataset = module.write_dataset(ROWS, path, mode="append")
            dataset.delete("a = 3")
            numbers.append([one["version"] for one in dataset.versions()])
        dataset.optimize.disable_auto_cleanup()
        assert "lance.auto_cleanup.interval" not in dataset.config()
        kept.append(numbers)
    assert kept[0] == kept[1]


def test_a_clean_up_that_fails_undoes_no_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"interval": 1, "older_than_seconds": 0}
    lance_nb.write_dataset(ROWS, tmp_path / "d", auto_cleanup_options=options)
    lance_nb.dataset(tmp_path / "d").update_config({"lance.auto_cleanup.older_than": "soon"})
    after = lance_nb.write_dataset(ROWS, tmp_path / "d", mode="append")
    assert after.count_rows() == 20
    assert [one["version"] for one in after.versions()] == [1, 2, 3]
    assert "lance.auto_cleanup" in caplog.text
    assert "'soon'" in caplog.text


def test_a_file_that_was_lost_is_found_again(tmp_path: Path) -> None:
    lance = require_pylance()
    table = pa.table({"s": [[1], None], "p": ["a", "b"]})
    ours = lance_nb.write_dataset(table.select(["p"]), tmp_path / "d")
    name = ours.get_fragments()[0].data_files()[0].path
    mine = lance_nb.LanceFragment.create_from_file(name, ours, 7)
    theirs = lance.LanceFragment.create_from_file(name, lance.dataset(str(tmp_path / "d")), 7)
    (file,), (other,) = mine.files, theirs.files
    assert (mine.id, mine.physical_rows) == (theirs.id, theirs.physical_rows)
    assert (file.path, list(file.fields), list(file.column_indices)) == (
        other.path, other.fields, other.column_indices,
    )  # fmt: skip
    with pytest.raises(FileNotFoundError):
        lance_nb.LanceFragment.create_from_file("none.lance", ours, 7)
    found = lance_nb.LanceDataset.commit(
        ours, lance_nb.LanceOperation.Append((mine,)), read_version=1
    )
    assert found.to_table() == pa.concat_tables([table.select(["p"])] * 2)
    ours.insert(table.select(["s"]), mode="overwrite")
    with pytest.raises(lance_nb.errors.SchemaMismatchError):
        lance_nb.LanceFragment.create_from_file(name, ours, 7)


def test_a_dataset_is_dropped_as_by_pylance(tmp_path: Path) -> None:
    lance = require_pylance()
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "x").write_text("x")
    for module in (lance, lance_nb):
        drop = module.LanceDataset.drop
        lance.write_dataset(ROWS, str(tmp_path / "d")).create_branch("dev")
        with pytest.raises(ValueError, match="root"):
            drop(str(tmp_path / "plain"))
        with pytest.raises(OSError, match="none"):
            drop(str(tmp_path / "none"))
        drop(str(tmp_path / "none"), ignore_not_found=True)
        drop(str(tmp_path / "d"))
        assert sorted(one.name for one in tmp_path.iterdir()) == ["plain"]

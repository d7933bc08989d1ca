"""Every verb on datasets that are empty or damaged: an answer, or one readable line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import lance_nb
from lance_nb.magic.registry import VERBS
from tests.unit.magic.conftest import Lance, rows

LINES = {
    "open": "open ds", "at": "at HEAD~1", "head": "head -n 2", "export": "export OUT.parquet",
    "bisect": "bisect 'price >= 0'", "diff": "diff HEAD~1..HEAD --rows", "row": "row id=7",
    "stage": "stage delete 'id = 9'", "merge": "merge dev --dry-run --key id",
    "cherry-pick": "cherry-pick dev:4 --dry-run --key id",
    "revert": "revert HEAD --dry-run --key id", "clean": "clean --keep 1",
    "restore": "restore HEAD~1", "sql": "sql SELECT label, count(*) FROM dataset GROUP BY label",
}  # fmt: skip
MORE = ("bisect 'count(*) > 5'", "log --graph", "diff 1 2 --schema", "head --where 'price > 3'")


def cut_data(path: Path) -> None:
    for file in path.glob("data/*.lance"):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def lose_data(path: Path) -> None:
    for file in path.glob("data/*.lance"):
        file.unlink()


def lose_a_manifest(path: Path) -> None:
    sorted(path.glob("_versions/*.manifest"))[1].unlink()


def cut_an_old_manifest(path: Path) -> None:
    file = sorted(path.glob("_versions/*.manifest"))[1]
    file.write_bytes(file.read_bytes()[:40])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "photos.lance"
    lance_nb.write_dataset(rows(0, 30), str(path))
    dataset = lance_nb.write_dataset(rows(30, 60), str(path), mode="append")
    dataset.delete("id = 5")
    dataset.create_branch("dev").delete("id = 4")
    return path


def ask_everything(lance: Lance, shell: InteractiveShell, path: Path) -> list[str]:
    """Run every verb and return what the failing ones said."""
    lance(f"open {path} as ds --no-display")
    said = []
    for line in (*(LINES.get(name, name) for name in VERBS), *MORE):
        try:
            lance(line.replace("OUT", str(path.parent / "out")))
        except UsageError as error:
            said.append(str(error))
    assert all("\n" not in one and "Traceback" not in one for one in said)
    return said


@pytest.mark.parametrize("damage", [cut_data, lose_data, lose_a_manifest, cut_an_old_manifest])
def test_damage_is_said_in_one_line_that_names_the_file(
    lance: Lance, shell: InteractiveShell, path: Path, damage: Callable[[Path], None]
) -> None:
    damage(path)
    said = ask_everything(lance, shell, path)
    if damage in {cut_data, lose_data}:
        blamed = [one for one in said if str(path / "data") in one]
        assert len(blamed) >= 8
        assert not any("cannot access" in one for one in blamed)
        assert not (path.parent / "out.parquet").exists()


def test_an_empty_dataset_has_answers(
    lance: Lance, shell: InteractiveShell, tmp_path: Path
) -> None:
    path = tmp_path / "empty.lance"
    dataset = lance_nb.write_dataset(rows(0, 0), str(path))
    dataset.create_branch("dev").delete("id = 4")
    said = ask_everything(lance, shell, path)
    assert all(one.startswith("%lance ") for one in said)
    assert lance("head").value.num_rows == 0
    assert lance("sql SELECT count(*) AS n FROM ds").value == pa.table({"n": [0]})


def test_a_folder_without_manifests_is_not_its_own_suggestion(lance: Lance, path: Path) -> None:
    for file in path.glob("_versions/*.manifest"):
        file.unlink()
    with pytest.raises(UsageError, match="no manifest is there") as caught:
        lance(f"open {path}")
    assert "did you mean" not in str(caught.value)

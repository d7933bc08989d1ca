"""A dataset with branches that was moved or copied to another folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_nb

LINES = {  # branch -> the ids that its newest version has
    None: [2, 3, 4, 5, 20],
    "dev": [2, 3, 10],
    "team/sub": [2, 3, 10, 30],
    "merged": [1, 2, 3, 4, 5, 20],
}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids})


def write(place: Path) -> None:
    """Branches of main and of a branch, with deletions of shared rows; one is merged into main."""
    main = lance_nb.write_dataset(rows(1, 2, 3), place)
    dev = main.create_branch("dev")
    dev.insert(rows(10))
    dev.delete("id = 1")
    dev.create_branch("team/sub").insert(rows(30))
    main.insert(rows(4, 5))
    main.create_branch("merged").insert(rows(20))
    main.branches.merge("merged")
    lance_nb.dataset(place).delete("id = 1")


def at(place: Path, branch: str | None, version: int | None = None, **options: Any) -> Any:
    return lance_nb.dataset(place, (branch, version), **options)


def ids(dataset: Any) -> list[int]:
    return sorted(dataset.to_table()["id"].to_pylist())


def contents(place: Path) -> dict[str | None, list[int]]:
    return {branch: ids(at(place, branch)) for branch in LINES}


def repair(place: Path) -> list[str]:
    return [str(one) for one in lance_nb.dataset(place).repair_moved()]


def relocate(tmp_path: Path, *, is_copy: bool) -> Path:
    """Return the place of the dataset after a move, or a copy whose original was damaged since."""
    first, there = tmp_path / "first", tmp_path / "elsewhere" / "second"
    write(first)
    if is_copy:
        shutil.copytree(first, there)
        for file in first.rglob("*.*"):
            file.write_bytes(b"not what was copied")
    else:
        there.parent.mkdir()
        first.rename(there)
    return there

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lance_nb
from lance_nb.explorer.storage.storage_report import TARGET_ROWS, space_use, storage_health
from lance_nb.format.fragment_list import FragmentCounts
from tests.support.explorer_datasets import worn_dataset


def counted(
    rows: list[int], deleted: list[int], files: int = 1, covered: set[int] | None = None
) -> Any:
    physical = np.array(rows, np.int64)
    ids = np.arange(len(rows), dtype=np.int64)
    full = np.full(len(rows), files, np.int64)
    gone = np.array(deleted, np.int64)
    counts = FragmentCounts(ids, physical, gone, full, (gone > 0).astype(np.int64), physical * 100)
    snapshot = SimpleNamespace(manifest=SimpleNamespace(fragments=SimpleNamespace(
        counts=lambda: counts), index_section=None))  # fmt: skip
    indices = [] if covered is None else [{"name": "i", "fragment_ids": covered}]
    return SimpleNamespace(
        opened=(None, snapshot), list_indices=lambda: indices, uri="d.lance", branch=None
    )


BIG = TARGET_ROWS


@pytest.mark.parametrize(
    ("dataset", "keys"),
    [
        (counted([BIG, BIG], [0, 0]), []),
        (counted([], []), []),
        (counted([BIG, 50, BIG], [0, 0, 0]), []),  # nothing to join it with
        (counted([BIG, 50, 60], [0, 0, 0]), ["small"]),
        (counted([BIG * 2, BIG], [BIG // 4, 0]), ["deletions"]),
        (counted([BIG * 2, BIG], [BIG // 6, 0]), []),
        (counted([BIG], [0], files=9), ["files"]),
        (counted([BIG, BIG], [0, 0], covered={0}), ["index i"]),
        (counted([BIG, BIG], [0, 0], covered={0, 1}), []),
    ],
)
def test_advice_is_given_where_it_helps(dataset: Any, keys: list[str]) -> None:
    assert [one.key for one in storage_health(dataset)] == keys


def test_the_line_of_code_does_what_the_advice_says(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "d.lance")
    advice = {one.key: one for one in storage_health(dataset)}
    assert set(advice) == {"deletions", "small"}
    assert advice["deletions"].fragment == 1
    eval(advice["deletions"].python, {"lance_nb": lance_nb})  # noqa: S307 -- ours, not a user's
    assert storage_health(lance_nb.dataset(dataset.uri)) == ()


def test_every_byte_of_the_folder_is_accounted_for(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "d.lance")
    use = space_use(dataset.space())
    on_disk = sum(file.stat().st_size for file in (tmp_path / "d.lance").rglob("*")
                  if file.is_file())  # fmt: skip
    assert use.total == on_disk == sum(state["bytes"] for state in use.states)
    assert [ref["name"] for ref in use.refs] == ["v1"]
    assert use.refs[0]["place"] == "main:2"
    assert use.versions[0]["own"] >= use.versions[-1]["own"]

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CancelledError, MissingPackageError, NotSupportedError
from lance_nb.explorer.map import layout_process, neighbour_layout
from lance_nb.explorer.map.embedding_map import place_rows
from lance_nb.explorer.map.neighbour_layout import (
    STEPS,
    NeighbourLayout,
    fit_layout,
)
from lance_nb.explorer.source import scanned_source

DIMENSION, GROUPS = 8, 5


def quiet(_done: int, _total: int) -> None:
    """Ignore progress."""


def groups(rows: int, seed: int = 1) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    middles = np.random.default_rng(0).normal(size=(GROUPS, DIMENSION)) * 20
    kind = random.integers(0, GROUPS, rows)
    noise = random.normal(size=(rows, DIMENSION))
    return kind, (middles[kind] + noise).astype(np.float32)


@pytest.fixture
def source(tmp_path: Path) -> Any:
    _, values = groups(600)
    vector = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION)
    return lance_nb.write_dataset(pa.table({"vector": vector}), str(tmp_path / "d.lance"))


@pytest.fixture
def layout() -> NeighbourLayout:
    """Groups on a circle: a layout that needs no library."""
    kind, values = groups(2000)
    turns = 2 * np.pi * kind / GROUPS
    places = np.stack([np.cos(turns), np.sin(turns)], axis=1).astype(np.float32)
    return NeighbourLayout.of("vector", values, places)


def test_vectors_stand_where_their_nearest_references_are(layout: NeighbourLayout) -> None:
    kind, values = groups(3000, seed=2)
    placed = layout.place(values).astype(int)
    middles = np.stack([placed[kind == one].mean(0) for one in range(GROUPS)])
    gaps = np.abs(placed[:, None] - middles).max(2)
    assert np.array_equal(gaps.argmin(1), kind)
    assert gaps.min(1).max() < 10  # all neighbours of a point are of its group
    # A reference has its own place, whatever is near to it.
    random = np.random.default_rng(4).normal(size=(2000, 2)).astype(np.float32)
    moved = NeighbourLayout.of("vector", layout.references, random)
    low, high = random.min(0), random.max(0)
    share = (moved.place(layout.references) / 65_535 * 1.1 - 0.05) * (high - low) + low
    assert np.abs(share - random).max() < 1e-3


def test_the_nearest_references_are_found(layout: NeighbourLayout) -> None:
    _, values = groups(200, seed=3)
    places, gaps = layout._nearest(values)
    exact = ((values[:, None] - layout.references) ** 2).sum(2)
    nearest = np.argsort(exact, axis=1)[:, : places.shape[1]]
    found = [np.isin(mine, own).mean() for mine, own in zip(places, nearest, strict=True)]
    assert np.mean(found) > 0.9
    assert np.isclose(gaps[:, 0], exact.min(1), rtol=1e-3).mean() > 0.95
    assert np.allclose(gaps, np.take_along_axis(exact, places, axis=1), rtol=1e-3)


def test_the_library_lays_out_and_new_rows_come_beside(source: Any) -> None:
    pytest.importorskip("manifolds_rs", reason="the extra maps is not installed")
    seen: list[tuple[int, int]] = []
    layout = fit_layout(source, "vector", lambda done, total: seen.append((done, total)))
    assert [one[0] for one in seen] == sorted(one[0] for one in seen)
    assert {one[1] for one in seen} == {STEPS}
    points = place_rows(source, layout, 1, quiet)
    assert points.plane.words.startswith("UMAP of 600 vectors of vector")
    kind, _ = groups(600)
    middles = np.stack([points.xy[kind == one].astype(int).mean(0) for one in range(GROUPS)])
    near = np.linalg.norm(points.xy[:, None].astype(int) - middles, axis=2).argmin(1)
    assert (near == kind).mean() > 0.99
    newer, values = groups(200, seed=6)
    beside = np.linalg.norm(layout.place(values)[:, None].astype(int) - middles, axis=2).argmin(1)
    assert (beside == newer).mean() > 0.99


def test_what_is_missing_or_too_few_is_said(source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour_layout, "find_spec", lambda _name: None)
    with pytest.raises(MissingPackageError, match=r"pip install .*\[maps\]'"):
        fit_layout(source, "vector", quiet)
    monkeypatch.setattr(neighbour_layout, "find_spec", lambda _name: object())
    source.delete("true")
    with pytest.raises(NotSupportedError, match="needs 100 rows"):
        fit_layout(scanned_source(lance_nb.dataset(source.uri)), "vector", quiet)


def _replaced(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    (folder / "process.py").write_text(script)
    monkeypatch.setattr(layout_process, "__file__", str(folder / "process.py"))
    monkeypatch.setattr(neighbour_layout, "find_spec", lambda _name: sys)


def test_a_process_that_fails_says_why(
    source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _replaced(monkeypatch, tmp_path, "raise SystemExit('no \\x1b[31mroom')")
    with pytest.raises(NotSupportedError, match="cannot be laid out: no ") as caught:
        fit_layout(source, "vector", quiet)
    assert "\x1b" not in str(caught.value)


def test_cancelling_ends_the_process(
    source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "ended"
    waiting = f"import pathlib, time\ntime.sleep(30)\npathlib.Path({str(mark)!r}).touch()"
    _replaced(monkeypatch, tmp_path, waiting)

    def cancel(done: int, total: int) -> None:
        if done >= total // 5:
            raise CancelledError("enough")

    started: list[Any] = []
    real = subprocess.Popen

    def start(*args: Any, **how: Any) -> Any:
        started.append(real(*args, **how))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    with pytest.raises(CancelledError):
        fit_layout(source, "vector", cancel)
    assert started[0].poll() is not None
    assert not mark.exists()

"""Indices over floats of every bit pattern: both signs of NaN, both zeros, infinities, nulls.

One engine builds the index and either engine extends it by appended rows; then each engine must
count by the index what it counts without one. pylance compares floats by their total order, so a
NaN with the sign bit (0.0 / 0.0 on x86) is less than every number and any other NaN greater.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.indices import sorted_rows
from tests.support.requirements import require_pylance

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # pylance's own
]

WIDTHS = ("float16", "float32", "float64")
KINDS = ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER")
FILTERS = (
    "x = 0", "x = -0.0", "x = 7", "x > 2", "x >= 0", "x < 0", "x <= 0", "x < 5", "x != 1",
    "x IN (0, 3)", "x IN (-0.0, 90)", "NOT (x > 2)", "x BETWEEN -5 AND 0", "x IS NULL",
    "x IS NOT NULL", "NOT (x = 0)", "x = 90 OR x < -4",
)  # fmt: skip


def floats(width: str, count: int, *, seed: int) -> pa.Array:
    """Return whole numbers with rare special values among them, and a few nulls."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-6, 100, count).astype(width)
    nan = np.array(np.nan, width)
    special = np.array([nan, -nan, 0.0, -0.0, np.inf, -np.inf, np.nan], width)
    places = rng.permutation(count)[: count // 8]
    numbers[places] = special[rng.integers(0, special.size, places.size)]
    return pa.array(numbers, mask=rng.random(count) < 0.02)


def assert_counts_agree(path: str, filters: tuple[str, ...], where: object) -> None:
    """Compare both engines, each with and without indices."""
    pylance = require_pylance()
    theirs, ours = pylance.dataset(path), lance_nb.dataset(path)
    for text in filters:
        expected = theirs.scanner(filter=text, use_scalar_index=False).count_rows()
        counts = {
            "pylance by index": theirs.count_rows(text),
            "lance_nb": ours.scanner(filter=text, use_scalar_index=False).count_rows(),
            "lance_nb by index": ours.count_rows(text),
        }
        assert counts == dict.fromkeys(counts, expected), (where, text, expected)


def build(engine: Any, path: str, column: pa.Array, kind: str) -> None:
    dataset = engine.write_dataset(pa.table({"x": column}), path)
    dataset.create_scalar_index("x", kind)


def extend(engine: Any, path: str, column: pa.Array) -> None:
    engine.write_dataset(pa.table({"x": column}), path, mode="append")
    engine.dataset(path).optimize.optimize_indices()


@pytest.mark.parametrize(("kind", "width"), [*itertools.product(KINDS, WIDTHS)])
def test_counts_by_index_are_those_without(tmp_path: Path, kind: str, width: str) -> None:
    pylance = require_pylance()
    if (kind, width) == ("BLOOMFILTER", "float16"):
        with pytest.raises(ValueError, match="Float16"):
            build(pylance, str(tmp_path / "refused"), floats(width, 10, seed=0), kind)
        return
    engines = {"pylance": pylance, "lance_nb": lance_nb}
    for builder, extender in itertools.product(engines, engines):
        path = str(tmp_path / f"{builder}-{extender}")
        build(engines[builder], path, floats(width, 300, seed=1), kind)
        assert_counts_agree(path, FILTERS, (builder, kind, width))
        extend(engines[extender], path, floats(width, 200, seed=2))
        assert_counts_agree(path, FILTERS, (builder, extender, kind, width))
        assert not lance_nb.dataset(path).verify().findings, (builder, extender, kind, width)


@pytest.mark.parametrize("width", WIDTHS)
def test_label_lists(tmp_path: Path, width: str) -> None:
    pylance = require_pylance()
    items = floats(width, 300, seed=3)
    column = pa.ListArray.from_arrays(pa.array(range(0, 301, 2), pa.int32()), items)
    filters = tuple(f"array_has_any(x, [CAST({n} AS DOUBLE)])" for n in ("7", "90"))
    if width != "float64":
        filters = ()
    engines = {"pylance": pylance, "lance_nb": lance_nb}
    keys = {}
    for name, engine in engines.items():
        path = str(tmp_path / name)
        build(engine, path, column, "LABEL_LIST")
        assert_counts_agree(path, filters, (name, width))
        (index_file,) = (tmp_path / name / "_indices").glob("*/bitmap_page_lookup.lance")
        stored = lance_nb.LanceFileReader(str(index_file)).read_all().to_table()["keys"]
        bits = stored.combine_chunks().drop_null().to_numpy(zero_copy_only=False)
        keys[name] = bits.view(f"u{bits.itemsize}").tolist()
    assert keys["lance_nb"] == keys["pylance"]


@pytest.mark.parametrize("width", WIDTHS)
def test_nan_of_a_division_among_many_pages(
    tmp_path: Path, width: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that are merged from files have the order too; keyed writes of pylance depend on it."""
    pylance = require_pylance()
    monkeypatch.setattr(sorted_rows, "RUN_BYTES", 20_000)
    numbers = np.full(9000, -np.array(np.nan, width), width)
    numbers[:2000] = np.arange(2000)
    numbers[-9:] = np.nan
    path = str(tmp_path / "d")
    build(lance_nb, path, pa.array(numbers), "BTREE")
    assert_counts_agree(path, (*FILTERS, "x = 1500", "x > 1990", "x IN (3, 1999)"), width)
    rows = pa.table({"x": pa.array(np.array([1500], width))})
    merge = pylance.dataset(path).merge_insert("x").when_not_matched_insert_all()
    assert merge.execute(rows)["num_inserted_rows"] == 0

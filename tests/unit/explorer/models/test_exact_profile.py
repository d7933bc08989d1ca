from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import ColumnNotFoundError, NotSupportedError
from lance_nb.explorer.models import exact_profile as exact
from lance_nb.explorer.models import source
from lance_nb.explorer.models.column_profile import BARS
from lance_nb.explorer.models.exact_profile import exact_profile
from lance_nb.explorer.models.lens import Lens


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(source, "GROUP_ROWS", 1)
    table = pa.table({
        "x": pa.array([None if at % 4 == 0 else float(at) for at in range(400)]),
        "name": [f"n{at % 3}" for at in range(400)],
        "flag": [at % 5 == 0 for at in range(400)],
        "when": pa.array(range(400), pa.timestamp("s")),
        "half": pa.array(np.arange(400) % 7, pa.float16()),
        "empty": pa.array([None] * 400, pa.int32()),
        "who": [{"a": 1}] * 400,
    })  # fmt: skip
    return lance_nb.write_dataset(table, tmp_path / "a.lance", max_rows_per_file=150)


def profile(dataset: Any, name: str, where: str | None = None) -> Any:
    lens = Lens(where)
    return exact_profile(dataset, lens.names(dataset).index(name), lens, quiet)


def test_numbers_are_counted_in_bars_between_their_ends(dataset: Any) -> None:
    found = profile(dataset, "x")
    values = [at for at in range(400) if at % 4]
    assert found.counts == tuple(np.histogram(values, BARS)[0].tolist())
    assert (found.edges, found.low, found.high) == ((1.0, 399.0), "1.0", "399.0")
    assert (found.sampled, found.nulls, found.distinct, found.exact) == (400, 0.25, 300, True)


def test_a_filter_counts_too(dataset: Any) -> None:
    found = profile(dataset, "x", "name = 'n1' AND x < 100")
    assert (found.sampled, found.edges, found.nulls) == (25, (1.0, 97.0), 0.0)


def test_texts_and_booleans_are_counted_by_value(dataset: Any) -> None:
    found = profile(dataset, "name")
    assert (found.labels, found.counts) == (("n0", "n1", "n2"), (134, 133, 133))
    assert found.wheres[0] == "name = 'n0'"
    found = profile(dataset, "flag")
    assert dict(zip(found.labels, found.counts, strict=True)) == {"false": 320, "true": 80}
    assert set(found.wheres) == {"flag", "NOT flag"}


def test_times_narrow_floats_and_nulls_alone_have_profiles(dataset: Any) -> None:
    assert profile(dataset, "when").edges == (0.0, 399.0)
    assert profile(dataset, "half").distinct == 7
    found = profile(dataset, "empty")
    assert (found.nulls, found.bars, found.low) == (1.0, (), "")


def test_too_many_values_are_not_counted(dataset: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MAX_DISTINCT", 2)
    found = profile(dataset, "name")
    assert (found.distinct, found.bars, found.sampled) == (-1, (), 400)
    assert profile(dataset, "x").distinct == -1


def test_other_columns_are_refused(dataset: Any) -> None:
    with pytest.raises(NotSupportedError):
        profile(dataset, "who")
    with pytest.raises(ColumnNotFoundError):
        exact_profile(dataset, 99, Lens(), quiet)

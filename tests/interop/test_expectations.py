"""Expectations beside pylance: it keeps them, breaks them, and counts the rows as we do."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_nb


@pytest.fixture(autouse=True)
def cache_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def rows(start: int, stop: int) -> pa.Table:
    random = np.random.default_rng(start)
    scores = pa.array(
        [None if n % 7 == 0 else float(random.random() * 1.2) for n in range(start, stop)]
    )
    names = pa.array([None if n % 11 == 0 else f"n{n % 90}" for n in range(start, stop)])
    return pa.table(
        {"id": pa.array(range(start, stop), pa.int64()), "score": scores, "name": names}
    )


@pytest.mark.parametrize("stable", [False, True])
def test_pylance_keeps_them_and_counts_alike(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "a.lance")
    lance.write_dataset(rows(0, 100), uri, max_rows_per_file=30, enable_stable_row_ids=stable)
    ours = lance_nb.dataset(uri)
    conditions = {"s": "score <= 1", "n": "name LIKE 'n1%' OR score > 0.2", "i": "id % 5 <> 4"}
    for name, condition in conditions.items():
        ours.expectations.add(condition, name=name)
    ours.expectations.add_unique("name", name="u")
    ours.expectations.add_not_null("name", name="nn")
    theirs = lance.dataset(uri)
    theirs.insert(rows(80, 150))
    theirs.delete("id = 90 OR id = 3")
    theirs.update({"score": "2.0"}, where="id < 10")
    theirs.add_columns({"more": "id + 1"})
    theirs.optimize.compact_files(target_rows_per_fragment=60)
    assert set(lance_nb.dataset(uri).expectations.names()) == {*conditions, "u", "nn"}
    for version in [one["version"] for one in theirs.versions()]:
        at = lance.dataset(uri, version)
        found = {one.name: one for one in lance_nb.dataset(uri).check(version).outcomes}
        for name, condition in conditions.items():
            assert found[name].num_failed == at.count_rows(f"({condition}) IS FALSE")
            assert found[name].num_null == at.count_rows(f"({condition}) IS NULL")
        assert found["nn"].num_failed == at.count_rows("name IS NULL")
        names = at.to_table(["name"])["name"].drop_null().to_pylist()
        assert found["u"].num_failed == sum(names.count(one) > 1 for one in names)

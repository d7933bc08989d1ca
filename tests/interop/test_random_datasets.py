"""Random datasets with random pasts read as pylance reads them, every version, all ways in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.interop.matrix import ROUNDS
from tests.interop.predicates import checks
from tests.interop.random_tables import Past
from tests.support.reading import decoded, first_difference, same
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
NUM_STEPS = 7


@pytest.mark.parametrize("seed", range(1000, 1000 + 16 * ROUNDS))
def test_a_random_dataset_reads_equal(seed: int, tmp_path: Path) -> None:
    lance = require_pylance()
    rng = np.random.default_rng(seed)
    version = ("2.1", "2.2", "2.2")[seed % 3]
    past = Past(lance, rng, str(tmp_path / "d"))
    past.begin(
        maps=version == "2.2",
        data_storage_version=version,
        enable_stable_row_ids=seed % 4 == 3,
        max_rows_per_file=int(rng.integers(20, 90)),
    )
    for _ in range(NUM_STEPS):
        past.step()
    for number in lance_nb.dataset(tmp_path / "d").version_numbers():
        ours = lance_nb.dataset(tmp_path / "d", version=number)
        _compare(ours, lance.dataset(tmp_path / "d", version=number), rng, past.done)


def _compare(ours: Any, theirs: Any, rng: Any, done: list[str]) -> None:
    whole = theirs.to_table()
    check(ours.to_table(), whole, done)
    rows = {"with_row_id": True, "with_row_address": True, "columns": ["id"]}
    check(ours.to_table(**rows), theirs.to_table(**rows), done)
    names = whole.column_names
    chosen = [names[k] for k in rng.permutation(len(names))][: len(names) // 2 + 1]
    check(ours.to_table(chosen), whole.select(chosen), done)
    start, count = int(rng.integers(len(whole) + 1)), int(rng.integers(60))
    check(ours.to_table(offset=start, limit=count), whole.slice(start, count), done)
    if len(whole):
        picked = rng.integers(0, len(whole), 25).tolist()
        check(ours.take(picked), whole.take(picked), done)
    name = names[int(rng.integers(len(names)))]
    ways = list(checks(name, whole[name].combine_chunks(), rng))
    way = ways[int(rng.integers(len(ways)))]
    check(ours.to_table(filter=way.condition), whole.filter(way.mask), (done, way.condition))


def check(ours: pa.Table, theirs: pa.Table, place: object) -> None:
    assert ours.schema.equals(theirs.schema, check_metadata=True), place
    for name, got, expected in zip(ours.column_names, ours.columns, theirs.columns, strict=True):
        got.validate(full=True)
        one, other = decoded(got), decoded(expected)
        assert same(one, other), f"{place}, {name}: {first_difference(one, other)}"

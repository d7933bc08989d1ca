"""Filters on a column of every type and null pattern choose the rows that pylance chooses.

Where pylance does not take a filter on a type, the rows are those that pyarrow finds in memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.interop.matrix import FAMILIES, ROUNDS, columns
from tests.interop.predicates import Check, checks
from tests.support.reading import decoded, first_difference, same
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
NUM_ROWS = 150


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(23, 23 + ROUNDS))
def test_filters_choose_the_rows_of_pylance(
    seed: int, family: str, version: str, tmp_path: Path
) -> None:
    lance = require_pylance()
    found = {name: array for name, array in columns(family, NUM_ROWS, "2.2", seed)
             if len(array) == NUM_ROWS}  # fmt: skip
    kept = _accepted(lance, found, version, tmp_path)
    table = pa.table({**kept, "n": pa.array(range(NUM_ROWS))})
    path = str(tmp_path / "all")
    lance.write_dataset(table, path, data_storage_version=version, max_rows_per_file=100)
    lance.dataset(path).delete("n % 11 = 3")
    ours, theirs = lance_nb.dataset(path), lance.dataset(path)
    stored, rng = ours.to_table(), np.random.default_rng(seed)
    wrong, judged = [], 0
    for number, name in enumerate(kept):
        ways = list(checks(name, stored[name].combine_chunks(), rng))
        check = ways[number % len(ways)]
        expected = _judge(theirs, name, check)
        judged += expected is not None
        if expected is None:
            expected = stored.select(["n", name]).filter(check.mask)
        got = ours.to_table(["n", name], filter=check.condition)
        if not all(map(_equal, got.columns, expected.columns)):
            text = first_difference(got[name], expected[name])
            wrong.append(f"{name} where {check.condition}: {text}")
    assert not wrong
    assert judged >= len(kept) // 2


def _equal(got: Any, expected: Any) -> bool:
    return same(decoded(got), decoded(expected))


def _judge(theirs: Any, name: str, check: Check) -> pa.Table | None:
    try:
        return theirs.to_table(["n", name], filter=check.condition, use_stats=False)
    except (OSError, ValueError, NotImplementedError, TypeError):
        return None
    except BaseException as exc:
        if type(exc).__name__ != "PanicException":
            raise
        return None


def _accepted(
    lance: Any, found: dict[str, pa.Array], version: str, folder: Path
) -> dict[str, pa.Array]:
    """Leave out the columns that a file version cannot hold."""
    if version > "2.1" and version != "legacy":
        return found
    kept, refused = {}, set()
    for name, array in found.items():
        kind = name.partition("/")[0]
        if kind in refused and "full" not in name:
            continue
        try:
            path = folder / f"try{len(kept)}-{len(refused)}"
            lance.write_dataset(pa.table({"c": array}), path,
                                data_storage_version=version)  # fmt: skip
            lance.dataset(path).to_table()
        except (OSError, ValueError, NotImplementedError):
            refused.add(kind)
            continue
        except BaseException as exc:
            if type(exc).__name__ != "PanicException":
                raise
            refused.add(kind)
            continue
        kept[name] = array
    return kept

"""One past, written by pylance in each file version, and the calls that a user makes on it.

Deleted rows, a column added, dropped and added again, another order of columns, rewritten rows, a
cast, a tag, a branch and a compaction: every version, and 14 calls, answer as pylance does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.support.reading import check_table
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
ROWS = 1200
RANDOM = np.random.default_rng(1)
TABLE = pa.table({
    "id": range(ROWS),
    "i": pa.array(RANDOM.integers(0, 99, ROWS), mask=RANDOM.random(ROWS) < 0.1),
    "s": [f"s{k % 37}" for k in range(ROWS)],
    "l": [[k] * (k % 3) for k in range(ROWS)],
    "st": [{"a": k, "b": str(k)} for k in range(ROWS)],
    "v": pa.FixedSizeListArray.from_arrays(pa.array(RANDOM.random(ROWS * 8, np.float32)), 8),
    "t": pa.array(range(ROWS), pa.timestamp("us")),
})  # fmt: skip
NEAREST = {"column": "v", "q": [0.1] * 8, "k": 5, "metric": "cosine"}
TABLES: dict[str, Callable[[Any], pa.Table]] = {
    "filter": lambda one: one.to_table(["id", "l", "st.b"], filter="i > 50 and s like 's1%'"),
    "limit": lambda one: one.to_table(limit=77, offset=490),
    "order": lambda one: one.to_table(["id", "i"], order_by=["i", "id"], limit=100),
    "expressions": lambda one: one.to_table({"x": "id * 2", "y": "lower(s)"}, limit=9),
    "take": lambda one: one.take([3, 999, 17, 3], ["id", "s", "v"]),
    "identity": lambda one: one.to_table(
        ["id", "_rowid", "_rowaddr", "_rowoffset"], filter="id % 100 = 1"
    ),
    "head": lambda one: one.head(7),
    "tag": lambda one: one.checkout_version("first").to_table(),
    "branch": lambda one: one.checkout_version(("dev", None)).to_table(),
    "fragments": lambda one: pa.concat_tables(
        [part.to_table(["id"]) for part in one.get_fragments()]
    ),
    "nearest": lambda one: one.to_table(
        ["id", "_distance"], nearest=NEAREST, filter="id > 300", prefilter=True
    ).select(["id"]),
}  # fmt: skip
VALUES: dict[str, Callable[[Any], Any]] = {
    "count": lambda one: one.count_rows("id > 100"),
    "strict": lambda one: [
        batch.num_rows
        for batch in one.scanner(
            batch_size=133, strict_batch_size=True, filter="id % 2 = 0"
        ).to_batches()
    ],
    "versions": lambda one: one.versions(),
}


def _written(path: str, version: str) -> Any:
    lance = require_pylance()

    def now() -> Any:
        return lance.dataset(path)

    lance.write_dataset(TABLE, path, data_storage_version=version, max_rows_per_file=500)
    now().delete("id % 9 = 4")
    now().tags.create("first", 2)
    more = TABLE.slice(0, 300)
    if version != "0.1":  # where pylance refuses to append fewer columns, or in another order
        more = more.select(["s", "id", "v", "l", "st", "i"])
        now().add_columns({"w": "id * 2"})
        now().drop_columns(["t"])
        now().add_columns({"t": "cast(id as string)"})
    lance.write_dataset(more, path, mode="append", data_storage_version=version)
    now().update({"i": "7"}, where="id % 50 = 1")
    now().alter_columns({"path": "i", "data_type": pa.int32()})
    now().create_branch("dev")
    now().optimize.compact_files(target_rows_per_fragment=700)
    now().delete("id < 10")
    return now()


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_a_past_and_the_calls_of_a_user(version: str, tmp_path: Any) -> None:
    path = str(tmp_path / "data")
    theirs = _written(path, version)
    ours = lance_nb.dataset(path)
    for one in theirs.versions():
        pair = [each.checkout_version(one["version"]) for each in (ours, theirs)]
        check_table(*(each.to_table(with_row_id=True, with_row_address=True) for each in pair), one)
    for name, table_of in TABLES.items():
        check_table(table_of(ours), table_of(theirs), name)
    for name, value_of in VALUES.items():
        assert value_of(ours) == value_of(theirs), name
    assert all(ours.transaction(number) for number in ours.version_numbers())

from __future__ import annotations

import pytest

from lance_nb.spark.shuffle import BUCKET_BYTES, bucket_count


@pytest.mark.parametrize(
    ("num_rows", "num_bytes", "cores", "wanted"),
    [
        (0, 0, 2, 1),
        (5_000_000, 10 * BUCKET_BYTES, 2, 10),
        (5_000_000, 1, 2, 3),  # rows of the target
        (1_000_000, 1, 16, 16),  # all cores
        (1_000_000, 1, 1024, 21),  # nobody knows how many cores: not too few rows for each
        (10, 1, 64, 1),
        (10, 1 << 49, 2, 200),  # what Spark expects of a join
        (10, None, 2, 200),
        (10**9, None, 2, 500),
    ],
)
def test_memory_is_bounded_and_fragments_are_few(
    num_rows: int, num_bytes: int | None, cores: int, wanted: int
) -> None:
    assert bucket_count(num_rows, num_bytes, 200, cores) == wanted

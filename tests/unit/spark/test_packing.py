from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.spark.packing import TASK_BYTES, partitions

MB = 1024**2


def weights(groups: list[tuple[int, ...]], sizes: list[int]) -> list[int]:
    return [sum(sizes[at] for at in one) for one in groups]


@pytest.mark.parametrize(
    ("sizes", "num_cores", "wanted"),
    [
        ([22 * MB] * 4, 2, [2, 2]),  # one round for each core
        ([22 * MB] * 4, 4, [1, 1, 1, 1]),
        ([21 * MB, 23 * MB, 22 * MB, 22 * MB], 2, [2, 2]),  # files are never quite alike
        ([MB] * 1000, 2, [25] * 40),  # many small files: 128 MB each, with what opening costs
        ([TASK_BYTES] * 5, 2, [1] * 5),
        ([0] * 3, 64, [3]),  # too little for more
        ([5], 8, [1]),
    ],
)
def test_small_tasks_share_a_partition(sizes: list[int], num_cores: int, wanted: list[int]) -> None:
    found = partitions(sizes, num_cores)
    assert [len(one) for one in found] == wanted


@given(
    st.lists(st.integers(0, 10**10), min_size=1, max_size=200),
    st.integers(1, 1024),
)
def test_every_task_is_in_one_partition_in_order(sizes: list[int], num_cores: int) -> None:
    found = partitions(sizes, num_cores)
    assert [at for one in found for at in one] == list(range(len(sizes)))
    assert all(found)


@given(st.lists(st.integers(MB, TASK_BYTES), min_size=1, max_size=300), st.integers(1, 32))
def test_no_partition_is_much_larger_than_a_task_may_be(sizes: list[int], num_cores: int) -> None:
    found = partitions(sizes, num_cores)
    assert max(weights(found, sizes)) <= 2 * TASK_BYTES

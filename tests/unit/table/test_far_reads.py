"""Reads from a store whose requests take long: rounds of requests overlap."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

import lance_nb
from tests.support.bucket import bucket_in_memory

PLACE = "s3://bucket/t.lance"


def test_fragments_of_a_far_store_are_taken_side_by_side(monkeypatch: pytest.MonkeyPatch):
    with bucket_in_memory(monkeypatch) as bucket:
        for number in range(3):
            rows = pa.table({"a": [number, number + 10]})
            lance_nb.write_dataset(rows, PLACE, mode="append" if number else "create")
        dataset = lance_nb.dataset(PLACE)
        together = threading.Barrier(3)

        def meet(name: str, path: str) -> None:
            if name == "get" and "/data/" in path:
                together.wait(10)  # breaks when the files are opened one after the other

        bucket.before = meet
        assert dataset.take([5, 0, 2]).to_pydict() == {"a": [12, 0, 1]}


@pytest.mark.parametrize("read", ["scan", "filter", "count"])
def test_fragments_of_a_far_store_are_scanned_side_by_side(
    monkeypatch: pytest.MonkeyPatch, read: str
):
    with bucket_in_memory(monkeypatch) as bucket:
        for number in range(3):
            rows = pa.table({"a": [number, number + 10]})
            lance_nb.write_dataset(rows, PLACE, mode="append" if number else "create")
        dataset = lance_nb.dataset(PLACE)
        met: dict[str, threading.Barrier] = {}
        together = threading.Barrier(3)

        def meet(name: str, path: str) -> None:
            if name == "get" and "/data/" in path and path not in met:
                met[path] = together
                together.wait(10)

        bucket.before = meet
        if read == "count":
            assert dataset.count_rows("a >= 10") == 3
        else:
            found = dataset.to_table(filter="a >= 0" if read == "filter" else None)
            assert found["a"].to_pylist() == [0, 10, 1, 11, 2, 12]


@pytest.mark.parametrize("stable", [False, True])
def test_deletion_files_of_a_far_store_are_read_side_by_side(
    monkeypatch: pytest.MonkeyPatch, stable: bool
):
    with bucket_in_memory(monkeypatch) as bucket:
        rows = pa.table({"a": range(28)})
        options = {"max_rows_per_file": 4, "enable_stable_row_ids": stable}
        lance_nb.write_dataset(rows, PLACE, **options).delete("a % 4 = 1")
        dataset = lance_nb.dataset(PLACE)
        together = threading.Barrier(4)  # those of blocks of 1, 2 and 4 fragments
        asked: list[str] = []

        def meet(name: str, path: str) -> None:
            if name == "get" and "/_deletions/" in path:
                asked.append(path)
                if len(asked) > 3:
                    together.wait(10)

        bucket.before = meet
        assert dataset.count_rows("a >= 0") == 21
        assert len(set(asked)) == len(asked) == 7

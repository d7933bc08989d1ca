"""Near duplicates and doubtful labels of a dataset: planted ones are found, with their row ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import similar_rows
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError

WIDTH = 16


def vectors_of(matrix: np.ndarray, mask: np.ndarray | None = None) -> pa.Array:
    flat = pa.array(matrix.ravel())
    return pa.FixedSizeListArray.from_arrays(
        flat, matrix.shape[1], mask=None if mask is None else pa.array(mask)
    )


def written(table: pa.Table, **options: Any) -> lance_nb.LanceDataset:
    return lance_nb.write_dataset(table, f"memory://similar-{uuid4().hex}/rows", **options)


@pytest.fixture(scope="module")
def animals() -> lance_nb.LanceDataset:
    """Three kinds around three centers; 12 rows are labelled wrongly, 30 are near copies."""
    rng = np.random.default_rng(2)
    kinds = rng.integers(3, size=600)
    matrix = np.eye(3, WIDTH)[kinds] * 4 + rng.normal(size=(600, WIDTH)) * 0.4
    matrix[570:] = matrix[:30] + rng.normal(size=(30, WIDTH)) * 0.01
    kinds[570:] = kinds[:30]
    labels = kinds.copy()
    labels[100:112] = (labels[100:112] + 1) % 3
    mask = np.zeros(600, np.bool_)
    mask[200] = True
    matrix[201, 3] = np.nan
    matrix[202] = 0
    texts = pa.array(["ant", "bee", "cat"]).take(pa.array(labels))
    texts = pa.concat_arrays([texts.slice(0, 300), pa.array([None], pa.string()), texts.slice(301)])
    made = written(
        pa.table({
            "id": np.arange(600), "kind": texts, "coded": texts.dictionary_encode(),
            "number": labels, "v": vectors_of(matrix.astype(np.float32), mask),
        }),
        max_rows_per_file=250, enable_stable_row_ids=True,
    )  # fmt: skip
    made.delete("id = 3")
    return made


def test_near_copies_are_found_with_their_row_ids(animals: lance_nb.LanceDataset) -> None:
    found = animals.near_duplicates("v", threshold=0.0005)

    pairs = found.group_by("group").aggregate([("_rowid", "list")])["_rowid_list"].to_pylist()
    assert sorted(map(tuple, pairs)) == [(at, at + 570) for at in range(30) if at != 3]
    assert found["_distance"].to_numpy().max() <= 0.0005
    rows = animals.take_rows(found["_rowid"].combine_chunks(), ["id"])
    assert rows["id"].to_pylist() == found["_rowid"].to_pylist()


def test_a_filter_chooses_the_rows_that_are_compared(animals: lance_nb.LanceDataset) -> None:
    found = animals.near_duplicates("v", threshold=0.0005, filter="id < 575")
    assert sorted(found["_rowid"].to_pylist()) == [0, 1, 2, 4, 570, 571, 572, 574]
    assert animals.near_duplicates("v", filter="id < 0").num_rows == 0


@pytest.mark.parametrize("label", ["kind", "coded", "number"])
def test_wrong_labels_are_found_and_the_right_ones_suggested(
    animals: lance_nb.LanceDataset, label: str
) -> None:
    found = animals.label_doubts("v", label)

    assert sorted(found["_rowid"].to_pylist()) == list(range(100, 112))
    scores = found["score"].to_pylist()
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0.5
    assert found["neighbours"].to_pylist() == [10] * 12
    rows = animals.take_rows(found["_rowid"].combine_chunks(), ["number", "kind"])
    number = pa.array(["ant", "bee", "cat"])
    assert rows["kind"].to_pylist() == number.take(rows["number"].combine_chunks()).to_pylist()
    before = [(one + 2) % 3 for one in rows["number"].to_pylist()]
    wanted = before if label == "number" else number.take(pa.array(before)).to_pylist()
    assert found["suggested"].to_pylist() == wanted


def test_perceptual_hashes_are_compared_by_bits() -> None:
    hashes = np.array([[255, 0], [254, 0], [0, 255], [15, 15]], np.uint8)
    made = written(pa.table({"hash": vectors_of(hashes)}))
    assert made.near_duplicates("hash")["_distance"].to_pylist() == [1, 1]
    with pytest.raises(InvalidInputError, match="use hamming"):
        made.near_duplicates("hash", metric="cosine")


def test_progress_counts_to_the_end_and_cancels(animals: lance_nb.LanceDataset) -> None:
    said: list[tuple[int, int]] = []
    animals.near_duplicates("v", progress=lambda done, total: said.append((done, total)))
    assert said[0] == (0, 3 * 599)
    assert [done for done, _ in said] == sorted(done for done, _ in said)
    assert said[-1][0] >= 3 * 590  # rows without a vector are read only

    class StopError(Exception):
        pass

    def cancel(done: int, _total: int) -> None:
        if done > 700:
            raise StopError

    with pytest.raises(StopError):
        animals.label_doubts("v", "kind", progress=cancel)


Call = Callable[[lance_nb.LanceDataset], object]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda ds: ds.near_duplicates("no"), ColumnNotFoundError, "no"),
        (lambda ds: ds.near_duplicates("id"), InvalidInputError, "fixed-size lists"),
        (lambda ds: ds.near_duplicates("v", metric="l2"), InvalidInputError, "needs a threshold"),
        (lambda ds: ds.near_duplicates("v", metric="dot"), InvalidInputError, "cosine or l2"),
        (lambda ds: ds.near_duplicates("v", threshold=-1), InvalidInputError, "0 or more"),
        (lambda ds: ds.near_duplicates("v", threshold=float("nan")), InvalidInputError, "nan"),
        (lambda ds: ds.label_doubts("v", "no"), ColumnNotFoundError, "no"),
        (lambda ds: ds.label_doubts("v", "v"), InvalidInputError, "labels are"),
        (lambda ds: ds.label_doubts("v", "kind", k=0), InvalidInputError, "from 1 to 1,000"),
    ],
)
def test_bad_arguments_are_refused(
    animals: lance_nb.LanceDataset, call: Call, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        call(animals)


def test_vectors_beyond_memory_are_refused_before_they_are_read(
    animals: lance_nb.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(similar_rows, "MAX_VECTOR_BYTES", 1000)
    with pytest.raises(NotSupportedError, match="fewer rows by a filter"):
        animals.near_duplicates("v")


@pytest.mark.parametrize("metric", ["cosine", "l2"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_vectors_that_are_too_long_are_left_out(metric: str, kind: type) -> None:
    matrix = np.random.default_rng(4).normal(size=(40, 8)).astype(kind)
    matrix[20:] = matrix[:20]
    matrix[0], matrix[20] = 3e38, -3e38
    if kind is np.float64:
        matrix[1] = 1e200
    made = written(pa.table({"v": vectors_of(matrix), "k": ["a", "b"] * 20}))
    found = made.near_duplicates("v", metric=metric, threshold=1e-4)["_rowid"].to_pylist()
    expected = set(range(40)) - {0, 20} - ({1, 21} if kind is np.float64 else set())
    assert set(found) == expected
    doubted = set(made.label_doubts("v", "k", metric=metric, k=1)["_rowid"].to_pylist())
    assert doubted <= ({21} if metric == "l2" else {0, 20, 21})  # the others have their copy

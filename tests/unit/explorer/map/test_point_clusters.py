from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CancelledError, ColumnNotFoundError, NotSupportedError
from lance_nb.explorer.map import point_clusters
from lance_nb.explorer.map.embedding_map import PointSet, fit_projection, place_rows
from lance_nb.explorer.map.point_clusters import (
    NO_CLUSTER,
    Clusters,
    find_clusters,
    label_clusters,
    label_columns,
)

ROWS = 1200
MIDDLES = np.array([[0, 0], [30, 0], [0, 30]], np.float32)
TOPICS = (("apple", "apples", "pear"), ("boat", "river", "rain"), ("雪山", "風景", "<b>star"))


def quiet(_done: int, _total: int) -> None:
    """Ignore progress."""


@pytest.fixture(scope="module")
def kinds() -> Any:
    return np.arange(ROWS) % 6 % 3  # groups of the same size


def written(path: Any, kinds: Any, **columns: Any) -> tuple[Any, PointSet]:
    random = np.random.default_rng(1)
    vectors = (MIDDLES[kinds] + random.normal(size=(len(kinds), 2))).astype(np.float32)
    vector = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 2)
    source = lance_nb.write_dataset(pa.table({**columns, "vector": vector}), str(path))
    return source, place_rows(source, fit_projection(source, "vector", quiet), 1, quiet)


def captions(kinds: Any) -> list[str | None]:
    random = np.random.default_rng(2)
    common = ["the", "picture", "with", "some", "2024", "of"]
    said = []
    for kind in kinds:
        words = [*random.choice(common, 4), *random.choice(TOPICS[kind], 2)]
        said.append(None if random.random() < 0.05 else " ".join(words).title())
    return said


def by_kind(found: Clusters, kinds: Any) -> list[str]:
    """Return the label of the group of each kind."""
    labels = {one.code: one.label for one in found.entries}
    groups = [np.bincount(found.codes[kinds == kind]).argmax() for kind in range(3)]
    return [labels.get(int(group), "") for group in groups]


def test_dense_groups_are_found_and_joined_where_nothing_is_between_them() -> None:
    random = np.random.default_rng(0)
    whole = random.normal(size=(6000, 2)) * 900
    whole[:3000] += (9000, 9000)
    whole[3000:5000] += (40000, 20000)
    whole[5000:] += (20000, 50000)
    found = find_clusters(np.clip(whole, 0, 65535).astype(np.uint16))
    assert [np.bincount(found[some], minlength=4).argmax() for some in (
        slice(3000), slice(3000, 5000), slice(5000, 6000))] == [0, 1, 2]  # fmt: skip
    assert np.isin(found, (0, 1, 2, NO_CLUSTER)).all()
    assert np.count_nonzero(found == NO_CLUSTER) < 30
    one = np.clip(random.normal(size=(5000, 2)) * 4000 + 30000, 0, 65535).astype(np.uint16)
    assert set(find_clusters(one).tolist()) <= {0, NO_CLUSTER}
    assert find_clusters(one[:5]).tolist() == [NO_CLUSTER] * 5
    alike = np.full((50, 2), 7, np.uint16)
    assert set(find_clusters(alike).tolist()) == {0}


def test_texts_name_groups_by_the_words_that_others_do_not_have(tmp_path: Any, kinds: Any) -> None:
    source, points = written(tmp_path / "d", kinds, caption=pa.array(captions(kinds)))
    found = label_clusters(source, points, "caption", quiet)
    fruit, water, snow = by_kind(found, kinds)
    # "apple" is in "apples"; the words of all texts and numbers name no group.
    assert {*fruit.split(" · ")} < {"apple", "apples", "pear"}
    assert len(fruit.split(" · ")) == 2
    assert {*water.split(" · ")} == {"boat", "river", "rain"}
    assert {*snow.split(" · ")} == {"雪山", "風景", "star"}
    assert "words that are more frequent in a group" in found.to_json()["words"]
    assert sum(one.count for one in found.entries) <= ROWS


def test_labels_name_groups_by_their_most_frequent_value(tmp_path: Any, kinds: Any) -> None:
    random = np.random.default_rng(3)
    noisy = np.where(random.random(ROWS) < 0.2, random.integers(0, 3, ROWS), kinds)
    labels = pa.array([f"kind \u202e{one}" for one in noisy]).dictionary_encode()
    source, points = written(tmp_path / "d", kinds, label=labels)
    found = label_clusters(source, points, "label", quiet)
    assert found.kind == "values"
    named = by_kind(found, kinds)
    assert [one[-1] for one in named] == ["0", "1", "2"]
    assert "\u202e" not in "".join(named)


def test_groups_without_texts_or_without_telling_words_have_no_label(
    tmp_path: Any, kinds: Any
) -> None:
    random = np.random.default_rng(4)
    same = [" ".join(random.choice(["one", "two", "three", "four", "five"], 4)) + f" {at}"
            for at in range(ROWS)]  # fmt: skip
    none = pa.array([None] * ROWS, pa.string())
    source, points = written(tmp_path / "d", kinds, same=same, none=none, id=np.arange(ROWS))
    assert label_columns(source.schema) == ["same", "none"]
    assert label_clusters(source, points, "same", quiet).entries == ()
    assert label_clusters(source, points, "none", quiet).entries == ()
    with pytest.raises(NotSupportedError, match="cannot be named by 'id'"):
        label_clusters(source, points, "id", quiet)
    with pytest.raises(ColumnNotFoundError, match="nowhere"):
        label_clusters(source, points, "nowhere", quiet)

    def cancel(_done: int, _total: int) -> None:
        raise CancelledError("cancelled")

    with pytest.raises(CancelledError):
        label_clusters(source, points, "same", cancel)


def test_no_more_texts_are_read_than_the_sample_holds(
    tmp_path: Any, kinds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = [f"{one} " + "x" * 5000 for one in captions(kinds)]
    source, points = written(tmp_path / "d", kinds, caption=long)
    monkeypatch.setattr(point_clusters, "SAMPLE_BYTES", 1_000_000)
    monkeypatch.setattr(point_clusters, "STEP_POINTS", 100)
    found = label_clusters(source, points, "caption", quiet)
    assert 190 < found.sampled <= 200  # 1 MB
    monkeypatch.setattr(point_clusters, "SAMPLE_POINTS", 150)
    assert label_clusters(source, points, "caption", quiet).sampled == 150

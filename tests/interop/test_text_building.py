"""Text indices that we build: pylance searches them, with the rows and scores of its own."""

from __future__ import annotations

import importlib
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.indices.texts import writer
from tests.interop.test_text_search import PLAIN, rows
from tests.support.requirements import require_pylance

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # pylance's own
]

WORDS = [f"w{number}" for number in range(2000)]


def words(chance: random.Random, count: int) -> str:
    """Return words of which some are in most texts, and most in few."""
    places = (int(chance.paretovariate(0.5)) - 1 for _ in range(count))
    return " ".join(WORDS[min(place, len(WORDS) - 1)] for place in places)


def text(chance: random.Random) -> str | None:
    count = chance.choice([0, 1, 2, 5, 10, 10, 300])
    return None if chance.random() < 0.02 else words(chance, count)


def table(chance: random.Random, first: int, count: int) -> pa.Table:
    """Rows with the same texts in two columns: ``a`` for pylance's index, ``b`` for ours."""
    texts = pa.array([text(chance) for _ in range(count)], pa.string())
    return pa.table({"id": range(first, first + count), "a": texts, "b": texts})


def assert_alike(path: Path, chance: random.Random, count: int) -> None:
    """Ask both columns of both packages."""
    queries = importlib.import_module("lance.query")
    theirs, ours = require_pylance().dataset(path), lance_nb.dataset(path)
    for _ in range(count):
        asked = words(chance, chance.choice([1, 2, 3]))
        for operator in ("OR", "AND", None):
            found = []
            for dataset, package in ((theirs, queries), (ours, lance_nb)):
                for column in "ab":
                    if operator is None:
                        query = package.PhraseQuery(asked, column)
                    else:
                        join = package.FullTextOperator(operator)
                        query = package.MatchQuery(asked, column, operator=join)
                    answer = dict(zip(*rows(dataset, query), strict=True))
                    found.append(answer)
                    best = rows(dataset, query, limit=10)[1]
                    expected = sorted(answer.values(), reverse=True)[:10]
                    assert best == pytest.approx(expected, rel=1e-4), (query, column)
            for other in found[1:]:
                assert other == pytest.approx(found[0], rel=1e-4, abs=2e-5), (asked, operator)


@pytest.mark.parametrize("is_stable", [False, True])
@pytest.mark.parametrize("partition_tokens", [1 << 23, 20_000], ids=["one", "several"])
def test_pylance_searches_our_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition_tokens: int, *, is_stable: bool
) -> None:
    monkeypatch.setattr(writer, "PARTITION_TOKENS", partition_tokens)
    lance = require_pylance()
    print("seed", 5 + is_stable)
    chance = random.Random(5 + is_stable)
    path = tmp_path / "d.lance"
    data = table(chance, 0, 1500)
    ds = lance.write_dataset(data, path, max_rows_per_file=600, enable_stable_row_ids=is_stable)
    options: dict[str, Any] = PLAIN | {"with_position": True}
    ds.create_scalar_index("a", "INVERTED", **options)
    ours = lance_nb.dataset(path)
    events: list[Any] = []
    ours.create_scalar_index("b", "INVERTED", progress_callback=events.append, **options)
    assert events[0].total == 1500
    assert_alike(path, chance, 6)
    statistics = [
        lance.dataset(path).stats.index_stats(name)["indices"][0] for name in ("a_idx", "b_idx")
    ]
    assert statistics[0]["params"] == statistics[1]["params"]
    ours.delete("id % 7 = 3")
    assert_alike(path, chance, 2)
    ours.insert(table(chance, 5000, 200))
    assert_alike(path, chance, 2)
    lance.dataset(path).optimize.optimize_indices(num_indices_to_merge=10, index_names=["a_idx"])
    lance.dataset(path).optimize.optimize_indices(num_indices_to_merge=10, index_names=["b_idx"])
    assert_alike(path, chance, 2)
    assert lance_nb.dataset(path).verify().verdict == "whole"


def test_optimize_keeps_how_texts_are_cut(tmp_path: Path) -> None:
    """Our own optimize_indices adds a segment, and merges segments, with the same parameters."""
    path = tmp_path / "d.lance"
    data = pa.table({"id": range(3), "t": ["le chat", "les chiens dorment", "un chien"]})
    ds = lance_nb.write_dataset(data, path)
    ds.create_scalar_index("t", "FTS", language="French", with_position=True)
    ds.insert(pa.table({"id": [3], "t": ["chiens et chats"]}))
    lance = require_pylance()
    for merged in (0, 10):
        ds.optimize.optimize_indices(num_indices_to_merge=merged)
        for dataset in (ds, lance.dataset(path)):
            found = rows(dataset, "chien", fast_search=True)
            assert sorted(found[0]) == [1, 2, 3], merged
        parameters = lance.dataset(path).stats.index_stats("t_idx")["indices"][-1]["params"]
        assert (parameters["language"], parameters["with_position"]) == ("French", True)


def test_an_index_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "d.lance"
    ds = lance_nb.write_dataset(pa.table({"t": ["", None, "!"], "u": ["fox"] * 3}), path)
    ds.create_scalar_index("t", "INVERTED", with_position=True)
    for dataset in (ds, require_pylance().dataset(path)):
        assert dataset.to_table(full_text_query="fox", fast_search=True).num_rows == 0
    theirs = require_pylance().dataset(path).stats.index_stats("t_idx")["indices"][0]
    ours = ds.index_statistics("t_idx")
    assert ours["not_read"] == []
    assert {name: ours["indices"][0][name] for name in theirs} == theirs


def test_what_cannot_be_built_is_refused(tmp_path: Path) -> None:
    data = pa.table({"t": ["fox"], "n": [1], "l": [[1]]})
    ds = lance_nb.write_dataset(data, tmp_path / "d.lance")
    for column in ("n", "l"):
        with pytest.raises(InvalidInputError, match=f"lists of texts: column '{column}'"):
            ds.create_scalar_index(column, "INVERTED")
    with pytest.raises(InvalidInputError, match="block_size can only be 128"):
        ds.create_scalar_index("t", "INVERTED", block_size=256)
    with pytest.raises(InvalidInputError, match="no parameter 'stemmer'"):
        ds.create_scalar_index("t", "INVERTED", stemmer=True)
    assert ds.version == 1

"""Damaged files of a text index: rows are scanned with a warning, or there is a clear error."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import pyarrow as pa

import lance_nb
from lance_nb.errors import LanceError

SEED = 1


def answers(path: Path) -> list[list[int]]:
    queries = [
        lance_nb.MatchQuery("a", "t"),
        lance_nb.PhraseQuery("b c", "t"),
        lance_nb.MatchQuery("d e", "t", operator=lance_nb.FullTextOperator.AND),
        lance_nb.MatchQuery("ab", "t", fuzziness=1),
    ]
    ds = lance_nb.dataset(path)
    found = (ds.to_table(["id"], full_text_query=query)["id"].to_pylist() for query in queries)
    return [sorted(one) for one in found]


def test_damage_is_no_wrong_answer(tmp_path: Path) -> None:
    print("seed", SEED)
    chance = random.Random(SEED)
    path = tmp_path / "d.lance"
    texts = [" ".join(chance.choices("abcdefgh", k=chance.randrange(1, 12))) for _ in range(400)]
    ds = lance_nb.write_dataset(pa.table({"id": range(400), "t": texts}), path)
    ds.create_scalar_index("t", "INVERTED", with_position=True, stem=False, remove_stop_words=False)
    expected = answers(path)
    num_warned = 0
    for file in sorted(path.glob("_indices/*/*.lance")):
        data = file.read_bytes()
        for number in range(8):
            damaged = bytearray(data)
            if number % 2:
                damaged = damaged[: chance.randrange(len(damaged))]
            else:
                damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            file.write_bytes(damaged)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                try:
                    found = answers(path)
                except LanceError:
                    continue  # a fuzzy query without its index, or how texts are cut is not known
            num_warned += bool(said)
            if number % 2:
                assert said
                assert found[:3] == expected[:3], file.name
        file.write_bytes(data)
    assert num_warned > 5

"""The best documents of a partition, against scores that are added up word by word."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.indices.texts.scores import (
    DocumentRequest,
    Documents,
    Word,
    best_places,
    documents_with_all,
    documents_with_any,
    factors_of,
)
from tests.support.compiled_forms import Form, forced

FORMS = pytest.mark.parametrize("form", [Form.NUMPY, Form.COMPILED], ids=["numpy", "compiled"])
SEEDS = range(40)


def words_of(rng: np.random.Generator, count: int) -> list[Word]:
    """Return words of very different frequency and weight; many factors are equal."""
    words = []
    for share in rng.choice([0.001, 0.02, 0.3, 0.9], int(rng.integers(1, 5))):
        documents = np.flatnonzero(rng.random(count) < share).astype(np.uint32)
        factors = rng.choice([0.2, 0.4, 0.45, 0.7], documents.size).astype(np.float32)
        weight = np.float32(
            rng.choice([0.01, 0.4, 3.0, 9.0, 0.0, -1.0], p=[0.2, 0.3, 0.2, 0.2, 0.05, 0.05])
        )
        words.append(Word(factors_of(documents, factors), weight))
    return words


def expected(
    words: list[Word], wanted: DocumentRequest, *, needs_all: bool
) -> dict[int, np.float32]:
    scores: dict[int, np.float32] = {}
    holders: dict[int, int] = {}
    for postings, weight in words:
        for document, factor in zip(postings.documents, postings.factors, strict=True):
            number = int(document)
            scores[number] = np.float32(scores.get(number, np.float32(0)) + factor * weight)
            holders[number] = holders.get(number, 0) + 1
    kept = [
        one
        for one in sorted(scores)
        if (wanted.is_live is None or wanted.is_live[one])
        and (not needs_all or holders[one] == len(words))
    ]
    if wanted.most is not None and len(kept) > wanted.most:
        order = sorted(kept, key=lambda one: (-scores[one], one))
        least = scores[order[wanted.most - 1]]
        first = set(order[: wanted.most])
        kept = [one for one in kept if one in first or (wanted.with_ties and scores[one] == least)]
    return {one: scores[one] for one in kept}


@FORMS
@pytest.mark.parametrize("needs_all", [False, True])
def test_the_best_documents_are_those_of_the_whole_sums(form: Form, needs_all: bool) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        count = int(rng.choice([20, 400, 1500]))
        wanted = DocumentRequest(
            count,
            rng.random(count) < 0.8 if rng.random() < 0.5 else None,
            None if rng.random() < 0.2 else int(rng.choice([1, 3, 10, 200])),
            with_ties=bool(rng.random() < 0.5),
        )
        words = words_of(rng, count)
        with forced(form):
            found = (
                documents_with_all([[word] for word in words], wanted)
                if needs_all
                else documents_with_any(words, wanted)
            )
        assert as_dict(found) == expected(words, wanted, needs_all=needs_all), f"seed {seed}"


def as_dict(found: Documents) -> dict[int, np.float32]:
    assert (np.diff(found.numbers.astype(np.int64)) > 0).all()
    return dict(zip(found.numbers.tolist(), found.scores, strict=True))


def test_one_of_several_spellings_is_enough() -> None:
    fox = Word(
        factors_of(np.array([1, 4], np.uint32), np.array([0.5, 0.5], np.float32)), np.float32(2)
    )
    box = Word(
        factors_of(np.array([4, 6], np.uint32), np.array([0.5, 0.25], np.float32)), np.float32(1)
    )
    red = Word(factors_of(np.array([0, 4, 6], np.uint32), np.ones(3, np.float32)), np.float32(1))
    found = documents_with_all([[fox, box], [red]], DocumentRequest(8, None, 5, with_ties=True))
    assert as_dict(found) == {4: np.float32(2.5), 6: np.float32(1.25)}
    assert not documents_with_all(
        [[fox], []], DocumentRequest(8, None, 5, with_ties=True)
    ).numbers.size
    assert not documents_with_any([], DocumentRequest(8, None, 5, with_ties=True)).numbers.size


def test_of_equal_scores_the_first_are_taken() -> None:
    scores = np.tile(np.array([1, 3, 2, 3], np.float32), 5000)
    assert best_places(scores, 3, with_ties=False).tolist() == [1, 3, 5]
    assert best_places(scores, 3, with_ties=True).size == 10_000
    assert best_places(scores, 10_001, with_ties=False).tolist()[-1] == 19_999
    assert best_places(scores[:3], 3, with_ties=False).tolist() == [0, 1, 2]
    falling = np.arange(1000, 0, -1).astype(np.float32)
    assert best_places(falling, 30, with_ties=True).tolist() == list(range(30))

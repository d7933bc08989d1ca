"""Find the documents of one partition that have the words of a query, and their scores.

The score of a document is the sum over words of ``weight * factor``: the weight belongs to the
word, the factor to its frequency in the document and the length of that (``search`` has the
formula). Factors of a posting list are kept with it, so a search for one word compares what is
there.

For the best few documents not every list is read (MaxScore): the best documents of the rarest word
give a score to beat. Words that together cannot reach it find no further documents; they are only
looked up in the documents of the others. Where that excludes nothing, scores are added up in one
array with a number for each document.

Sums are formed in the order of the words of the query in every case, so that equal documents have
equal scores.

Source: Turtle and Flood, Query evaluation: strategies and optimizations, 1995 (MaxScore).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.sorted_numbers import add_at, places_among
from lance_nb.indices.texts.postings import U32s
from lance_nb.table.index_search import Scores, different

Mask = npt.NDArray[np.bool_]
_DENSE = 8  # documents for each posting, from which on scores are kept by document
_LOOKUP = 8  # a look-up costs as much as so many additions
_WEIGHT_MIN = 1e-20  # below, a score may be zero
_SLACK = 1e-5  # what sums in another order may differ by
_BLOCK = 64
_PEELED = 16


class Factors(NamedTuple):
    """The documents of a word, ascending, with the factor of each and the largest one."""

    documents: U32s
    factors: Scores
    largest: float

    @property
    def nbytes(self) -> int:
        """Bytes in memory, without the documents."""
        return self.factors.nbytes


def factors_of(documents: U32s, factors: Scores) -> Factors:
    """Return the factors of a posting list."""
    return Factors(documents, factors, float(factors.max()) if factors.size else 0.0)


class Word(NamedTuple):
    """A word of a query in one partition."""

    postings: Factors
    weight: np.float32

    @property
    def bound(self) -> float:
        """The best score that it can give."""
        return float(self.weight) * self.postings.largest


class Documents(NamedTuple):
    """Documents, ascending, and their scores."""

    numbers: U32s
    scores: Scores


NO_DOCUMENTS = Documents(np.zeros(0, np.uint32), np.zeros(0, np.float32))


class Wanted(NamedTuple):
    """Which documents a search wants of a partition.

    ``num_documents`` in all; ``is_live`` for each whether it counts, None if all do; the best
    ``most``, None for every one. ``with_ties``: also those that are as good as the last one.
    """

    num_documents: int
    is_live: Mask | None
    most: int | None
    with_ties: bool

    def live(self, found: Documents) -> Documents:
        """Drop what does not count."""
        if self.is_live is None:
            return found
        kept = self.is_live[found.numbers]
        return Documents(found.numbers[kept], found.scores[kept])

    def best(self, found: Documents) -> Documents:
        """Return the best of documents that count."""
        if self.most is None or found.numbers.size <= self.most:
            return found
        kept = best_places(found.scores, self.most, with_ties=self.with_ties)
        return Documents(found.numbers[kept], found.scores[kept])


def documents_with_any(words: Sequence[Word], wanted: Wanted) -> Documents:
    """Return the documents that have some word."""
    if not words:
        return NO_DOCUMENTS
    if len(words) == 1:
        (postings, weight) = words[0]
        is_small = wanted.most is None or postings.documents.size <= wanted.most
        if is_small or wanted.is_live is not None or weight < _WEIGHT_MIN:
            found = Documents(postings.documents, postings.factors * weight)
            return wanted.best(wanted.live(found))
        # Equal scores may have different factors, so scores decide about ties.
        least = _least(postings.factors, wanted.most or 0) * np.float32(1 - _SLACK)
        kept = np.flatnonzero(postings.factors >= least)
        found = Documents(postings.documents[kept], postings.factors[kept] * weight)
        return wanted.best(found)
    total = sum(word.postings.documents.size for word in words)
    is_usual = all(word.weight > _WEIGHT_MIN for word in words)
    if wanted.most is not None and is_usual:
        numbers = _candidates(words, wanted, wanted.most)
        if numbers is not None:
            return wanted.best(wanted.live(Documents(numbers, scores_of(numbers, words))))
    if is_usual and total * _DENSE > wanted.num_documents:
        sums = np.zeros(wanted.num_documents, np.float32)
        for postings, weight in words:
            add_at(sums, postings.documents, postings.factors * weight)
        if wanted.is_live is not None:
            sums *= wanted.is_live
        if wanted.most is None:
            kept = np.flatnonzero(sums)
        else:
            kept = best_places(sums, wanted.most, with_ties=wanted.with_ties)
            kept = kept[sums[kept] > 0]
        return Documents(kept.astype(np.uint32), sums[kept])
    found = _added([Documents(one.documents, one.factors * weight) for one, weight in words])
    return wanted.best(wanted.live(found))


def documents_with_all(groups: Sequence[Sequence[Word]], wanted: Wanted) -> Documents:
    """Return the documents that have some word of every group."""
    if not groups or not all(groups):
        return NO_DOCUMENTS
    if all(len(group) == 1 for group in groups):
        words = [word for (word,) in groups]
        lists = sorted((word.postings.documents for word in words), key=len)
        numbers = lists[0]
        for other in lists[1:]:
            numbers = numbers[places_among(numbers, other) >= 0]
        found = Documents(numbers, scores_of(numbers, words))
        return wanted.best(wanted.live(found))
    joined = [
        _added([Documents(one.documents, one.factors * weight) for one, weight in group])
        for group in groups
    ]
    numbers = min((one.numbers for one in joined), key=len)
    for one in joined:
        numbers = numbers[places_among(numbers, one.numbers) >= 0]
    sums = np.zeros(numbers.size, np.float32)
    for one in joined:
        sums += one.scores[places_among(numbers, one.numbers)]
    return wanted.best(wanted.live(Documents(numbers, sums)))


def scores_of(numbers: U32s, words: Sequence[Word]) -> Scores:
    """Return the scores of some documents, ascending."""
    sums = np.zeros(numbers.size, np.float32)
    for postings, weight in words:
        places = places_among(numbers, postings.documents)
        held = np.flatnonzero(places >= 0)
        sums[held] += postings.factors[places[held]] * weight
    return sums


def _candidates(words: Sequence[Word], wanted: Wanted, most: int) -> U32s | None:
    """Return documents among which the best are; None if they are too many to be looked up."""
    cost = wanted.num_documents + sum(word.postings.documents.size for word in words)
    rarest = min(words, key=lambda word: word.postings.documents.size).postings.documents
    if rarest.size * len(words) * _LOOKUP > cost:
        return None
    known = wanted.live(Documents(rarest, scores_of(rarest, words)))
    if known.numbers.size < most:
        return None
    beaten = float(_least(known.scores, most)) * (1 - _SLACK)
    bound, needed = 0.0, []
    for word in sorted(words, key=lambda word: word.bound):
        bound += word.bound
        if bound >= beaten:
            needed.append(word.postings.documents)
    if sum(one.size for one in needed) * len(words) * _LOOKUP > cost:
        return None
    if len(needed) == 1:
        return needed[0]
    numbers: U32s = different(np.concatenate(needed))
    return numbers


def _added(lists: Sequence[Documents]) -> Documents:
    """Return the documents of all lists, with the sums of their scores."""
    if len(lists) == 1:
        return lists[0]
    numbers: U32s = different(np.concatenate([one.numbers for one in lists]))
    sums = np.zeros(numbers.size, np.float32)
    for one in lists:
        sums[places_among(one.numbers, numbers)] += one.scores
    return Documents(numbers, sums)


def best_places(scores: Scores, most: int, *, with_ties: bool) -> Ints:
    """Return where the best scores are, ascending: ``most``, and those that are as good.

    Without ties the first ones of equal scores are taken.
    """
    if scores.size <= most:
        return np.arange(scores.size)
    least = _least(scores, most)
    found = np.flatnonzero(scores >= least)
    if not with_ties and found.size > most:
        is_better = scores[found] > least
        ties = np.flatnonzero(~is_better)[: most - int(np.count_nonzero(is_better))]
        is_better[ties] = True
        found = found[is_better]
    return found


def _least(scores: Scores, most: int) -> np.float32:
    """Return the score that ``most`` of more than as many reach.

    The largest of each block exclude most of the scores; many documents often share one, which
    numpy's partition is slow with, so the first ones are counted.
    """
    if scores.size <= most:
        smallest: np.float32 = scores.min()
        return smallest
    whole = scores.size // _BLOCK * _BLOCK
    if whole // _BLOCK > most:
        largest = scores[:whole].reshape(-1, _BLOCK).max(axis=1)
        low = _least(largest, most)
        rest = scores[whole:]
        scores = np.concatenate([scores[:whole][scores[:whole] >= low], rest[rest >= low]])
    left = most
    for _ in range(_PEELED):
        best: np.float32 = scores.max()
        is_less = scores < best
        left -= scores.size - int(np.count_nonzero(is_less))
        if left <= 0:
            return best
        scores = scores[is_less]
    least: np.float32 = np.partition(scores, scores.size - left)[scores.size - left]
    return least

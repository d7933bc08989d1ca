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


class DocumentRequest(NamedTuple):
    """Which documents a search needs of a partition.

    ``num_documents`` in all; ``is_live`` for each whether it counts, None if all do; the best
    ``most``, None for every one. ``with_ties``: also those that are as good as the last one.
    """

    num_documents: int
    is_live: Mask | None
    most: int | None
    with_ties: bool

    def live(self, documents: Documents) -> Documents:
        """Drop what does not count."""
        if self.is_live is None:
            return documents
        is_live = self.is_live[documents.numbers]
        return Documents(documents.numbers[is_live], documents.scores[is_live])

    def best(self, documents: Documents) -> Documents:
        """Return the best of documents that count."""
        if self.most is None or documents.numbers.size <= self.most:
            return documents
        best = best_places(documents.scores, self.most, with_ties=self.with_ties)
        return Documents(documents.numbers[best], documents.scores[best])


def documents_with_any(words: Sequence[Word], request: DocumentRequest) -> Documents:
    """Return the documents that have some word."""
    if not words:
        return NO_DOCUMENTS
    if len(words) == 1:
        (postings, weight) = words[0]
        is_small = request.most is None or postings.documents.size <= request.most
        if is_small or request.is_live is not None or weight < _WEIGHT_MIN:
            documents = Documents(postings.documents, postings.factors * weight)
            return request.best(request.live(documents))
        # Equal scores may have different factors, so scores decide about ties.
        least = _least(postings.factors, request.most or 0) * np.float32(1 - _SLACK)
        positions = np.flatnonzero(postings.factors >= least)
        documents = Documents(postings.documents[positions], postings.factors[positions] * weight)
        return request.best(documents)
    total = sum(word.postings.documents.size for word in words)
    is_usual = all(word.weight > _WEIGHT_MIN for word in words)
    if request.most is not None and is_usual:
        numbers = _candidates(words, request, request.most)
        if numbers is not None:
            return request.best(request.live(Documents(numbers, scores_of(numbers, words))))
    if is_usual and total * _DENSE > request.num_documents:
        sums = np.zeros(request.num_documents, np.float32)
        for postings, weight in words:
            add_at(sums, postings.documents, postings.factors * weight)
        if request.is_live is not None:
            sums *= request.is_live
        if request.most is None:
            positions = np.flatnonzero(sums)
        else:
            positions = best_places(sums, request.most, with_ties=request.with_ties)
            positions = positions[sums[positions] > 0]
        return Documents(positions.astype(np.uint32), sums[positions])
    documents = _added(
        [Documents(posting.documents, posting.factors * weight) for posting, weight in words]
    )
    return request.best(request.live(documents))


def documents_with_all(groups: Sequence[Sequence[Word]], request: DocumentRequest) -> Documents:
    """Return the documents that have some word of every group."""
    if not groups or not all(groups):
        return NO_DOCUMENTS
    if all(len(group) == 1 for group in groups):
        words = [word for (word,) in groups]
        lists = sorted((word.postings.documents for word in words), key=len)
        numbers = lists[0]
        for other in lists[1:]:
            numbers = numbers[places_among(numbers, other) >= 0]
        documents = Documents(numbers, scores_of(numbers, words))
        return request.best(request.live(documents))
    joined = [
        _added(
            [Documents(posting.documents, posting.factors * weight) for posting, weight in group]
        )
        for group in groups
    ]
    numbers = min((documents_of_group.numbers for documents_of_group in joined), key=len)
    for documents_of_group in joined:
        numbers = numbers[places_among(numbers, documents_of_group.numbers) >= 0]
    sums = np.zeros(numbers.size, np.float32)
    for documents_of_group in joined:
        sums += documents_of_group.scores[places_among(numbers, documents_of_group.numbers)]
    return request.best(request.live(Documents(numbers, sums)))


def scores_of(numbers: U32s, words: Sequence[Word]) -> Scores:
    """Return the scores of some documents, ascending."""
    sums = np.zeros(numbers.size, np.float32)
    for postings, weight in words:
        places = places_among(numbers, postings.documents)
        held = np.flatnonzero(places >= 0)
        sums[held] += postings.factors[places[held]] * weight
    return sums


def _candidates(words: Sequence[Word], request: DocumentRequest, most: int) -> U32s | None:
    """Return documents among which the best are; None if they are too many to be looked up."""
    cost = request.num_documents + sum(word.postings.documents.size for word in words)
    rarest = min(words, key=lambda word: word.postings.documents.size).postings.documents
    if rarest.size * len(words) * _LOOKUP > cost:
        return None
    live = request.live(Documents(rarest, scores_of(rarest, words)))
    if live.numbers.size < most:
        return None
    beaten = float(_least(live.scores, most)) * (1 - _SLACK)
    bound, needed = 0.0, []
    for word in sorted(words, key=lambda word: word.bound):
        bound += word.bound
        if bound >= beaten:
            needed.append(word.postings.documents)
    if sum(numbers_of_word.size for numbers_of_word in needed) * len(words) * _LOOKUP > cost:
        return None
    if len(needed) == 1:
        return needed[0]
    numbers: U32s = different(np.concatenate(needed))
    return numbers


def _added(lists: Sequence[Documents]) -> Documents:
    """Return the documents of all lists, with the sums of their scores."""
    if len(lists) == 1:
        return lists[0]
    numbers: U32s = different(np.concatenate([documents.numbers for documents in lists]))
    sums = np.zeros(numbers.size, np.float32)
    for documents in lists:
        sums[places_among(documents.numbers, numbers)] += documents.scores
    return Documents(numbers, sums)


def best_places(scores: Scores, most: int, *, with_ties: bool) -> Ints:
    """Return where the best scores are, ascending: ``most``, and those that are as good.

    Without ties the first ones of equal scores are taken.
    """
    if scores.size <= most:
        return np.arange(scores.size)
    least = _least(scores, most)
    places = np.flatnonzero(scores >= least)
    if not with_ties and places.size > most:
        is_better = scores[places] > least
        ties = np.flatnonzero(~is_better)[: most - int(np.count_nonzero(is_better))]
        is_better[ties] = True
        places = places[is_better]
    return places


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
        tail = scores[whole:]
        scores = np.concatenate([scores[:whole][scores[:whole] >= low], tail[tail >= low]])
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

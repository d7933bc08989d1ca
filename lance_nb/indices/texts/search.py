"""Find the rows that match a full-text query, best first.

The score is BM25 (k1 1.2, b 0.75): for each word of the query that is in a row, with frequency f,
``boost * idf * 2.2 * f / (f + 1.2 * (0.25 + 0.75 * tokens / average))`` where idf is
``ln((N - n + 0.5) / (n + 0.5) + 1)``. N documents and their average number of tokens, and the n
documents with the word, are counted over all partitions of all segments, with the entries of rows
that were deleted since.

Fragments that no segment covers are scanned: their texts are cut as the index does, and their
statistics are added to those of the index for their own scores only. A column without an index is
scanned whole: words in lower case and ASCII, without stems and stop words. Words that are near
(``fuzziness``) are those of the index, compared with the words of the query as they are written; of
the texts that are scanned only those with the words themselves match.

An index that is damaged is not used: a warning, and its column is scanned.

Limits: memory holds the scores of the documents of one partition, and the rows that match.
Source: rows and scores of pylance 14.0.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from math import log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lance_nb.code_lines import Python
from lance_nb.encodings.base import Ints
from lance_nb.errors import (
    ColumnNotFoundError,
    CorruptFileError,
    InternalError,
    InvalidInputError,
    LanceError,
)
from lance_nb.indices.listing import ListedIndex, how_to_mend, list_indices, report_unusable
from lance_nb.indices.row_sets import NO_ROWS, U64s
from lance_nb.indices.segment import Segment
from lance_nb.indices.texts.partition import (
    Partition,
    TextSegment,
    open_segment,
    read_parameters,
)
from lance_nb.indices.texts.postings import U32s
from lance_nb.indices.texts.scores import (
    NO_DOCUMENTS,
    DocumentRequest,
    Documents,
    Word,
    best_places,
    documents_with_all,
    documents_with_any,
    factors_of,
)
from lance_nb.indices.texts.tokenizer import Tokenizer, TokenizerParameters, is_text
from lance_nb.table.filtered_scan import RowChoice, quoted, read_columns
from lance_nb.table.index_search import Scores, among, different
from lance_nb.table.indexed_scan import passing_rows
from lance_nb.table.projection import project
from lance_nb.table.row_selection import select_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.text_query import (
    BooleanQuery,
    BoostQuery,
    FullTextOperator,
    FullTextQuery,
    FullTextQueryType,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
    PlainText,
    parts_of,
    text_query,
)
from lance_nb.value_classes import dataclass

Mask = npt.NDArray[np.bool_]
KIND = "Inverted"
WITHOUT_INDEX = TokenizerParameters(stem=False, remove_stop_words=False)
"""How a column without an index is cut."""
_FACTOR = np.float32(2.2)
_POSITION = np.int64(32)
_POSITION_MAX = 1 << 30
_TOKENS_MAX = 100_000

Leaf = MatchQuery | PhraseQuery


class Hits(NamedTuple):
    """Rows that match, by ascending address."""

    rows: U64s
    scores: Scores


_NOTHING = Hits(NO_ROWS, np.zeros(0, np.float32))


class _Part(NamedTuple):
    """A partition in this version: the address of each document, and which rows are live."""

    partition: Partition
    rows: U64s
    is_live: Mask | None  # None: every one
    ascends: bool


class _Costs:
    """What a search has read."""

    def __init__(self) -> None:
        self.words: dict[str, None] = {}
        self.postings = self.ranked = self.scanned = 0


@dataclass(frozen=True, slots=True)
class _Flat:
    """The texts of rows that no index covers: what of them concerns the words of the query.

    ``documents`` (places in ``rows``), ``words`` and ``positions`` are one entry for each word of
    the query in a text; ``sizes`` are the tokens of each row.
    """

    rows: U64s
    sizes: Scores
    documents: Ints
    words: Ints
    positions: Ints
    numbers: dict[str, int]


class TextSearch:
    """The text indices of one version."""

    def __init__(self, snapshot: Snapshot) -> None:
        """List the indices. Raises CorruptFileError for an index section that cannot be read."""
        self.snapshot = snapshot
        self.indices = _indices_of(snapshot)
        self._parts: dict[str, tuple[_Part, ...]] = {}

    def parameters(self, column: str) -> TokenizerParameters:
        """Return how the texts of a column are cut. Raises NotSupportedError, CorruptFileError."""
        index = self.indices.get(column)
        if index is None:
            return WITHOUT_INDEX
        try:
            return read_parameters(self.snapshot, index.segments[0].index)
        except CorruptFileError as error:
            place = error.path, error.offset_bytes, error.expected, error.found, error.place
            raise CorruptFileError(*place, advice=how_to_mend(self.snapshot, index)) from error

    def parts(self, index: ListedIndex) -> tuple[_Part, ...]:
        """Open the partitions of an index. Raises LanceError."""
        cached = self._parts.get(index.column)
        if cached is None:
            first: TokenizerParameters | None = None
            parts: list[_Part] = []
            for segment in index.segments:
                files = open_segment(self.snapshot, segment.index)
                first = first or files.parameters
                if replace(files.parameters, with_position=first.with_position) != first:
                    segment_path = f"_indices/{segment.index.uuid}"
                    raise CorruptFileError(
                        segment_path, None, *_describe_difference(first, files.parameters)
                    )
                parts += _live_parts(segment, files)
            cached = self._parts[index.column] = tuple(parts)
        return cached

    def document_counts(self, column: str, words: Iterable[str]) -> tuple[int, dict[str, int]]:
        """Return how many documents an index holds, and how many of them have each token.

        ``words`` are tokens as ``parameters`` cut them. Raises LanceError.
        """
        parts = [part.partition for part in self.parts(self.indices[column])]
        counts = {}
        for word in words:
            numbers = ((part, part.number(word)) for part in parts)
            counts[word] = sum(
                part.length(number) for part, number in numbers if number is not None
            )
        return sum(part.num_documents for part in parts), counts


def text_search(snapshot: Snapshot) -> TextSearch:
    """Return the text indices of a version; listed once per version."""
    for existing in snapshot.searches:
        if isinstance(existing, TextSearch):
            return existing
    search = TextSearch(snapshot)
    snapshot.searches.append(search)
    return search


def plan_text(snapshot: Snapshot, text_or_query: object, *, fast_search: bool = False) -> TextPlan:
    """Check a full-text query against a version.

    ``fast_search``: rows that no index covers are not looked at. Raises InvalidInputError,
    ColumnNotFoundError, NotSupportedError, CorruptFileError (how an index cuts texts).
    """
    search = text_search(snapshot)
    query = _resolved(search, text_query(text_or_query))
    types = {field.name: field.type for field in snapshot.manifest.schema.to_arrow()}
    for leaf in _leaves(query):
        if leaf.column not in types:
            raise ColumnNotFoundError(leaf.column, tuple(types))
        if not is_text(types[leaf.column]):
            raise InvalidInputError(
                f"full-text search needs texts: column {leaf.column!r} is {types[leaf.column]}"
            )
    return TextPlan(search, query, fast_search=fast_search)


def _resolved(search: TextSearch, query: FullTextQuery | PlainText) -> FullTextQuery:
    if not isinstance(query, PlainText):
        return query
    columns = query.columns or tuple(search.indices)
    if not columns:
        raise InvalidInputError(
            "full-text search of a text needs an INVERTED index on at least one column: create "
            "one with ds.create_scalar_index(column, 'INVERTED'), or name the columns, as in "
            "full_text_query={'query': ..., 'columns': [...]}, which are then scanned"
        )
    if query.phrase is not None:
        phrases = [PhraseQuery(query.phrase, column) for column in columns]
        return phrases[0] if len(phrases) == 1 else _Best(tuple(phrases))
    if len(columns) == 1:
        return MatchQuery(query.query, columns[0])
    return MultiMatchQuery(query.query, list(columns))


@dataclass(frozen=True, slots=True)
class _Best(FullTextQuery):
    """Rows that one of several queries finds, with the best score."""

    queries: tuple[FullTextQuery, ...]

    def query_type(self) -> FullTextQueryType:
        return FullTextQueryType.MULTI_MATCH


def _parts_of(query: FullTextQuery) -> Sequence[FullTextQuery]:
    return query.queries if isinstance(query, _Best) else parts_of(query)


def _leaves(query: FullTextQuery) -> Iterator[Leaf]:
    if isinstance(query, MatchQuery | PhraseQuery):
        yield query
    for part in _parts_of(query):
        yield from _leaves(part)


class TextPlan:
    """A query that is checked; implements ``TextMatches``."""

    def __init__(self, search: TextSearch, query: FullTextQuery, *, fast_search: bool) -> None:
        """Cut the texts of the query. Raises NotSupportedError, MissingPackageError."""
        self._search, self._query, self._fast = search, query, fast_search
        self._unusable: set[str] = set()
        self._flat: dict[str, _Flat] = {}
        self._costs = _Costs()
        self._cutters: dict[str, Tokenizer] = {}
        self._tokens: dict[str, dict[str, str | None]] = {}  # of pieces of texts that were marked
        self._words: dict[Leaf, list[tuple[str, int]]] = {}
        self._spelled: dict[Leaf, list[tuple[str, int]]] = {}  # what is compared with the index
        for leaf in _leaves(query):
            column = leaf.column
            if column not in self._cutters:
                self._cutters[column] = Tokenizer(search.parameters(column))
            cutter = self._cutters[column]
            self._words[leaf] = cutter.query(leaf.query)
            # A word counts once at a position, and pieces of characters are all at one.
            self._spelled[leaf] = list(dict.fromkeys(self._words[leaf]))
            if isinstance(leaf, MatchQuery) and leaf.fuzziness != 0:
                plain = replace(
                    cutter.parameters,
                    stem=False,
                    remove_stop_words=False,
                    ascii_folding=False,
                    lower_case=False,
                )
                self._spelled[leaf] = Tokenizer(plain).query(leaf.query)
            is_indexed = column in search.indices
            if isinstance(leaf, PhraseQuery) and is_indexed and not cutter.parameters.with_position:
                line = Python("ds").attribute("create_scalar_index")
                line = line.call(column, "INVERTED", with_position=True)
                raise InvalidInputError(
                    f"phrases need positions, and the index of column {column!r} has none: create "
                    f"it again with {line.code}"
                )

    def find(self, choice: RowChoice, most: int | None) -> tuple[U64s, Scores]:
        """Return the best rows; see ``TextMatches``."""
        if most == 0:
            return NO_ROWS, _NOTHING.scores
        while True:
            self._costs, self._flat = _Costs(), {}
            unusable = len(self._unusable)
            is_whole = choice.filter is None and choice.fragments is None
            hits = self._hits(self._query, choice, most if is_whole else None)
            if len(self._unusable) == unusable:
                break
        if not is_whole:
            hits = _chosen(self._search.snapshot, choice, hits)
        return _best(hits, most)

    def explain(self) -> list[str]:
        """Say in words which indices are searched for which words."""
        total = len(self._search.snapshot.manifest.fragments)
        lines = []
        for column in dict.fromkeys(leaf.column for leaf in _leaves(self._query)):
            words = [word for leaf, leaf_words in self._words.items() if leaf.column == column
                     for word, _ in leaf_words]  # fmt: skip
            words_text = ", ".join(map(repr, dict.fromkeys(words))) or "no words"
            index = self._search.indices.get(column)
            if index is None:
                lines.append(
                    f"text: {words_text} in column {column!r}, no index: every row is scanned"
                )
                continue
            covered = f"{index.covered.size} of {total} fragments covered"
            others_text = (
                ""
                if index.covered.size == total
                else (", the others are left out" if self._fast else ", the others are scanned")
            )
            lines.append(
                f"text: {words_text} in index {index.name!r} (INVERTED) of column {column!r}, "
                f"{covered}{others_text}"
            )
        return lines

    def costs(self) -> list[str]:
        """Say in words what the last search has read."""
        costs = self._costs
        words = ", ".join(map(repr, costs.words)) or "none"
        line = (
            f"words in the index: {words}; {costs.postings:,} postings read, {costs.ranked:,} rows "
            f"ranked, {costs.scanned:,} rows scanned"
        )
        return [line]

    @property
    def columns(self) -> list[str]:
        """The columns that are searched."""
        return list(self._cutters)

    def places(self, column: str, text: str) -> list[tuple[int, int]]:
        """Return where words that the query has found stand in a text; see ``TextMatches``."""
        cutter = self._cutters[column]
        words = {word for leaf, leaf_words in self._words.items() if leaf.column == column
                 for word, _ in leaf_words} | set(self._costs.words)  # fmt: skip
        base = cutter.parameters.base_tokenizer
        if base in ("raw", "ngram"):
            lowered = text.lower()
            places = ((lowered.find(word), len(word)) for word in words)
            return sorted((start, start + size) for start, size in places if start >= 0)
        pattern = r"[^\t\n\f\r ]+" if base == "whitespace" else r"[^\W_]+"
        tokens = self._tokens.setdefault(column, {})
        word_places = []
        for match in re.finditer(pattern, text):
            piece = match.group()
            if piece not in tokens:
                if len(tokens) >= _TOKENS_MAX:
                    tokens.clear()
                tokens[piece] = cutter.token_of(piece)
            if tokens[piece] in words:
                word_places.append(match.span())
        return word_places

    # --- queries of queries -----------------------------------------------------------------------

    def _hits(self, query: FullTextQuery, choice: RowChoice, most: int | None) -> Hits:
        if isinstance(query, MatchQuery | PhraseQuery):
            return self._leaf(query, choice, most)
        if isinstance(query, BoostQuery):
            positive = self._hits(query.positive, choice, None)
            negative = self._hits(query.negative, choice, None)
            places, shared = _places(positive.rows, negative.rows)
            scores = positive.scores.copy()
            scores[shared] -= np.float32(query.negative_boost) * negative.scores[places[shared]]
            return Hits(positive.rows, scores)
        if isinstance(query, BooleanQuery):
            return self._boolean(query, choice)
        return _united([self._hits(part, choice, most) for part in _parts_of(query)], np.maximum)

    def _boolean(self, query: BooleanQuery, choice: RowChoice) -> Hits:
        by_kind = {
            occur: [
                self._hits(part, choice, None)
                for occurrence, part in query.queries
                if occurrence is occur
            ]
            for occur in Occur
        }
        should = _united(by_kind[Occur.SHOULD], np.add)
        hits = should
        must = by_kind[Occur.MUST]
        if must:
            rows = must[0].rows
            for other in must[1:]:
                rows = rows[among(rows, other.rows)]
            scores = np.zeros(rows.size, np.float32)
            for part in [*must, should]:
                places, shared = _places(rows, part.rows)
                scores[shared] += part.scores[places[shared]]
            hits = Hits(rows, scores)
        for part in by_kind[Occur.MUST_NOT]:
            is_left = ~among(hits.rows, part.rows)
            hits = Hits(hits.rows[is_left], hits.scores[is_left])
        return hits

    # --- one column -------------------------------------------------------------------------------

    def _leaf(self, leaf: Leaf, choice: RowChoice, most: int | None) -> Hits:
        words, spelled = self._words[leaf], self._spelled[leaf]
        if not words and not spelled:
            return _NOTHING
        index = self._usable(leaf.column)
        parts: tuple[_Part, ...] = ()
        indexed: list[Hits] = []
        if index is not None:
            try:
                parts = self._search.parts(index)
                indexed = self._indexed(self._in_index(leaf), spelled, parts, most)
            except CorruptFileError as error:
                self._give_up(leaf.column, error)
                index, parts = None, ()
            except LanceError as error:
                if isinstance(error, InvalidInputError):
                    raise
                self._give_up(leaf.column, error)
                index, parts = None, ()
        flat = self._flat_of(leaf.column, index, choice)
        if flat is not None:
            indexed.append(self._scanned(leaf, words, parts, flat))
        return _united(indexed, np.maximum)  # no row is in two parts

    def _in_index(self, leaf: Leaf) -> Leaf:
        """Return what is asked of an index: any of the pieces of characters of a phrase.

        They are all at one position. In rows without an index all of them must be there.
        """
        tokenizer = self._cutters[leaf.column].parameters.base_tokenizer
        if isinstance(leaf, PhraseQuery) and tokenizer == "ngram":
            return MatchQuery(leaf.query, leaf.column)
        return leaf

    def _usable(self, column: str) -> ListedIndex | None:
        return None if column in self._unusable else self._search.indices.get(column)

    def _give_up(self, column: str, error: LanceError) -> None:
        self._unusable.add(column)
        indices = tuple(self._search.indices.values())
        report_unusable(self._search.snapshot, indices, error, "rows are scanned instead")

    def _indexed(
        self,
        leaf: Leaf,
        words: list[tuple[str, int]],
        parts: Sequence[_Part],
        most: int | None,
    ) -> list[Hits]:
        """Return what each partition has."""
        spellings = self._spellings(leaf, words, parts)
        tokens = [_numbered(part.partition, spellings) for part in parts]
        total = sum(part.partition.num_documents for part in parts)
        size = sum(part.partition.total_tokens for part in parts)
        if not total or not size:
            return []
        counts: dict[str, int] = {}
        for part, tokens_of_part in zip(parts, tokens, strict=True):
            numbers_by_word = {word: number for group in tokens_of_part for word, number in group}
            for word, number in numbers_by_word.items():
                counts[word] = counts.get(word, 0) + part.partition.length(number)
        self._costs.words |= dict.fromkeys(counts)
        weights = {word: _idf(total, count) for word, count in counts.items()}
        hits = []
        for part, tokens_of_part in zip(parts, tokens, strict=True):
            is_phrase = isinstance(leaf, PhraseQuery) and len(words) > 1
            request = DocumentRequest(
                part.partition.num_documents,
                part.is_live,
                None if is_phrase else most,
                with_ties=not part.ascends,
            )
            documents, scores = self._documents(
                leaf, part.partition, tokens_of_part, weights, average=size / total, request=request
            )
            if isinstance(leaf, PhraseQuery) and is_phrase and documents.size:
                offsets = [position for _, position in words]
                keep = _phrase_documents(
                    leaf, offsets, part.partition, groups=tokens_of_part, documents=documents
                )
                best = request._replace(most=most).best(Documents(documents[keep], scores[keep]))
                documents, scores = best
            rows = part.rows[documents]
            if not part.ascends:
                order = np.argsort(rows, kind="stable")
                rows, scores = rows[order], scores[order]
            hits.append(Hits(rows, scores))
        return hits

    def _spellings(
        self, leaf: Leaf, words: list[tuple[str, int]], parts: Sequence[_Part]
    ) -> list[list[str]]:
        """Return for each word those of the index that it stands for."""
        if not isinstance(leaf, MatchQuery) or leaf.fuzziness == 0:
            return [[word] for word, _ in words]
        groups = []
        left = leaf.max_expansions
        for word, _ in words:
            distance = _distance(leaf, word)
            if not distance:
                groups.append([word])
                continue
            near = {
                token
                for part in parts
                for token, _ in part.partition.near(word, distance, leaf.prefix_length, left)
            }
            group = sorted(near, key=str.encode)[:left]
            left -= len(group)
            groups.append(group)
        return groups

    def _documents(
        self,
        leaf: Leaf,
        partition: Partition,
        groups: list[list[tuple[str, int]]],
        weights: dict[str, float],
        *,
        average: float,
        request: DocumentRequest,
    ) -> Documents:
        """Return the best documents of a partition that have the words, and their scores."""
        boost = np.float32(leaf.boost if isinstance(leaf, MatchQuery) else 1.0)
        needs_all = isinstance(leaf, PhraseQuery) or leaf.operator is FullTextOperator.AND
        if needs_all and not all(groups):
            return NO_DOCUMENTS
        words_by_number: dict[int, Word] = {}
        for word, number in (pair for group in groups for pair in group):
            if number not in words_by_number:
                factors = partition.factors(number, average)
                self._costs.postings += factors.documents.size
                words_by_number[number] = Word(factors, np.float32(weights[word]) * _FACTOR * boost)
        lists = [[words_by_number[number] for _, number in group] for group in groups]
        if needs_all:
            documents = documents_with_all(lists, request)
        else:
            documents = documents_with_any([word for group in lists for word in group], request)
        self._costs.ranked += documents.numbers.size
        return documents

    # --- rows that no index covers ----------------------------------------------------------------

    def _flat_of(self, column: str, index: ListedIndex | None, choice: RowChoice) -> _Flat | None:
        """Read the texts of fragments that no segment covers; None where there are none."""
        if column in self._flat:
            return self._flat[column]
        has_index = column in self._search.indices
        if self._fast and (index is not None or not has_index):
            return None
        whole = self._search.snapshot.manifest.fragments
        fragments = tuple(whole if choice.fragments is None else choice.fragments)
        if index is not None:
            covered = set(index.covered.tolist())
            fragments = tuple(fragment for fragment in fragments if fragment.id not in covered)
        if not fragments:
            return None
        words_wanted = [word for leaf, words in self._words.items() if leaf.column == column
                        for word, _ in words]  # fmt: skip
        flat = self._read_flat(column, replace(choice, fragments=fragments), words_wanted)
        self._costs.scanned += flat.rows.size
        self._flat[column] = flat
        return flat

    def _read_flat(self, column: str, choice: RowChoice, words_wanted: Iterable[str]) -> _Flat:
        snapshot = self._search.snapshot
        source = project(snapshot.manifest.schema, [quoted((column,))])
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words_wanted))}
        cutter = Tokenizer(self._cutters[column].parameters)
        rows, sizes, documents, words, positions = [], [], [], [], []
        num_documents = 0
        for selected in select_rows(snapshot, choice, source):
            texts = read_columns(snapshot, source.columns, selected)[0]
            tokens = cutter.cut(texts.combine_chunks())
            counts = np.bincount(tokens.texts, minlength=selected.num_rows)
            filled = np.flatnonzero(counts)  # a text without a token is no document
            place = np.cumsum(counts > 0) - 1 + num_documents
            num_documents += filled.size
            addresses = selected.physical.astype(np.uint64) | np.uint64(selected.fragment.id << 32)
            rows.append(addresses[filled])
            sizes.append(counts[filled].astype(np.float32))
            names = np.array([numbers.get(word, -1) for word in cutter.words], np.int64)
            mine = names[tokens.words] if names.size else tokens.words
            chosen = mine >= 0
            documents.append(place[tokens.texts[chosen]])
            words.append(mine[chosen])
            positions.append(tokens.positions[chosen])
            cutter.forget()
        if not rows:
            empty = np.zeros(0, np.int64)
            return _Flat(
                NO_ROWS, _NOTHING.scores, empty, words=empty, positions=empty, numbers=numbers
            )
        return _Flat(
            np.concatenate(rows), np.concatenate(sizes), np.concatenate(documents),
            words=np.concatenate(words), positions=np.concatenate(positions), numbers=numbers,
        )  # fmt: skip

    def _scanned(
        self, leaf: Leaf, words: list[tuple[str, int]], parts: Sequence[_Part], flat: _Flat
    ) -> Hits:
        """Return the rows that match among those that were scanned."""
        total = flat.rows.size + sum(part.partition.num_documents for part in parts)
        size = float(flat.sizes.sum(dtype=np.float64)) + sum(
            part.partition.total_tokens for part in parts
        )
        if not total or not size:
            return _NOTHING
        norms = (0.3 + flat.sizes * np.float32(0.9 * total / size)).astype(np.float32)
        boost = np.float32(leaf.boost if isinstance(leaf, MatchQuery) else 1.0)
        words_by_text: dict[str, Word] = {}
        for word in dict.fromkeys(word for word, _ in words):
            mine = flat.documents[flat.words == flat.numbers[word]]
            counts = np.bincount(mine, minlength=flat.rows.size)
            documents = np.flatnonzero(counts)
            frequencies = counts[documents].astype(np.float32)
            numbers = [(part.partition, part.partition.number(word)) for part in parts]
            num_elsewhere = sum(
                part.length(number) for part, number in numbers if number is not None
            )
            weight = np.float32(_idf(total, num_elsewhere + documents.size)) * _FACTOR * boost
            scores = frequencies / (frequencies + norms[documents])
            words_by_text[word] = Word(factors_of(documents.astype(np.uint32), scores), weight)
        if not words:
            return _NOTHING
        request = DocumentRequest(flat.rows.size, None, None, with_ties=True)
        if isinstance(leaf, MatchQuery) and leaf.operator is FullTextOperator.OR:
            matching = documents_with_any([words_by_text[word] for word, _ in words], request)
        else:
            matching = documents_with_all([[words_by_text[word]] for word, _ in words], request)
        documents, scores = matching.numbers.astype(np.int64), matching.scores
        self._costs.ranked += documents.size
        if isinstance(leaf, PhraseQuery) and len(words) > 1 and documents.size:
            places = []
            for word, _ in words:
                mine = np.flatnonzero(flat.words == flat.numbers[word])
                mine = mine[among(flat.documents[mine], documents)]
                owners = np.searchsorted(documents, flat.documents[mine])
                places.append((owners, flat.positions[mine]))
            keep = _in_order(places, [position for _, position in words], leaf.slop)
            documents, scores = documents[keep], scores[keep]
        return Hits(flat.rows[documents], scores)


def _numbered(partition: Partition, groups: list[list[str]]) -> list[list[tuple[str, int]]]:
    """Return the words that a partition has, with their numbers."""
    numbered = []
    for group in groups:
        numbers = ((word, partition.number(word)) for word in group)
        numbered.append([(word, number) for word, number in numbers if number is not None])
    return numbered


# --- documents and scores -------------------------------------------------------------------------


def _idf(total: int, count: int) -> float:
    return log((total - count + 0.5) / (count + 0.5) + 1)


def _distance(leaf: Leaf, word: str) -> int:
    if not isinstance(leaf, MatchQuery):
        return 0
    if leaf.fuzziness is not None:
        return leaf.fuzziness
    return 0 if len(word) <= 2 else 1 if len(word) <= 5 else 2


def _phrase_documents(
    leaf: PhraseQuery,
    offsets: list[int],
    partition: Partition,
    groups: list[list[tuple[str, int]]],
    documents: U32s,
) -> Ints:
    """Return the places of those documents in which the words stand in order."""
    if not partition.has_positions:
        raise CorruptFileError(partition.path, None, "positions", "none")
    places = []
    for group in groups:
        number = group[0][1]
        posting = partition.posting(number)
        chosen = np.searchsorted(posting.documents, documents)
        places.append(partition.positions(number, posting, chosen))
    return _in_order(places, offsets, leaf.slop)


def _in_order(places: list[tuple[Ints, Ints]], offsets: list[int], slop: int) -> Ints:
    """Return the owners of words that stand one after the other.

    ``places`` are for each word the owners (ascending) and positions, ``offsets`` the positions of
    the words in the query. ``slop`` more positions may be before each word but the first.
    """
    before: Ints = np.zeros(0, np.int64)
    for number, (owners, positions) in enumerate(places):
        fits = positions < _POSITION_MAX
        keys = np.sort((owners[fits] << _POSITION) | (positions[fits] + (1 << 20)))
        if number:
            gap = offsets[number] - offsets[number - 1]
            if not before.size:
                return before
            before_places = np.searchsorted(before, keys - gap, "right") - 1
            keys = keys[
                (before_places >= 0) & (before[np.maximum(before_places, 0)] >= keys - gap - slop)
            ]
        before = keys
    matching: Ints = different(before >> _POSITION)
    return matching


# --- rows and scores ------------------------------------------------------------------------------


def _places(rows: U64s, other_rows: U64s) -> tuple[Ints, Ints]:
    """Return where each row is among others, and which of the rows are there; both ascending."""
    if not other_rows.size:
        return np.zeros(rows.size, np.int64), np.zeros(0, np.int64)
    positions = np.minimum(np.searchsorted(other_rows, rows), other_rows.size - 1)
    return positions, np.flatnonzero(other_rows[positions] == rows)


def _united(parts: Sequence[Hits], join: np.ufunc) -> Hits:
    """Return the rows of all parts, with their scores added, or the best of them."""
    if len(parts) < 2:
        return parts[0] if parts else _NOTHING
    rows = np.concatenate([part.rows for part in parts])
    scores = np.concatenate([part.scores for part in parts])
    if not rows.size:
        return _NOTHING
    order = np.argsort(rows, kind="stable")
    rows, scores = rows[order], scores[order]
    firsts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    return Hits(rows[firsts], join.reduceat(scores, firsts))


def _chosen(snapshot: Snapshot, choice: RowChoice, hits: Hits) -> Hits:
    """Drop rows of other fragments, and those that do not pass the filter."""
    rows = hits.rows
    if choice.fragments is not None:
        ids = np.array(sorted(fragment.id for fragment in choice.fragments), np.int64)
        rows = rows[among((rows >> np.uint64(32)).astype(np.int64), ids)]
    answer = choice.answer
    undecided = rows
    passing = NO_ROWS
    if choice.filter is not None:
        if answer is not None:
            is_covered = among((rows >> np.uint64(32)).astype(np.int64), answer.covered)
            named = rows[is_covered & among(rows, answer.rows)]
            undecided = rows[~is_covered]
            if answer.is_exact:
                passing = named
            else:
                undecided = np.sort(np.concatenate([undecided, named]))
        if undecided.size:
            passed = passing_rows(snapshot, choice.filter, undecided)
            passing = np.sort(np.concatenate([passing, passed]))
        rows = passing
    places, _ = _places(rows, hits.rows)
    return Hits(rows, hits.scores[places])


def _best(hits: Hits, most: int | None) -> tuple[U64s, Scores]:
    """Return the best rows; of equal scores those with the lower address."""
    rows, scores = hits
    if most is not None and rows.size > most:
        best = best_places(scores, most, with_ties=False)
        rows, scores = rows[best], scores[best]
    order = np.argsort(-scores, kind="stable")
    return rows[order], scores[order]


# --- the indices of a version ---------------------------------------------------------------------


def _indices_of(snapshot: Snapshot) -> dict[str, ListedIndex]:
    """Return the text index of each column; of several the one that covers most."""
    if snapshot.manifest.index_section is None:
        return {}
    indices: dict[str, ListedIndex] = {}
    for index in list_indices(snapshot, (KIND,), with_empty=True):
        existing = indices.get(index.column)
        if existing is None or existing.covered.size < index.covered.size:
            indices[index.column] = index
    order = {field.name: place for place, field in enumerate(snapshot.manifest.schema.fields)}
    return dict(sorted(indices.items(), key=lambda pair: order[pair[0]]))


def _describe_difference(
    first: TokenizerParameters, second: TokenizerParameters
) -> tuple[str, str]:
    """Return the first parameter that differs, as ``expected`` and ``found``."""
    for name in (parameter.name for parameter in fields(first)):
        values = getattr(first, name), getattr(second, name)
        if name != "with_position" and values[0] != values[1]:
            return f"texts cut with {name} {values[0]!r:.80} in each segment", f"{values[1]!r:.80}"
    raise InternalError("two sets of parameters are equal")


def _live_parts(segment: Segment, files: TextSegment) -> Iterator[_Part]:
    for partition in files.partitions:
        rows, is_live = segment.addresses(partition.rows)
        if segment.by_address and files.void.size:
            is_live &= ~among((partition.rows >> np.uint64(32)).astype(np.int64), files.void)
        ascends = bool((rows[1:] > rows[:-1]).all()) if rows.size else True
        yield _Part(partition, rows, None if is_live.all() else is_live, ascends)

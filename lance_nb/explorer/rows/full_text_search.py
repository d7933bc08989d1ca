r"""Search the rows of a version for words: by text indices where there are any, else by a scan.

The box takes words and phrases in quotation marks: ``river "old stone"``. Rows have all of them, in
any of the columns that are searched, or with ``any_word`` at least one.

By an index rows are ranked: they come best first, with their ``_score`` (BM25), and words are cut
and reduced to stems as the index does. Without an index rows are chosen by a filter that has a
regular expression for each word, so that every text is read; they come in the order of the dataset,
without a score. A word is then a run of letters and digits, in upper or lower case.

======================= ========================================================================
columns of the request  searched
======================= ========================================================================
None                    those with an index that can be used, if there are any; else all texts
()                      all texts: by a scan unless all of them have an index
names                   these: by a scan unless all of them have an index
======================= ========================================================================

An index without positions cannot find phrases; the columns are then scanned, and so they are where
an index cannot be read. ``FullTextSearch.remarks`` says which columns were not searched, and why no
index was used.

``telling_words`` chooses words of a text, to find texts like it.

Limits: ``MAX_CHARS`` characters and ``MAX_TERMS`` words and phrases; a scan reads up to
``MAX_SCANNED`` columns, and its filter has at most ``MAX_CONDITION_CHARS`` characters; an index
gives the ``MAX_FOUND`` best rows; marks of a text are looked for in its first characters
(``text.CELL_BYTES``), ``MAX_MARKS`` of them are shown; ``MAX_TELLING`` words of a text tell it
from others.
Not supported: a scan of lists of texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import reduce
from math import log
from operator import and_, or_
from typing import Any

import pyarrow as pa

from lance_nb.code_lines import Python
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, LanceError
from lance_nb.explorer import cells, text
from lance_nb.explorer.rows.filter_conditions import column_sql
from lance_nb.explorer.source import Source, scanned_source, stored_source
from lance_nb.indices.listing import ListedIndex
from lance_nb.indices.texts.search import TextSearch, text_search
from lance_nb.indices.texts.tokenizer import Tokenizer, TokenizerParameters
from lance_nb.indices.texts.tokenizer import is_text as has_texts
from lance_nb.table.text_query import (
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
)
from lance_nb.value_classes import dataclass

SCORE = "_score"
MAX_CHARS = 500
MAX_TERMS = 32
MAX_SCANNED = 16
MAX_CONDITION_CHARS = 12_000
MAX_FOUND = 100_000
MAX_MARKS = 20
MAX_TELLING = 8
MAX_COLUMNS = 50  # offered for a choice
_BEFORE = 20  # characters that stay before the first mark of a long text
_TERMS = re.compile(r'"([^"]*)"?|([^\s"]+)')
_ANY = FullTextOperator.OR
_ALL = FullTextOperator.AND
# Names of characters of scripts that put no spaces between words.
_WITHOUT_SPACES = ("CJK ", "HIRAGANA ", "KATAKANA ", "THAI ", "LAO ", "KHMER ", "MYANMAR ")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What a person searches for; see the table of ``columns`` above."""

    text: str
    columns: tuple[str, ...] | None = None
    any_word: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """A word, or the words of a phrase."""

    words: tuple[str, ...]
    is_phrase: bool = False

    @property
    def text(self) -> str:
        """The words with a space between them."""
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class FullTextSearch:
    """A search that is checked against a version.

    ``indices``: the names of the indices that are searched, none for a scan, which uses
    ``condition``. ``searchable``: the columns that could be searched.
    """

    request: SearchRequest
    terms: tuple[Term, ...]
    columns: tuple[str, ...]
    searchable: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    indices: tuple[str, ...] = ()
    query: FullTextQuery | None = None
    code: Python | None = None
    condition: str | None = None
    scanner: Any = field(default=None, compare=False, repr=False)

    @property
    def is_ranked(self) -> bool:
        """Whether an index gives the rows, with their scores."""
        return self.query is not None

    def places(self, column: str, shown: str) -> list[tuple[int, int]]:
        """Return where words of the search stand in a text of a column, in order."""
        if column not in self.columns:
            return []
        if self.scanner is not None:
            places: list[tuple[int, int]] = self.scanner.word_places(column, shown)
        else:
            places = [match.span() for match in _words_pattern(self.terms).finditer(shown)]
        return places[:MAX_MARKS]

    def excerpt(self, column: str, shown: str, budget: int) -> tuple[str, list[int]]:
        """Cut a text so that its first word of the search is in sight.

        Returns the text and where words stand in it: starts and stops, in the units of UTF-16 that
        a browser counts in.
        """
        places = self.places(column, shown)
        begin = max(0, places[0][0] - _BEFORE) if places else 0
        if begin and len(shown) > begin:
            gap = shown.find(" ", begin, places[0][0])
            begin = gap + 1 if gap >= 0 else begin
            shown = text.ELLIPSIS + shown[begin:]
            places = [(start - begin + 1, stop - begin + 1) for start, stop in places]
        shown = text.cut(shown, budget)
        inside = [(start, min(stop, len(shown))) for start, stop in places if start < len(shown)]
        return shown, utf16_places(shown, inside)

    def to_json(self) -> dict[str, Any]:
        """Return what the box says and offers, as JSON-able values."""
        return {
            "ranked": self.is_ranked,
            "condition": self.condition,
            "columns": [
                {"raw": name, "name": text.name(name)} for name in self.searchable[:MAX_COLUMNS]
            ],
        }


def utf16_places(shown: str, places: Sequence[tuple[int, int]]) -> list[int]:
    """Return starts and stops one after the other, counted in units of UTF-16."""
    flat = [end for place in places for end in place]
    if shown.isascii() or max(map(ord, shown)) < 0x10000:
        return flat
    wide = [index for index, character in enumerate(shown) if ord(character) >= 0x10000]
    return [end + sum(index < end for index in wide) for end in flat]


def terms_of(written: str) -> tuple[Term, ...]:
    """Cut what is written in the box into words and phrases.

    Raises InvalidInputError where there is none, or there are too many.

    >>> [one.text for one in terms_of('River "old  stone" foo-bar')]
    ['River', 'old stone', 'foo bar']
    """
    terms: dict[Term, None] = {}
    for quoted, plain in _TERMS.findall(written):
        pieces = _runs(quoted or plain)
        if pieces:
            terms[Term(pieces, is_phrase=len(pieces) > 1)] = None
    if not terms:
        raise InvalidInputError("write words to search for: letters or digits")
    if len(terms) > MAX_TERMS:
        raise InvalidInputError(f"search for at most {MAX_TERMS} words and phrases at a time")
    return tuple(terms)


def _runs(written: str) -> tuple[str, ...]:
    """Return the runs of letters, digits and the marks on letters."""
    characters = (
        character if unicodedata.category(character)[0] in "LNM" else " " for character in written
    )
    return tuple("".join(characters).split())


def plan_search(dataset: Source, request: SearchRequest) -> FullTextSearch:
    """Choose the columns and how they are searched.

    Raises InvalidInputError, ColumnNotFoundError.
    """
    terms = terms_of(request.text)
    indexed = _indexed_columns(dataset)
    searchable = [
        field.name for field in dataset.schema
        if field.name in indexed or field.name in cells.text_columns(pa.schema([field]))
    ]  # fmt: skip
    for name in request.columns or ():
        if name not in dataset.schema.names:
            raise ColumnNotFoundError(name, tuple(dataset.schema.names))
        if name not in searchable:
            kind = dataset.schema.field(name).type
            raise InvalidInputError(f"only texts are searched: column {name!r} is {kind}")
    if not searchable:
        raise InvalidInputError("this version has no column of texts")
    needs_positions = any(term.is_phrase for term in terms)
    usable, remarks = _usable(dataset, indexed, needs_positions=needs_positions)
    chosen = list(request.columns or searchable)
    ranked = [name for name in chosen if name in usable]
    search = FullTextSearch(request, terms, tuple(chosen), tuple(searchable))
    by_index = ranked and (request.columns is None or len(ranked) == len(chosen))
    if not by_index:
        return _scanned(dataset, search, remarks)
    unranked = [text.name(name) for name in searchable if name not in ranked]
    if request.columns is None and unranked:
        remarks.append(f"not searched, no index: {_listed(unranked)}")
    names = tuple(dict.fromkeys(usable[name].name for name in ranked))
    query, code = _query(dataset, terms, ranked, any_word=request.any_word)
    scanner = scanned_source(dataset).scanner(columns=[], full_text_query=query, with_row_id=True)
    return FullTextSearch(
        request=request,
        terms=terms,
        columns=tuple(ranked),
        searchable=tuple(searchable),
        remarks=tuple(remarks),
        indices=names,
        query=query,
        code=code,
        scanner=scanner,
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_TERMS // 4
    shown = ", ".join(names[: MAX_TERMS // 4])
    return f"{shown} and {text.count(more)} more" if more > 0 else shown


def _searches(dataset: Source) -> TextSearch | None:
    return text_search(stored_source(dataset).opened[1]) if hasattr(dataset, "opened") else None


def _indexed_columns(dataset: Source) -> dict[str, ListedIndex]:
    searches = _searches(dataset)
    if searches is None:
        return {}
    kinds = {field.name: field.type for field in dataset.schema}
    return {
        name: index for name, index in searches.indices.items()
        if name in kinds and has_texts(kinds[name])
    }  # fmt: skip


def _usable(
    dataset: Source, indexed: Mapping[str, ListedIndex], *, needs_positions: bool
) -> tuple[dict[str, ListedIndex], list[str]]:
    """Return the indices that can be searched for this, and why others cannot."""
    searches = _searches(dataset)
    usable: dict[str, ListedIndex] = {}
    remarks: list[str] = []
    if searches is None:
        return usable, remarks
    for name, column_index in indexed.items():
        shown = text.name(column_index.name)
        try:
            parameters = searches.parameters(name)
            Tokenizer(parameters)
        except LanceError as error:
            remarks.append(f"the index {shown} cannot be used: {text.line(error, 300)}")
            continue
        if needs_positions and not parameters.with_position:
            remarks.append(f"the index {shown} holds no positions, which phrases need")
            continue
        usable[name] = column_index
    return usable, remarks


# --- by an index ----------------------------------------------------------------------------------


def _query(
    dataset: Source, terms: Sequence[Term], columns: Sequence[str], *, any_word: bool
) -> tuple[FullTextQuery, Python]:
    """Return the query, and the code that makes it. Raises InvalidInputError."""
    usable = [term for term in terms if _has_tokens(dataset, term, columns)]
    if not usable:
        raise InvalidInputError(
            "the index leaves these words out, as they are in nearly every text: search for others"
        )
    plain = [term for term in usable if not term.is_phrase]
    parts: list[tuple[FullTextQuery, Python]] = []
    if len(columns) == 1:
        if plain:
            parts.append(
                _match(" ".join(term.text for term in plain), columns[0], any_word=any_word)
            )
        parts += [_phrase(term.text, columns[0]) for term in usable if term.is_phrase]
    else:
        if any_word and plain:
            parts.append(_match_several(" ".join(term.text for term in plain), columns))
        elif plain:
            parts += [_match_several(term.text, columns) for term in plain]
        for term in usable:
            if term.is_phrase:
                parts.append(_joined([_phrase(term.text, name) for name in columns], any_word=True))
    return _joined(parts, any_word=any_word)


def _has_tokens(dataset: Source, term: Term, columns: Sequence[str]) -> bool:
    """Whether an index keeps a word of a term: common words it leaves out."""
    searches = _searches(dataset)
    return searches is not None and any(
        Tokenizer(searches.parameters(name)).query(term.text) for name in columns
    )


def _match(written: str, column: str, *, any_word: bool) -> tuple[FullTextQuery, Python]:
    operator = _ANY if any_word or " " not in written else _ALL
    more = {"operator": operator.value} if operator is _ALL else {}
    code = Python("lance_nb.MatchQuery").call(written, column, **more)
    return MatchQuery(written, column, operator=operator), code


def _match_several(written: str, columns: Sequence[str]) -> tuple[FullTextQuery, Python]:
    code = Python("lance_nb.MultiMatchQuery").call(written, list(columns))
    return MultiMatchQuery(written, list(columns)), code


def _phrase(written: str, column: str) -> tuple[FullTextQuery, Python]:
    code = Python("lance_nb.PhraseQuery").call(written, column)
    return PhraseQuery(written, column), code


def _joined(
    parts: Sequence[tuple[FullTextQuery, Python]], *, any_word: bool
) -> tuple[FullTextQuery, Python]:
    """Join queries: rows that all of them find, or one of them."""
    if len(parts) == 1:
        return parts[0]
    query = reduce(or_ if any_word else and_, [part for part, _ in parts])
    codes = [part.code for _, part in parts]
    return query, Python(f"({(' | ' if any_word else ' & ').join(codes)})")


# --- texts like a text ----------------------------------------------------------------------------


def telling_words(dataset: Source, column: str, written: str) -> list[str]:
    """Return the words of a text that tell it from others, the most telling one first.

    By an index these are frequent in the text and in few others (tf-idf), and in at least one other
    if there are any such; without one the longest words that are no stop words of English. Raises
    InvalidInputError for a text without such words.
    """
    pieces = Counter(run.casefold() for run in _runs(written[: text.CELL_BYTES]))
    usable, _ = _usable(dataset, _indexed_columns(dataset), needs_positions=False)
    searches = _searches(dataset)
    ranks: dict[str, tuple[bool, float]] = {}
    if searches is not None and column in usable:
        cutter = Tokenizer(searches.parameters(column))
        tokens: dict[str, list[str]] = {}  # words with one stem stand for each other
        for word in pieces:
            token = cutter.token_of(word)
            if token is not None:
                tokens.setdefault(token, []).append(word)
        total, counts = searches.document_counts(column, tokens)
        for token, alike in tokens.items():
            count, times = counts[token], sum(pieces[word] for word in alike)
            if count:
                ranks[alike[0]] = (count > 1, times * log(1 + total / count))
    else:
        cutter = Tokenizer(TokenizerParameters(stem=False))
        ranks = {word: (True, len(word)) for word in pieces if cutter.token_of(word) is not None}
    telling = sorted(ranks, key=lambda word: ranks[word], reverse=True)[:MAX_TELLING]
    if not telling:
        raise InvalidInputError("this text has no words to search for")
    return telling


# --- by a scan ------------------------------------------------------------------------------------


def _scanned(dataset: Source, search: FullTextSearch, remarks: list[str]) -> FullTextSearch:
    """Write the filter of a scan. Raises InvalidInputError."""
    text_names = cells.text_columns(dataset.schema)
    names = [name for name in search.columns if name in text_names]
    if not names:
        raise InvalidInputError("lists of texts are searched by an index only")
    if len(names) < len(search.columns):
        lists = [text.name(name) for name in search.columns if name not in text_names]
        remarks = [*remarks, f"not searched, lists of texts: {_listed(lists)}"]
    if len(names) > MAX_SCANNED:
        remarks = [*remarks, f"the first {MAX_SCANNED} of {len(names)} columns of texts"]
    names = names[:MAX_SCANNED]
    terms = search.terms
    if search.request.any_word:
        patterns = ["|".join(_pattern(term) for term in terms)]
    else:
        patterns = [_pattern(term) for term in terms]
    conditions = [_condition(names, pattern) for pattern in patterns]
    condition = " AND ".join(conditions)
    if len(condition) > MAX_CONDITION_CHARS:
        raise InvalidInputError(
            f"{len(terms)} words in {len(names)} columns without an index are too many: choose a "
            "column, or search for fewer words"
        )
    return FullTextSearch(
        search.request,
        terms,
        tuple(names),
        searchable=search.searchable,
        remarks=tuple(remarks),
        condition=condition,
    )


def _condition(columns: Sequence[str], pattern: str) -> str:
    tests = [f"regexp_like({column_sql(name)}, '{pattern}', 'i')" for name in columns]
    return tests[0] if len(tests) == 1 else f"({' OR '.join(tests)})"


def _pattern(term: Term) -> str:
    r"""Return what finds whole words in RE2 and in Rust; letters, digits and marks need no escape.

    ``\b`` would be shorter, but beyond ASCII it is slow here.
    """
    first, last = term.words[0][0], term.words[-1][-1]
    before = "" if _is_without_spaces(first) else r"(^|[^\pL\pN\pM])"
    after = "" if _is_without_spaces(last) else r"([^\pL\pN\pM]|\z)"
    return before + r"[^\pL\pN\pM]+".join(term.words) + after


def _is_without_spaces(character: str) -> bool:
    return unicodedata.name(character, "").startswith(_WITHOUT_SPACES)


def _words_pattern(terms: Sequence[Term]) -> re.Pattern[str]:
    """Return the same for Python, which finds the words without what is around them."""
    patterns = []
    for term in terms:
        before = "" if _is_without_spaces(term.words[0][0]) else r"(?<![^\W_])"
        after = "" if _is_without_spaces(term.words[-1][-1]) else r"(?![^\W_])"
        patterns.append(before + r"[\W_]+".join(map(re.escape, term.words)) + after)
    return re.compile("|".join(patterns), re.IGNORECASE)

"""Full-text queries: what ``full_text_query`` of a scan takes.

Names and arguments are those of ``lance.query``. A query is a value: it is checked against a
version when the scan is planned.

Not supported: ``CombinedFieldsQuery``, documents that are elements of lists, and the query objects
of pylance, which show nothing of what they hold.
Source: behaviour of pylance 14.0.2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from enum import Enum
from math import isfinite
from typing import Any

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.value_classes import dataclass

SCORE = "_score"
_EXPANSIONS_MAX = 1 << 16
_FUZZINESS_MAX = 32
_DEPTH_MAX = 32


class FullTextQueryType(Enum):
    """Kinds of full-text queries.

    Examples:
        >>> lance_nb.MatchQuery("lance", "label").query_type()
        <FullTextQueryType.MATCH: 'match'>
    """

    MATCH = "match"
    MATCH_PHRASE = "match_phrase"
    BOOST = "boost"
    MULTI_MATCH = "multi_match"
    BOOLEAN = "boolean"


class FullTextOperator(Enum):
    """Whether all words of a query must be in a row, or one of them.

    Examples:
        >>> lance_nb.FullTextOperator("AND")
        <FullTextOperator.AND: 'AND'>
    """

    AND = "AND"
    OR = "OR"


class Occur(Enum):
    """What a part of a ``BooleanQuery`` demands of a row.

    Examples:
        >>> lance_nb.Occur("MUST_NOT")
        <Occur.MUST_NOT: 'MUST_NOT'>
    """

    SHOULD = "SHOULD"
    MUST = "MUST"
    MUST_NOT = "MUST_NOT"


class FullTextQuery(ABC):
    """A full-text query; ``&`` and ``|`` join two of them.

    Examples:
        >>> query = lance_nb.MatchQuery("a", "label") & lance_nb.MatchQuery("b", "label")
        >>> [occur.value for occur, _ in query.queries]
        ['MUST', 'MUST']
    """

    __slots__ = ()

    @abstractmethod
    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query.

        Examples:
            >>> lance_nb.PhraseQuery("a b", "label").query_type().value
            'match_phrase'
        """

    def __and__(self, other: FullTextQuery) -> BooleanQuery:
        return BooleanQuery([(Occur.MUST, self), (Occur.MUST, other)])

    def __or__(self, other: FullTextQuery) -> BooleanQuery:
        return BooleanQuery([(Occur.SHOULD, self), (Occur.SHOULD, other)])


@dataclass(frozen=True, slots=True)
class MatchQuery(FullTextQuery):
    """Rows with one of the words of a text, or with all of them.

    Args:
        query: the text; it is cut into words as the index cuts the column.
        column: the column that is searched.
        boost: what scores are multiplied by.
        fuzziness: how many characters of a word may be inserted, deleted or replaced. None: none up
            to 2 characters, 1 up to 5, else 2.
        max_expansions: how many words of the index a fuzzy query stands for at most.
        operator: whether all words must be in a row.
        prefix_length: how many characters at the beginning of a word are not changed.
        document_granularity: None or "row".

    Raises InvalidInputError.

    Examples:
        >>> every = lance_nb.FullTextOperator.AND
        >>> lance_nb.MatchQuery("lance format", "label", operator=every).query
        'lance format'
    """

    query: str
    column: str
    _: KW_ONLY
    boost: float = 1.0
    fuzziness: int | None = 0
    max_expansions: int = 50
    operator: FullTextOperator = FullTextOperator.OR
    prefix_length: int = 0
    document_granularity: Any = None

    def __post_init__(self) -> None:
        _check_text(self.query, self.column)
        _check_boost("MatchQuery", self.boost)
        _check_number("fuzziness", self.fuzziness or 0, _FUZZINESS_MAX)
        _check_number("max_expansions", self.max_expansions, _EXPANSIONS_MAX)
        _check_number("prefix_length", self.prefix_length, _EXPANSIONS_MAX)
        _check_granularity(self.document_granularity)
        object.__setattr__(self, "operator", _operator(self.operator))

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query.

        Examples:
            >>> lance_nb.MatchQuery("a", "label").query_type().value
            'match'
        """
        return FullTextQueryType.MATCH


@dataclass(frozen=True, slots=True)
class PhraseQuery(FullTextQuery):
    """Rows with the words of a text one after the other; the index must hold positions.

    Args:
        query: the text.
        column: the column that is searched.
        slop: how many other words may be before each word but the first.
        document_granularity: None or "row".

    Raises InvalidInputError.

    Examples:
        >>> lance_nb.PhraseQuery("lance format", "label", slop=1).slop
        1
    """

    query: str
    column: str
    _: KW_ONLY
    slop: int = 0
    document_granularity: Any = None

    def __post_init__(self) -> None:
        _check_text(self.query, self.column)
        _check_number("slop", self.slop, _EXPANSIONS_MAX)
        _check_granularity(self.document_granularity)

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query.

        Examples:
            >>> lance_nb.PhraseQuery("a b", "label").query_type().value
            'match_phrase'
        """
        return FullTextQueryType.MATCH_PHRASE


@dataclass(frozen=True, slots=True)
class BoostQuery(FullTextQuery):
    """Rows that one query finds; those that another finds too have less of a score.

    Args:
        positive: the query that finds rows.
        negative: the query whose score is taken off.
        negative_boost: what the score of ``negative`` is multiplied by before.

    Raises InvalidInputError.

    Examples:
        >>> first, second = (lance_nb.MatchQuery(text, "label") for text in ("lance", "old"))
        >>> lance_nb.BoostQuery(first, second).negative_boost
        0.5
    """

    positive: FullTextQuery
    negative: FullTextQuery
    _: KW_ONLY
    negative_boost: float = 0.5

    def __post_init__(self) -> None:
        _check_query(self.positive)
        _check_query(self.negative)
        _check_boost("BoostQuery", self.negative_boost)

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query.

        Examples:
            >>> part = lance_nb.MatchQuery("a", "label")
            >>> lance_nb.BoostQuery(part, part).query_type().value
            'boost'
        """
        return FullTextQueryType.BOOST


@dataclass(frozen=True, slots=True)
class MultiMatchQuery(FullTextQuery):
    """Rows that match in one of several columns; the best score of a row counts.

    Args:
        query: the text.
        columns: the columns that are searched.
        boosts: what the scores of each column are multiplied by.
        operator: whether all words must be in a column of the row.

    Raises InvalidInputError.

    Examples:
        >>> lance_nb.MultiMatchQuery("lance", ["title", "text"], boosts=[2.0, 1.0]).columns
        ['title', 'text']
    """

    query: str
    columns: Sequence[str]
    _: KW_ONLY
    boosts: Sequence[float] | None = None
    operator: FullTextOperator = FullTextOperator.OR

    def __post_init__(self) -> None:
        if isinstance(self.columns, str) or not self.columns:
            raise InvalidInputError("columns of a MultiMatchQuery is a list of names")
        for column in self.columns:
            _check_text(self.query, column)
        boosts = self.boosts
        if boosts is not None and len(boosts) != len(self.columns):
            raise InvalidInputError(
                f"{len(boosts)} boosts for {len(self.columns)} columns: give one for each"
            )
        for boost in boosts or ():
            _check_boost("MultiMatchQuery", boost)
        object.__setattr__(self, "operator", _operator(self.operator))

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query.

        Examples:
            >>> lance_nb.MultiMatchQuery("a", ["label"]).query_type().value
            'multi_match'
        """
        return FullTextQueryType.MULTI_MATCH

    def parts(self) -> list[MatchQuery]:
        """Return the query of each column.

        Examples:
            >>> [part.column for part in lance_nb.MultiMatchQuery("a", ["t", "u"]).parts()]
            ['t', 'u']
        """
        boosts = self.boosts or [1.0] * len(self.columns)
        return [
            MatchQuery(self.query, column, boost=boost, operator=self.operator)
            for column, boost in zip(self.columns, boosts, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class BooleanQuery(FullTextQuery):
    """Several queries joined: those that must match, may match, and must not match.

    The scores of the first two are added. Without a part that must match, one that may match has
    to.

    Args:
        queries: pairs of ``Occur`` and a query.

    Raises InvalidInputError.

    Examples:
        >>> part = lance_nb.MatchQuery("lance", "label")
        >>> lance_nb.BooleanQuery([(lance_nb.Occur.MUST, part)]).query_type().value
        'boolean'
    """

    queries: Sequence[tuple[Occur, FullTextQuery]]

    def __post_init__(self) -> None:
        pairs = []
        for pair in self.queries:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise InvalidInputError("queries of a BooleanQuery are pairs of Occur and a query")
            occur, query = pair
            _check_query(query)
            pairs.append((_occur(occur), query))
        if all(occur is Occur.MUST_NOT for occur, _ in pairs):
            raise InvalidInputError("boolean query must have at least one should/must query")
        object.__setattr__(self, "queries", tuple(pairs))

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query.

        Examples:
            >>> part = lance_nb.MatchQuery("lance", "label")
            >>> (part | part).query_type().value
            'boolean'
        """
        return FullTextQueryType.BOOLEAN


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text alone: searched in ``columns``, None for all that have an index."""

    query: str
    columns: tuple[str, ...] | None

    @property
    def phrase(self) -> str | None:
        """The text between quotation marks, which asks for a phrase."""
        text = self.query
        return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else None


def text_query(query_value: Any) -> FullTextQuery | PlainText:
    """Read the argument ``full_text_query``. Raises InvalidInputError."""
    if isinstance(query_value, Mapping):
        unknown = sorted(set(query_value) - {"query", "columns"})
        if unknown or "query" not in query_value:
            problem = f"does not know {unknown[0]!r}" if unknown else "needs 'query'"
            raise InvalidInputError(f"full_text_query {problem}; it takes 'query' and 'columns'")
        query, columns = query_value["query"], query_value.get("columns")
        if isinstance(columns, str):
            columns = [columns]
        if isinstance(query, str):
            names = tuple(columns) if columns else None
            return PlainText(query, names)
        query_value = query
    if isinstance(query_value, str):
        return PlainText(query_value, None)
    _check_query(query_value)
    checked: FullTextQuery = query_value
    _check_depth(checked, 0)
    return checked


def _check_depth(query: FullTextQuery, depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise InvalidInputError(f"queries inside of queries, more than {_DEPTH_MAX} deep")
    for part in parts_of(query):
        _check_depth(part, depth + 1)


def parts_of(query: FullTextQuery) -> list[FullTextQuery]:
    """Return the queries that one is made of; none for one that reads a column."""
    if isinstance(query, BooleanQuery):
        return [part for _, part in query.queries]
    if isinstance(query, BoostQuery):
        return [query.positive, query.negative]
    return list(query.parts()) if isinstance(query, MultiMatchQuery) else []


def _check_query(query: object) -> None:
    if isinstance(query, FullTextQuery):
        return
    name = type(query).__name__
    if type(query).__module__.partition(".")[0] == "lance":
        raise NotSupportedError(
            f"a {name} of pylance does not show what it holds: use lance_nb.{name}, which takes "
            "the same arguments"
        )
    raise InvalidInputError(
        f"a full-text query is a text, a dict of 'query' and 'columns' or a query such as "
        f"lance_nb.MatchQuery, not {name}"
    )


def _check_text(query: object, column: object) -> None:
    if not isinstance(query, str) or not isinstance(column, str):
        raise InvalidInputError("the query and the column of a full-text query are texts")


def _check_boost(name: str, boost: object) -> None:
    if not isinstance(boost, int | float) or not isfinite(boost) or boost < 0:
        raise InvalidInputError(f"{name} boost must be finite and non-negative, got {boost}")


def _check_number(name: str, value: object, most: int) -> None:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise InvalidInputError(f"{name} is a number from 0 to {most}, not {value!r}")


def _check_granularity(value: Any) -> None:
    if value is not None and getattr(value, "value", value) != "row":
        raise NotSupportedError("documents are rows: document_granularity can only be 'row'")


def _operator(value: Any) -> FullTextOperator:
    try:
        return FullTextOperator(str(getattr(value, "value", value)).upper())
    except ValueError as error:
        raise InvalidInputError(f"operator is 'AND' or 'OR', not {value!r}") from error


def _occur(value: Any) -> Occur:
    try:
        return Occur(str(getattr(value, "value", value)).upper())
    except ValueError as error:
        raise InvalidInputError(f"Occur is SHOULD, MUST or MUST_NOT, not {value!r}") from error

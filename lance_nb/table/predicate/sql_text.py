"""Parse SQL text to a syntax tree of sqlglot, within limits that are checked first.

The dialect is the one that Lance speaks: names are quoted by backticks, strings by single or double
quotes, a quote is doubled inside its own string, ``x'ff'`` and ``0xff`` are bytes, and no function
has a grammar of its own except cast, try_cast, extract, substring, trim and position.

Long lists of literals (``id IN (1, 2, ...)``, ``id = 1 OR id = 2 OR ...`` and ``id <> 1 AND id <>
2 AND ...``) are cut out before sqlglot sees them, which would need some 25 microseconds per token,
and come back as ``Bulk``.

sqlglot needs some twenty calls per level of nesting, so that about forty levels exhaust Python's
default limit of 1,000 calls. Such an expression is read again in a thread of its own, with a stack
that has room and the limit raised meanwhile. The limit is one for all threads: while it is raised,
endless recursion elsewhere is noticed later, nothing else changes. Where no thread can be started,
the expression is refused as nested too deeply.

Limits: 8 MiB of text, 2,000,000 tokens in it, 150,000 apart from bulk lists, 200 levels of
brackets, CASE and signs; the raised limit of calls holds for some 400 levels.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Collection
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from lance_nb.errors import PredicateError
from lance_nb.storage.system_calls import HAS_THREADS
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

CALLS_MAX = 20_000
STACK_BYTES = 256 * 1024 * 1024

T = TypeVar("T")
_one_at_a_time = threading.Lock()


def call_deeply(function: Callable[[], T]) -> T:
    """Return what ``function`` returns, called again with more room if it recurses too deeply.

    Raises what it raises; RecursionError when that room does not do.
    """
    try:
        return function()
    except RecursionError:
        if not HAS_THREADS:
            raise
        return _with_room(function)


def parse_duckdb(text: str) -> list[Any]:
    """Parse statements of DuckDB's dialect. Raises as ``parse_statements``."""
    return parse_statements(text, "duckdb")


def parse_statements(text: str, dialect: str | type[Dialect]) -> list[Any]:
    """Parse statements.

    Raises PredicateError for one that is nested too deeply, what sqlglot raises for bad syntax.
    """
    import sqlglot

    try:
        trees = call_deeply(lambda: sqlglot.parse(text, read=dialect))
    except RecursionError as exc:
        raise PredicateError(
            f"the SQL statement of {len(text):,} characters is nested too deeply: it needs more "
            f"than {CALLS_MAX:,} nested calls to be read"
        ) from exc
    return [tree for tree in trees if tree is not None]


def _with_room(function: Callable[[], T]) -> T:
    with _one_at_a_time:
        before = sys.getrecursionlimit()
        stack = threading.stack_size(STACK_BYTES)
        try:
            sys.setrecursionlimit(max(before, CALLS_MAX))
            from concurrent.futures import ThreadPoolExecutor  # loads logging; rarely needed

            with ThreadPoolExecutor(1, "lance-nb-deep-call") as pool:
                return pool.submit(function).result()
        finally:
            threading.stack_size(stack)
            sys.setrecursionlimit(before)


TEXT_CHARS_MAX = 8 << 20
TOKENS_READ_MAX = 2_000_000
TOKENS_MAX = 150_000
DEPTH_MAX = 200
BULK_MIN = 32
BULK_PREFIX = "lance_nb_bulk_"

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<quoted>`[^`]*`)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w]))
    |(?P<word>[^\W\d]\w*)
    |(?P<sign><>|!=|.)""",
    re.VERBOSE | re.DOTALL,
)
# Words of statements and clauses, which an expression has no use for: they may be names of columns.
_WORDS_OF_STATEMENTS = frozenset({
    "ALTER", "ANALYZE", "ANTI", "ASC", "ASOF", "BEGIN", "CACHE", "CALL", "COLLATE", "COMMENT",
    "COMMIT", "COPY", "CREATE", "CROSS", "DELETE", "DESC", "DESCRIBE", "DROP",
    "EXCEPT", "EXECUTE", "EXPLAIN", "FETCH", "FILTER", "FORMAT", "FULL", "GLOB", "GRANT", "HAVING",
    "INNER", "INSERT", "INTERSECT", "INTO", "JOIN", "KILL", "LATERAL", "LIMIT", "LOAD", "LOCK",
    "MERGE", "NATURAL", "OFFSET", "ON", "OPTIMIZE", "OUTER", "OVERLAPS", "PARTITIONED_BY", "PIVOT",
    "PRAGMA", "PREPARE", "QUALIFY", "REFERENCES", "REGEXP", "RENAME", "RETURNING", "REVOKE",
    "RLIKE", "ROLLBACK", "SEMI", "SESSION", "SET", "SETTINGS", "SHOW", "STRAIGHT_JOIN", "TABLE",
    "TABLESAMPLE", "TRUNCATE", "UNCACHE", "UNION", "UNPIVOT", "UPDATE", "USE", "USING", "VACUUM",
    "VALUES", "VIEW", "WHERE", "WINDOW", "WITH", "XOR",
})  # fmt: skip
# Words of expressions: names of columns only where an expression could not have them.
_WORDS_OF_EXPRESSIONS = frozenset({
    "AND", "ANY", "AS", "BETWEEN", "CASE", "DISTINCT", "ELSE", "FOR", "FROM", "ILIKE", "LIKE",
    "NOT", "NOTNULL", "OR", "SELECT", "THEN", "WHEN",
})  # fmt: skip
_BEFORE_OPERANDS = frozenset({
    "", "(", "[", ",", "=", "<", ">", "!=", "<>", "+", "-", "*", "/", "%", "|", "&", "^", "AND",
    "OR", "NOT", "LIKE", "ILIKE", "BETWEEN", "WHEN", "THEN", "ELSE",
})  # fmt: skip
_AFTER_OPERANDS = frozenset({
    "", ")", "]", ",", ".", "[", "=", "<", ">", "!=", "<>", "+", "*", "/", "%", "|", "&", "^",
    "AND", "OR", "IS", "IN", "LIKE", "ILIKE", "BETWEEN", "WHEN", "THEN", "ELSE", "END", "::",
})  # fmt: skip
_PREFIXES = frozenset({"NOT", "-", "+", "~"})
_OPENS, _CLOSES = frozenset({"(", "[", "CASE"}), frozenset({")", "]", "END"})


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text; ``start`` counts characters."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Place after the last character."""
        return self.start + len(self.text)

    @property
    def is_literal(self) -> bool:
        """Whether this is a number, a string or NULL."""
        is_null = self.kind == "word" and self.text.upper() == "NULL"
        return is_null or self.kind in {"number", "string"}


# The literals of a list that was cut out: (is it a string, its text) each; NULL is no string.
Bulk = tuple[tuple[bool, str], ...]


@dataclass(frozen=True, slots=True)
class _Cut:
    """A list of literals in the text: from where to where, of how many tokens.

    ``before`` is what stands before the brackets that are put in its place, "" inside of brackets.
    """

    start: int
    end: int
    num_tokens: int
    values: Bulk
    before: str = ""


@dataclass(frozen=True, slots=True)
class SqlText:
    """A text whose limits were checked: what is left of it without its long literal lists.

    ``short`` has placeholders instead of the lists, which ``bulks`` has by name.
    """

    text: str
    short: str
    bulks: dict[str, Bulk]

    def tree(self) -> Any:
        """Parse the text by sqlglot. Raises PredicateError, which names the place."""
        return _parse(self.short, self.text)


def read_sql(text: str) -> SqlText:
    """Check one SQL expression and cut its long lists out. Raises PredicateError."""
    if not isinstance(text, str):
        raise PredicateError(f"an SQL expression is text, not {type(text).__name__}")
    if len(text) > TEXT_CHARS_MAX:
        raise PredicateError(
            f"the expression has {len(text):,} characters, at most {TEXT_CHARS_MAX:,} are read"
        )
    matches = (match for match in _TOKEN.finditer(text) if match.lastgroup != "space")
    tokens = [
        Token(str(match.lastgroup), match[0], match.start())
        for match in islice(matches, TOKENS_READ_MAX + 1)
    ]
    if len(tokens) > TOKENS_READ_MAX:
        raise PredicateError(f"the expression has more than {TOKENS_READ_MAX:,} tokens")
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if not tokens:
        raise PredicateError("the expression is empty")
    _check_depth(text, tokens)
    cuts = _find_bulks(tokens)
    num_tokens = len(tokens) - sum(cut.num_tokens for cut in cuts)
    if num_tokens > TOKENS_MAX:
        raise PredicateError(
            f"the expression has {num_tokens:,} tokens, at most {TOKENS_MAX:,} are read; "
            "write IN (...) for many values of one column"
        )
    short = _without(text[: tokens[-1].end], cuts)
    bulks = {f"{BULK_PREFIX}{number}": cut.values for number, cut in enumerate(cuts)}
    return SqlText(text, short, bulks)


def parse_sql(text: str) -> Any:
    """Parse one SQL expression to the tree of sqlglot.

    Raises PredicateError, which names the place; RecursionError for one that needs ``call_deeply``.
    """
    return read_sql(text).tree()


def with_quoted_columns(text: str, names: Collection[str]) -> str:
    """Quote the columns whose names are words of expressions, as in ``and = 1``.

    Such a word is a column where an operand must stand and nothing follows that it could lead.
    """
    words = {name.upper(): name for name in names if name.upper() in _WORDS_OF_EXPRESSIONS}
    if not words or not isinstance(text, str) or len(text) > TEXT_CHARS_MAX:
        return text
    parts, done, before = [], 0, ""
    tokens = [
        Token(str(token.lastgroup), token[0], token.start())
        for token in islice(_TOKEN.finditer(text), TOKENS_READ_MAX)
        if token.lastgroup != "space"
    ]
    for place, token in enumerate(tokens):
        after = tokens[place + 1].text.upper() if place + 1 < len(tokens) else ""
        word = token.text.upper()
        is_column = word in words and before in _BEFORE_OPERANDS and after in _AFTER_OPERANDS
        if word == "NOT":
            is_column = is_column and not after.isalpha()
        elif word == "CASE":
            is_column = is_column and after != "WHEN"
        if is_column:
            # Without quotes case does not matter, as for other names.
            name = token.text if token.text in names else words[word]
            parts += [text[done : token.start], f"`{name}`"]
            done, word = token.end, "column"
        before = word
    return "".join([*parts, text[done:]])


def _without(text: str, cuts: list[_Cut]) -> str:
    """Put a placeholder into each place that is cut out; everything else stays as it was."""
    parts, end = [], 0
    for number, cut in enumerate(cuts):
        stand_in = f":{BULK_PREFIX}{number}"
        parts += [text[end : cut.start], f"{cut.before}({stand_in})" if cut.before else stand_in]
        end = cut.end
    return "".join([*parts, text[end:]])


def _parse(short: str, text: str) -> Any:
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        trees = sqlglot.parse(short, dialect=lance_dialect())
    except SqlglotError as exc:
        raise PredicateError(f"cannot read {shown(text)}: {problem_of(exc, short)}") from exc
    if len(trees) != 1 or trees[0] is None:
        raise PredicateError(f"cannot read {shown(text)}: expected one expression")
    return trees[0]


def problem_of(exc: Exception, short: str) -> str:
    """Tell what sqlglot found wrong and where, in plain text."""
    errors = getattr(exc, "errors", None)
    if not errors:
        return "a quote is not closed"
    first = errors[0]
    line, column = first.get("line"), first.get("col")
    problem = str(first.get("description", "")).split("<Token")[0].rstrip(" .")
    problem = re.sub(r"Required keyword: '(\w+)' missing for .*", "an operand is missing", problem)
    near = str(first.get("highlight") or "").strip()
    place = f" at line {line}, column {column}" if line else ""
    near = f", near {near[:40]!r}" if near else (", at the end" if not short.strip() else "")
    return f"{problem}{place}{near}"


def shown(text: str, chars_max: int = 120) -> str:
    """Quote an expression for a message, shortened."""
    return repr(text if len(text) <= chars_max else text[: chars_max - 1] + "…")


@cache
def lance_dialect() -> type[Dialect]:
    """Return the dialect of filters, made once: to import sqlglot takes a quarter of a second."""
    from sqlglot import exp, parser, tokens
    from sqlglot.dialects.dialect import Dialect

    special_functions = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM", "POSITION")

    class LanceSql(Dialect):
        """SQL as Lance's filters speak it."""

        class Tokenizer(tokens.Tokenizer):
            KEYWORDS = {  # noqa: RUF012
                word: kind
                for word, kind in tokens.Tokenizer.KEYWORDS.items()
                if word not in _WORDS_OF_STATEMENTS
            }
            COMMANDS = set()  # noqa: RUF012
            IDENTIFIERS = ["`"]  # noqa: RUF012
            QUOTES = ["'", '"']  # noqa: RUF012
            STRING_ESCAPES = ["'", '"']  # noqa: RUF012
            HEX_STRINGS = [("x'", "'"), ("X'", "'")]  # noqa: RUF012

        class Parser(parser.Parser):
            # Before its version 30.18, sqlglot binds % as weakly as +.
            TERM = {  # noqa: RUF012
                sign: operation
                for sign, operation in parser.Parser.TERM.items()
                if operation is not exp.Mod
            }
            FACTOR = {  # noqa: RUF012
                sign: operation
                for sign, operation in (parser.Parser.TERM | parser.Parser.FACTOR).items()
                if operation is exp.Mod or sign in parser.Parser.FACTOR
            }
            FUNCTIONS = {}  # noqa: RUF012
            NO_PAREN_FUNCTIONS = {}  # noqa: RUF012
            NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
                name: parser.Parser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("ANY", "CASE")
            }
            FUNCTION_PARSERS = {  # noqa: RUF012
                name: function_parser
                for name, function_parser in parser.Parser.FUNCTION_PARSERS.items()
                if name in special_functions
            }

    return LanceSql


def _check_depth(text: str, tokens: list[Token]) -> None:
    depth = prefixes = 0
    for token in tokens:
        word = token.text.upper()
        if word in _OPENS:
            depth += 1
        elif word in _CLOSES:
            depth -= 1
        prefixes = prefixes + 1 if word in _PREFIXES else 0
        if depth + prefixes > DEPTH_MAX:
            raise PredicateError(
                f"cannot read {shown(text)}: nested more than {DEPTH_MAX} deep at character "
                f"{token.start} (brackets, CASE, NOT and signs are counted)"
            )


def _find_bulks(tokens: list[Token]) -> list[_Cut]:
    """Find long literal lists; long chains of = become IN, of <> NOT IN."""
    cuts: list[_Cut] = []
    if len(tokens) < BULK_MIN:
        return cuts
    betweens = [0]  # of each open bracket: those that still wait for their AND
    place, last = 0, ""
    while place < len(tokens):
        before, last = last, tokens[place].text.upper()
        place += 1
        if last in {"(", "["}:
            betweens.append(0)
        elif last in {")", "]"} and len(betweens) > 1:
            betweens.pop()
        elif last == "BETWEEN":
            betweens[-1] += 1
        elif last == "AND" and betweens[-1]:
            betweens[-1] -= 1
            continue
        cut = None
        if last == "(" and before == "IN":
            cut = _list_at(tokens, place)
        elif last in {"OR", "AND", "("}:
            cut = _chain_at(tokens, place, last)
        if cut is not None and len(cut.values) >= BULK_MIN:
            cuts.append(cut)
            place += cut.num_tokens
            last = ""
    return cuts


def _list_at(tokens: list[Token], place: int) -> _Cut | None:
    """Read ``literal, literal, ... )``; None if that is not what stands there."""
    values: list[tuple[bool, str]] = []
    start = place
    while place < len(tokens):
        literal, place = _literal(tokens, place)
        if literal is None or place >= len(tokens):
            break
        values.append(literal)
        if tokens[place].text == ")":
            span = tokens[start].start, tokens[place - 1].end
            return _Cut(*span, place - start, tuple(values))
        if tokens[place].text != ",":
            break
        place += 1
    return None


def _literal(tokens: list[Token], place: int) -> tuple[tuple[bool, str] | None, int]:
    minus = tokens[place].text == "-" and place + 1 < len(tokens)
    token = tokens[place + minus]
    if not token.is_literal or (minus and token.kind != "number"):
        return None, place
    if token.kind != "string":
        return (False, "-" * minus + token.text), place + minus + 1
    quote = token.text[0]
    return (True, token.text[1:-1].replace(quote * 2, quote)), place + 1


def _chain_at(tokens: list[Token], place: int, last: str) -> _Cut | None:
    """Read a chain of ``name = literal OR`` or of ``name <> literal AND``; None without one.

    ``last`` is the word or bracket in front.
    """
    start = place
    while place < len(tokens) and tokens[place].kind in {"word", "quoted"}:
        place += 1
        if place >= len(tokens) or tokens[place].text != ".":
            break
        place += 1
    if place == start or place >= len(tokens):
        return None
    sign = tokens[place].text
    if sign in {"<>", "!="}:
        # Joined by AND, which binds tighter than OR and may follow any of them.
        return _chain(tokens, start, place - start, (sign, "AND"))
    if sign == "=" and last != "AND":
        return _chain(tokens, start, place - start, (sign, "OR"))
    return None


def _chain(tokens: list[Token], start: int, width: int, kind: tuple[str, str]) -> _Cut:
    sign, joint = kind
    name = tokens[start : start + width]
    texts = [token.text for token in name]
    ends = {joint, ")"} if joint == "OR" else {joint, "OR", ")"}
    values: list[tuple[bool, str]] = []
    after = position = start
    while [token.text for token in tokens[position : position + width]] == texts:
        place = position + width
        if place + 1 >= len(tokens) or tokens[place].text != sign:
            break
        literal, place = _literal(tokens, place + 1)
        follows = tokens[place].text.upper() if place < len(tokens) else ")"
        if literal is None or follows not in ends:
            break
        values.append(literal)
        after, position = place, place + 1
        if follows != joint:
            break
    before = "".join(texts) + (" IN " if joint == "OR" else " NOT IN ")
    return _Cut(
        name[0].start,
        tokens[max(after, start + 1) - 1].end,
        after - start,
        values=tuple(values),
        before=before,
    )


def sql_of(node: Any, chars_max: int = 80) -> str:
    """Return a node as text for a message."""
    text = str(node.sql()) if sum(1 for _ in islice(node.walk(), 1000)) < 1000 else "an expression"
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"

"""SQL text to a syntax tree of sqlglot, within limits that hold before any work is done.

The dialect is the one that Lance speaks: names are quoted by backticks, strings by single or double
quotes, a quote is doubled inside its own string, ``x'ff'`` and ``0xff`` are bytes, and no function
has a grammar of its own except cast, try_cast, extract, substring, trim and position.

Long lists of literals (``id IN (1, 2, ...)`` and ``id = 1 OR id = 2 OR ...``) are cut out before
sqlglot sees them, which would need some 25 microseconds per token, and come back as ``Bulk``.

Limits: 1 MiB of text, 20,000 tokens apart from bulk lists, 200 levels of nesting (which sqlglot
needs more calls for than Python allows by default: see deep_calls).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from lance_nb.errors import PredicateError

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

TEXT_CHARS_MAX = 1 << 20
TOKENS_MAX = 20_000
DEPTH_MAX = 200
BULK_MIN = 32
BULK_PREFIX = "lance_nb_bulk_"

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<quoted>`[^`]*`)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w]))
    |(?P<word>[^\W\d]\w*)
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_PREFIXES = frozenset({"NOT", "-", "+", "~", "CASE"})


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text; ``start`` counts characters."""

    kind: str
    text: str
    start: int

    @property
    def is_literal(self) -> bool:
        """Whether this is a number or a string."""
        return self.kind in {"number", "string"}


# The literals of a list that was cut out: (is it a string, its text) each.
Bulk = tuple[tuple[bool, str], ...]


@dataclass(frozen=True, slots=True)
class SqlText:
    """A parsed text: its tree and the literal lists that placeholders in the tree stand for."""

    text: str
    tree: Any
    bulks: dict[str, Bulk]


def parse_sql(text: str) -> SqlText:
    """Parse one SQL expression.

    Raises PredicateError, which names the place; RecursionError for one that needs ``deep_calls``.
    """
    if not isinstance(text, str):
        raise PredicateError(f"an SQL expression is text, not {type(text).__name__}")
    if len(text) > TEXT_CHARS_MAX:
        raise PredicateError(
            f"the expression has {len(text):,} characters, at most {TEXT_CHARS_MAX:,} are read"
        )
    tokens = [
        Token(str(match.lastgroup), match[0], match.start())
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "space"
    ]
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if not tokens:
        raise PredicateError("the expression is empty")
    _check_depth(text, tokens)
    tokens, bulks = _cut_bulks(tokens)
    if len(tokens) > TOKENS_MAX:
        raise PredicateError(
            f"the expression has {len(tokens):,} tokens, at most {TOKENS_MAX:,} are read; "
            "write IN (...) for many values of one column"
        )
    short = text[: tokens[-1].start + len(tokens[-1].text)] if not bulks else _join(tokens)
    return SqlText(text, _parse(short, text), bulks)


def _join(tokens: list[Token]) -> str:
    return " ".join(token.text for token in tokens).replace(" . ", ".")


def _parse(short: str, text: str) -> Any:
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        trees = sqlglot.parse(short, dialect=_dialect())
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
    what = str(first.get("description", "")).split("<Token")[0].rstrip(" .")
    what = re.sub(r"Required keyword: '(\w+)' missing for .*", "an operand is missing", what)
    near = str(first.get("highlight") or "").strip()
    place = f" at line {line}, column {column}" if line else ""
    near = f", near {near[:40]!r}" if near else (", at the end" if not short.strip() else "")
    return f"{what}{place}{near}"


def shown(text: str, chars_max: int = 120) -> str:
    """Quote an expression for a message, shortened."""
    return repr(text if len(text) <= chars_max else text[: chars_max - 1] + "…")


@cache
def _dialect() -> type[Dialect]:
    """Define the dialect; sqlglot takes a quarter of a second to import, so not before a filter."""
    from sqlglot import parser, tokens
    from sqlglot.dialects.dialect import Dialect

    kept = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM", "POSITION")

    class LanceSql(Dialect):
        """SQL as Lance's filters speak it."""

        class Tokenizer(tokens.Tokenizer):
            IDENTIFIERS = ["`"]  # noqa: RUF012
            QUOTES = ["'", '"']  # noqa: RUF012
            STRING_ESCAPES = ["'", '"']  # noqa: RUF012
            HEX_STRINGS = [("x'", "'"), ("X'", "'")]  # noqa: RUF012

        class Parser(parser.Parser):
            FUNCTIONS = {}  # noqa: RUF012
            NO_PAREN_FUNCTIONS = {}  # noqa: RUF012
            FUNCTION_PARSERS = {  # noqa: RUF012
                name: found
                for name, found in parser.Parser.FUNCTION_PARSERS.items()
                if name in kept
            }

    return LanceSql


def _check_depth(text: str, tokens: list[Token]) -> None:
    depth = prefixes = 0
    for token in tokens:
        word = token.text.upper()
        if word in {"(", "["}:
            depth += 1
        elif word in {")", "]"}:
            depth -= 1
        prefixes = prefixes + 1 if word in _PREFIXES else 0
        if depth + prefixes > DEPTH_MAX:
            raise PredicateError(
                f"cannot read {shown(text)}: nested more than {DEPTH_MAX} deep at character "
                f"{token.start}"
            )


def _cut_bulks(tokens: list[Token]) -> tuple[list[Token], dict[str, Bulk]]:
    """Replace long literal lists by placeholders, and long chains of equality by IN."""
    if len(tokens) < BULK_MIN:
        return tokens, {}
    kept: list[Token] = []
    bulks: dict[str, Bulk] = {}
    place = 0
    while place < len(tokens):
        token = tokens[place]
        kept.append(token)
        place += 1
        word = token.text.upper()
        if word == "(" and len(kept) > 1 and kept[-2].text.upper() == "IN":
            values, after = _literals(tokens, place)
            name: list[Token] = []
        elif word in {"OR", "("}:
            name, values, after = _equalities(tokens, place)
        else:
            continue
        if len(values) >= BULK_MIN:
            key = f"{BULK_PREFIX}{len(bulks)}"
            bulks[key] = tuple(values)
            stand_in = Token("sign", f":{key}", token.start)
            kept += [*name, Token("word", "IN ", token.start), Token("sign", "(", 0)] * bool(name)
            kept.append(stand_in)
            kept += [Token("sign", ")", 0)] * bool(name)
            place = after
    return kept, bulks


def _literals(tokens: list[Token], place: int) -> tuple[list[tuple[bool, str]], int]:
    """Read ``literal, literal, ... )``; the list is empty if that is not what stands there."""
    values: list[tuple[bool, str]] = []
    while place < len(tokens):
        literal, place = _literal(tokens, place)
        if literal is None or place >= len(tokens):
            break
        values.append(literal)
        if tokens[place].text == ")":
            return values, place
        if tokens[place].text != ",":
            break
        place += 1
    return [], place


def _literal(tokens: list[Token], place: int) -> tuple[tuple[bool, str] | None, int]:
    minus = tokens[place].text == "-" and place + 1 < len(tokens)
    token = tokens[place + minus]
    if not token.is_literal or (minus and token.kind == "string"):
        return None, place
    if token.kind == "number":
        return (False, "-" * minus + token.text), place + minus + 1
    quote = token.text[0]
    return (True, token.text[1:-1].replace(quote * 2, quote)), place + 1


def _equalities(tokens: list[Token], place: int) -> tuple[list[Token], list[tuple[bool, str]], int]:
    """Read ``name = literal OR name = literal ...``, as far as OR or a bracket follows.

    Returns the name's tokens, the literals, and the place of what follows the last one.
    """
    start = place
    while place < len(tokens) and tokens[place].kind in {"word", "quoted"}:
        place += 1
        if place >= len(tokens) or tokens[place].text != ".":
            break
        place += 1
    name = [token.text for token in tokens[start:place]]
    values: list[tuple[bool, str]] = []
    after, at = start, start
    while name and [token.text for token in tokens[at : at + len(name)]] == name:
        place = at + len(name)
        if place + 1 >= len(tokens) or tokens[place].text != "=":
            break
        literal, place = _literal(tokens, place + 1)
        follows = tokens[place].text.upper() if place < len(tokens) else ")"
        if literal is None or follows not in {"OR", ")"}:
            break
        values.append(literal)
        after, at = place, place + 1
        if follows == ")":
            break
    return tokens[start : start + len(name)], values, after


def sql_of(node: Any, chars_max: int = 80) -> str:
    """Return a node as text for a message."""
    text = str(node.sql())
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"

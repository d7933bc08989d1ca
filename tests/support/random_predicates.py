"""Random typed expressions over the table of ``filter_rows``, written as SQL.

Every expression is of a known type, so that nothing is refused for its types: numbers of each
width, text, times, bytes, structs and lists are compared, tested, computed with and put together by
AND, OR, NOT, IS and CASE. A seed always gives the same expression.

Left out, because pylance 14.0.2 answers them in another way or not at all: numbers below 0 beside
unsigned ones, and what ``tests/interop/test_filter`` tells: 0.1 beside ``f32``, CASE of whole
numbers. Of the expressions of ``TOPICS``, these differ and are left out: classes as ``\\w`` and
``\\b`` beside letters that are not ASCII, escaped backslashes and empty finds in regular
expressions; ``array_length`` of inner dimensions, steps below 0, NULL for a list or a count; zoned
times beside naive ones in zones other than UTC, or of another unit; ``%Z`` in ``to_char``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SIGNS = ("=", "<>", "<", "<=", ">", ">=")
INTEGERS = ("i8", "i32", "u8", "st.x", "`Mixed Case`")
TEXTS = ("s", "t")
WORDS = ("a", "b", "Abc", "", "a%b", "12", "abc", "naïve", "データ", "zz")
PATTERNS = ("a%", "%b", "a_b", "%", "", "_", "%a%", r"a\%b", "A%", "データ%")
EXPRESSIONS = ("^a", "b$", "a.b", "[A-Z]", "(a|b)c", "")
MOMENTS = ("2021-01-01 00:00:00", "2020-12-31 06:00:00", "1969-12-31 23:59:59.999999")
DAYS = ("2021-01-01", "2020-12-31", "1969-12-31")
PARTS = ("year", "month", "day", "hour", "dow", "doy")


def random_predicate(seed: int) -> str:
    """Return a condition."""
    return _Writer(random.Random(seed)).condition(3)


class _Writer:
    """Writes expressions, of a depth that is left."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def condition(self, depth: int) -> str:
        """Write a boolean expression."""
        if depth == 0 or self._rng.random() < 0.15:
            return self._pick(*_LEAVES)(self)
        return self._pick(
            self._junction, self._junction, self._negation, self._truth, self._leaf, self._nothing
        )(depth - 1)

    def _pick(self, *choices: T) -> T:
        return self._rng.choice(choices)

    def _leaf(self, _depth: int) -> str:
        return self._pick(*_LEAVES)(self)

    def _junction(self, depth: int) -> str:
        sign = self._pick(" AND ", " OR ")
        return sign.join(f"({self.condition(depth)})" for _ in range(self._rng.randint(2, 3)))

    def _negation(self, depth: int) -> str:
        return f"NOT ({self.condition(depth)})"

    def _truth(self, depth: int) -> str:
        word = self._pick("TRUE", "NOT TRUE", "FALSE", "NOT FALSE")
        return f"({self.condition(depth)}) IS {word}"

    def _nothing(self, depth: int) -> str:
        return f"({self.condition(depth)}) IS {self._pick('', 'NOT ')}NULL"

    # Values.

    def integer(self, depth: int = 1) -> str:
        """Write a whole number that stays far from the ends of 64 bits."""
        column = self._pick(*INTEGERS)
        if depth == 0:
            return self._pick(column, column, str(self._rng.randint(0, 12)))
        return self._pick(
            column,
            column,
            f"CAST({column} AS bigint) {self._pick('+', '-', '*')} {self._rng.randint(1, 9)}",
            f"CAST({column} AS bigint) % {self._rng.randint(2, 7)}",
            f"CAST({column} AS bigint) / {self._rng.randint(2, 7)}",
            f"abs(CAST({column} AS bigint))",
            f"coalesce({column}, {self._rng.randint(0, 5)})",
            f"length({self.text(0)})",
            f"octet_length({self.text(0)})",
            f"strpos({self.text(0)}, '{self._pick('a', 'b', 'データ')}')",
            f"ascii({self.text(0)})",
            "array_length(l)",
        )

    def text(self, depth: int = 1) -> str:
        """Write a text."""
        column = self._pick(*TEXTS)
        if depth == 0:
            return column
        return self._pick(
            column,
            column,
            f"lower({column})",
            f"upper({column})",
            f"reverse({column})",
            f"left({column}, {self._rng.randint(-2, 3)})",
            f"right({column}, {self._rng.randint(-2, 3)})",
            f"concat({self.text(0)}, {self.text(0)})",
            f"{self.text(0)} || 'x'",
            f"replace({column}, 'a', '{self._pick('', 'zz')}')",
            f"repeat({column}, {self._rng.randint(0, 3)})",
            f"lpad({column}, {self._rng.randint(0, 6)}, 'xy')",
            f"rpad({column}, {self._rng.randint(0, 6)}, '.')",
            f"split_part({column}, 'b', {self._rng.randint(1, 2)})",
            f"translate({column}, 'ab', 'b')",
            f"initcap({column})",
            f"concat_ws('-', {self.text(0)}, {self.text(0)})",
            f"btrim({column}, 'a')",
            f"CAST({self._pick('i8', 'u8', 'b', 'd')} AS string)",
        )

    def _number(self) -> int:
        return self._rng.randint(0, 9)

    def moment(self) -> str:
        """Write a time without a zone."""
        return self._pick("ts", "ts", "date_trunc('day', ts)", "date_trunc('hour', ts)")

    # Conditions.

    def compared_integers(self) -> str:
        return f"{self.integer()} {self._pick(*SIGNS)} {self.integer(0)}"

    def compared_wide(self) -> str:
        column, value = self._pick(
            ("i", "1099511627776"), ("i", "-4611686018427387904"), ("i", "3"), ("u64", "5"),
            ("u64", "18446744073709551615"), ("u64", "9223372036854775808"),
        )  # fmt: skip
        return f"{column} {self._pick(*SIGNS)} {value}"

    def compared_floats(self) -> str:
        column = self._pick("f", "f", "-f", "f * 2", "CAST(i8 AS double)", self._of_float())
        other = self._pick("2.5", "0.0", "-0.0", "1e300", "0.1", "f", "-f", "f * 0", "NULL")
        return f"{column} {self._pick(*SIGNS)} {other}"

    def _of_float(self) -> str:
        functions = (
            "abs", "sqrt", "ln", "log2", "log10", "asin", "acosh", "atanh", "signum", "cbrt",
            "round", "trunc", "exp", "sin", "tanh",
        )  # fmt: skip
        return f"{self._pick(*functions)}({self._pick('f', 'f32', '-f', 'i8')})"

    def tested_floats(self) -> str:
        return self._pick(
            "isnan(f)",
            "iszero(f)",
            "isnan(f32)",
            "f = f",
            "f32 > 1",
            "f <> -f",
            "f IN (0.0, 2.5, 1.0)",
            "f BETWEEN -0.0 AND f",
            "f IS DISTINCT FROM -f",
        )

    def compared_texts(self) -> str:
        other = self._pick(f"'{self._pick(*WORDS)}'", self.text(0))
        return f"{self.text()} {self._pick(*SIGNS)} {other}"

    def matched(self) -> str:
        word = self._pick("LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE")
        return f"{self.text()} {word} '{self._pick(*PATTERNS)}'"

    def found(self) -> str:
        test = self._pick("starts_with", "ends_with", "contains")
        other = self._pick("'a'", "''", "'データ'", self.text(0))
        return f"{test}({self.text()}, {other})"

    def expressed(self) -> str:
        return f"regexp_like({self.text()}, '{self._pick(*EXPRESSIONS)}')"

    def compared_times(self) -> str:
        return self._pick(
            f"{self.moment()} {self._pick(*SIGNS)} timestamp '{self._pick(*MOMENTS)}'",
            f"d {self._pick(*SIGNS)} date '{self._pick(*DAYS)}'",
            f"CAST(ts AS date) {self._pick(*SIGNS)} d",
            f"date_part('{self._pick(*PARTS)}', {self._pick('ts', 'd')}) > {self._number()}",
            f"tz {self._pick(*SIGNS)} timestamp '{self._pick(*MOMENTS)}'",
        )

    def compared_decimals(self) -> str:
        value = self._pick("1", "0", "CAST('2.5' AS decimal(10,2))")
        return f"{self._pick('dec', 'dec + 1', 'dec * 2')} {self._pick(*SIGNS)} {value}"

    def compared_bytes(self) -> str:
        return f"bin {self._pick(*SIGNS)} {self._pick(_A, _FF)}"

    def member(self) -> str:
        word = self._pick("IN", "NOT IN")
        null = self._pick("", "", ", NULL")
        column, values = self._pick(
            (self._pick(*INTEGERS), [str(self._rng.randint(0, 9)) for _ in range(3)]),
            (self._pick(*TEXTS), [f"'{self._pick(*WORDS)}'" for _ in range(3)]),
            ("f", ["0.0", "2.5", "1.0"]),
            ("d", [f"date '{self._pick(*DAYS)}'"]),
            ("bin", [_A, _FF]),
        )
        return f"{column} {word} ({', '.join(values)}{null})"

    def between(self) -> str:
        low, high = self._rng.randint(0, 5), self._rng.randint(0, 9)
        return f"{self.integer()} {self._pick('', 'NOT ')}BETWEEN {low} AND {high}"

    def null_test(self) -> str:
        columns = ("i", "f", "b", "l", "st", "st.y", "st.y.z", "bin", "dec", "vector", "tz", "ls")
        return f"{self._pick(*columns)} IS {self._pick('', 'NOT ')}NULL"

    def distinct(self) -> str:
        pair = self._pick(("s", "t"), ("i8", "u8"), ("i32", "NULL"), ("b", "true"), ("d", "NULL"))
        return f"{pair[0]} IS {self._pick('', 'NOT ')}DISTINCT FROM {pair[1]}"

    def listed(self) -> str:
        return self._pick(
            f"array_has(l, {self._rng.randint(1, 7)})",
            f"array_has_any(l, [{self._rng.randint(1, 7)}, 2])",
            "array_has_all(l, [1, 2])",
            f"array_has(ls, '{self._pick('a', 'b', 'q')}')",
            f"l[{self._rng.randint(1, 3)}] = {self._rng.randint(1, 7)}",
            "array_length(ls) > 1",
        )

    def boolean(self) -> str:
        return self._pick("b", "b", "coalesce(b, false)", "b = (i8 > 1)")


_A, _FF = "x'61'", "x'00FF'"
_LEAVES: tuple[Callable[[_Writer], str], ...] = (
    _Writer.compared_integers, _Writer.compared_wide, _Writer.compared_floats,
    _Writer.tested_floats, _Writer.compared_texts, _Writer.compared_texts, _Writer.matched,
    _Writer.found, _Writer.expressed, _Writer.compared_times, _Writer.compared_decimals,
    _Writer.compared_bytes, _Writer.member, _Writer.between, _Writer.null_test, _Writer.distinct,
    _Writer.listed, _Writer.boolean,
)  # fmt: skip


def random_expression(topic: str, seed: int) -> str:
    """Return an expression of one of ``TOPICS``, of any type."""
    return _TOPICS[topic](_Writer(random.Random(f"{topic} {seed}")))


def _cast(writer: _Writer) -> str:
    pick = writer._pick
    # A cast of a literal alone cannot be a column in pylance.
    text = pick(
        *("12", " 7", "1e3", "-1.5", "2021-01-31", "2021-01-31 10:11:12.5", "x", "true", ""),
        "2021-01-31T01:02:03Z",
    )
    inner = pick(
        *("i", "i8", "i32", "u8", "f", "f32", "dec", "b", "s", "ts", "tz", "d"),
        *(f"concat(left(s, 0), '{text}')",) * 4,
        *("CAST(i8 AS string)", "CAST(f AS string)", "CAST(dec AS string)"),
        *("CAST(d AS string)", "CAST(ts AS string)", "CAST(b AS string)"),
    )
    type_ = pick(
        *("tinyint", "smallint", "int", "bigint", "float", "double", "string", "date", "boolean"),
        *("timestamp", "decimal(12,3)", "int unsigned"),
    )
    return f"{pick('CAST', 'CAST', 'TRY_CAST')}({inner} AS {type_})"


def _null_member(writer: _Writer) -> str:
    pick = writer._pick
    column, values = pick(
        (pick(*INTEGERS), ("0", "1", "-3", "2", "NULL", "u8", "i8")),
        ("f", ("0.0", "-0.0", "2.5", "NULL", "f32", "1")),
        (pick(*TEXTS), ("'a'", "''", "'データ'", "NULL", "s", "t")),
        ("d", ("date '2021-01-01'", "date '1969-12-31'", "NULL", "CAST(ts AS date)")),
        ("ts", ("timestamp '2021-01-01 00:00:00'", "NULL", "timestamp '2020-12-31 06:00:00'")),
        ("dec", ("1", "2.5", "NULL", "dec", "0")),
        ("b", ("true", "false", "NULL", "b")),
    )
    word = pick("", "NOT ")
    if writer._rng.random() < 0.5:
        condition = f"{column} {word}BETWEEN {pick(*values)} AND {pick(*values)}"
    else:
        members = ", ".join(pick(*values) for _ in range(writer._rng.randint(1, 4)))
        condition = f"{column} {word}IN ({members})"
    return pick(condition, f"({condition}) IS NULL", f"NOT ({condition})")


def _pattern(writer: _Writer) -> str:
    pick = writer._pick
    text = pick("s", "t", "concat(s, '%')", "upper(s)", "concat('İß', t)")
    if writer._rng.random() < 0.5:
        parts = ("%", "_", r"\%", r"\_", r"\\", "a", "A", "ï", "デ", "ー", "\n", ".", "*", "ß", "İ")
        pattern = "".join(pick(*parts) for _ in range(writer._rng.randint(0, 4)))
        return f"{text} {pick('LIKE', 'ILIKE', 'NOT LIKE', 'NOT ILIKE')} '{pattern}'"
    parts = (
        *("a", "b", ".", "^", "$", "[^a]", r"\p{L}", "(?i)a", "ï", "デ", "a*", "b+", "(a|b)"),
        *(r"\.", ".?", "(?s).", "a{1,2}", r"\x61"),
    )
    pattern = "".join(pick(*parts) for _ in range(writer._rng.randint(0, 3)))
    # Where a pattern finds the empty text again and again, the readers differ.
    longer = pick("a", "b", "ï", "[^a]", r"\.", "(?i)A") + pick("", "+", ".?", "{1,2}")
    return pick(
        f"regexp_like({text}, '{pattern}')",
        f"regexp_replace({text}, '{longer}', '{pick('', 'x', 'é')}')",
        f"regexp_replace({text}, '{longer}', '-', 'g')",
        f"regexp_match({text}, '{pattern}') IS NULL",
        f"regexp_count({text}, '{longer}')",
        f"{text} ~ '{pattern}'",
    )


def _json(writer: _Writer) -> str:
    pick = writer._pick
    path = "".join(
        pick(".a", ".b", ".c", "[0]", "[1]", '["a b"]', ".ï")
        for _ in range(writer._rng.randint(0, 3))
    )
    key = pick("a", "b", "c", "a b", "ï", "zz", "0", "1")
    kind = pick("string", "int", "float", "bool")
    return pick(
        f"json_extract(j, '${path}')",
        f"json_exists(j, '${path}')",
        f"json_array_length(j, '${path}')",
        f"json_array_contains(j, '${path}', '{pick('1', 'x', 'ï', 'true')}')",
        f"json_get_{kind}(j, '{key}')",
        f"json_get_{kind}(json_get(j, '{key}'), '{pick('a', 'b', '0', '1')}')",
        f"json_get(j, '{key}') IS NULL",
    )


def _list_call(writer: _Writer) -> str:
    pick = writer._pick
    column, values = pick(
        ("l", ("1", "2", "7", "NULL", "0", "i8")), ("ls", ("'a'", "'c'", "NULL", "''", "s"))
    )
    other = pick(column, "[]", f"[{values[0]}]", f"[{values[0]}, NULL]")
    place = pick("-4", "-2", "-1", "0", "1", "2", "3", "9", "NULL", "CAST(i8 AS bigint)")
    end = pick("-3", "-1", "0", "1", "2", "9", "NULL")
    value = pick(*values)
    return pick(
        f"{column}[{place}]",
        f"array_element({column}, {place})",
        f"array_slice({column}, {place}, {end})",
        f"array_slice({column}, {place}, {end}, {pick('1', '2')})",
        f"array_has({column}, {value})",
        f"array_has_any({column}, {other})",
        f"array_has_all({column}, {other})",
        f"array_position({column}, {value})",
        f"array_positions({column}, {value})",
        f"array_remove({column}, {value})",
        f"array_remove_n({column}, {value}, {pick('-1', '0', '1', '2')})",
        f"array_replace({column}, {value}, {values[0]})",
        f"array_append({column}, {value})",
        f"array_prepend({value}, {column})",
        f"array_concat({column}, {other})",
        f"array_repeat({value}, {end})",
        f"array_resize({column}, {end}, {value})",
        f"array_distinct({column})",
        f"array_reverse({column})",
        f"array_sort({column})",
        f"array_except({column}, {other})",
        f"array_intersect({column}, {other})",
        f"array_union({column}, {other})",
        f"array_length({column}, 1)",
        f"array_to_string({column}, '{pick(',', '')}')",
        f"array_to_string({column}, ',', '{pick('?', '')}')",
        f"array_{pick('min', 'max', 'pop_back', 'pop_front', 'dims', 'ndims')}({column})",
        f"cardinality({column})",
        f"empty({column})",
        f"flatten({column})",
    )


def _zoned(writer: _Writer) -> str:
    pick = writer._pick
    moments = (
        *("tz", "arrow_cast(tz, 'Timestamp(Microsecond, None)')"),
        *(f"arrow_cast(tz, 'Timestamp({unit}, Some(\"{zone}\"))')" for unit, zone in _ZONED),
        "arrow_cast(ts, 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')",
    )
    moment = pick(*moments)
    part = pick(*PARTS, "minute", "second", "week", "quarter", "epoch", "microsecond")
    length = pick("day", "hour", "month", "week", "minute", "quarter")
    return pick(
        f"{moments[0]} {pick(*SIGNS)} {pick('tz', *moments[2:3])}",
        f"tz {pick(*SIGNS)} {pick('ts', 'd')}",
        f"tz {pick('', 'NOT ')}IN (timestamp '2021-01-01 00:00:00', NULL)",
        f"tz BETWEEN timestamp '2020-12-31 00:00:00' AND {pick('ts', 'NULL', 'tz')}",
        f"date_part('{part}', {moment})",
        f"date_trunc('{length}', {moment})",
        f"CAST({moment} AS {pick('date', 'string', 'bigint', 'timestamp')})",
        f"to_char({moment}, '{pick('%Y-%m-%d', '%H:%M:%S', '%z')}')",
        f"coalesce({moment}, {moment})",
        f"to_unixtime({moment})",
    )


_ZONED = (("Microsecond", "+02:00"), ("Second", "America/New_York"), ("Millisecond", "-03:30"))
_TOPICS: dict[str, Callable[[_Writer], str]] = {
    "casts": _cast, "null members": _null_member, "patterns": _pattern, "json": _json,
    "lists": _list_call, "zoned times": _zoned,
}  # fmt: skip
TOPICS = tuple(_TOPICS)

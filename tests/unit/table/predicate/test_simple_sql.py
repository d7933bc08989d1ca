"""The parser of simple conditions: what it reads as sqlglot does, and what it leaves to it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.errors import PredicateError
from lance_nb.table.predicate import compile_column, compile_filter
from lance_nb.table.predicate.binder import bind_sql
from lance_nb.table.predicate.comparison import as_mask
from lance_nb.table.predicate.condition_binder import ConditionBinder
from lance_nb.table.predicate.expression import Names, evaluate_needed, paths_of
from lance_nb.table.predicate.simple_sql import DEPTH_MAX, NOT_NAMES, TOKENS_MAX, parse_simple
from lance_nb.table.predicate.sql_text import lance_dialect, parse_sql, read_sql
from tests.support.examples import examples
from tests.support.filter_rows import filter_table

TABLE = filter_table(60)
SCHEMA = TABLE.schema


def shape(node: Any) -> Any:
    """Write a tree of either parser as tuples; NOT LIKE is one node of sqlglot, two of ours."""
    match node.key:
        case "column":
            names = tuple((part.name, bool(part.args.get("quoted"))) for part in node.parts)
            return ("column", names, node.parts[0].meta.get("start"))
        case "literal":
            return ("literal", node.this, bool(node.is_string))
        case "boolean":
            return ("boolean", bool(node.this))
        case "null":
            return ("null",)
        case "placeholder":
            return ("placeholder", str(node.this))
        case "paren" | "not" | "neg":
            return (node.key, shape(node.this))
        case "in":
            assert not any(node.args.get(name) for name in ("query", "unnest", "field"))
            return ("in", shape(node.this), tuple(map(shape, node.expressions)))
        case "between":
            return ("between", *map(shape, (node.this, node.args["low"], node.args["high"])))
        case "like":
            found = ("like", shape(node.this), shape(node.expression))
            return ("not", found) if node.args.get("negate") else found
        case "mod" | "and" | "or" | "is" | "eq" | "neq" | "lt" | "lte" | "gt" | "gte":
            return (node.key, shape(node.this), shape(node.expression))
    raise AssertionError(f"{node.key} is not simple")


def answer(binder: Any, tree: Any, bulks: Any) -> Any:
    """Bind a tree and compute it over all rows: its columns, type and mask; None for an error."""
    try:
        bound = binder(tree, bulks)
        columns = {path: column_at(path) for path in paths_of(bound)}
        value = evaluate_needed(bound, columns)
    except (PredicateError, pa.ArrowException):
        return None
    is_condition = pa.types.is_boolean(bound.type)
    found = as_mask(value, len(TABLE)).tolist() if is_condition else str(value)
    return tuple(columns), bound.type, found


def column_at(path: tuple[str, ...]) -> pa.ChunkedArray:
    if path[0] == "_rowid":
        return pa.chunked_array([pa.array(range(len(TABLE)), pa.uint64())])
    column = TABLE.column(path[0])
    for name in path[1:]:
        column = pa.chunked_array([pa.compute.struct_field(chunk, name) for chunk in column.chunks])
    return column


def check_same(text: str) -> bool:
    """Compare both parsers on a text; tell whether it was simple."""
    sql = read_sql(text)
    tree = parse_simple(sql.short)
    if tree is None:
        return False
    full = sql.tree()
    assert shape(tree) == shape(full), text
    names = Names(SCHEMA)
    ours = answer(lambda *args: ConditionBinder(args[1], names).bind(args[0]), tree, sql.bulks)
    theirs = answer(lambda *args: bind_sql(*args, names), full, sql.bulks)
    assert ours == theirs, text
    return True


NAMES = ("i", "i8", "u64", "f", "f32", "s", "t", "b", "dec", "d", "ts", "I", "st.x", "st.y.z",
         "`i`", "`Mixed Case`", "`st`.`x`", "st.`x`", "_rowid")  # fmt: skip
NUMBERS = ("0", "1", "-1", "5", "007", "2.5", "-3.75", "1e3", "1E-2", "-2.5e+1", "0.0", "-0.0",
           "9223372036854775808", "1e400", "-128")  # fmt: skip
STRINGS = ("'a'", '"a"', "''", "'Abc'", "'a%b'", "'%a%'", "'a_b'", "'naïve'", "'データ'", "'--'",
           "'/*x*/'", "'2021-01-01'", "'1'", "' a '", "';'")  # fmt: skip
LITERALS = (*NUMBERS, *STRINGS, "true", "FALSE")
SIGNS = ("=", "<>", "!=", "<", "<=", ">", ">=")


def cased(word: str) -> st.SearchStrategy[str]:
    return st.sampled_from([word, word.lower(), word.title()])


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    """One comparison of the grammar."""
    name, literal = draw(st.sampled_from(NAMES)), st.sampled_from(LITERALS)
    no = draw(st.sampled_from(["", draw(cased("NOT")) + " "]))
    if draw(st.integers(0, 4)) == 0:
        space = draw(st.sampled_from(["", " "]))
        divisors = st.lists(st.sampled_from([*NUMBERS, *NAMES]), min_size=1, max_size=3)
        name = f"{space}%{space}".join([name, *draw(divisors)])
    match draw(st.integers(0, 6)):
        case 0:
            space = draw(st.sampled_from(["", " ", "\n\t"]))
            sides = [name, draw(st.one_of(literal, st.sampled_from(NAMES)))]
            left, right = sides if draw(st.booleans()) else reversed(sides)
            return f"{left}{space}{draw(st.sampled_from(SIGNS))}{space}{right}"
        case 1:
            return f"{name} {draw(cased('IS'))} {no}{draw(cased('NULL'))}"
        case 2:
            members = draw(st.lists(literal, min_size=1, max_size=4))
            return f"{name} {no}{draw(cased('IN'))} ({', '.join(members)})"
        case 3:
            return f"{name} {no}{draw(cased('LIKE'))} {draw(st.sampled_from(STRINGS))}"
        case 4:
            return f"{name} {no}{draw(cased('BETWEEN'))} {draw(literal)} AND {draw(literal)}"
        case 5:
            many = draw(st.integers(30, 40))
            return f"{name} {no}IN ({', '.join(map(str, range(many)))})"
        case _:
            return draw(st.sampled_from(["b", "TRUE", "false", "`b`"]))


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.tuples(inner, cased("AND"), inner).map(" ".join),
        st.tuples(inner, cased("OR"), inner).map(" ".join),
        inner.map(lambda one: f"NOT {one}"),
        inner.map(lambda one: f"({one})"),
        inner.map(lambda one: f"NOT({one})"),
    ),
    max_leaves=6,
)


@examples(150)
@given(CONDITIONS)
def test_a_condition_of_the_grammar_is_read_as_by_sqlglot(text: str) -> None:
    assert check_same(text)


PIECES = st.sampled_from([
    *NAMES, *NUMBERS, *STRINGS, *SIGNS, "true", "NULL", "null", "AND", "OR", "NOT", "IS", "IN",
    "LIKE", "ILIKE", "BETWEEN", "ESCAPE", "(", ")", ",", ".", "-", "+", "--x\n", "/* x */",
    "#", ";", "::int", ":x", "[0]", "['x']", "x'ff'", "0xff",
    "1.", ".5", "1_000", "1e", "'a''b'", '"a\'b"',
    "'a\\'", "'a", "`", "``", "`a``b`", "date '2021-01-01'", "date", "interval", "Ä", "ß = 1", "é",
    "lower(s)", "i + 1", "CASE", "END", "==", "<=>", "||", "<-", "->", "\u00a0", "\x00", "٣", "|",
])  # fmt: skip


@examples(400)
@given(st.lists(PIECES, min_size=1, max_size=9), st.sampled_from(["", " "]))
def test_pieces_in_any_order_are_never_read_unlike_sqlglot(pieces: list[str], gap: str) -> None:
    text = gap.join(pieces)
    try:
        check_same(text)
    except PredicateError:  # sqlglot refuses it: then it is not simple
        assert parse_simple(text) is None


@examples(150)
@given(CONDITIONS, st.data())
def test_a_condition_with_a_piece_put_in_is_never_read_unlike_sqlglot(text: str, data: Any) -> None:
    place = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 2))
    broken = text[:place] + data.draw(PIECES) + text[place + cut :]
    try:
        check_same(broken)
    except PredicateError:
        assert parse_simple(broken) is None


PLACES = (
    "{} = 1", "1 = {}", "{}", "NOT {}", "({})", "{} AND x = 1", "x = 1 AND {}", "{} IS NULL",
    "{} IS NOT NULL", "{} IN (1, 2)", "{} NOT IN (1)", "{} LIKE 'a'", "{} NOT LIKE 'a'",
    "{} BETWEEN 1 AND 2", "{} NOT BETWEEN 1 AND 2", "x = {}", "x < {} OR y = 2", "{} <> 'a'",
    "{} > -1", "{} < -1.5e3", "{} < 1", "{}<1", "{} = true", "s.{} = 1", "{}.s = 1", "NOT {} = 1",
    "x = 1 OR NOT {}", "{} OR x", "{}=1", "{}='a'", "x = {} AND y", "({}) OR NOT ({})",
)  # fmt: skip


def test_no_keyword_of_sqlglot_is_taken_for_a_name_that_it_is_not() -> None:
    tokenizer = lance_dialect().Tokenizer
    words = {
        part for phrase in tokenizer.KEYWORDS for part in phrase.split() if part.isidentifier()
    }
    words |= {"ESCAPE", "SAFE", "DIV", "ISNULL", "OVERLAPS", "PRIOR", "GLOBAL", "SOUNDS", "N", "E"}
    wrong = []
    for word in sorted(words - NOT_NAMES):
        for place in PLACES:
            tree = parse_simple(place.replace("{}", word.lower()))
            assert tree is not None
            try:
                same = shape(tree) == shape(parse_sql(place.replace("{}", word.lower())))
            except (PredicateError, AssertionError):
                same = False
            if not same:
                wrong.append((word, place))
    assert wrong == []


@pytest.mark.parametrize("word", sorted(NOT_NAMES - {"TRUE", "FALSE"}))
def test_words_of_sql_are_left_to_sqlglot(word: str) -> None:
    for text in (f"{word} = 1", f"1 = {word.lower()}", f"s.{word} = 1"):
        assert parse_simple(text) is None
    assert parse_simple(f"`{word}` = 1") is not None


@pytest.mark.parametrize(
    "text",
    [
        "", "i", "i = 1 = 2", "(i) = 1", "i IS TRUE", "i = NULL", "i IN (1, NULL)", "i IN ()",
        "i IN (j)", "s LIKE t", "s LIKE 'a' ESCAPE 'b'", "i BETWEEN j AND 2", "i = 1 AND", "NOT",
        "i + 1 = 2", "lower(s) = 'a'", "i = 1 -- x", "i = /* x */ 1", "s = 'a''b'", "s = 'a\\'",
        "s = 'a\"b'", "i = 1.", "i = .5", "i = - 1", "i = 0xff", "ä = 1", "a.b.c.d = 1",
        "i::int = 1",

        "l[0] = 1", "i = 1;", "i ILIKE 'a'", "i NOT 1", "i = 1 i", "(i = 1", "i = 1)", "i = 1a",
    ],
)  # fmt: skip
def test_what_is_not_in_the_grammar_is_left_to_sqlglot(text: str) -> None:
    if text == "i":
        assert parse_simple(text) is not None  # a column that may be a condition
    else:
        assert parse_simple(text) is None


def test_deep_and_long_conditions_are_left_to_sqlglot() -> None:
    inside = "(" * (DEPTH_MAX - 1) + "i = 1" + ")" * (DEPTH_MAX - 1)
    assert parse_simple(inside) is not None
    assert parse_simple(f"({inside})") is None
    assert parse_simple("NOT " * DEPTH_MAX + "b") is None
    most = " OR ".join(["b"] * (TOKENS_MAX // 2))  # one token less than allowed, and the end
    assert parse_simple(most) is not None
    assert parse_simple(f"{most} OR b") is None


def test_messages_are_those_of_the_full_parser() -> None:
    """An error names the text as sqlglot writes it, and the place."""
    for text, part in (("nme = 1", "no column named 'nme' (at character 0)"),
                       ("i = 1 AND s", "s is string, not a condition"),
                       ("b = 5", "write true or false")):  # fmt: skip
        with pytest.raises(PredicateError) as caught:
            compile_filter(text, SCHEMA)
        assert part in str(caught.value)


def test_simple_filters_and_columns_do_not_load_sqlglot() -> None:
    code = (
        "import sys, pyarrow as pa\n"
        "from lance_nb.table.predicate import compile_filter\n"
        "schema = pa.schema([('i', pa.int64()), ('s', pa.string()), ('b', pa.bool_())])\n"
        "compile_filter(\"i > 3 AND (s LIKE '%é%' OR NOT b) AND i NOT IN (1, 2)\", schema)\n"
        "compile_filter(' OR '.join(f'i = {n}' for n in range(50)), schema)\n"
        "print([n for n in sys.modules if n in ('sqlglot', 'pandas', 'difflib',\n"
        "       'lance_nb.table.predicate.binder', 'lance_nb.table.predicate.functions')])\n"
        "compile_filter('i + 1 = 2', schema)\n"
        "print('sqlglot' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )

    assert done.stdout.split("\n")[:2] == ["[]", "True"]


def test_a_column_that_is_a_condition_is_read_as_by_sqlglot() -> None:
    column = compile_column("big", "i > 5", SCHEMA)
    assert column.field == pa.field("big", pa.bool_())

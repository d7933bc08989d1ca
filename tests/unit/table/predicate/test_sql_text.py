from __future__ import annotations

import time

import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate import sql_text
from lance_nb.table.predicate.sql_text import (
    parse_sql,
    read_sql,
    shown,
    sql_of,
    with_quoted_columns,
)


def bulks(text):
    return [[value for _, value in bulk] for bulk in read_sql(text).bulks.values()]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        (" -- nothing", "empty"),
        ("i =", "operand is missing"),
        ("(i = 1", "at line 1, column"),
        ("i = 1)", "near ')'"),
        ("i = 'a", "quote is not closed"),
        ("i = 1; j = 2", "one expression"),
        ("(" * 3000 + "i" + ")" * 3000, "200 deep"),
        ("NOT " * 300 + "b", "200 deep"),
        ("i = " + "1" * (8 << 20), "characters"),
        (" OR ".join(f"a{k} = 1" for k in range(40_000)), "tokens"),
        ("CASE WHEN b THEN " * 800 + "1" + " END" * 800, "200 deep"),
        ("f(" * 800 + "i" + ")" * 800, "200 deep"),
    ],
    ids=lambda text: text[:20],
)
def test_a_text_that_cannot_be_read_says_where(text, problem):
    start = time.process_time()
    with pytest.raises(PredicateError) as found:
        parse_sql(text)

    assert problem in str(found.value)
    assert len(str(found.value)) < 400
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("length", "quoted"),
    [(0, "''"), (4, "'xxxx'"), (5, "'xxxxx'"), (6, "'xxxx…'"), (99, "'xxxx…'")],
)
def test_a_long_text_is_cut_to_the_length_that_is_allowed(length, quoted):
    assert shown("x" * length, 5) == quoted


def test_only_text_is_parsed():
    with pytest.raises(PredicateError):
        parse_sql(5)


def test_a_semicolon_at_the_end_is_no_second_expression():
    assert parse_sql("i = 1 ; ").key == "eq"


def test_long_lists_are_cut_out_before_parsing():
    numbers = [str(k) for k in range(-20, 50)]

    assert bulks(f"i IN ({', '.join(numbers)}) AND b") == [numbers]
    assert bulks(f"i NOT IN ({', '.join(numbers)})") == [numbers]
    assert bulks("i IN (1, 2, 3)") == []
    words = [f"it's {k}" for k in range(40)]
    quoted = [word.replace("'", "''") for word in words]
    assert bulks("s IN ('" + "', '".join(quoted) + "')") == [words]
    assert bulks('s IN ("' + '", "'.join(words) + '")') == [words]


def test_long_chains_of_equality_become_one_list():
    chain = " OR ".join(f"a.`b c` = {k}" for k in range(50))

    assert bulks(chain) == [[str(k) for k in range(1, 50)]]
    assert bulks(f"x AND ({chain}) AND y") == [[str(k) for k in range(50)]]


@pytest.mark.parametrize(
    "text",
    [
        " OR ".join(f"NOT i = {k}" for k in range(50)),
        " OR ".join(f"i > {k}" for k in range(50)),
        " OR ".join(f"i = {k} AND b" for k in range(50)),
        " OR ".join(f"i = {k} + 1" for k in range(50)),
        f"i IN ({', '.join(f'{k} + 1' for k in range(50))})",
        f"f({', '.join(map(str, range(50)))})",
    ],
    ids=lambda text: text[:20],
)
def test_what_only_looks_like_a_list_is_left_alone(text):
    assert bulks(text) == []


def test_twenty_thousand_ors_are_read_quickly():
    start = time.process_time()

    assert len(bulks(" OR ".join(f"i = {k}" for k in range(20_000)))[0]) == 19_999
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    "text",
    [
        "i <= 5", "i <> 5", "i != 5", "i >= 5", "b = x'61'", "b = 0x61", "i::string = '1'",
        "s || 'a' = 'b'", "s = 'a' -- x\n", "i /* c */ = 1", "s = 'it''s'", "st.x = 1",
    ],
)  # fmt: skip
def test_what_stands_beside_a_long_list_is_read_as_without_it(text):
    alone = parse_sql(text)
    for listed in (f"i IN ({', '.join(map(str, range(40)))})",
                   " OR ".join(f"`i` = {k}" for k in range(40))):  # fmt: skip
        assert parse_sql(f"({listed}) AND {text}").expression == alone
        assert parse_sql(f"{text} AND ({listed})").this == alone


def test_long_chains_of_inequality_become_one_list():
    chain = " AND ".join(f"a.`b c` <> {k}" for k in range(50))

    assert bulks(chain) == [[str(k) for k in range(1, 50)]]
    assert bulks(f"x OR {chain} OR y") == [[str(k) for k in range(50)]]
    assert bulks(f"(x AND {chain} AND y > 1)") == [[str(k) for k in range(50)]]
    assert "NOT" in parse_sql(f"x AND {chain}").sql()
    assert "NOT" not in parse_sql("x OR " + chain.replace("<>", "=").replace("AND", "OR")).sql()
    assert bulks(f"x BETWEEN 1 AND {chain}") == [[str(k) for k in range(1, 50)]]
    assert bulks(chain.replace("AND", "OR")) == []
    assert bulks("x AND " + chain.replace("<>", "=")) == []


def test_a_hundred_thousand_values_are_read_quickly():
    start = time.process_time()
    text = ", ".join(f"'value-{k:06}'" for k in range(100_000))

    assert len(bulks(f"s IN ({text})")[0]) == 100_000
    assert time.process_time() - start < 10


def test_more_tokens_than_are_read_are_refused(monkeypatch):
    monkeypatch.setattr(sql_text, "TOKENS_READ_MAX", 10)
    assert parse_sql("i IN (1, 2, 3)")
    with pytest.raises(PredicateError, match="more than 10 tokens"):
        parse_sql("i IN (1, 2, 3, 4, 5)")


def test_the_limits_are_those_of_the_docstring():
    assert (sql_text.TEXT_CHARS_MAX, sql_text.TOKENS_MAX, sql_text.DEPTH_MAX) == (
        8 * 1024 * 1024,
        150_000,
        200,
    )
    assert sql_text.TOKENS_READ_MAX == 2_000_000


@pytest.mark.parametrize(("text", "quoted"), [
    ("and = 1 AND AND > 2", "`and` = 1 AND `and` > 2"), ("case > 1", "`case` > 1"),
    ("CASE WHEN when THEN 1 ELSE else END", "CASE WHEN `when` THEN 1 ELSE `Else` END"),
    ("x BETWEEN and AND case", "x BETWEEN `and` AND `case`"), ("not", "`not`"),
    ("NOT and = 1", "NOT `and` = 1"), ("not = 1", "`not` = 1"), ("x NOT IN (1)", "x NOT IN (1)"),
    ("'and' = \"and\" OR `and` = 1", "'and' = \"and\" OR `and` = 1"),
    ("f(and, (case)) = and.x", "f(`and`, (`case`)) = `and`.x"), ("like LIKE 'a'", "like LIKE 'a'"),
])  # fmt: skip
def test_columns_named_as_words_of_expressions_are_quoted(text: str, quoted: str) -> None:
    assert with_quoted_columns(text, ["and", "case", "when", "not", "Else", "x"]) == quoted


def test_other_texts_stay_as_they_are() -> None:
    assert with_quoted_columns("and = 1", ["x"]) == "and = 1"
    assert with_quoted_columns(7, ["and"]) == 7  # type: ignore[arg-type]


@pytest.mark.parametrize("joint", ["OR", "AND"])
@pytest.mark.parametrize("end", ["a =", "a <>", "a", "a.", "a = -", "a IN (", "a IN (1,", ""])
def test_a_long_chain_that_ends_too_early_is_refused(joint: str, end: str) -> None:
    sign = "=" if joint == "OR" else "<>"
    chain = f" {joint} ".join([f"a {sign} {number}" for number in range(40)])
    if (joint, end) in {("OR", "a"), ("AND", "a")}:
        assert read_sql(f"{chain} {joint} {end}").bulks  # a name is a condition
        return
    with pytest.raises(PredicateError):
        parse_sql(f"{chain} {joint} {end}")


def test_a_node_is_shown_in_eighty_characters() -> None:
    for length, text in ((80, "a" * 80), (81, "a" * 79 + "…"), (200, "a" * 79 + "…")):
        assert sql_of(parse_sql("a" * length)) == text


def test_a_text_of_the_largest_size_is_read():
    text = "i = 1"
    assert parse_sql(text.ljust(sql_text.TEXT_CHARS_MAX)).sql() == text


def test_a_bracket_that_was_never_opened_before_many_words_is_refused():
    with pytest.raises(PredicateError, match="near"):
        parse_sql(") AND i = 1" * sql_text.BULK_MIN)

from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_nb.errors import InvalidInputError, PredicateError
from lance_nb.table.predicate import compile_column, compile_filter, needed_paths
from lance_nb.table.predicate.filter import null_filter
from lance_nb.table.predicate.functions import FUNCTIONS

POINT = pa.struct([("x", pa.int64()), ("Y z", pa.string())])
POINTS = [{"x": 1, "Y z": "q"}, None, {"x": None, "Y z": None}, {"x": 4, "Y z": "r"}]
TABLE = pa.table({
    "i": pa.array([1, 2, None, -4]), "Name": ["a", "b", None, "c"],
    "p": pa.array(POINTS, POINT),
    "h": pa.array([1.5, None, 2.5, 3.5], pa.float16()),
    "k": pa.array(["u", "v", None, "u"]).dictionary_encode(),
    "l": pa.array([[1, 2], [], None, [None, 2]], pa.list_(pa.int64())),
    "like": pa.array([True, False, None, True]),
})  # fmt: skip


def mask(wanted, table=TABLE):
    condition = compile_filter(wanted, table.schema)
    columns = {}
    for path in condition.paths:
        columns[path] = (
            table[path[0]] if len(path) == 1 else pc.struct_field(table[path[0]], path[1:])
        )
    return condition.mask(columns, table.num_rows).tolist()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("array_has_any(l, [NULL])", [False, False, False, True]),
        ("array_has_all(l, [2, NULL])", [False, False, False, True]),
        ("array_has_all(l, [2])", [True, False, False, True]),
        ("array_has_all(l, [])", [True] * 4), ("array_has_any(l, [])", [False] * 4),
    ],
)  # fmt: skip
def test_a_null_is_an_element_that_lists_may_have(condition, expected):
    assert mask(condition) == expected


def test_the_second_of_a_time_is_never_rounded_up():
    times = pa.array([-1, 59_999_999], pa.timestamp("us"))

    assert mask("date_part('second', t) = 59", pa.table({"t": times})) == [True, True]


@pytest.mark.parametrize("word", ["comment", "desc", "set", "show", "load", "if", "where", "xor"])
def test_a_word_of_statements_is_a_name(word):
    schema = pa.schema([(word, pa.int64()), ("i", pa.int64())])
    for text in (f"{word} = 3", f"{word} IS NULL", f"i > 1 AND {word.upper()} IN (1, 2)"):
        assert (word,) in compile_filter(text, schema).paths


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("i = 1", [("i",)]), ("p.x = 1 AND i > 0 AND p.x < 9", [("p", "x"), ("i",)]),
        ("p['Y z'] = 'q'", [("p", "Y z")]), ("p.`Y z` = 'q'", [("p", "Y z")]), ("1 = 1", []),
        ("p IS NULL", [("p",)]), ("NAME = 'a'", [("Name",)]), ("_rowid > 1", [("_rowid",)]),
    ],
)  # fmt: skip
def test_a_filter_knows_the_columns_it_reads(text, paths):
    assert compile_filter(text, TABLE.schema).paths == tuple(paths)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("h > 1.5", [False, False, True, True]), ("k = 'u'", [True, False, False, True]),
        ("k IN ('v', 'w')", [False, True, False, False]), ("l[1] = 1", [True, False, False, False]),
        ("array_has(l, 2)", [True, False, False, True]), ("`like`", [True, False, False, True]),
        ("i = 1 OR i = 2 OR i = -4 OR Name = 'z'", [True, True, False, True]),
        ("length(Name) + 1 = 2", [True, True, False, True]), ("NULL", [False] * 4),
        ("CASE WHEN i > 1 THEN 'big' WHEN i > 0 THEN 'small' END = 'small'",
         [True, False, False, False]),
        ("CASE i WHEN 2 THEN 1 ELSE 0 END = 1", [False, True, False, False]),
        ("substring(Name FROM 1 FOR 1) = 'a'", [True, False, False, False]),
        ("extract(year FROM date '2021-05-01') = 2021", [True] * 4),
        ("i << 1 = 4", [False, True, False, False]),
    ],
)  # fmt: skip
def test_a_filter_marks_the_rows_it_wants(text, wanted):
    if text == "NULL":
        with pytest.raises(PredicateError):
            mask(text)
        return
    assert mask(text) == wanted


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nam = 'a'", "did you mean 'Name'?"), ("nope = 1", "columns: 'i', 'Name'"),
        ("1 = 1 AND zzz = 1", "at character 10"), ("p.X = 1", "did you mean 'x'?"),
        ("i.x = 1", "'i' is int64 and has no field 'x'"),
        ("lenght(Name) = 1", "did you mean 'length'?"),
        ("i", "is int64, not a condition"), ("length(Name, Name) = 1", "takes 1 arguments, not 2"),
        ("i IN (SELECT 1)", "subquery"), ("`like` + `like` = 1", "needs numbers"),
        ("i AND TRUE", "not a condition"),
        ("Name = i + date '2021-01-01'", "PredicateError"), ("CAST(i AS nothing) = 1", "nothing"),
        ("i = CAST(1 AS decimal(99, 2))", "no such type"), ("x'0g' = 1", "PredicateError"),
        ("regexp_like(Name, '(')", "missing"), ("regexp_like(Name, Name)", "literal"),
        ("regexp_like(Name, 'a', 'q')", "flags"), ("read_csv('x') = 1", "no function"),
    ],
)  # fmt: skip
def test_a_filter_that_does_not_fit_says_what_and_where(text, problem):
    with pytest.raises(PredicateError) as found:
        compile_filter(text, TABLE.schema)

    assert problem in f"PredicateError {found.value}"
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)  # noqa: S301


def test_the_value_of_a_row_can_be_wrong_too():
    with pytest.raises(PredicateError, match=r"filter 'i / 0 = 1': divide by zero"):
        mask("i / 0 = 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CASE WHEN i - 1 = 0 THEN 0 ELSE 6 / (i - 1) END = 6", [False, True, False, False]),
        ("CASE i WHEN 1 THEN 0 ELSE 6 / (i - 1) END = 6", [False, True, False, False]),
        ("CASE WHEN i = 2 OR i = 1 AND i < 6 / i THEN 1 END = 1", [True, True, False, False]),
        ("coalesce(i - 1, 1 / (i - 1)) = 0", [True, False, False, False]),
        ("nvl2(nullif(i, 1), 6 / (i - 1), 6) = 6", [True, True, True, False]),
        ("CASE WHEN i IS NULL THEN 0 ELSE coalesce(nullif(i, 1), 1 / (i - 1)) END = 0", None),
    ],
)
def test_a_branch_that_is_not_taken_is_not_computed(text, expected):
    if expected is None:
        with pytest.raises(PredicateError, match="divide by zero"):
            mask(text)
    else:
        assert mask(text) == expected


def test_a_filter_is_text_or_an_arrow_expression():
    assert mask(pc.field("i") > 0) == [True, True, False, False]
    assert mask(pc.field("p", "x") > 1) == [False, False, False, True]
    assert mask((pc.field("i") > 0) & (pc.field("Name") == "b")) == [False, True, False, False]
    assert mask(pc.scalar(True)) == [True] * 4
    assert compile_filter(pc.field(0) > 1, TABLE.schema).paths == tuple(
        (n,) for n in TABLE.schema.names
    )
    for wrong in (5, None, ["i = 1"]):
        with pytest.raises(InvalidInputError):
            compile_filter(wrong, TABLE.schema)


@pytest.mark.parametrize("wanted", [pc.field("nope") > 1, pc.field("i"), pc.field("Name") > 1])
def test_an_arrow_expression_that_does_not_fit_is_refused(wanted):
    with pytest.raises(PredicateError):
        compile_filter(wanted, TABLE.schema)


def test_a_computed_column_has_a_type_before_it_has_values():
    column = compile_column("twice", "i * 2", TABLE.schema)

    assert column.field == pa.field("twice", pa.int64())
    assert needed_paths(column) == (("i",),)
    assert column.values({("i",): TABLE["i"]}, 4).to_pylist() == [2, 4, None, -8]
    assert compile_column("one", "1", TABLE.schema).values({}, 3).to_pylist() == [1, 1, 1]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_no_function_takes_a_subject_it_cannot_handle(name):
    _, fewest, most = FUNCTIONS[name]
    for count in range(fewest, min(most, 4) + 1):
        for argument in ("i", "Name", "l", "p", "like", "NULL", "'x'", "0"):
            text = f"{name}({', '.join([argument] * count)}) IS NULL"
            try:
                found = mask(text)
            except PredicateError:
                continue
            assert len(found) == 4


def test_a_condition_that_a_field_is_null_takes_names_as_they_are() -> None:
    schema = pa.schema([("a b", pa.int8()), ("p", pa.struct([("x.y", pa.int8())]))])
    columns = {("a b",): pa.array([1, None], pa.int8())}
    found = null_filter(("a b",), schema)
    assert (list(found.paths), found.mask(columns, 2).tolist()) == ([("a b",)], [False, True])
    nested = null_filter(("p", "x.y"), schema)
    assert list(nested.paths) == [("p", "x.y")]
    assert nested.text == "p.`x.y` IS NULL"
    for path in (("A b",), ("p", "x")):
        with pytest.raises(PredicateError, match="no "):
            null_filter(path, schema)


def test_long_lists_of_several_kinds_and_escapes_are_bound() -> None:
    table = pa.table({"n": [1, 2, None, 40], "s": ["a%", "ab", "a_", None], "f": [1.0, 2.5, 3, 40]})
    many = ", ".join(str(number) for number in range(1, 40))
    assert rows(f"n IN ({many})", table) == [0, 1]
    assert rows(f"n NOT IN ({many})", table) == [3]
    assert rows(f"n NOT IN ({many}, NULL)", table) == []
    assert rows(f"n IN ({many}, NULL)", table) == [0, 1]
    assert rows(f"f IN ({many})", table) == [0, 2]
    assert rows(f"f IN ({many}, NULL, 40)", table) == [0, 2, 3]
    assert rows(f"n IN ({many}, 99999999999999999999)", table) == [0, 1]
    texts = ", ".join(f"'{text}'" for text in ("a_", *(f"x{n}" for n in range(40))))
    assert rows(f"s IN ({texts})", table) == [2]
    assert rows("s LIKE 'a\\%'", table) == rows("s LIKE 'a\\%' ESCAPE '\\'", table) == [0]
    with pytest.raises(PredicateError, match="escape character of LIKE must be a backslash, not"):
        rows("s LIKE 'a#%' ESCAPE '#'", table)
    assert rows("s LIKE 'a%'", table) == [0, 1, 2]


def rows(text: str, table: pa.Table) -> list[int]:
    return [number for number, holds in enumerate(mask(text, table)) if holds]

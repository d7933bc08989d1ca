"""Functions in expressions give the values of pylance: of lists, JSON, structs, times, text, bytes.

Each group is one table and a list of expressions; types may differ where pylance answers in a view
or in a wider type (``LOOSE``).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import PredicateError
from tests.support.filter_rows import filter_table
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

_INTS, _TEXTS = pa.list_(pa.int64()), pa.list_(pa.string())
_LISTS = pa.table({
    "l": pa.array(
        [[], [1, 2], [None], [3, None], [2], [1, 1, 7], [7, 1, None, 1, 3, None], None], _INTS
    ),
    "m": pa.array([[1], [2, 1], [None], None, [], [7, 8, 7], [1, None, 9], [1]], _INTS),
    "k": pa.array([1, 2, None, 3, 0, -1, 2, 1]),
    "s": ["a,b", "", None, "a,,b", "x", "b,NULL", "a", "é,b"],
    "ll": pa.array(
        [[[1], [2, 3]], [], None, [None, [4]], [[]], [[5, None]], [[1, 1], [1]], [[9]]],
        pa.list_(_INTS),
    ),
    "f": pa.array(
        [[1, 2], [0, 0], [3, None], None, [4, 5], [1, 1], [2, 2], [1, 2]],
        pa.list_(pa.float64(), 2),
    ),
    "ls": pa.array(
        [["b", "a"], [], None, [None, "x"], ["a"], ["z", "a", "z"], ["", " "], ["q"]], _TEXTS
    ),
})  # fmt: skip
_DOCUMENTS = (
    '{"a":1,"b":"x","c":[1,2,"z"],"d":{"e":true,"f":1.5},"n":null}',
    '{"a":"12","b":5,"c":[],"d":{}}', "[1,2,3]", '"text"', "17", "null", None,
    '{"a":1.5,"b":true,"tags":["p","q",null,5],"c":"str"}',
    '{"a":false,"b":null,"c":[[1],{"k":2}],"u":"na\\u00efve \\" q"}',
    '{"a":-3,"b":"false","c":[true],"d":{"e":"1.25"}}', "{}", '{"a":9007199254740993,"c":[1.0]}',
)  # fmt: skip

LISTS = (
    "array_slice(l, 1, 2)", "array_slice(l, 2, 10)", "array_slice(l, 0, 2)",
    "array_slice(l, -2, -1)", "array_slice(l, k, 2)", "list_slice(l, 1, 6, 2)",
    "array_append(l, 1)", "array_append(l, k)", "array_prepend(k, l)", "array_concat(l, m)",
    "list_cat(l, m, l)", "array_distinct(l)", "array_distinct(ls)", "array_except(l, m)",
    "array_intersect(l, m)", "array_union(l, m)", "array_remove(l, 1)", "array_remove(l, k)",
    "array_remove_n(l, 1, 2)", "array_remove_all(l, 1)", "array_replace(l, 1, 9)",
    "array_replace(l, k, 9)", "array_replace(l, 1, k)", "array_replace_n(l, 1, 9, 2)",
    "array_replace_all(l, 1, NULL)", "array_repeat(k, 2)", "array_repeat(l, 2)",
    "array_resize(l, 3)", "array_resize(l, 3, 0)", "array_resize(l, 1)", "array_resize(l, 3, k)",
    "array_reverse(l)", "array_sort(l)", "array_sort(l, 'DESC')", "array_sort(ls)",
    "array_sort(l, 'ASC', 'NULLS LAST')", "array_pop_front(l)", "array_pop_back(l)",
    "array_any_value(l)", "array_positions(l, 1)", "array_positions(l, k)", "array_position(l, k)",
    "array_ndims(l)", "array_ndims(ll)", "array_dims(l)", "array_length(l, 1)",
    "array_distance(f, f)", "array_distance(f, [1.0, 1.0])", "flatten(ll)", "flatten(l)",
    "make_array(k, 1, NULL)", "make_array(s, 'x')", "string_to_array(s, ',')",
    "string_to_array(s, ',', 'b')", "arrays_overlap(l, m)", "range(k)", "range(1, k)",
    "generate_series(k, 3)", "array_has(array_concat(l, m), 2)", "array_length(array_distinct(l))",
    "array_has([1, NULL], k)", "NOT array_has([1, NULL], k)", "array_has([NULL], k)",
    "array_has_any(l, make_array(k, 7))", "array_max(l)", "array_to_string(l, '-', '*')",
)  # fmt: skip
JSON = (
    "json_extract(j, '$.a')", "json_extract(j, '$.c[0]')", "json_extract(j, '$.c[*]')",
    "json_extract(j, '$.d.e')", "json_extract(j, '$')", "json_extract(j, 'a')",
    "json_extract(j, '$.u')", "json_extract(j, '$.c[last]')", """json_extract(j, '$["a"]')""",
    "json_extract(j, '$.n')", "json_exists(j, '$.a')", "json_exists(j, '$.c[1]')",
    "json_exists(j, '$.n')", "json_get_string(j, 'a')", "json_get_string(j, 'u')",
    "json_get_int(j, 'a')", "json_get_float(j, 'a')", "json_get_int(j, 'a') > 0",
    "json_get_string(json_get(j, 'd'), 'e')", "json_get_string(json_get(j, 'tags'), '1')",
    "json_array_contains(j, '$.c', 'z')", "json_array_contains(j, '$.c', 1)",
    "json_array_contains(j, '$.tags', 'p')", "json_array_length(j, '$.tags')",
    "json_array_length(j, '$.c')", "json_array_length(j, '$')", "json_extract(j, '$.a') = '1'",
)  # fmt: skip
VALUES = (
    "get_field(st, 'x')", "get_field(st, 'y', 'z')", "named_struct('a', i8, 'b', s)",
    "struct(i8, s)", "arrow_cast(i8, 'Int64')", "arrow_cast(i8, 'Decimal128(10, 2)')",
    "arrow_cast(ts, 'Timestamp(Nanosecond, None)')", "arrow_try_cast(s, 'Int64')",
    "arrow_typeof(ts)", "arrow_typeof(l)", "to_char(ts, '%Y-%m-%d %H:%M:%S%.6f')",
    "to_char(d, '%d/%m/%y %j')", "date_format(tz, '%Y %H')", "to_unixtime(ts)", "to_unixtime(d)",
    "to_unixtime(i8)", "from_unixtime(i8)", "make_date(2021, u8 % 12 + 1, 1)",
    "date_bin(interval '1 day', ts, timestamp '2021-01-01')", "date_bin(interval '15 minutes', ts)",
    "date_bin(interval '7 days', d)", "date_bin(interval '7 days', tz)", "to_local_time(tz)",
    "to_date(i8)", "to_date('02/01/2021', '%d/%m/%Y') = d", "date_part('isodow', ts)",
    "date_part('nanosecond', ts)", "d - d", "d - date '2021-01-01'", "gcd(i8, 6)", "gcd(i, u8)",
    "lcm(i8, 6)", "factorial(u8 % 10)", "cot(f32)", "trunc(f, 1)", "trunc(f)", "round(dec)",
    "round(dec, 1)", "exp(f32)", "encode(s, 'hex')", "encode(bin, 'base64')", "sha256(s)",
    "decode(encode(s, 'base64'), 'base64')", "digest(s, 'md5')", "digest(bin, 'blake2b')",
    "sha512(t)", "regexp_count(s, 'a')", "regexp_count(s, 'A', 1, 'i')", "regexp_count(s, 'a', 2)",
    "regexp_instr(s, 'b')", "regexp_instr(s, 'b', 2)", "levenshtein(s, 'abc')",
    "find_in_set(s, 'a,b,c')", "find_in_set('b', s)", "substr_index(s, 'b', 1)",
    "substring_index(s, 'b', -1)", "contains_tokens(s, 'a b')", "contains_tokens(s, 'A')",
)  # fmt: skip
_PATTERNS = (
    r"\w", r"\d", r"\b", r"\W", r"\D", r"\s", r"\S", r"^\w+$", r"\bK", r"[^\w]", r"[\d_]", r"\B",
    r"\pL", "[[:alpha:]]", "(?i)k", r"\w\b", r"(?-u)\w", r"[\s\d]", r"\u00e9", r"\d{2}", r"[\W_]",
    r"[^\W_]", "", "x*", "a*", "$", "^", r"\b$", r"(?m)^\b",
)  # fmt: skip
PATTERNS = tuple(
    text
    for one in _PATTERNS
    for text in (
        f"regexp_like(s, '{one}')", f"regexp_replace(s, '{one}', '_', 'g')",
        f"regexp_replace(s, '{one}', '<$0>')", f"regexp_count(s, '{one}')",
        f"regexp_count(s, '{one}', 2)", f"regexp_instr(s, '{one}')", f"regexp_match(s, '{one}')",
    )
)  # fmt: skip
_SPOKEN = pa.table({"s": [
    "aé1", "Ünï code", "データ12", "٣४", "a\\b", "", "x_y", "aaa", "ſ K", "ǅ ß", "a\u00a0b",
    "a\u2003b", "🦀", "e\u0301", "\u200d", "İi", None, "ab ab", "é\nb",
]})  # fmt: skip
STRIDES = tuple(
    f"array_slice({name}, {begin}, {end}, {stride})"
    for name in ("l", "f") for begin in (-10, -2, 0, 2, 10) for end in (-10, -1, 0, 1, 10)
    for stride in (-3, -1, 2)
)  # fmt: skip
COUNTED = (
    *STRIDES, "array_slice(l, 1, 5, k + 10)", "array_slice(l, 1, 2, NULL)",
    "array_slice(l, NULL, 2, -1)", "array_remove_n(l, 1, NULL)", "array_remove_n(l, 1, k)",
    "array_remove_n(l, 1, -1)", "array_remove_n(l, NULL, 1)", "array_length(l, 0)",
    "array_length(l, 2)", "array_length(l, NULL)", "array_length(l, k)", "array_length(ll, 0)",
    "array_length(ll, 1)", "array_except(l, NULL)", "array_except(NULL, l)",
    "array_union(l, NULL)", "array_intersect(NULL, l)", "l < m", "ll <= ll", "ls > ls", "f >= f",
    "l < f",
)  # fmt: skip
_ZONED = pa.table({
    "z": pa.array([0, 10**15, None], pa.timestamp("us", "Europe/Zurich")),
    "n": pa.array([0, 10**15, None], pa.timestamp("us")), "i": [0, 10**9, None],
    "t": ["2021-07-01 12:00:00", "2021-01-01T00:00:00Z", "2021-07-01 12:00:00+05:00"],
    "d": pa.array([0, 20000, None], pa.date32()),
})  # fmt: skip
_TOKYO, _SHIFTED = 'Timestamp(Second, Some("Asia/Tokyo"))', 'Timestamp(Microsecond, Some("+02:30"))'
ZONED = (
    *(f"arrow_cast({name}, '{kind}')" for name in "znitd" for kind in (_TOKYO, _SHIFTED)),
    "arrow_cast(arrow_cast(i % 100, 'Int8'), 'Timestamp(Second, Some(\"Asia/Tokyo\"))')",
    "to_char(z, '%Z')", "to_char(z, '%H %Z')", "to_char(z, '%z')", "to_char(z, '%:z')",
    "to_char(z, '%%Z %Y')", "to_char(n, '%%Z')",
)  # fmt: skip
_TICKS = (-2, -1_000, 0, 1, 10**18 + 123_456_789, 10**18 + 123_456_000, 10**18, None)
_UNITS = ("s", "us", "ns")


def _moments(unit: str) -> pa.Array:
    return pa.array(_TICKS, pa.timestamp("ns")).cast(pa.timestamp(unit), safe=False)


def _each_in_a_list(unit: str) -> pa.Array:
    return pa.ListArray.from_arrays(list(range(len(_TICKS) + 1)), _moments(unit))


_MOMENTS = pa.table({
    **{unit: _moments(unit) for unit in _UNITS},
    **{f"l{unit}": _each_in_a_list(unit) for unit in _UNITS},
    "i": range(len(_TICKS)), "t": ["2001-09-09 01:46:40.123456789"] * len(_TICKS),
})  # fmt: skip
_WRITTEN = (
    "timestamp '1969-12-31 23:59:59.999999998'", "timestamp '2001-09-09 01:46:40.123456789'",
    "'2001-09-09 01:46:40.123456789'::timestamp", "timestamp '2001-09-09 01:46:40.123456'",
)  # fmt: skip
MOMENT_TESTS = (
    *(
        form.format(u=unit, m=moment)
        for unit in _UNITS for moment in _WRITTEN
        for form in (
            "array_has_any(l{u}, make_array({m}))",
            "array_has(make_array({m}), {u})", "coalesce({u} = {m}, false)",
            "coalesce({u} < {m}, true)", "coalesce({u} IN ({m}), true)",
            "coalesce({u} BETWEEN {m} AND {m}, true)", "nullif({u}, {m}) IS NULL",
        )
    ),
    *(
        form.format(m=moment)
        for moment in _WRITTEN
        for form in (
            "array_has(lns, {m})", "ns = {m}", "ns < {m}", "ns IN ({m})", "ns BETWEEN {m} AND {m}",
            "coalesce(ns, ns) = {m}", "us = {m}", "cast(us as timestamp) = {m}",
        )
    ),
)  # fmt: skip
MOMENTS = (
    *MOMENT_TESTS,
    *(
        form.format(u=unit, m=moment)
        for unit in _UNITS for moment in _WRITTEN
        for form in (
            "coalesce({u}, {m})", "nullif({u}, {m})", "nullif({m}, {u})", "greatest({u}, {m})",
            "least({u}, {m})", "array_union(l{u}, make_array({m}))",
            "array_except(l{u}, make_array({m}))", "make_array({m}, {u})",
            "coalesce(CASE WHEN i > 3 THEN {u} ELSE {m} END, {u})",
        )
    ),
    *(
        form.format(m=moment)
        for moment in _WRITTEN
        for form in (
            "array_position(lns, {m})", "array_append(lns, {m})", "array_remove(lns, {m})",
            "concat(t, {m})", "date_part('nanosecond', {m}) + i",
        )
    ),
    "cast(i as timestamp)", "coalesce(cast(i as timestamp), ns)",
    "coalesce(cast(i as timestamp(9)), ns)", "coalesce(cast(i as timestamp(6)), ns)",
    "coalesce(cast(cast(i as int) as timestamp), ns)", "coalesce(try_cast(i as timestamp), ns)",
    "cast(ns as timestamp)", "coalesce(cast(ns as timestamp), ns)",
    "coalesce(cast(t as timestamp), ns)", "concat(t, cast(cast(ns as time) as string))",
    "concat(t, arrow_typeof(time '10:00:00'))", "coalesce(ns - timestamp '2001-09-09', ns - ns)",
)  # fmt: skip
NESTED = (
    "ls[1]", "ls[-1]", "ls[1].n", "ls[1].a", "ls[1] IS NULL", "array_slice(ls, 1, 1)",
    "array_reverse(ls)", "array_concat(ls, ls)", "array_pop_back(ls)", "array_element(ls, 2)",
    "lu[1]", "lsu[1]", "coalesce(sj, sj)",
)  # fmt: skip
LOOSE = {"cot(f32)"}  # the last bits of a tangent


def _nested() -> pa.Table:
    """Lists and structs that hold extension types."""
    documents = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None, "[1]", "2"]))
    uuids = pa.array([bytes([k]) * 16 for k in range(4)], pa.binary(16))
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), uuids)
    structs = pa.StructArray.from_arrays([documents, pa.array([1, 2, 3, 4])], ["a", "n"])
    offsets = pa.array([0, 2, 2, 4], pa.int32())
    return pa.table({
        "ls": pa.ListArray.from_arrays(offsets, structs),
        "lu": pa.ListArray.from_arrays(offsets, uuids),
        "lsu": pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([uuids], ["u"])),
        "sj": structs.slice(0, 3),
    })  # fmt: skip


def _written(table: pa.Table, path: str) -> tuple[Any, Any]:
    theirs = require_pylance().write_dataset(table, path, max_rows_per_file=100)
    return lance_nb.dataset(path), theirs


@pytest.mark.parametrize(
    ("table", "expressions"),
    [
        pytest.param(_LISTS, LISTS, id="lists"),
        pytest.param(pa.table({"j": pa.array(_DOCUMENTS, pa.json_())}), JSON, id="json"),
        pytest.param(filter_table(), VALUES, id="values"),
        pytest.param(_nested(), NESTED, id="nested"),
        pytest.param(_SPOKEN, PATTERNS, id="patterns"),
        pytest.param(_LISTS, COUNTED, id="counted lists"),
        pytest.param(_ZONED, ZONED, id="zones"),
        pytest.param(_MOMENTS, MOMENTS, id="moments"),
    ],
)
def test_functions_give_the_values_of_pylance(
    table: pa.Table, expressions: tuple[str, ...], tmp_path: Any
) -> None:
    ours, theirs = _written(table, str(tmp_path / "data"))
    different = []
    for text in expressions:
        found, expected = (one.to_table(columns={"v": text})["v"] for one in (ours, theirs))
        if found.type != expected.type or (
            text not in LOOSE
            and list(map(repr, found.to_pylist())) != list(map(repr, expected.to_pylist()))
        ):
            different.append((text, found.type, expected.type))
    assert not different


def test_filters_by_functions_choose_the_rows_of_pylance(tmp_path: Any) -> None:
    ours, theirs = _written(filter_table(), str(tmp_path / "data"))
    for condition in (
        "array_length(array_distinct(l)) > 1", "array_has(array_append(l, i8), 7)",
        "get_field(st, 'x') = 1", "contains_tokens(s, 'abc')", "to_char(ts, '%Y') = '2021'",
        "date_bin(interval '1 day', ts) = timestamp '2021-01-01'", "gcd(i8, 6) = 2",
        "sha256(s) = sha256(t)", "d - date '2021-01-01' > 0", "array_sort(l) = [1, 1, 7]",
    ):  # fmt: skip
        found, expected = (one.to_table(["id"], filter=condition)["id"] for one in (ours, theirs))
        assert found.to_pylist() == expected.to_pylist(), condition
        assert len(found), condition


def test_filters_by_moments_choose_the_rows_of_pylance_with_and_without_indices(
    tmp_path: Any,
) -> None:
    ours, theirs = _written(_MOMENTS, str(tmp_path / "data"))
    differences = []
    for step in ("no index", "with indices"):
        for condition in MOMENT_TESTS:
            rows = (dataset.to_table(["i"], filter=condition)["i"] for dataset in (ours, theirs))
            if len(set(map(repr, (row.to_pylist() for row in rows)))) > 1:
                differences.append((step, condition))
        theirs.create_scalar_index("ns", "BTREE")
        theirs.create_scalar_index("lns", "LABEL_LIST")
        ours = lance_nb.dataset(ours.uri)
    assert not differences


def test_a_moment_beyond_nanoseconds_keeps_its_microseconds_where_pylance_refuses_it(
    tmp_path: Any,
) -> None:
    ours, theirs = _written(_MOMENTS, str(tmp_path / "data"))
    text = "coalesce(us, timestamp '9999-12-31 23:59:59.999999')"
    with pytest.raises(ValueError, match="Overflow"):
        theirs.to_table(columns={"v": text})
    values = ours.to_table(columns={"v": text})["v"]
    assert values.type == pa.timestamp("us")
    assert str(values[-1]) == "9999-12-31 23:59:59.999999"
    with pytest.raises(PredicateError, match="out of the range"):
        ours.to_table(columns={"v": "coalesce(ns, cast('9999-12-31' as timestamp(9)))"})


def test_intervals_are_lengths_of_time_where_pylance_refuses_them(tmp_path: Any) -> None:
    ours, theirs = _written(filter_table(), str(tmp_path / "data"))
    later = "ts > timestamp '2021-01-01' + interval '12 hours'"
    with pytest.raises(ValueError, match="INTERVAL"):
        theirs.to_table(["id"], filter=later)
    plain = theirs.to_table(["id"], filter="ts > timestamp '2021-01-01 12:00:00'")
    assert ours.to_table(["id"], filter=later).equals(plain)


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        ("s SIMILAR TO 'a%'", "regexp_like"),
        ("s = ANY(['a'])", "ANY.*cannot be used.*use IN .*array_has"),
        ("s = ALL(['a'])", "ALL is not supported; use IN .*array_has"),
        ("l[1:2] = [1]", "array_slice"),
        ("ts + interval '1 month' > ts", "week"),
        ("frobnicate(s)", "no function named 'frobnicate'"),
        ("json_exists(s, '$.a')", "JSON column"),
        ("array_repeat(i, 2000000) IS NULL", "at most"),
        ("levenshtein(s, t) > 1", "literal"),
    ],
)
def test_what_is_refused_is_named_with_what_to_use(
    condition: str, advice: str, tmp_path: Any
) -> None:
    ours, _ = _written(filter_table(), str(tmp_path / "data"))
    with pytest.raises(PredicateError, match=advice):
        ours.count_rows(condition)


_NAN = float("nan")
_ORDERED = pa.table({
    "id": range(6),
    "a": [[1.0, _NAN], [0.0], [-0.0, 1.0], [None], [_NAN], None],
    "b": [[1.0, 2.0], [-0.0], [0.0], [1.0], [-_NAN], [1.0]],
    "sa": [["a", "b"], ["é"], [], ["a", None], None, [""]],
    "sb": [["a"], ["e"], [""], ["a", "a"], [], [None]],
    "st": [{"x": 1, "y": {"z": [1]}}, {"x": None, "y": {"z": [2]}}, None, {"x": 1, "y": None},
           {"x": 1, "y": {"z": None}}, {"x": 2, "y": {"z": []}}],
    "su": [{"x": 1, "y": {"z": [1, 1]}}, {"x": 0, "y": {"z": [2]}}, {"x": 1, "y": {"z": [2]}},
           {"x": 1, "y": {"z": [1]}}, {"x": 1, "y": None}, {"x": 2, "y": {"z": []}}],
    "fa": pa.array([[1, 2], [3, 4], None, [0, None], [5, 5], [1, 2]], pa.list_(pa.int32(), 2)),
    "large": pa.array([[1], [2], None, [], [3], [1, 2]], pa.large_list(pa.int64())),
})  # fmt: skip


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "=", "<>"])
def test_lists_and_structs_are_ordered_as_in_pylance(sign: str, tmp_path: Any) -> None:
    ours, theirs = _written(_ORDERED, str(tmp_path / "data"))
    pairs = ("a b", "sa sb", "st su", "a a", "fa large", "a [0.0]", "fa [1,2]", "large [2]",
             "sa ['b']", "a NULL", "a fa")  # fmt: skip
    for left, right in (pair.split() for pair in pairs):
        text = f"{left} {sign} {right}"
        found, expected = (
            one.to_table(columns=["id"], filter=text)["id"].to_pylist() for one in (ours, theirs)
        )
        assert found == expected, text


RESERVED = ("and", "or", "case", "when", "then", "else", "like", "ilike", "between", "as", "from",
            "select", "distinct", "notnull", "for", "not", "null", "true")  # fmt: skip


@pytest.mark.parametrize("word", RESERVED)
def test_columns_may_be_named_as_words_of_expressions(word: str, tmp_path: Any) -> None:
    ours, theirs = _written(pa.table({word: [1, 2, 3], "a": [3, 2, 1]}), str(tmp_path / "data"))
    texts = [f"`{word}` = 1"]
    if word not in {"null", "true"}:
        texts += [f"{word} = 1", f"NOT {word} = 1", f"a = 1 OR {word} > a", f"({word}) > 1"]
        texts += [f"{word.upper()} <> 2"]
    for text in texts:
        expected = 2 if word == "select" and text[0] == "(" else theirs.count_rows(text)
        assert ours.count_rows(text) == expected, text
    for text in (word, f"`{word}`"):
        found, wanted = (one.to_table(columns={"x": text}) for one in (ours, theirs))
        assert found.equals(wanted), text
    if word not in {"null", "true", "not", "distinct"}:
        found, wanted = (one.to_table(columns={"x": f"{word} + a"}) for one in (ours, theirs))
        assert found.equals(wanted)


def test_a_column_is_found_by_its_whole_name_first(tmp_path: Any) -> None:
    table = pa.table({"a + b": [9, 9], "a": [1, 2], "b": [3, 4], "x y": [1, 2]})
    ours, theirs = _written(table, str(tmp_path / "data"))
    for text in ("a + b", "a+b", "`a + b`", "x y"):
        found, wanted = (one.to_table(columns={"x": text})["x"] for one in (ours, theirs))
        assert found.to_pylist() == wanted.to_pylist(), text

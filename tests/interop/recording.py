"""Ask pylance many expressions, and keep its answers for unit tests that run without it.

``python -m tests.interop.recording --write`` writes ``tests/golden/answers`` anew, or the groups
that are named behind it. An answer is kept where this reader gives the same one; where the two
differ on purpose, a test in ``test_filter``, ``test_functions`` or ``test_number_functions`` says
so.
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import product

import pyarrow as pa

from tests.interop import test_filter, test_functions, test_number_functions
from tests.interop.test_random_predicates import DOCUMENTS
from tests.support.filter_rows import filter_table
from tests.support.random_predicates import TOPICS, random_expression, random_predicate
from tests.support.recorded_answers import (
    REFUSED,
    Question,
    answer_here,
    shown_rows,
    shown_values,
    without_type,
    write_group,
)
from tests.support.requirements import require_pylance

_NUM_CONDITIONS = 150
_NUM_EXPRESSIONS = 120
_REFUSED_STEP = 6  # of what pylance refuses, every so many-th is kept
_STAMP = datetime(2021, 3, 4, 5, 6, 7, 891234)  # noqa: DTZ001
_STAMPS = [_STAMP, datetime(1969, 12, 31, 23, 59, 59, 999999), None, datetime(1970, 1, 2)]  # noqa: DTZ001


def kinds_table() -> pa.Table:
    """Build a column of each type that a dataset can hold and an expression can read."""
    whole, times = [5, 100, None, 0], [one and one.time() for one in _STAMPS]
    columns = {f"i{bits}": pa.array(whole, f"int{bits}") for bits in (8, 16, 32, 64)}
    columns |= {f"u{bits}": pa.array(whole, f"uint{bits}") for bits in (8, 16, 32, 64)}
    columns |= {f"f{bits}": pa.array([5.0, 2.5, None, 0.0], f"float{bits}") for bits in (32, 64)}
    columns["f16"] = pa.array([5.0, 2.5, None, 0.0], pa.float32()).cast(pa.float16())
    columns["b"] = pa.array([True, False, None, True])
    columns["s"] = pa.array(["5", "2021-03-04", None, "x"])
    columns["ls"] = pa.array(["5", "05:06:07", None, ""], pa.large_string())
    columns["bin"] = pa.array([b"5", b"\xff", None, b""])
    columns["lbin"] = pa.array([b"5", b"x", None, b"\x00"], pa.large_binary())
    columns["fbin"] = pa.array([b"55", b"xx", None, b"\x00\x00"], pa.binary(2))
    columns["d"] = pa.array([date(2021, 3, 4), date(1969, 12, 31), None, date(1970, 1, 6)])
    columns["d64"] = columns["d"].cast(pa.date64())
    for unit in ("s", "ms", "us", "ns"):
        columns[f"t_{unit}"] = pa.array(_STAMPS, pa.timestamp("us")).cast(pa.timestamp(unit), False)
    zoned = [one and one.replace(tzinfo=UTC) for one in _STAMPS]
    columns["tz"] = pa.array(zoned, pa.timestamp("us", "UTC"))
    columns["tzb"] = columns["tz"].cast(pa.timestamp("ms", "Europe/Berlin"), False)
    columns["day_s"] = pa.array([time(5, 6, 7), time(0), None, time(23, 59)], pa.time32("s"))
    columns["day_us"] = pa.array(times, pa.time64("us"))
    waits = [timedelta(seconds=5), timedelta(days=-1), None, timedelta(0)]
    columns["w_s"], columns["w_us"] = (pa.array(waits, pa.duration(unit)) for unit in ("s", "us"))
    amounts = [Decimal("5.00"), Decimal("-2.50"), None, Decimal("0.01")]
    columns["dec"] = pa.array(amounts, pa.decimal128(10, 2))
    columns["dec0"] = pa.array([5, 12, None, 0], pa.decimal128(20, 0))
    columns["dec256"] = pa.array(amounts, pa.decimal256(40, 3))
    columns["k"] = pa.array(["5", "b", None, "5"]).dictionary_encode()
    columns["l"] = pa.array([[1, 2], [], None, [None]], pa.list_(pa.int64()))
    columns["l32"] = pa.array([[1, 2], [5], None, []], pa.list_(pa.int32()))
    columns["lt"] = pa.array([["1"], ["x", None], None, []], pa.list_(pa.string()))
    columns["fl"] = pa.array([[1.0, 2.0], [0.5, -1.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2))
    point = pa.struct([("x", pa.int64()), ("s", pa.string())])
    columns["st"] = pa.array([{"x": 1, "s": "a"}, {"x": None, "s": ""}, None, {"x": 5}], point)
    return pa.table(columns)


_ARROW_TYPES = (
    "Boolean", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float16",
    "Float32", "Float64", "Utf8", "LargeUtf8", "Binary", "LargeBinary", "Date32", "Date64",
    "Timestamp(Second, None)", "Timestamp(Millisecond, None)", "Timestamp(Microsecond, None)",
    "Timestamp(Nanosecond, None)", 'Timestamp(Microsecond, Some("UTC"))', "Time32(Second)",
    'Timestamp(ms, "+02:00")', "Time32(Millisecond)", "Time64(Microsecond)", "Time64(Nanosecond)",
    "Duration(Second)", "Duration(Millisecond)", "Duration(Microsecond)", "Duration(Nanosecond)",
    "Decimal128(10, 2)", "Decimal128(38, 0)", "Decimal256(40, 3)", "Decimal32(6, 1)",
    "Dictionary(Int32, Utf8)", "List(Int32)", "List(Utf8)", "LargeList(Int64)",
    "FixedSizeList(2, Float64)", 'Struct("x": Int32, "s": Utf8)', "FixedSizeBinary(2)", "Null",
    "Utf8View", "Int", "Timestamp(Second", "List()", "Decimal128(39, 0)", "FixedSizeList(0, Int8)",
)  # fmt: skip
_SQL_TYPES = (
    "tinyint", "smallint", "int", "integer", "bigint", "int unsigned", "tinyint unsigned",
    "smallint unsigned", "bigint unsigned", "float", "real", "double", "string", "varchar", "text",
    "char", "date", "timestamp", "timestamp(0)", "timestamp(3)", "timestamp(6)", "timestamp(9)",
    "boolean", "decimal", "decimal(12)", "decimal(12,3)", "numeric(5, 1)", "binary", "bytea",
    "time",
)  # fmt: skip
_FIELDS = (
    "year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond",
    "microsecond", "nanosecond", "dow", "isodow", "doy", "epoch", "isoyear", "century",
)  # fmt: skip
_LENGTHS = (
    "year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond",
    "microsecond", "decade",
)  # fmt: skip
_FORMATS = (
    "%Y-%m-%d", "%H:%M:%S", "%j", "%a %A", "%b %B", "%y", "%e", "%k", "%I %p", "%u %w", "%U %W",
    "%f", "%.3f", "%.6f", "%.9f", "%3f", "%s", "%D", "%F", "%T", "%R", "%z", "%:z", "%%", "%G-%V",
    "%C", "%n%t", "%h", "%l", "%P", "%c", "%x", "%X", "%r", "%+", "%v", "%-d", "%Q", "%",
)  # fmt: skip


def _of_kinds() -> Iterator[tuple[str, str]]:
    names = kinds_table().column_names
    for (at, left), (other, right) in product(enumerate(names), enumerate(names)):
        if at <= other:
            yield "value", f"{left} = {right}"
            yield "value", f"coalesce({left}, {right})"
        else:
            yield "value", f"{left} < {right}"
    numbers = [one for one in names if (one[0] in "iuf" and one[1:].isdigit()) or "dec" in one]
    for left, right, sign in product(numbers, numbers, "+-*/%"):
        yield "value", f"{left} {sign} {right}"
    plain = [name for name in names if name not in numbers]
    for left, right in product(plain, plain):
        yield "value", f"{left} + {right}"
        yield "value", f"{left} - {right}"
    for name, type_ in product(names, _ARROW_TYPES):
        yield "value", f"arrow_cast({name}, '{type_}')"
        yield "value", f"arrow_try_cast({name}, '{type_}')"
    for name, type_ in product(names, _SQL_TYPES):
        yield "value", f"CAST({name} AS {type_})"
    for name in names:
        yield from _of_one_column(name)


def _of_one_column(name: str) -> Iterator[tuple[str, str]]:
    for literal in (
        "5", "5.5", "-1", "300", "1e30", "'5'", "'x'", "''", "true", "date '1970-01-06'",
        "timestamp '1970-01-06 00:00:00'", "'2021-03-04'", "x'35'", "NULL", "5000000000",
        "18446744073709551615", "0.1", "'2021-03-04T05:06:07.891234'", "'05:06:07'", "[1, 2]",
    ):  # fmt: skip
        for sign in ("=", "<"):
            yield "value", f"{name} {sign} {literal}"
            yield "rows", f"{literal} {sign} {name}"
        yield "rows", f"{name} IN ({literal})"
        yield "rows", f"{name} NOT IN ({literal}, {literal})"
        yield "rows", f"{name} BETWEEN {literal} AND {literal}"
        yield "value", f"nullif({name}, {literal})"
        yield "value", f"{name} + {literal}"
    for function in ("-", "abs", "NOT ", "length", "octet_length", "arrow_typeof", "to_unixtime",
                     "lower", "md5", "isnan", "array_length", "to_date", "to_timestamp",
                     "to_timestamp_millis", "to_timestamp_nanos", "to_timestamp_seconds",
                     "to_timestamp_micros", "to_hex", "ascii", "cardinality", "flatten", "ceil",
                     "floor", "round", "sha224", "sha384", "bit_length",
                     "from_unixtime"):  # fmt: skip
        yield "value", f"{function}({name})"
    for field in _FIELDS:
        yield "value", f"date_part('{field}', {name})"
    for length in _LENGTHS:
        yield "value", f"date_trunc('{length}', {name})"
    if name in ("t_us", "t_ns", "tz", "tzb", "d", "t_s"):
        for format_ in _FORMATS:
            yield "value", f"to_char({name}, '{format_}')"
        for width in ("1 day", "15 minutes", "7 days", "90 seconds", "1 hour 30 minutes", "1 week"):
            yield "value", f"date_bin(interval '{width}', {name})"
            yield "value", f"date_bin(interval '{width}', {name}, timestamp '2021-01-01 00:01:00')"


def _of_values() -> Iterator[tuple[str, str]]:
    stored = [one for one in test_filter.PREDICATES if not one.startswith("_row")]
    for condition in (*stored, *test_filter.REFUSED):
        yield "rows", condition
        yield "rows", f"NOT ({condition})"
        yield "value", condition
    for text in test_functions.VALUES:
        yield "value", text
    for seed in range(1000, 1000 + _NUM_CONDITIONS):
        yield "rows", random_predicate(seed)
    for topic, seed in product(TOPICS, range(1000, 1000 + _NUM_EXPRESSIONS)):
        if topic != "json":
            yield "value", random_expression(topic, seed)
    yield from (("value", text) for text in _of_texts())


def _of_texts() -> Iterator[str]:
    for name in ("s", "t"):
        for number in (-3, -1, 0, 1, 2, 5, 99):
            for function in ("left", "right", "repeat", "substr"):
                yield f"{function}({name}, {number})"
            for function in ("lpad", "rpad"):
                yield f"{function}({name}, {number})"
                yield f"{function}({name}, {number}, 'xy')"
                yield f"{function}({name}, {number}, '')"
            yield f"split_part({name}, 'a', {number})"
            yield f"substr_index({name}, 'b', {number})"
            for length in (-1, 0, 1, 3):
                yield f"substring({name}, {number}, {length})"
        for part in ("a", "", "ï", "ab", "データ", "%"):
            for function in ("strpos", "instr", "starts_with", "ends_with", "contains", "btrim",
                             "ltrim", "rtrim", "trim", "find_in_set",
                             "contains_tokens"):  # fmt: skip
                yield f"{function}({name}, '{part}')"
            yield f"position('{part}' IN {name})"
            yield f"replace({name}, '{part}', 'z')"
            yield f"translate({name}, '{part}', 'é')"
            yield f"translate({name}, 'ba', '{part}')"
            yield f"concat_ws('{part}', {name}, s, NULL, t)"
            yield f"levenshtein({name}, '{part}')"
        for function in ("length", "character_length", "char_length", "octet_length", "bit_length",
                         "lower", "upper", "reverse", "initcap", "ascii", "md5", "sha224", "sha256",
                         "sha384", "sha512", "btrim", "trim", "ltrim", "rtrim"):  # fmt: skip
            yield f"{function}({name})"
        for flags in ("", "i", "s", "m", "x", "g", "U", "is"):
            yield f"regexp_like({name}, 'A.', '{flags}')"
            yield f"regexp_match({name}, '(a)(.)', '{flags}')"
            yield f"regexp_replace({name}, 'A|b', '<$0>', '{flags}')"
            yield f"regexp_count({name}, 'A', 1, '{flags}')"
        for start in (-1, 0, 1, 2, 3):
            yield f"regexp_count({name}, 'a', {start})"
            yield f"regexp_instr({name}, '[ab]', {start})"
        for encoding in ("hex", "base64", "rot13"):
            yield f"encode({name}, '{encoding}')"
            yield f"decode(encode({name}, '{encoding}'), '{encoding}')"
        for method in (
            "md5",
            "sha224",
            "sha256",
            "sha384",
            "sha512",
            "blake2s",
            "blake2b",
            "blake3",
        ):
            yield f"digest({name}, '{method}')"
    yield from ("chr(u8)", "chr(0)", "chr(8364)", "to_hex(i)", "to_hex(u64)", "concat(s, i, b, f)",
                "s || i", "repeat(s, i8)", "left(s, i8)", "concat('a', NULL, s)",
                "concat(NULL)")  # fmt: skip


_TIMES = (
    "make_date(2021, 2, 29)", "make_date(2020, 2, u8)", "make_date(0, 1, 1)", "make_date(i, 1, 1)",
    "to_date(s)", "to_timestamp(s)", "to_timestamp(i)", "to_timestamp(f)", "from_unixtime(i32)",
    "to_timestamp('2021-01-02 03:04', '%Y-%m-%d %H:%M')", "to_date('2021-01-02', '%Y-%m-%d')",
    "extract(year FROM ts)", "extract(dow FROM d)", "ts - ts", "d - ts", "ts - d",
    "ts + interval '1 day'", "ts - interval '90 minutes'", "d + interval '1 day'",
    "CASE WHEN i > 1 THEN 'x' WHEN b THEN s END", "CASE i WHEN 1 THEN f ELSE i END",
    "CASE WHEN b THEN 1 ELSE 2.5 END", "nvl2(b, i, f)", "nvl(s, t)", "ifnull(i, 3)",
    "nullif(i8, u8)", "greatest(i, f, u8)", "least(i8, NULL, 3)", "greatest(s, t)", "least(ts, d)",
    "coalesce(NULL, i8, 3)", "pi()", "power(i8, 2)", "pow(f, 0.5)", "mod(i, 3)", "i & 6", "i | 1",
    "i # 3", "i ^ 2", "i << 2", "i >> 1", "~i", "i8 & u8", "get_field(st, 'x')",
    "named_struct('a', i, 'b', s)", "struct(i, s)", "row(i)", "st['y']['z']", "vector[2]",
)  # fmt: skip


def _of_lists() -> Iterator[tuple[str, str]]:
    for text in test_functions.LISTS:
        yield "value", text
    ends = ("-9", "-3", "-1", "0", "1", "2", "5", "NULL", "k")
    for low, high in product(ends, ends):
        yield "value", f"array_slice(l, {low}, {high})"
        for step in ("1", "2", "3"):
            yield "value", f"array_slice(l, {low}, {high}, {step})"
    for number in ends:
        for name in ("l", "m", "ls", "ll", "f"):
            yield "value", f"{name}[{number}]"
            yield "value", f"list_extract({name}, {number})"
            yield "value", f"array_resize({name}, {number})"
        yield "value", f"array_repeat(s, {number})"
        yield "value", f"array_repeat(l, {number})"
        for function in ("array_has", "array_remove", "list_remove_all", "array_position",
                         "array_positions", "list_append"):  # fmt: skip
            yield "value", f"{function}(l, {number})"
        for most in ("-1", "0", "1", "2", "k"):
            yield "value", f"array_remove_n(l, {number}, {most})"
            yield "value", f"array_replace_n(l, {number}, 9, {most})"
            yield "value", f"range({number}, {most})"
            yield "value", f"generate_series({number}, {most})"
            yield "value", f"generate_series({number}, 9, {most})"
        yield "value", f"array_length(ll, {number})"
    for order, nulls in product(
        ("ASC", "DESC", "desc"), ("NULLS FIRST", "NULLS LAST", "nulls last")
    ):
        for name in ("l", "ls", "m"):
            yield "value", f"array_sort({name}, '{order}', '{nulls}')"
            yield "value", f"list_sort({name}, '{order}')"
    for name in ("l", "m", "ls", "ll", "f", "s"):
        for function in (
            "array_length", "list_length", "cardinality", "empty", "list_empty", "array_empty",
            "array_max", "array_min", "list_max", "list_min", "array_reverse", "list_reverse",
            "array_pop_front", "list_pop_front", "array_pop_back", "list_pop_back",
            "array_any_value", "list_any_value", "flatten", "array_ndims", "list_ndims",
            "array_dims", "list_dims", "array_distinct", "list_distinct", "array_sort",
            "arrow_typeof", "make_array", "make_list",
        ):  # fmt: skip
            yield "value", f"{function}({name})"
        for function in (
            "array_has_any", "array_has_all", "list_has_any", "list_has_all", "arrays_overlap",
            "array_concat", "array_cat", "list_concat", "array_except", "list_except",
            "array_intersect", "list_intersect", "array_union", "list_union", "array_distance",
            "list_distance", "array_append", "array_push_back", "list_push_back", "array_has",
            "list_has", "array_contains",
        ):  # fmt: skip
            yield "value", f"{function}({name}, l)"
            yield "value", f"{function}({name}, {name})"
            yield "value", f"{function}({name}, [])"
        for function in ("array_to_string", "array_join", "list_to_string", "list_join"):
            yield "value", f"{function}({name}, ',')"
            yield "value", f"{function}({name}, '', 'NULL')"
            yield "value", f"{function}({name}, s, '?')"
        for function in ("array_prepend", "array_push_front", "list_prepend", "list_push_front"):
            yield "value", f"{function}(NULL, {name})"
            yield "value", f"{function}(1, {name})"
            yield "value", f"{function}('q', {name})"
    for delimiter, null in product(("','", "''", "'b'", "NULL"), ("", ", 'b'", ", ''", ", NULL")):
        yield "value", f"string_to_array(s, {delimiter}{null})"
        yield "value", f"string_to_list(s, {delimiter}{null})"
    for one in ("make_array()", "make_array(1, 2.5)", "make_array(NULL, 'a')", "[k, 2]",
                "[s, NULL]",
                "list_resize(l, 4, 7)", "list_position(l, 1)", "array_indexof(l, 1)",
                "list_indexof(l, NULL)", "list_positions(l, NULL)", "list_replace(l, 1, NULL)",
                "list_replace_n(l, NULL, 5, 1)", "list_replace_all(l, NULL, 0)",
                "list_repeat(1, 3)",
                "list_dims(ll)", "list_remove_n(l, 1, 1)", "list_remove(l, NULL)",
                "array_concat(ll, ll)", "array_concat(l, m, l)", "l = m", "l < m", "l <> [1, 2]",
                "array_has(ll, [1])", "array_append(ll, l)", "flatten(flatten(ll))"):  # fmt: skip
        yield "value", one


def _of_documents() -> Iterator[tuple[str, str]]:
    for text in test_functions.JSON:
        yield "value", text
    for seed in range(1000, 1000 + 2 * _NUM_EXPRESSIONS):
        yield "value", random_expression("json", seed)
    paths = ("$", "$.a", "$.c", "$.d.e", "$.c[0]", "$.c[1]", "$.c[-1]", "$.c[last]", "$[*]", "$.*",
             '$["a"]', "$.c[0,1]", "a", "", "$.", "$[", "$.tags", "$..a")  # fmt: skip
    for path in paths:
        for function in ("json_extract", "json_exists", "json_array_length"):
            yield "value", f"{function}(j, '{path}')"
        for value in ("'z'", "1", "'p'", "true", "1.0", "NULL", "'5'"):
            yield "value", f"json_array_contains(j, '{path}', {value})"
    for key in ("a", "b", "c", "d", "u", "n", "0", "tags"):
        for kind in ("string", "int", "float", "bool"):
            yield "value", f"json_get_{kind}(j, '{key}')"
            yield "rows", f"json_get_{kind}(j, '{key}') IS NOT NULL"
        yield "value", f"json_get(j, '{key}') IS NULL"


def _of_numbers() -> Iterator[tuple[str, str]]:
    columns = ("f", "g", "h", "i8", "i32", "i64", "u8", "u64", "d")
    for name, column in product(
        (*test_number_functions.ONE, "ceil", "floor", "factorial"), columns
    ):
        yield "value", f"{name}({column})"
    for name, operands in product(
        (*test_number_functions.TWO, "pow", "mod"), test_number_functions.PAIRS
    ):
        yield "value", f"{name}({operands})"
    for text in test_number_functions.ARITHMETIC:
        yield "value", text
        yield "rows", f"({text}) > 1"
    signs = test_number_functions.SIGNS
    for column, sign, other in product("fgh", signs, ("0", "-0.0", "0.1", "f2", "g2", "i64", "h")):
        yield "rows", f"{column} {sign} {other}"
    for places in (-2, -1, 0, 1, 2, 5, 20):
        for column in ("f", "g", "i64", "d"):
            yield "value", f"round({column}, {places})"
            yield "value", f"trunc({column}, {places})"
    for exponent in (-2, -1, 0, 1, 2, 3, 10, 63, 64):
        for column in ("f", "i8", "i64", "u8", "d"):
            yield "value", f"power({column}, {exponent})"
    for left, right in product(("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")):
        for sign in ("=", "<", ">=", "+", "-", "*", "/", "%"):
            yield "value", f"{left} {sign} {right}"


def all_groups() -> dict[str, tuple[pa.Table, list[tuple[str, str]]]]:
    """Return each group's table and questions (kind and text), without repeats.

    Left out: a range of items in a path of JSON (``$.c[0 to 1]``), on which pylance 14.0.2 hangs.
    """
    documents = pa.array([*test_functions._DOCUMENTS, *DOCUMENTS], pa.json_())
    found = {
        "kinds": (kinds_table(), _of_kinds()),
        "values": (filter_table(60), iter([*_of_values(), *(("value", one) for one in _TIMES)])),
        "lists": (test_functions._LISTS, _of_lists()),
        "documents": (pa.table({"j": documents}), _of_documents()),
        "numbers": (test_number_functions._table(), _of_numbers()),
    }
    return {name: (table, list(dict.fromkeys(ours))) for name, (table, ours) in found.items()}


class Pylance:
    """A table as pylance stores it, to be asked."""

    def __init__(self, table: pa.Table) -> None:
        self._folder = tempfile.TemporaryDirectory()
        numbered = table.append_column("row", pa.array(range(table.num_rows)))
        self._dataset = require_pylance().write_dataset(
            numbered, self._folder.name + "/data", data_storage_version="2.2"
        )
        self._num_rows = table.num_rows

    def answer(self, kind: str, text: str) -> str:
        """Answer as ``recorded_answers.answer_here`` does."""
        try:
            if kind != "rows":
                answer = shown_values(self._dataset.to_table(columns={"v": text})["v"])
                return answer if kind == "value" else without_type(answer)
            rows = self._dataset.to_table(columns=["row"], filter=text)["row"].to_pylist()
        except (ValueError, OSError, NotImplementedError, pa.ArrowException, TypeError):
            return REFUSED
        except BaseException as exc:
            if type(exc).__name__ != "PanicException":
                raise
            return REFUSED
        chosen = set(rows)
        return shown_rows([row in chosen for row in range(self._num_rows)])

    def close(self) -> None:
        """Remove the stored table."""
        self._folder.cleanup()


def _agrees(table: pa.Table, question: Question) -> bool:
    try:
        return answer_here(table, question) == question.answer
    except Exception as exc:
        exc.add_note(f"asked: {question.text}")
        raise


def record(only: list[str]) -> Iterator[str]:
    """Ask every question and write the answers; yield a line for each group and difference."""
    for group, (table, wanted) in all_groups().items():
        if only and group not in only:
            continue
        pylance = Pylance(table)
        kept, others = [], []
        for kind, text in wanted:
            question = Question(text, kind, pylance.answer(kind, text))
            if question.answer == REFUSED and zlib.crc32(text.encode()) % _REFUSED_STEP:
                continue
            untyped = Question(text, "untyped", without_type(question.answer))
            same = [one for one in (question, untyped) if _agrees(table, one)]
            if same:
                kept.append(same[0])
            else:
                others.append(question)
        pylance.close()
        write_group(group, table, kept)
        refused = sum(one.answer == REFUSED for one in kept)
        yield f"{group}: {len(kept)} kept ({refused} refused), {len(others)} left out"
        yield from (f"  {one.kind} {one.text}: {one.answer[:100]}" for one in others)


if __name__ == "__main__":
    if "--write" not in sys.argv:
        raise SystemExit(__doc__)
    for line in record(sys.argv[sys.argv.index("--write") + 1 :]):
        sys.stdout.write(f"{line}\n")

"""Random SQL statements over a table of every type, each with the way in which its rows compare.

A seed always gives the same statement: alternatives of a grammar, whose names stand in brackets.
Expressions are typed, so that few are refused. Rows of statements without a total order are
compared as a set.

Left out, because pylance 14.0.2 answers them in another way or not at all: names of FILTER, which
show its plan; ``min`` and ``max`` of floats in groups, which may be all NaN, and over moving
frames, which keep a value that has left the frame; IS DISTINCT FROM without brackets beside AND;
-0.0 beside 0.0 outside of WHERE.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

TEXTS = ("ab", "Äö€x", "", " Ab ", "12", "-3", "3.5", "a_b%c", "a\\b", "日本語", "B", "ab ")
NULL_SHARE = 0.15
SECONDS = (0, -1, 1_700_000_000, 1_709_164_800, 951_782_400, -86_400, 5)


def statement_table(num_rows: int = 48, seed: int = 5) -> pa.Table:
    """Build the table: nulls, NaN of both signs, -0.0, ends of ranges, moments in every unit."""
    rng = np.random.default_rng(seed)

    def some(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
        picked = [values[k] for k in rng.integers(0, len(values), num_rows)]
        lost = rng.random(num_rows) < NULL_SHARE
        return pa.array([None if no else one for one, no in zip(picked, lost, strict=True)], type_)

    def moments(unit: str, zone: str | None = None) -> pa.Array:
        scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        ticks = [second * scale + (scale > 1) * k for k, second in enumerate(SECONDS)]
        return (
            some(ticks, pa.int64())
            .cast(pa.timestamp(unit))
            .cast(pa.int64())
            .cast(pa.timestamp(unit, zone))
        )

    negative_nan = np.copysign(np.nan, -1.0)
    floats = [1.5, -0.0, 0.0, float("nan"), float(negative_nan), float("inf"), -2.25, 7.0, 0.1]
    small = (1, 2, 0, -3, 7, -8, 2, 5)
    points = [{"x": x, "y": y} for x in (1, 2, None) for y in ("p", "q", None)]
    cents = [Decimal(k).scaleb(-2) for k in (150, -225, 0, 314, -1, 9_999_999)]
    days = [date(2024, 2, 29), date(1969, 12, 31), date(2000, 1, 1), date(2023, 12, 31)]
    return pa.table({
        "id": pa.array(np.arange(num_rows)),
        "a": some(small, pa.int32()),
        "b": some((*small, 2**40), pa.int64()),
        "t": some((1, 127, -128, 5, 0), pa.int8()),
        "u": some((1, 2, 0, 7, 2**40), pa.uint64()),
        "u8": some((1, 2, 0, 255), pa.uint8()),
        "u32": some((1, 2, 2**32 - 1), pa.uint32()),
        "f": some(floats, pa.float64()),
        "g": some(floats, pa.float32()),
        "q": some((1.5, -2.25, 0.5, 4.0), pa.float64()),
        "h": some(floats, pa.float16()),
        "s": some(TEXTS, pa.string()),
        "ls": some(TEXTS, pa.large_string()),
        "bin": some((b"ab", b"\x00\xff", b""), pa.binary()),
        "flag": some((True, False), pa.bool_()),
        "d": some(days, pa.date32()),
        "ts": moments("s"),
        "tms": moments("ms"),
        "tus": moments("us"),
        "tns": moments("ns"),
        "tz": moments("us", "UTC"),
        "tzb": moments("ns", "Europe/Berlin"),
        "dec": some(cents, pa.decimal128(10, 2)),
        "l": some([[], [1, 2], [None], [3, None], [2], [1, 1, 7]], pa.list_(pa.int64())),
        "st": some(points, pa.struct([("x", pa.int64()), ("y", pa.string())])),
        "du": some((0, -5, 10**9), pa.duration("us")),
        "Mixed Case": some((1, 2, 3), pa.int16()),
    })  # fmt: skip


_GRAMMAR = {
    "integer": """
        <whole>
        (<integer> <plus> <integer>)
        <whole> / <divisor>
        (<whole> + <whole>) % <divisor>
        <whole> / nullif(<whole>, 0)
        abs(<whole>)
        -<signed>
        coalesce(<whole>, <integer>)
        nullif(<whole>, <whole>)
        CASE WHEN <condition> THEN <whole> ELSE <whole> END
        length(<text>)
        strpos(<text>, 'b')
        CAST(<castable> AS <integer type>)
        TRY_CAST(<doubtful> AS <integer type>)
        CAST(date_part('<part>', <time>) AS BIGINT)
        l[<position>]""",
    "whole": 'a;b;t;u8;st.x;"Mixed Case";id;u32;<digit>',
    "digit": "-3;-1;0;1;2;5;9",
    "signed": "a;b;t",
    "divisor": "2;3;-2;7",
    "plus": "+;-;*",
    "castable": "q;dec;flag;a;d - d",
    "doubtful": "s;f;b;ls",
    "integer type": "INT;BIGINT;TINYINT;SMALLINT",
    "part": "year;month;day;hour;dow;doy;quarter;minute;week;second",
    "time": "d;tus;tms;ts;tns",
    "position": "1;2;-1;9;0",
    "number": """
        <float>
        (<fraction> <any sign> <float>)
        (q / <whole>)
        (f % <modulus>)
        <rounding>(<fraction>)
        round(q, <digits>)
        (dec <any sign> <decimal>)
        CAST(<power base> AS <fraction type>)
        TRY_CAST(s AS <fraction type>)
        CASE WHEN <condition> THEN <fraction> ELSE 2.5 END
        coalesce(<fraction>, <integer>)
        power(<power base>, 2)""",
    "float": "f;g;q;dec;h",
    "fraction": "f;q",
    "any sign": "+;-;*;/",
    "modulus": "2;1.5",
    "rounding": "floor;ceil;round;abs;sqrt",
    "digits": "0;1",
    "decimal": "2;3;dec",
    "fraction type": "DOUBLE;FLOAT;DECIMAL(10, 2)",
    "power base": "a;q",
    "text": """
        <word>
        <text call>(<text>)
        substr(<word>, <place>)
        substr(<word>, <place>, <size>)
        <side>(<word>, <place>)
        (<word> || <word>)
        concat(<word>, <joined value>)
        replace(<word>, 'a', 'zz')
        lpad(<word>, <size>, 'x')
        split_part(<word>, '_', 1)
        regexp_replace(s, '[a-b]', 'X')
        CAST(<printed> AS VARCHAR)
        CASE <signed> WHEN 1 THEN 'one' WHEN 2 THEN s END
        coalesce(<word>, 'none')""",
    "word": "s;s;ls;'x'",
    "text call": "upper;lower;trim;ltrim;reverse;rtrim",
    "place": "-2;-1;0;1;2;3",
    "size": "0;1;2;4",
    "side": "left;right",
    "joined value": "a;s;NULL",
    "printed": "a;q;f;dec;d;flag;tus;tms;u;tzb;tz;ts;tns",
    "moment": """
        <moment column>
        date_trunc('<trunc part>', <moment column>)
        <plain moment> <shift sign> INTERVAL '<interval>'
        CAST(<plain moment> AS TIMESTAMP)""",
    "moment column": "ts;tms;tus;tns;tz;tzb",
    "plain moment": "tms;tus;ts",
    "trunc part": "day;month;year;hour;week",
    "shift sign": "+;-",
    "interval": "1 day;2 hours;30 minutes;1 month;1 year",
    "day": """
        d
        CAST(<plain moment> AS DATE)
        d <shift sign> INTERVAL '<day interval>'""",
    "day interval": "1 day;1 month;1 year;2 days",
    "other": "bin;st;l;du;h;flag;array_length(l);u;d - d;tus - tus;st.y",
    "value": "<integer>;<integer>;<number>;<number>;<text>;<text>;<moment>;<day>;<other>;"
    "<condition>",
    "condition": """
        (<condition> AND <condition>)
        (<condition> OR <condition>)
        NOT <condition>
        (<condition>) IS <not>TRUE
        <integer> <sign> <whole>
        <float> <sign> <float constant>
        <fraction> <sign> <compared>
        <word> <sign> '<compared text>'
        <value column> IS <not>NULL
        <signed> <not>IN (<members>)
        s <not>IN ('ab', <text member>)
        <signed> <not>BETWEEN <low> AND <high>
        s <not><like> '<pattern>'
        s <search> '<expression>'
        (a IS <not>DISTINCT FROM b)
        d <sign> DATE '<date>'
        <plain moment> <sign> TIMESTAMP '<date> 00:00:00'
        starts_with(s, 'a')
        array_has(l, 1)""",
    "not": ";NOT ",
    "sign": "=;<>;<;<=;>;>=",
    "float constant": "1.5;7;2;-2.25",
    "compared": "q;f",
    "zero": "0;-0.0;0.0;a",
    "compared text": "ab;B;",
    "value column": "a;f;s;d;tus;l;st;dec;flag;bin",
    "members": "1, 2;1, NULL;0, 7, -3",
    "text member": "NULL;'12'",
    "low": "0;-3;t",
    "high": "5;2",
    "like": "LIKE;ILIKE",
    "pattern": "a%;%b;A_;a\\_%;%;;_b%",
    "search": "~;!~;~*",
    "expression": "^a;b$;[0-9]+;A.b",
    "date": "2000-02-29;2024-02-29;1970-01-01",
    "key": "<group key>;<group key>;<integer>;<text>;date_trunc('month', tus)",
    "group key": "a;f;g;s;d;flag;dec;tms;tzb;u8;h;tz;tns;st.x;st.y;bin",
    "aggregate": """
        count(*)
        count(<value column>)
        count(DISTINCT <counted>)
        sum(<summed>)
        sum(<signed> <any sign> 2)
        sum(<signed>) <any sign> 3
        avg(<averaged>)
        sum(<signed>) / nullif(count(*), 0)
        <extreme>(<compared column>)
        <extreme>(<integer>)
        <spread>(<power base>)
        <all or any>(flag)
        <bits>(<signed>)
        count(a) FILTER (WHERE <condition>) AS v
        sum(a) FILTER (WHERE <condition>) AS v
        sum(CASE WHEN <condition> THEN 1 ELSE 0 END)
        array_agg(a ORDER BY id)
        string_agg(s, '-' ORDER BY id)
        sum(DISTINCT a)
        max(a) - min(a)""",
    "counted": "a;f;s;d;g;h;tzb",
    "summed": "a;t;u8;u32;q;dec;b;st.x",
    "averaged": "a;t;u8;q;dec",
    "extreme": "min;max",
    "compared column": "a;s;d;tms;tzb;dec;u8;tns;bin;ls;u;flag",
    "spread": "stddev;stddev_pop;var_samp;var_pop",
    "all or any": "bool_and;bool_or",
    "bits": "bit_and;bit_or;bit_xor",
    "where": "; WHERE <condition>",
    "direction": ";; DESC; ASC; DESC NULLS LAST; NULLS FIRST",
    "limit": "; LIMIT 7; LIMIT 5 OFFSET 3",
    "join": "JOIN;LEFT JOIN;FULL JOIN;RIGHT JOIN",
    "join key": "a;f;s;d;dec;tms;u8;tzb;flag;g",
    "join more": "; AND y.id > 20; AND x.a / 2 = 1",
    "joined": "x.a + y.b;x.s || y.s;x.a = y.a;y.f;x.a / 2;x.f < y.f",
    "met": "x.a = y.b;x.f = y.q;x.a / 2 = y.t;x.f < y.q AND x.id = 3;x.id = y.id",
    "window": """
        row_number() OVER (<order>)
        <rank>() OVER (<parted><order>)
        ntile(3) OVER (<order>)
        lag(<lagged>) OVER (<parted><order>)
        lead(<lagged>, 2) OVER (<parted><order>)
        lag(a, 1, 0) OVER (<order>)
        first_value(<lagged>) OVER (<parted><order><frame>)
        last_value(<lagged>) OVER (<parted><order><frame>)
        nth_value(a, 2) OVER (<parted><order>)
        sum(<window sum>) OVER (<parted><order><frame>)
        avg(<averaged>) OVER (<parted><order><frame>)
        count(<lagged>) OVER (<parted><order><frame>)
        <extreme>(<lagged>) OVER (<parted><order>)
        sum(a) OVER ()
        count(*) OVER (PARTITION BY f)""",
    "rank": "rank;dense_rank;percent_rank;cume_dist;row_number",
    "lagged": "a;s;f;tzb;dec;h",
    "window sum": "a;dec;u8;b / 2",
    "parted": ";PARTITION BY flag ;PARTITION BY f ;PARTITION BY a / 2 ",
    "order": "ORDER BY id;ORDER BY a, id;ORDER BY f DESC, id;ORDER BY s, id;ORDER BY h, id",
    "frame": ";; ROWS BETWEEN 1 PRECEDING AND CURRENT ROW;"
    " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "pair": "a AS v|b;f AS v|q;s AS v|st.y;a AS v|q;t AS v|u8;f AS v|f;tzb AS v|tzb;s AS v|ls;"
    "a / 2 AS v|b % 3;d AS v|d;h AS v|h",
    "united": "UNION;UNION ALL;EXCEPT;INTERSECT",
}

# kind -> (template, whether its rows have one order)
_KINDS = {
    "projection": ("SELECT id, <value> FROM dataset<where> ORDER BY id", True),
    "filter": ("SELECT id FROM dataset WHERE <condition> ORDER BY id", True),
    "zero filter": ("SELECT id FROM dataset WHERE <float> <sign> <zero> ORDER BY id", True),
    "aggregate": ("SELECT <aggregate> FROM dataset<where>", True),
    "extremes": ("SELECT min(<float:1>), max(<float:1>) FROM dataset WHERE id < 30", True),
    "group": ("SELECT <key:1>, <aggregate> FROM dataset<where> GROUP BY <key:1>", False),
    "having": (
        ("SELECT <key:1>, count(*) FROM dataset GROUP BY <key:1> HAVING <aggregate> IS NOT NULL"
        " AND max(a) > 1"),
        False,
    ),
    "ordered group": (
        ("SELECT <group key:1>, <aggregate> FROM dataset GROUP BY 1 ORDER BY <group key:1>"
        "<direction>"),
        True,
    ),
    "order": ("SELECT id, <key:1> AS k FROM dataset<where> ORDER BY k<direction>, id<limit>", True),
    "order by expression": ("SELECT id FROM dataset ORDER BY <key><direction>, id<limit>", True),
    "distinct": ("SELECT DISTINCT <group key>, t FROM dataset<where>", False),
    "ordered distinct": ("SELECT DISTINCT <key> FROM dataset ORDER BY 1<direction>", True),
    "join": (
        ("SELECT x.id, y.id AS yid, <joined> FROM dataset x <join> dataset y "
        "ON x.<join key:1> = y.<join key:1><join more>"),
        False,
    ),
    "cross join": (
        "SELECT x.id, y.id AS yid FROM dataset x, dataset y WHERE <met> AND x.id < 30", False
    ),
    "window": ("SELECT id, <window> FROM dataset ORDER BY id", True),
    "set operation": (("SELECT <pair:left> FROM dataset<where> <united> SELECT <pair:right> FROM "
                      "dataset"), False),
    "ordered union": (("SELECT <pair:left> FROM dataset UNION SELECT <pair:right> FROM dataset "
                      "ORDER BY v<direction>"), True),
    "subquery": ("SELECT q.v, count(*) FROM (SELECT <value> AS v FROM dataset) q GROUP BY q.v",
                 False),
    "common table": (
        ("WITH c AS (SELECT <group key:1> AS k, <aggregate:1> FROM dataset GROUP BY <group key:1>)"
        " SELECT * FROM c"), False,
    ),
    "member": (("SELECT id FROM dataset WHERE <signed> <not>IN (SELECT b FROM dataset WHERE "
               "<condition> AND b IS NOT NULL) ORDER BY id"), True),
    "scalar subquery": (("SELECT id, (SELECT <extreme>(<compared column>) FROM dataset) AS m FROM "
                        "dataset WHERE <condition> ORDER BY id"), True),
    "nested group": (("SELECT count(*), sum(n) FROM (SELECT <group key:1>, count(*) AS n FROM "
                     "dataset GROUP BY <group key:1>)"), True),
    "star": ("SELECT * FROM dataset<where> ORDER BY id<limit>", True),
    "using": (("SELECT x.*, y.a FROM (SELECT id, f FROM dataset<where>) x JOIN dataset y "
               "USING (id) ORDER BY x.id"), True),
}  # fmt: skip

_DEPTH = 2
_NAME = re.compile(r"<([a-z][a-z ]*)(?::(\w+))?>")
# What stands for an expression where no deeper one is wanted.
_FLAT = {
    "integer": "<whole>", "number": "<float>", "text": "<word>", "condition": "<flat condition>",
    "value": "<value column>",
}  # fmt: skip
_GRAMMAR["flat condition"] = "flag;a = 1;<fraction> > 0;b <> 2;s = 'ab';q < 2;t IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement; ``is_ordered``: whether its rows have one order; ``kind`` is for reports."""

    kind: str
    text: str
    is_ordered: bool


def random_statement(seed: int) -> Statement:
    """Return a statement."""
    rng = random.Random(seed)
    kind = list(_KINDS)[seed % len(_KINDS)]
    template, is_ordered = _KINDS[kind]
    shared: dict[str, str] = {}
    pair = _picked("pair", rng).split("|")

    def written(text: str, depth: int) -> str:
        return _NAME.sub(lambda match: name_written(*match.groups(), depth), text)

    def name_written(name: str, label: str | None, depth: int) -> str:
        if name == "pair":
            return pair[label == "right"]
        if label is not None:
            key = f"{name}:{label}"
            if key not in shared:
                shared[key] = name_written(name, None, depth)
            return shared[key]
        if depth <= 0 and name in _FLAT:
            return written(_FLAT[name], depth)
        return written(_picked(name, rng), depth - (name in _FLAT))

    return Statement(kind, written(template, _DEPTH), is_ordered)


def _picked(name: str, rng: random.Random) -> str:
    grammar = _GRAMMAR[name]
    lines = grammar.strip().split("\n") if "\n" in grammar else grammar.split(";")
    picked = rng.choice(lines)
    return picked.strip() if "\n" in grammar else picked

"""Scalar indices of every kind and element type, through histories of both engines.

A case is a kind, one table with a column of each of some element types, the engine that builds the
indices, stable row ids or addresses, a file version, and a history: rows appended, upserted, moved,
deleted and compacted, and indices optimized, each step by either engine. After every step both
engines have to find by the indices what pylance finds without. Floats have a test of their own.

A difference names its case: ``python -m tests.interop.test_index_matrix BTREE 17`` runs number 17.
Where pylance is wrong, the same history is run by pylance alone; what is wrong then, too, is its
own defect and counted as such. Native code may panic or die over the files of another writer, so
the cases run in a child process, and a signal is reported with the case.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.interop.matrix import SCALE
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

ROWS, ROWS_PER_FILE = 240, 90
COLUMNS, NUM_STEPS, CONDITIONS_AT_ONCE = 6, 5, 3
CASES_OF_KIND = max(1, round(2 * SCALE))
UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
TYPES = (
    *(pa.type_for_alias(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)),
    pa.decimal128(38, 0), pa.decimal128(10, 2), pa.decimal256(50, 3), pa.bool_(),
    pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(3),
    pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "UTC")),
    pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ms", "+05:30"),
    *map(pa.duration, UNITS),
    pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.int64()), pa.null(),
)  # fmt: skip
TEXTS = pa.string(), pa.large_string()
LISTS = pa.list_, pa.large_list
Value = Any


# --- values ---------------------------------------------------------------------------------------


def domain(kind: pa.DataType) -> list[Value]:
    """Return values of a type, the ends of its range among them."""
    if pa.types.is_boolean(kind):
        return [False, True]
    if pa.types.is_integer(kind):
        bits = kind.bit_width
        low, high = (
            (0, 2**bits) if str(kind).startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        )
        return [low, low + 1, *range(max(low, -3), 20), high - 2, high - 1]
    if pa.types.is_decimal(kind):
        ends = Decimal(10 ** min(kind.precision - kind.scale, 30) - 1)
        return [-ends, *(Decimal(number) / 2 if kind.scale else Decimal(number)
                         for number in range(-6, 12)), ends]  # fmt: skip
    if pa.types.is_fixed_size_binary(kind):
        return [b"\0\0\0", b"\xff\xff\xff", *(b"k%02d" % number for number in range(20))]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [b"", b"\0", b"\xff\xff", *(b"b%d" % number for number in range(20)), b"z" * 300]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        words = "river", "stone", "cloud fox", "Straße river", "stone cloud", "réunion"
        return ["", "a", *(f"{word} {number}" for word in words for number in range(4)), "z" * 300]
    if pa.types.is_time(kind):
        return [*range(20), 80_000]
    return [-100_000, -2, -1, *range(20), 2_000_000_000]


def array_of(kind: pa.DataType, values: list[Value]) -> pa.Array:
    if pa.types.is_null(kind):
        return pa.nulls(len(values))
    if pa.types.is_dictionary(kind):
        encoded = array_of(kind.value_type, values).dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            encoded.indices.cast(kind.index_type), encoded.dictionary
        )
    if pa.types.is_date64(kind):
        values = [None if value is None else value // 1000 * 86_400_000 for value in values]
    if pa.types.is_date32(kind):
        values = [None if value is None else value // 1000 for value in values]
    if pa.types.is_temporal(kind):
        bits = 32 if kind.bit_width == 32 else 64
        return pa.array(values, pa.type_for_alias(f"int{bits}")).cast(kind)
    return pa.array(values, kind)


def value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def column(kind: pa.DataType, count: int, rng: np.random.Generator) -> pa.Array:
    """Return values of the domain in a random order, a tenth of them null."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    items = kind.value_type if is_list else kind
    values = [None] if pa.types.is_null(items) else domain(value_type(items))
    sizes = rng.integers(0, 4, count) if is_list else np.ones(count, np.int64)
    chosen = rng.integers(0, len(values), int(sizes.sum()))
    flat = array_of(items, [values[n] if rng.random() > 0.1 else None for n in chosen])
    if not is_list:
        return flat
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    layout = pa.int64() if pa.types.is_large_list(kind) else pa.int32()
    array = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
    mask = pa.array(rng.random(count) < 0.1)
    return array.from_arrays(pa.array(offsets, layout), flat, type=kind, mask=mask)


def literals(kind: pa.DataType) -> list[str]:
    """Return the values that pylance reads exactly in SQL: greater numbers are floats there."""
    values = [value for value in domain(value_type(kind))
              if not isinstance(value, int | Decimal) or -(2**63) < value < 2**64]  # fmt: skip
    return [literal(kind, value) for value in values]


def literal(kind: pa.DataType, value: Value) -> str:
    """Return a value as both engines read it in SQL."""
    kind = value_type(kind)
    if pa.types.is_boolean(kind):
        return str(value).lower()
    if pa.types.is_decimal(kind):
        return f"CAST({value:f} AS DECIMAL({min(kind.precision, 38)}, {kind.scale}))"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if pa.types.is_integer(kind):
        return str(value)
    (scalar,) = array_of(kind, [value])
    if pa.types.is_duration(kind):
        return f"arrow_cast({value}, 'Duration({UNITS[kind.unit]})')"
    if pa.types.is_time(kind):
        name = f"Time{kind.bit_width}({UNITS[kind.unit]})"
        return f"arrow_cast('{scalar.cast(pa.string())}', '{name}')"
    if pa.types.is_date(kind):
        return f"DATE '{scalar.cast(pa.date32())}'"
    moment = scalar.cast(pa.timestamp(kind.unit)).cast(pa.string())
    if kind.unit == "ns":  # a comparison with TIMESTAMP cuts them off, a function of lists does not
        return f"arrow_cast('{moment}', 'Timestamp(Nanosecond, None)')"
    return f"TIMESTAMP '{moment}'"


def conditions(kind: str, name: str, type_: pa.DataType, rng: np.random.Generator) -> list[str]:
    """Return filters on a column that its index may answer."""
    if kind == "INVERTED":
        return [f"{name} MATCH {word}" for word in ("river", "stone", "fox", "none")]
    nulls = [f"{name} IS NULL", f"{name} IS NOT NULL"]
    is_list = pa.types.is_list(type_) or pa.types.is_large_list(type_)
    items = type_.value_type if is_list else type_
    if pa.types.is_null(items):
        return nulls
    values = literals(items)
    first, second = (values[n] for n in sorted(rng.integers(0, len(values), 2)))
    if is_list:
        return [
            *nulls, f"array_has({name}, {first})", f"NOT array_has({name}, {first})",
            f"array_has_any({name}, [{first}, {second}])",
            f"array_has_all({name}, [{first}, {second}])",
        ]  # fmt: skip
    if kind == "NGRAM":
        return [
            *nulls, *(f"contains({name}, '{part}')" for part in ("river", "ston", "zzzz", "éun")),
            f"NOT contains({name}, 'river')", f"{name} LIKE '%cloud fox%'", f"{name} = {first}",
        ]  # fmt: skip
    more = []
    if type_ in TEXTS:
        more = [f"{name} LIKE 'stone%'", f"starts_with({name}, 'riv')"]
    return [
        *nulls, *more, f"{name} = {first}", f"{name} <> {first}", f"{name} < {first}",
        f"{name} >= {first}", f"{name} IN ({first}, {second})",
        f"{name} BETWEEN {first} AND {second}", f"NOT ({name} = {first})",
        f"{name} > {second} OR {name} IS NULL", f"NOT ({name} <= {first})",
    ]  # fmt: skip


# --- histories ------------------------------------------------------------------------------------

Step = Callable[[Any, "Case", int], None]


def append(dataset: Any, case: Case, number: int) -> None:
    dataset.insert(case.rows(1000 * number + 1000, 70, number))


def upsert(dataset: Any, case: Case, number: int) -> None:
    ids = np.random.default_rng([case.seed, number]).choice(ROWS, 30, replace=False)
    rows = case.rows(0, 40, number).set_column(
        0, "id", pa.array([*ids.tolist(), *range(5000 + 100 * number, 5010 + 100 * number)])
    )
    merging = dataset.merge_insert("id").when_matched_update_all()
    merging.when_not_matched_insert_all().execute(rows)


def move(dataset: Any, case: Case, number: int) -> None:
    dataset.update({"moved": "moved + 1"}, where=f"id % 11 = {number % 11}")


def delete(dataset: Any, case: Case, number: int) -> None:
    dataset.delete(f"id % 13 = {number % 13}")


def delete_fragment(dataset: Any, case: Case, number: int) -> None:
    dataset.delete(f"id >= {ROWS_PER_FILE} AND id < {2 * ROWS_PER_FILE}")


def compact(dataset: Any, case: Case, number: int) -> None:
    dataset.optimize.compact_files(target_rows_per_fragment=10_000)


def add_segment(dataset: Any, case: Case, number: int) -> None:
    dataset.optimize.optimize_indices(num_indices_to_merge=0)


def merge_segments(dataset: Any, case: Case, number: int) -> None:
    dataset.optimize.optimize_indices(num_indices_to_merge=10)


def optimize(dataset: Any, case: Case, number: int) -> None:
    dataset.optimize.optimize_indices()


STEPS: tuple[Step, ...] = (
    append, upsert, move, delete, delete_fragment, compact, add_segment, merge_segments, optimize,
)  # fmt: skip
KINDS = ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER", "NGRAM", "INVERTED", "LABEL_LIST")


class Case(NamedTuple):
    """One history of one table."""

    kind: str
    seed: int
    types: tuple[pa.DataType, ...]
    builder: str
    is_stable: bool
    version: str
    steps: tuple[tuple[str, Step], ...]

    @property
    def names(self) -> list[str]:
        return [f"c{number}" for number in range(len(self.types))]

    def rows(self, first: int, count: int, number: int) -> pa.Table:
        rng = np.random.default_rng([self.seed, number])
        columns = {"id": pa.array(range(first, first + count), pa.int64()),
                   "moved": pa.array([0] * count, pa.int64())}  # fmt: skip
        columns |= {name: column(kind, count, rng)
                    for name, kind in zip(self.names, self.types, strict=True)}  # fmt: skip
        return pa.table(columns)

    def __str__(self) -> str:
        ids = "stable" if self.is_stable else "addresses"
        steps = ", ".join(f"{step.__name__} by {engine}" for engine, step in self.steps)
        return f"{self.kind} {self.seed} by {self.builder}, {ids}, {self.version}: {steps}"


def types_of(kind: str) -> list[pa.DataType]:
    """Return the types that a kind of index is built on, by pylance 14.0.2."""
    if kind == "NGRAM":
        return list(TEXTS)
    if kind == "INVERTED":
        return [*TEXTS, *(wrap(text) for text in TEXTS for wrap in LISTS)]
    if kind == "LABEL_LIST":
        return [wrap(type_) for type_ in TYPES for wrap in LISTS]
    refused = {
        "BTREE": (pa.types.is_dictionary, pa.types.is_null),
        "BITMAP": (pa.types.is_dictionary, pa.types.is_null),
        "ZONEMAP": (),
        "BLOOMFILTER": (
            pa.types.is_dictionary, pa.types.is_null, pa.types.is_decimal, pa.types.is_boolean,
            pa.types.is_fixed_size_binary, pa.types.is_duration,
        ),
    }[kind]  # fmt: skip
    return [type_ for type_ in TYPES if not any(test(type_) for test in refused)]


def case_of(kind: str, seed: int) -> Case:
    rng = np.random.default_rng([KINDS.index(kind), seed])
    types = types_of(kind)
    chosen = sorted(rng.permutation(len(types))[:COLUMNS].tolist())
    engines = ("pylance", "lance_nb")
    return Case(
        kind=kind,
        seed=seed,
        types=tuple(types[place] for place in chosen),
        builder=engines[rng.integers(2)],
        is_stable=bool(rng.integers(2)),
        version=("2.0", "2.1", "2.2")[rng.integers(3)],
        steps=tuple(
            (engines[rng.integers(2)], STEPS[rng.integers(len(STEPS))]) for _ in range(NUM_STEPS)
        ),
    )


# --- answers --------------------------------------------------------------------------------------


class Report:
    """What was compared, and the differences."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.differences: list[str] = []


def engine(name: str) -> Any:
    return lance_nb if name == "lance_nb" else require_pylance()


def ids_of(dataset: Any, condition: str, **options: Any) -> list[int] | str:
    """Return the ids of the rows that pass, or the name of the error."""
    name, is_match, word = condition.partition(" MATCH ")
    try:
        if is_match and options:  # a scan
            texts = dataset.to_table(["id", name]).to_pylist()
            return sorted(row["id"] for row in texts if word in words_of(row[name]))
        if is_match:
            options["full_text_query"] = match_query(dataset, word, name)
        else:
            options["filter"] = condition
        ids = dataset.to_table(columns=["id"], **options)["id"].to_pylist()
    except (ValueError, OSError, TypeError, NotImplementedError, pa.ArrowException) as error:
        return f"{type(error).__name__}: {error}"
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return f"panic: {error}"
    return sorted(ids)


def words_of(value: str | list[str | None] | None) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    return [word for text in texts if text is not None for word in text.split()]


def match_query(dataset: Any, word: str, column: str) -> Any:
    if isinstance(dataset, lance_nb.LanceDataset):
        return lance_nb.MatchQuery(word, column)
    return importlib.import_module("lance.query").MatchQuery(word, column)


def states(case: Case, folder: Path, *, alone: bool) -> Iterator[tuple[str, str]]:
    """Yield the dataset after each step; ``alone``: every step is of pylance."""
    path = str(folder / ("alone" if alone else "mixed"))
    shutil.rmtree(path, ignore_errors=True)
    pylance = require_pylance()
    pylance.write_dataset(
        case.rows(0, ROWS, 0), path, max_rows_per_file=ROWS_PER_FILE,
        enable_stable_row_ids=case.is_stable, data_storage_version=case.version,
    )  # fmt: skip
    for name in case.names:
        dataset = engine("pylance" if alone else case.builder).dataset(path)
        dataset.create_scalar_index(name, case.kind)
    yield path, "built"
    for number, (name, step) in enumerate(case.steps, 1):
        step(engine("pylance" if alone else name).dataset(path), case, number)
        yield path, f"step {number}, {step.__name__}"


def conditions_at(case: Case, number: int) -> Iterator[tuple[pa.DataType, str]]:
    rng = np.random.default_rng([case.seed, number, 9])
    for name, type_ in zip(case.names, case.types, strict=True):
        texts = conditions(case.kind, name, type_, rng)
        for place in rng.permutation(len(texts))[:CONDITIONS_AT_ONCE]:
            yield type_, texts[place]


def check(case: Case, folder: Path, report: Report) -> None:
    suspects: list[tuple[int, str, str]] = []
    for number, (path, state) in enumerate(states(case, folder, alone=False)):
        theirs, ours = require_pylance().dataset(path), lance_nb.dataset(path)
        for type_, condition in conditions_at(case, number):
            where = f"{case}\n    {state}: {type_} {condition}"
            expected = ids_of(theirs, condition, use_scalar_index=False)
            mine, other = ids_of(ours, condition), ids_of(theirs, condition)
            report.counts["compared"] += 1
            if isinstance(expected, str):
                report.counts["refused by pylance"] += 1
                expected = other = ids_of(ours, condition, use_scalar_index=False)
            if mine != expected:
                report.differences.append(f"{where}: lance_nb finds {brief(mine, expected)}")
            if other != expected:
                text = f"{where}: pylance finds {brief(other, expected)}"
                suspects.append((number, condition, text))
            report.counts["by index"] += "_idx" in plan_of(ours, condition)
        suspects += [
            (number, finding.code, f"{case}\n    {state}: {finding}")
            for finding in ours.verify().findings
        ]
    own = own_defects(case, folder, {number for number, *_ in suspects}) if suspects else set()
    for number, subject, text in suspects:
        if (number, subject) in own:
            report.counts["pylance alone is wrong"] += 1
        else:
            report.differences.append(text)
    report.counts["cells"] += len(case.types)


def plan_of(dataset: Any, condition: str) -> str:
    try:
        plan: str = dataset.scanner(filter=condition).explain_plan()
    except (ValueError, NotImplementedError):
        return ""
    return plan


def brief(ids: object, expected: object) -> str:
    if isinstance(ids, str) or isinstance(expected, str):
        return f"{str(ids)[:160]} instead of {str(expected)[:160]}"
    more, fewer = sorted(set(ids) - set(expected)), sorted(set(expected) - set(ids))
    return (
        f"{len(more)} more {more[:5]} and {len(fewer)} fewer {fewer[:5]} than {len(expected)} rows"
    )


def own_defects(case: Case, folder: Path, numbers: set[int]) -> set[tuple[int, str]]:
    """Return where pylance is wrong after the same history without us."""
    wrong = set()
    for number, (path, _) in enumerate(states(case, folder, alone=True)):
        if number in numbers:
            dataset = require_pylance().dataset(path)
            for _, condition in conditions_at(case, number):
                expected = ids_of(dataset, condition, use_scalar_index=False)
                if ids_of(dataset, condition) != expected:
                    wrong.add((number, condition))
            findings = lance_nb.dataset(path).verify().findings
            wrong.update((number, finding.code) for finding in findings)
    return wrong


def run(kind: str, seeds: Iterable[int], report: Report) -> None:
    for seed in seeds:
        case = case_of(kind, seed)
        print(case, file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(case, Path(folder), report)
            except (
                OSError,
                ValueError,
                TypeError,
                NotImplementedError,
                pa.ArrowException,
            ) as error:
                report.differences.append(f"{case}: {type(error).__name__}: {error}")


def test_both_engines_find_by_the_index_what_a_scan_finds(tmp_path: Path) -> None:
    require_pylance()
    command = [sys.executable, "-W", "ignore", "-m", __name__]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    last = next((line for line in reversed(result.stderr.splitlines()) if line), "")
    if result.returncode < 0:
        pytest.fail(f"{signal.Signals(-result.returncode).name} in {last}")
    assert result.returncode == 0, result.stderr[-2000:]
    counts, differences = json.loads(result.stdout.splitlines()[-1])
    print(counts)
    assert not differences, "\n".join([f"{len(differences)} differences", *differences[:5]])
    assert counts["by index"] > counts["compared"] / 3
    assert counts["refused by pylance"] < counts["compared"] / 10
    assert counts.get("pylance alone is wrong", 0) < counts["compared"] / 10


def main(arguments: list[str]) -> None:
    """Run all cases, or some of a kind: KIND [FIRST [COUNT]]."""
    report = Report()
    first, count = (int(text) for text in [*arguments[1:], *("0", "1")[len(arguments[1:]) :]][:2])
    if arguments:
        run(arguments[0], range(first, first + count), report)
    else:
        for kind in KINDS:
            run(kind, range(CASES_OF_KIND), report)
    print(json.dumps([report.counts, report.differences]))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Random ways to read a dataset, as Python text that both libraries take."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.faults.differential.schemas import is_blob, leaf_paths


@dataclass
class State:
    """What the generator knows of the dataset before it makes a step."""

    schema: pa.Schema
    count: int
    file_version: str
    stable: bool = False
    versions: list[int] = field(default_factory=list)
    branches: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    samples: dict[str, list[Any]] = field(default_factory=dict)
    branch: str | None = None


def reads_for(chance: random.Random, state: State, number: int) -> tuple[str, ...]:
    """Choose some reads."""
    made = ["ds.to_table()"] if chance.random() < 0.5 else []
    while len(made) < number:
        made.append(chance.choices(list(READS), list(READS.values()))[0](chance, state))
    return tuple(made)


# --- columns -----------------------------------------------------------------------------------


def quoted(name: str) -> str:
    """Write a name as a path takes it."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else f"`{name}`"


def _plain_path(path: str) -> str:
    names = path.strip("`").split("`.`")
    return ".".join(map(quoted, names))


def columns_of(chance: random.Random, state: State) -> list[str]:
    """Choose columns, some of them fields of structs."""
    names = [quoted(name) if chance.random() < 0.3 else name for name in state.schema.names]
    chosen = chance.sample(names, chance.randint(1, len(names)))
    nested = [path for path in leaf_paths(state.schema) if "`.`" in path]
    if nested and chance.random() < 0.4:
        path = chance.choice(nested)
        top = path.split("`.`")[0].strip("`")
        chosen = [one for one in chosen if one.strip("`") != top] + [_plain_path(path)]
    if chance.random() < 0.25:
        system = ["_rowid", "_rowaddr", "_rowoffset"]
        if state.stable:
            system += ["_row_created_at_version", "_row_last_updated_at_version"]
        chosen.insert(chance.randint(0, len(chosen)), chance.choice(system))
    return chosen


# --- conditions --------------------------------------------------------------------------------


def literal(value: Any, kind: pa.DataType) -> str | None:
    """Write a value as SQL, if there is a form of it."""
    types = pa.types
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if types.is_boolean(kind):
        return str(value).lower()
    if types.is_integer(kind):
        return str(value)
    if types.is_floating(kind):
        return repr(float(value))
    if types.is_string(kind) or types.is_large_string(kind):
        return None if "\0" in value else "'" + value.replace("'", "''") + "'"
    if types.is_date32(kind) and isinstance(value, date) and 1 < value.year < 9999:
        return f"date '{value.isoformat()}'"
    if types.is_timestamp(kind) and kind.tz is None and isinstance(value, datetime):
        return f"timestamp '{value.isoformat(sep=' ')}'" if 1700 < value.year < 2200 else None
    if types.is_decimal128(kind) and isinstance(value, Decimal) and kind.scale >= 0:
        return f"CAST('{value:f}' AS decimal({kind.precision}, {kind.scale}))"
    return None


def condition(chance: random.Random, state: State, depth: int = 1) -> str:
    """Write a filter."""
    if depth and chance.random() < 0.3:
        sign = chance.choice((" AND ", " OR "))
        return sign.join(f"({condition(chance, state, depth - 1)})" for _ in range(2))
    if chance.random() < 0.1:
        return f"NOT ({condition(chance, state, 0)})"
    paths = leaf_paths(state.schema)
    if chance.random() < 0.45 and "`uid`" in paths and "`key`" in paths:
        most = max(state.count, 1)
        return chance.choice((
            f"uid < {chance.randint(0, most)}", f"uid >= {chance.randint(0, most)}",
            f"key = {chance.randint(0, 10)}", f"key > {chance.randint(0, 10)}", "key IS NULL",
            f"uid % {chance.randint(2, 9)} = 1", f"key IN ({chance.randint(0, 9)}, 3)",
            f"uid BETWEEN {chance.randint(0, most)} AND {most}", "key IS NOT NULL AND key < 8",
        ))  # fmt: skip
    path = chance.choice(sorted(paths))
    return _on_column(chance, path, paths[path], state)


def _on_column(chance: random.Random, path: str, kind: pa.DataType, state: State) -> str:
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = [f"{path} IS NULL", f"{path} IS NOT NULL"]
    known = [literal(one, kind) for one in state.samples.get(path, [])]
    values = [one for one in known if one is not None]
    if values:
        one, other = chance.choice(values), chance.choice(values)
        sign = chance.choice(("=", "<>", "<", "<=", ">", ">="))
        tests += [
            f"{path} {sign} {one}", f"{path} {sign} {one}", f"{path} IN ({one}, {other})",
            f"{path} NOT IN ({one}, {other})", f"{path} BETWEEN {one} AND {other}",
        ]  # fmt: skip
        if types.is_string(kind) or types.is_large_string(kind):
            start = one[1:3].replace("'", "")
            tests += [
                f"{path} LIKE '{start}%'", f"length({path}) > 3", f"lower({path}) = {one}",
                f"starts_with({path}, {one})", f"contains({path}, '{start}')",
            ]  # fmt: skip
    if types.is_boolean(kind):
        tests += [path, f"NOT {path}", f"{path} IS TRUE", f"{path} IS NOT FALSE"]
    if types.is_list(kind) or types.is_large_list(kind):
        tests += [f"array_length({path}) > {chance.randint(0, 3)}"] * 2
        if types.is_integer(kind.value_type):
            tests.append(f"array_has({path}, {chance.randint(0, 3)})")
    if isinstance(kind, pa.JsonType):
        tests += [
            f"json_get_int({path}, 'k') > 3", f"json_exists({path}, '$.k')",
            f"json_extract({path}, '$.b') IS NOT NULL", f"json_get_string({path}, 'b') = 'a'",
        ]  # fmt: skip
    return chance.choice(tests)


def expression(chance: random.Random, state: State) -> str:
    """Write an SQL expression over the columns."""
    paths = leaf_paths(state.schema)
    path = chance.choice(sorted(paths))
    kind = paths[path]
    choices = [path, path, "uid + 1", "key * 2", f"{path} IS NULL", "abs(key) + 1",
               "CAST(uid AS string)", "coalesce(key, -1)"]  # fmt: skip
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        choices += [f"{path} = 1", f"CAST({path} AS string)", f"CAST({path} AS double) / 2"]
    if pa.types.is_string(kind):
        choices += [f"upper({path})", f"length({path})", f"{path} || '!'"]
    if pa.types.is_list(kind):
        choices.append(f"array_length({path})")
        if not isinstance(kind.value_type, pa.BaseExtensionType):
            choices.append(f"{path}[1]")
    return chance.choice(choices)


# --- reads -------------------------------------------------------------------------------------


def _options(chance: random.Random, state: State) -> str:
    """Choose arguments of a scan."""
    parts = []
    if chance.random() < 0.6:
        parts.append(f"columns={columns_of(chance, state)}")
    if chance.random() < 0.55:
        parts.append(f"filter={condition(chance, state)!r}")
    if chance.random() < 0.35:
        parts.append(f"offset={chance.randint(0, state.count + 2)}")
    if chance.random() < 0.35:
        parts.append(f"limit={chance.choice((0, 1, 7, chance.randint(0, state.count + 2)))}")
    if chance.random() < 0.2:
        parts.append("with_row_id=True")
    if chance.random() < 0.15:
        parts.append("with_row_address=True")
    if chance.random() < 0.15:
        parts.append("late_materialization=True")
    if chance.random() < 0.15:
        parts.append("blob_handling='all_binary'")
    return ", ".join(parts)


def scan(chance: random.Random, state: State) -> str:
    return f"ds.to_table({_options(chance, state)})"


def all_payloads(chance: random.Random, state: State) -> str:
    return "ds.to_table(blob_handling='all_binary')"


def batches(chance: random.Random, state: State) -> str:
    options = _options(chance, state)
    size = chance.choice((1, 3, 17, 100, 1024))
    if size == 1 and state.count > 200:
        size = 64
    strict = ", strict_batch_size=True" if chance.random() < 0.5 else ""
    call = f"ds.to_batches(batch_size={size}{strict}{', ' if options else ''}{options})"
    if strict and chance.random() < 0.4:
        return f"[b.num_rows for b in {call}]"
    return f"joined({call})"


def projected(chance: random.Random, state: State) -> str:
    made = {f"e{at}": expression(chance, state) for at in range(chance.randint(1, 3))}
    options = _options(chance, state)
    kept = [one for one in options.split(", ") if not one.startswith("columns=")]
    filtered = f", filter={condition(chance, state)!r}" if chance.random() < 0.4 else ""
    return f"ds.to_table(columns={made}{filtered})" if kept else f"ds.to_table(columns={made})"


def ordered(chance: random.Random, state: State) -> str:
    names = [
        one.name for one in state.schema
        if not pa.types.is_nested(one.type) and not isinstance(one.type, pa.BaseExtensionType)
    ]  # fmt: skip
    keys = [chance.choice(names) for _ in range(chance.choice((1, 1, 2)))]
    parts = [
        f"by({name!r}, {chance.random() < 0.5}, {chance.random() < 0.5})"
        for name in dict.fromkeys(keys) if name != "uid"
    ]  # fmt: skip
    parts.append("by('uid', True, False)")
    limit = f", limit={chance.randint(0, state.count)}" if chance.random() < 0.5 else ""
    filtered = f", filter={condition(chance, state)!r}" if chance.random() < 0.3 else ""
    return f"ds.to_table(order_by=[{', '.join(parts)}]{limit}{filtered})"


def _rows_of(chance: random.Random, state: State) -> list[int]:
    most = max(state.count - 1, 0)
    rows = [chance.randint(0, most) for _ in range(chance.choice((1, 5, 30)))]
    if chance.random() < 0.3:
        rows = sorted(set(rows))
    if chance.random() < 0.05:
        rows.append(state.count + 3)
    return rows if state.count else []


def taken(chance: random.Random, state: State) -> str:
    columns = f", columns={columns_of(chance, state)}" if chance.random() < 0.5 else ""
    return f"ds.take({_rows_of(chance, state)}{columns})"


def taken_by_id(chance: random.Random, state: State) -> str:
    picked = _rows_of(chance, state)
    if not picked:
        return "by_row_id(ds, [])"
    ids = f"ds.to_table(columns=['_rowid'])['_rowid'].take({picked}).to_pylist()"
    return f"by_row_id(ds, {ids if chance.random() < 0.8 else picked})"


def fragments(chance: random.Random, state: State) -> str:
    options = _options(chance, state)
    options = re.sub(r"(, )?(late_materialization|blob_handling)=[^,]*", "", options).strip(", ")
    more = f", {options}" if options else ""
    return chance.choice((
        f"together(f.to_table({options}) for f in ds.get_fragments())",
        "[f.count_rows() for f in ds.get_fragments()]",
        f"[f.count_rows({condition(chance, state)!r}) for f in ds.get_fragments()]",
        f"together(f.head({chance.randint(0, 30)}) for f in ds.get_fragments())",
        "together(f.take(sorted({f.count_rows() - 1, 0})) for f in ds.get_fragments())",
        f"ds.scanner(fragments=ds.get_fragments()[::-1]{more}).to_table()",
        "[(f.fragment_id, f.physical_rows, f.num_deletions) for f in ds.get_fragments()]",
    ))  # fmt: skip


def counted(chance: random.Random, state: State) -> str:
    return chance.choice((
        f"ds.count_rows({condition(chance, state)!r})",
        f"ds.scanner({_options(chance, state)}).count_rows()",
        "len(ds)",
    ))  # fmt: skip


def first_rows(chance: random.Random, state: State) -> str:
    start = chance.randint(0, state.count + 1)
    return chance.choice((
        f"ds.head({chance.randint(0, state.count + 2)})",
        f"ds.slice({start}, {start + chance.randint(0, 40)})",
        f"ds.scanner({_options(chance, state)}).head({chance.randint(0, 20)})",
    ))  # fmt: skip


def sampled(chance: random.Random, state: State) -> str:
    return chance.choice((
        f"ds.sample({chance.randint(0, state.count)}).num_rows",
        f"together(sorted([ds.sample({state.count})], key=len)).num_rows",
        f"ds.sample({state.count + 1}).num_rows",
    ))  # fmt: skip


def with_deleted(chance: random.Random, state: State) -> str:
    filtered = f", filter={condition(chance, state)!r}" if chance.random() < 0.4 else ""
    columns = f", columns={columns_of(chance, state)}" if chance.random() < 0.5 else ""
    return f"ds.scanner(include_deleted_rows=True, with_row_id=True{filtered}{columns}).to_table()"


def described(chance: random.Random, state: State) -> str:
    return chance.choice((
        "ds.schema", "ds.stats.dataset_stats()", "[v['version'] for v in ds.versions()]",
        f"ds.scanner({_options(chance, state)}).projected_schema", "ds.max_field_id",
        "sorted(ds.tags.list())", "sorted(ds.branches.list())", "ds.data_storage_version",
        "len(ds.stats.data_stats().fields)",
    ))  # fmt: skip


def old_version(chance: random.Random, state: State) -> str:
    place = repr(chance.choice(state.tags)) if state.tags and chance.random() < 0.3 else (
        chance.choice(state.versions or [1])
    )  # fmt: skip
    return chance.choice((
        f"opened({place}).to_table()",
        f"opened({place}).count_rows()",
        f"opened({place}).schema",
        f"opened({place}).take([0])",
    ))  # fmt: skip


def changes(chance: random.Random, state: State) -> str:
    begin = chance.choice(state.versions or [1])
    what = chance.choice(("get_inserted_rows", "get_updated_rows"))
    return f"ds.delta(compared_against={begin}).{what}()"


def arrow_filter(chance: random.Random, state: State) -> str:
    number, half = chance.randint(0, 10), state.count // 2
    return chance.choice((
        f"ds.to_table(filter=pc.field('key') > {number})",
        "ds.to_table(filter=pc.field('key').is_null())",
        f"ds.to_table(filter=(pc.field('uid') <= {half}) & (pc.field('key') != {number}))",
        f"ds.to_table(filter=pc.field('key').isin([{number}, 3]), columns=['uid'])",
    ))  # fmt: skip


def blobs_taken(chance: random.Random, state: State) -> str:
    names = [one.name for one in state.schema if is_blob(one)]
    if not names:
        return scan(chance, state)
    name, rows = chance.choice(names), _rows_of(chance, state)
    if chance.random() < 0.5:
        return f"payloads(ds.take_blobs({name!r}, indices={rows}))"
    word, column = chance.choice((("ids", "_rowid"), ("addresses", "_rowaddr")))
    places = f"ds.to_table(columns=[{column!r}])[{column!r}].take({rows}).to_pylist()"
    return f"payloads(ds.take_blobs({name!r}, {word}={places}))"


def data_files(chance: random.Random, state: State) -> str:
    """Read data files without their dataset."""
    size = chance.choice((1, 10, 1024))
    columns = ""
    if chance.random() < 0.3:
        columns = f", columns={[quoted(one) for one in chance.sample(state.schema.names, 1)]}"
    first = chance.randint(0, state.count // 2 + 1)
    rows = sorted({chance.randint(0, max(state.count - 1, 0)) for _ in range(5)})
    return chance.choice((
        f"[file_reader(one{columns}).read_all(batch_size={size}).to_table() for one in paths(ds)]",
        f"file_reader(paths(ds)[0]{columns}).read_range({first}, {size}).to_table()",
        f"file_reader(paths(ds)[-1]{columns}).take_rows({rows}).to_table()",
        "[file_reader(one).num_rows() for one in paths(ds)]",
        "[file_reader(one).metadata().schema for one in paths(ds)]",
    ))  # fmt: skip


def cloned(chance: random.Random, state: State) -> str:
    """Clone the dataset, change the clone, and read it with both libraries."""
    version = chance.choice(state.versions or [1])
    place = repr((state.branch, version)) if state.branch else str(version)
    if state.tags and chance.random() < 0.2:
        place = repr(chance.choice(state.tags))
    kind = chance.choice(("shallow_clone", "deep_clone"))
    change = chance.choice((None, "uid % 3 = 0", "uid < 5"))
    return f"cloned(ds, {kind!r}, {place}, change={change!r})"


READS: dict[Callable[[random.Random, State], str], float] = {
    scan: 6, all_payloads: 0.5, batches: 2, projected: 2, ordered: 1.5, taken: 3, taken_by_id: 1,
    fragments: 2, counted: 1, first_rows: 1, sampled: 0.3, with_deleted: 1, described: 1,
    old_version: 1, changes: 0.4, arrow_filter: 0.6, blobs_taken: 0.7, data_files: 0.7, cloned: 0.4,
}  # fmt: skip

"""Changes of columns, the same calls to pylance and to us: equal rows, schemas, kinds of errors."""

from __future__ import annotations

import datetime as dt
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.interop.matrix import SCALE
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

TODAY = dt.datetime.now(dt.UTC).toordinal()

POINT = pa.struct([("x", pa.int64()), ("y", pa.string()), ("q", pa.struct([("m", pa.int32())]))])
ROWS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "p": pa.array(
            [{"x": n, "y": f"s{n}", "q": {"m": n}} if n % 3 else None for n in range(6)], POINT
        ),
        "l": pa.array([[{"a": n}] for n in range(6)], pa.list_(pa.struct([("a", pa.int64())]))),
        "f": [1.5 * n for n in range(6)],
        "s": [str(n) for n in range(6)],
        "li": pa.array([[n] for n in range(6)], pa.list_(pa.int32())),
    }
)


def column(values: range) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow.compute as pc

    return pa.record_batch({"n": pc.multiply(batch["id"], 2)})


def longer(_batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"n": [1, 2, 3, 4, 5, 6, 7]})


def row_ids(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"n": batch["_rowid"]})


def alter(**change: Any) -> Callable[[Any], None]:
    return lambda one: one.alter_columns(change)


def rename(*names: tuple[str, str]) -> Callable[[Any], None]:
    return lambda one: one.alter_columns(*({"path": path, "name": name} for path, name in names))


def add(transforms: Any, **options: Any) -> Callable[[Any], None]:
    return lambda one: one.add_columns(
        transforms() if callable(transforms) and options.get("fresh") else transforms,
        **{key: value for key, value in options.items() if key != "fresh"},
    )


def joined(right: dict[str, Any], *on: str) -> Callable[[Any], None]:
    return lambda one: one.merge(pa.table(right), *on)


def part(fields: Any) -> pa.Schema:
    return pa.schema([pa.field("p", pa.struct(fields))])


CHANGES: dict[str, Callable[[Any], None]] = {
    "rename a field": alter(path="p.x", name="z"),
    "rename a deep field": alter(path="p.q.m", name="z"),
    "rename in a list": alter(path="l.item.a", name="z"),
    "rename to what is there": alter(path="id", name="f"),
    "rename with a dot": alter(path="id", name="a.b"),
    "swap names": rename(("id", "f"), ("f", "id")),
    "swap names of fields": rename(("p.x", "y"), ("p.y", "x")),
    "swap a column and a struct": rename(("id", "p"), ("p", "id")),
    "rename in a chain": rename(("id", "f"), ("f", "s"), ("s", "new")),
    "rename in a circle": rename(("id", "f"), ("f", "s"), ("s", "id")),
    "rename a struct and its field": rename(("p", "t"), ("p.x", "w")),
    "rename a field and its struct": rename(("p.q.m", "w"), ("p.q", "t"), ("p", "id"), ("id", "p")),
    "rename twice": rename(("id", "a"), ("id", "b")),
    "rename two to one name": rename(("id", "new"), ("f", "new")),
    "rename half a swap": rename(("id", "f"), ("f", "f")),
    "rename and refuse nulls": lambda one: one.alter_columns(
        {"path": "id", "name": "f"}, {"path": "f", "name": "id"}, {"path": "id", "nullable": False}
    ),
    "drop a field": lambda one: one.drop_columns(["p.x"]),
    "drop the only field": lambda one: one.drop_columns(["p.q.m"]),
    "drop in a list": lambda one: one.drop_columns(["l.item.a"]),
    "drop everything": lambda one: one.drop_columns(ROWS.schema.names),
    "drop what is not there": lambda one: one.drop_columns(["none"]),
    "drop nothing": lambda one: one.drop_columns([]),
    "cast": alter(path="id", data_type=pa.int32()),
    "cast and rename": alter(path="id", data_type=pa.int32(), name="small"),
    "cast a field": alter(path="p.x", data_type=pa.int32()),
    "cast items": alter(path="li.item", data_type=pa.int64()),
    "cast a list": alter(path="li", data_type=pa.large_list(pa.int32())),
    "cast to text": alter(path="id", data_type=pa.string()),
    "cast a fraction": alter(path="f", data_type=pa.int64()),
    "cast a struct": alter(path="p", data_type=pa.struct([("x", pa.int32())])),
    "no nulls any more": alter(path="id", nullable=False),
    "no change": alter(path="id"),
    "no alterations": lambda one: one.alter_columns(),
    "an unknown key": alter(path="id", other=1),
    "add an expression": add({"n": "p.x + 1", "m": "id * 2"}),
    "add a wrong expression": add({"n": "zz * 2"}),
    "add what is there": add({"f": "id * 2"}),
    "add no text": add({"n": 3}),
    "add nothing": add({}),
    "add a field": add(pa.field("n", pa.int32())),
    "add fields": add([pa.field("n", pa.int32()), pa.field("m", pa.string())]),
    "add a field without nulls": add(pa.field("n", pa.int32(), nullable=False)),
    "add to a struct": add(part([("w", pa.int32())])),
    "add deep in a struct": add(part([("q", pa.struct([("k", pa.int32())]))])),
    "add to a struct what is there": add(part([("x", pa.int64())])),
    "add to a list of structs": add(pa.field("l", pa.list_(pa.struct([("b", pa.int32())])))),
    "add values to a struct": add(pa.table({"p": [{"w": n} for n in range(5)]})),
    "add a table": add(column(range(5))),
    "add too few": add(column(range(4))),
    "add too many": add(column(range(7))),
    "add a reader": add(lambda: column(range(5)).to_reader(2), fresh=True),
    "add batches": add(column(range(5)).to_batches(2), reader_schema=column(range(1)).schema),
    "add by a function": add(doubled, read_columns=["id"]),
    "add by a function of batches": add(doubled, read_columns=["id"], batch_size=2),
    "add by a function of row ids": add(row_ids, read_columns=["_rowid"]),
    "add by a function that makes too much": add(longer, read_columns=["id"]),
    "join": joined({"id": [0, 3, 3, 9], "n": [10, 30, 31, 90]}, "id"),
    "join another key": joined({"k": [0, 3], "n": [10, 30]}, "id", "k"),
    "join text": joined({"s": ["0", "3"], "n": [1, 2]}, "s"),
    "join row ids": joined({"_rowid": pa.array([0, 2**32], pa.uint64()), "n": [1, 2]}, "_rowid"),
    "join by what is not there": joined({"id": [0], "n": [1]}, "none"),
    "join with what is not there": joined({"id": [0], "n": [1]}, "id", "none"),
    "join what is there": joined({"id": [0], "f": [1]}, "id"),
    "join another type": joined({"id": pa.array([0], pa.int32()), "n": [1]}, "id"),
    "replace the schema": lambda one: one.replace_schema(ROWS.schema),
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evolving") / "t.lance"
    require_pylance().write_dataset(ROWS, str(path), max_rows_per_file=3).delete("id = 1")
    return path


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_does_what_it_does_in_pylance(source: Path, tmp_path: Path, name: str) -> None:
    lance = require_pylance()
    outcomes = []
    for engine in (lance, lance_nb):
        place = str(tmp_path / engine.__name__)
        shutil.copytree(source, place)
        opened = engine.dataset(place)
        error: BaseException | None = None
        try:
            CHANGES[name](opened)
        except Exception as raised:  # noqa: BLE001 - compared below
            error = raised
        found = lance.dataset(place)
        found.validate()
        assert lance_nb.dataset(place).to_table().equals(found.to_table())
        outcomes.append((error, found.version, found.schema, found.to_table()))
    theirs, ours = outcomes
    assert (theirs[0] is None) == (ours[0] is None), outcomes
    if theirs[0] is not None:
        assert isinstance(ours[0], type(theirs[0]))
    assert ours[1:] == theirs[1:]


PLACES = ("id", "f", "s", "p", "p.x", "p.y", "p.q", "p.q.m", "l", "l.item.a", "li")
TARGETS = ("id", "f", "s", "p", "x", "y", "q", "m", "a", "new", "other")


@pytest.mark.parametrize("seed", range(max(4, round(4 * SCALE))))
def test_names_are_changed_as_in_pylance(source: Path, tmp_path: Path, seed: int) -> None:
    lance = require_pylance()
    chance = random.Random(f"{TODAY} {seed}")
    for number in range(12):
        places = chance.sample(PLACES, chance.randint(1, 4))
        names = [chance.choice(TARGETS) for _ in places]
        if chance.random() < 0.5:  # more often one that fits
            names = [place.rpartition(".")[2] for place in chance.sample(places, len(places))]
        pairs = list(zip(places, names, strict=True))
        outcomes: list[Any] = []
        for engine in (lance, lance_nb):
            place = str(tmp_path / f"{number}{engine.__name__}")
            shutil.copytree(source, place)
            try:
                rename(*pairs)(engine.dataset(place))
                table = lance.dataset(place).to_table()
            except (OSError, ValueError):  # or two fields of one name, which pylance cannot read
                outcomes.append("refused")
                continue
            assert lance_nb.dataset(place).to_table().equals(table)
            outcomes.append(table)
        assert outcomes[0] == outcomes[1], pairs


def test_a_path_of_a_new_name_is_taken_where_no_column_had_it(source: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "t.lance")
    shutil.copytree(source, place)
    rename(("id", "new"), ("new", "newer"), ("p", "t"), ("t.x", "w"))(lance_nb.dataset(place))
    found = require_pylance().dataset(place).to_table()
    assert found["newer"].to_pylist() == [0, 2, 3, 4, 5]
    assert [field.name for field in found.schema.field("t").type] == ["w", "y", "q"]


def test_names_are_swapped_beside_a_cast(source: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "t.lance")
    shutil.copytree(source, place)
    ours = lance_nb.dataset(place)
    ours.alter_columns(
        {"path": "id", "name": "f", "data_type": pa.int32()},
        {"path": "f", "name": "id"},
        {"path": "p.x", "name": "y", "data_type": pa.int32()},
        {"path": "p.y", "name": "x"},
    )
    found = require_pylance().dataset(place).to_table()
    assert found.schema.field("f").type == pa.int32()
    assert found["f"].to_pylist() == [0, 2, 3, 4, 5]
    assert found["id"].to_pylist() == [0.0, 3.0, 4.5, 6.0, 7.5]
    assert found["p"].to_pylist()[1] == {"y": 2, "x": "s2", "q": {"m": 2}}
    assert ours.to_table().equals(found)


AFTER_A_DROP: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda _: None,
    "delete": lambda one: one.delete("n IS NULL AND _rowaddr % 2 = 0"),
    "update": lambda one: one.update({"n": "7"}),
    "add columns": lambda one: one.add_columns({"m": "1"}),
    "compact": lambda one: one.optimize.compact_files(),
    "append": lambda one: one.insert(pa.table({"n": pa.array([5], pa.int32())})),
    "restore": lambda one: one.restore(),
}


@pytest.mark.parametrize("name", AFTER_A_DROP)
def test_rows_of_which_no_column_is_stored_any_more_can_be_read(tmp_path: Path, name: str) -> None:
    lance = require_pylance()
    rows = pa.table({"n": pa.array([1, 2, 3], pa.int32()), "a": [1, 2, 3]})
    uri = str(tmp_path / "dropped")
    dataset = lance_nb.write_dataset(rows, uri, enable_stable_row_ids=True)
    dataset.insert(rows.select(["a"]))
    dataset.drop_columns(["a"])  # pylance leaves a version that nobody can read
    nulls = pa.array([None] * 3, pa.int32())
    expected = pa.table({"n": pa.chunked_array([rows["n"].chunk(0), nulls])})
    outcomes = []
    for engine in (lance, lance_nb):
        place = str(tmp_path / engine.__name__)
        shutil.copytree(uri, place)
        assert engine.dataset(place).to_table() == expected
        AFTER_A_DROP[name](engine.dataset(place))
        table = lance.dataset(place).to_table()
        assert lance_nb.dataset(place).to_table().equals(table)
        outcomes.append(table)
    assert outcomes[0].equals(outcomes[1])


UNUSUAL_PATHS = [
    ("a b", "a b"), ("select", "select"), ("it's", "it's"), ('say "x"', '`say "x"`'),
    ("x-y", "x-y"), ("null", "null"), ("データ", "データ"), ("1st", "1st"), ("a\\b", "a\\b"),
    ("a b", "s t.a b"), ("select", "`s t`.select"), ("a.b", "`s t`.`a.b`"), ("b`t", "`s t`.`b``t`"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "path"), UNUSUAL_PATHS, ids=lambda one: one)
@pytest.mark.parametrize("has_null", [False, True])
def test_nulls_are_found_in_a_column_of_any_name(
    tmp_path: Path, name: str, path: str, has_null: bool
) -> None:
    values = [{name: 1}, None if has_null else {name: 2}]
    column = pa.array(values, pa.struct([(name, pa.int64())]))
    table = pa.table({"s t": column} if "s t" in path else {name: [1, None if has_null else 2]})
    alteration = {"path": path, "nullable": False}
    schemas = []
    for module in (require_pylance(), lance_nb):
        place = str(tmp_path / module.__name__)
        require_pylance().write_dataset(table, place)
        dataset = module.dataset(place)
        if has_null:
            with pytest.raises(OSError, match="cannot be made non-nullable"):
                dataset.alter_columns(alteration)
        else:
            dataset.alter_columns(alteration)
        schemas.append(module.dataset(place).schema)
    assert schemas[0] == schemas[1]
    assert ("not null" in str(schemas[0])) is not has_null


KILLED = """
import os, sys
import pyarrow as pa
import lance_nb
uri, place, log, last = sys.argv[1:5]

@lance_nb.batch_udf(checkpoint_file=place)
def slow(batch):
    with open(log, "a") as file:
        file.write(f"{batch['id'][0]}\\n")
    if str(batch["id"][0]) == last:
        os.kill(os.getpid(), 9)
    return pa.record_batch({"n": batch["id"]})

lance_nb.dataset(uri).add_columns(slow, read_columns=["id"], batch_size=10)
"""


def test_a_killed_process_leaves_what_it_finished(tmp_path: Path) -> None:
    lance = require_pylance()
    uri, log = str(tmp_path / "t.lance"), tmp_path / "log"
    lance.write_dataset(pa.table({"id": range(100)}), uri, max_rows_per_file=30).delete("id = 4")
    root = Path(lance_nb.__file__).parents[1]
    for last in ("50", "80", "none"):
        arguments = [uri, str(tmp_path / "checkpoint.sqlite"), str(log), last]
        subprocess.run([sys.executable, "-c", KILLED, *arguments], cwd=root, check=last == "none")
    # The batches at which it died were begun twice, all others once.
    assert [int(one) for one in log.read_text().split()] == [
        0, 10, 20, 30, 40, 50, 50, 60, 70, 80, 80, 90,
    ]  # fmt: skip
    found = lance.dataset(uri)
    found.validate()
    assert found.to_table(filter="n != id OR n IS NULL").num_rows == 0
    assert found.count_rows() == 99
    assert not (tmp_path / "checkpoint.sqlite").exists()

"""The same calls to pylance and to us: equal rows, equal versions, equal kinds of errors.

Each scenario runs four times: all calls by pylance, all by us, and alternating both ways on one
dataset. The final rows of every version must be equal, and pylance must find the dataset valid.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop


class _Pylance:
    """pylance, imported by the first test that needs it: it must not be in every worker."""

    def __getattr__(self, name: str) -> Any:
        return getattr(require_pylance(), name)


lance = _Pylance()

ROWS = pa.table(
    {
        "id": pa.array(range(200), pa.int64()),
        "name": [None if n % 7 == 0 else f"name {n}" for n in range(200)],
        "tags": [[n, None] if n % 3 else [] for n in range(200)],
        "point": pa.array([{"x": n / 2, "y": None} for n in range(200)]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array([float(n) for n in range(800)]), 4),
    }
)
MORE = ROWS.slice(50, 30)

Step = Callable[[Any, Path], None]


def opened(engine: Any, uri: Path) -> Any:
    return engine.dataset(str(uri))


def create(engine: Any, uri: Path) -> None:
    engine.write_dataset(ROWS, str(uri), max_rows_per_file=80)


def create_stable(engine: Any, uri: Path) -> None:
    engine.write_dataset(ROWS, str(uri), max_rows_per_file=80, enable_stable_row_ids=True)


def append(engine: Any, uri: Path) -> None:
    engine.write_dataset(MORE, str(uri), mode="append")


def append_part(engine: Any, uri: Path) -> None:
    engine.write_dataset(MORE.select(["name", "id"]), str(uri), mode="append")


def append_key(engine: Any, uri: Path) -> None:
    engine.write_dataset(pa.table({"key": [7, 8]}), str(uri), mode="append")


def insert(engine: Any, uri: Path) -> None:
    opened(engine, uri).insert(MORE)


def delete(predicate: str) -> Step:
    def step(engine: Any, uri: Path) -> None:
        opened(engine, uri).delete(predicate)

    step.__name__ = f"delete {predicate}"
    return step


def update(updates: dict[str, str], where: str | None = None) -> Step:
    def step(engine: Any, uri: Path) -> None:
        opened(engine, uri).update(updates, where=where)

    step.__name__ = f"update {updates}"
    return step


def overwrite(engine: Any, uri: Path) -> None:
    engine.write_dataset(MORE.select(["id", "vector"]), str(uri), mode="overwrite")


def restore(engine: Any, uri: Path) -> None:
    engine.dataset(str(uri), version=2).restore()


def config(engine: Any, uri: Path) -> None:
    opened(engine, uri).update_config({"key": "value"})
    opened(engine, uri).update_metadata({"owner": "ada"})
    opened(engine, uri).update_schema_metadata({"schema": "first"})
    opened(engine, uri).update_field_metadata({"id": {"unit": "none"}})


def tag(engine: Any, uri: Path) -> None:
    tags = opened(engine, uri).tags
    name = f"tag{len(tags.list())}"
    tags.create(name, 2)
    tags.update(name, 1)


def branch(engine: Any, uri: Path) -> None:
    dataset = opened(engine, uri)
    name = f"branch{len(dataset.branches.list())}"
    made = dataset.create_branch(name, dataset.version)
    made.insert(MORE)


def fragments(engine: Any, uri: Path) -> None:
    module = engine if engine is lance_nb else engine.fragment
    made = module.write_fragments(MORE, str(uri))
    operation = engine.LanceOperation.Append(made)
    engine.LanceDataset.commit(str(uri), operation, read_version=opened(engine, uri).version)


def add_column(engine: Any, uri: Path) -> None:
    dataset = opened(engine, uri)
    name = f"c{len(dataset.schema.names)}"
    made = [one.merge_columns({name: "id * 2"}) for one in dataset.get_fragments()]
    operation = engine.LanceOperation.Merge([one for one, _ in made], made[0][1])
    engine.LanceDataset.commit(str(uri), operation, read_version=dataset.version)


def update_column(engine: Any, uri: Path) -> None:
    dataset = opened(engine, uri)
    right = pa.table({"id": [3, 90, 150], "name": ["three", None, "many"]})
    made = [one.update_columns(right, left_on="id") for one in dataset.get_fragments()]
    operation = engine.LanceOperation.Update(
        updated_fragments=[one for one, _ in made], fields_modified=made[0][1]
    )
    engine.LanceDataset.commit(str(uri), operation, read_version=dataset.version)


def drop(*columns: str) -> Step:
    return lambda engine, uri: opened(engine, uri).drop_columns(list(columns))


def alter(*alterations: dict[str, Any]) -> Step:
    return lambda engine, uri: opened(engine, uri).alter_columns(*alterations)


def add(made: Callable[[Any], Any], **options: Any) -> Step:
    """``made`` is handed the dataset."""

    def step(engine: Any, uri: Path) -> None:
        dataset = opened(engine, uri)
        dataset.add_columns(made(dataset), **options)

    return step


def join(engine: Any, uri: Path) -> None:
    right = pa.table({"key": [3, 3, 90, 1000], "joined": ["a", "b", "c", "d"]})
    opened(engine, uri).merge(right, "id", "key")


def shouted(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"shout": pa.compute.utf8_upper(batch["name"])})


SCENARIOS: dict[str, list[Step]] = {
    "append": [create, append, append_part, insert],
    "delete": [
        create,
        delete("id < 10"),
        delete("name IS NULL"),
        append,
        delete("id % 2 = 1 AND point.x > 20"),
        delete("id >= 80 AND id < 160"),
    ],
    "update": [
        create,
        update({"name": "'new'"}, "id < 30"),
        delete("id = 31"),
        update({"id": "id + 1000", "name": "concat(name, '!')"}, "id % 5 = 0"),
        append,
        update({"name": "null"}),
        update({"id": "0"}, "id = 77777"),
    ],
    "update with stable row ids": [
        create_stable,
        update({"name": "'new'"}, "id < 30"),
        append,
        update({"id": "id + 1"}, "id % 7 = 3"),
        delete("id = 9"),
        update({"name": "'all'"}),
    ],
    "overwrite": [create, append, overwrite, delete("id = 55"), restore, append],
    "settings": [create, config, append, config, delete("id = 1")],
    "drop and rename": [
        create,
        delete("id = 5"),
        drop("vector", "point.y"),
        alter({"path": "id", "name": "key"}, {"path": "point.x", "name": "ex"}),
        append_key,
        alter({"path": "key", "nullable": False}),
        alter({"path": "key", "nullable": True}),
        drop("point.ex"),
    ],
    "cast": [
        create,
        delete("id < 3"),
        alter({"path": "id", "data_type": pa.int32()}),
        alter({"path": "point.x", "data_type": pa.float32(), "name": "ex"}),
        alter({"path": "name", "data_type": pa.large_string()}, {"path": "id", "name": "key"}),
        alter({"path": "vector", "data_type": pa.list_(pa.float32(), 4)}),
        delete("key = 77"),
    ],
    "add columns": [
        create,
        delete("id % 50 = 7"),
        add(lambda _: {"twice": "id * 2", "loud": "upper(name)"}),
        add(lambda _: [pa.field("later", pa.list_(pa.int8())), pa.field("flag", pa.bool_())]),
        add(lambda ds: pa.table({"number": list(range(ds.count_rows()))})),
        add(lambda _: shouted, read_columns=["name"]),
        join,
        append_part,
        delete("twice = 40"),
    ],
    "refs": [create, append, tag, branch, delete("id = 2"), branch, tag],
    "columns": [create, delete("id = 3"), add_column, update_column, append_part, add_column],
    "fragments": [create, fragments, delete("id < 60"), fragments],
    "stable row ids": [create_stable, delete("id < 10"), append, delete("id = 51"), insert],
}
ENGINES = {
    "ours": (lance_nb, lance_nb),
    "pylance first": (lance, lance_nb),
    "ours first": (lance_nb, lance),
}


def play(scenario: list[Step], engines: tuple[Any, Any], uri: Path) -> None:
    for number, step in enumerate(scenario):
        step(engines[number % 2], uri)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every scenario, played by pylance alone."""
    folder = tmp_path_factory.mktemp("expected")
    places = {name: folder / f"{number}.lance" for number, name in enumerate(SCENARIOS)}
    for name, uri in places.items():
        play(SCENARIOS[name], (lance, lance), uri)
    return places


@pytest.mark.parametrize("engines", ENGINES)
@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_ends_as_pylance_alone_ends_it(
    name: str, engines: str, expected: dict[str, Path], tmp_path: Path
) -> None:
    uri = tmp_path / "t.lance"
    play(SCENARIOS[name], ENGINES[engines], uri)
    wanted = lance.dataset(str(expected[name]))
    found = lance.dataset(str(uri))
    found.validate()
    assert [one["version"] for one in found.versions()] == [
        one["version"] for one in wanted.versions()
    ]
    for version in range(1, found.version + 1):
        theirs = lance.dataset(str(expected[name]), version=version)
        _compare(theirs, lance.dataset(str(uri), version=version))
        _compare(theirs, lance_nb.dataset(uri, version))
    assert found.config() == wanted.config()
    assert found.metadata == wanted.metadata
    assert {key: one["version"] for key, one in found.tags.list().items()} == {
        key: one["version"] for key, one in wanted.tags.list().items()
    }
    for side in wanted.branches.list():
        _compare(wanted.checkout_version((side, None)), found.checkout_version((side, None)))


def _compare(wanted: Any, found: Any) -> None:
    options = {"with_row_id": True, "with_row_address": True}
    theirs, ours = wanted.to_table(**options), found.to_table(**options)
    assert ours.schema == theirs.schema
    assert ours.schema.metadata == theirs.schema.metadata
    assert ours.to_pylist() == theirs.to_pylist()
    kinds = [type(one.operation).__name__ for one in wanted.get_transactions()]
    assert [type(one.operation).__name__ for one in found.get_transactions()] == kinds


# --- mistakes ------------------------------------------------------------------------------------

MISTAKES: dict[str, Step] = {
    "create what exists": create,
    "unknown mode": lambda engine, uri: engine.write_dataset(ROWS, str(uri), mode="upsert"),
    "append another schema": lambda engine, uri: engine.write_dataset(
        pa.table({"q": [1]}), str(uri), mode="append"
    ),
    "delete by an unknown column": delete("nope = 1"),
    "delete by nonsense": delete("id ="),
    "tag that exists": lambda engine, uri: opened(engine, uri).tags.create("known", 1),
    "tag of no version": lambda engine, uri: opened(engine, uri).tags.create("new", 99),
    "tag with a bad name": lambda engine, uri: opened(engine, uri).tags.create("a b", 1),
    "update of no tag": lambda engine, uri: opened(engine, uri).tags.update("nope", 1),
    "delete of no tag": lambda engine, uri: opened(engine, uri).tags.delete("nope"),
    "delete of no branch": lambda engine, uri: opened(engine, uri).branches.delete("nope"),
    "field that is not there": lambda engine, uri: opened(engine, uri).update_field_metadata(
        {"nope": {"a": "b"}}
    ),
    "commit without a read version": lambda engine, uri: engine.LanceDataset.commit(
        str(uri), engine.LanceOperation.Append([])
    ),
    "offset outside of the fragment": lambda engine, uri: (
        opened(engine, uri).get_fragments()[0].delete_rows([10_000])
    ),
    "drop of no column": drop("nope"),
    "drop of every column": drop(*ROWS.schema.names),
    "rename of no column": alter({"path": "nope", "name": "x"}),
    "rename to a name that is there": alter({"path": "id", "name": "name"}),
    "no nulls where there are some": alter({"path": "name", "nullable": False}),
    "cast to another kind": alter({"path": "id", "data_type": pa.string()}),
    "cast of a value that does not fit": alter({"path": "id", "data_type": pa.int8()}),
    "alteration of nothing": alter({"path": "id"}),
    "too few values": add(lambda _: pa.table({"x": [1]})),
    "null column without nulls": add(lambda _: pa.field("x", pa.int8(), nullable=False)),
    "expression over no column": add(lambda _: {"x": "nope + 1"}),
    "column that exists": lambda engine, uri: (
        opened(engine, uri).get_fragments()[0].merge_columns({"id": "id + 1"})
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_raises_what_pylance_raises_and_changes_nothing(
    mistake: str, tmp_path: Path
) -> None:
    uri = tmp_path / "t.lance"
    create(lance, uri)
    lance.dataset(str(uri)).tags.create("known", 1)
    before = {path: path.read_bytes() for path in uri.rglob("*") if path.is_file()}
    with pytest.raises((OSError, ValueError, KeyError)) as theirs:
        MISTAKES[mistake](lance, uri)
    builtin = next(one for one in theirs.type.__mro__ if one.__module__ == "builtins")
    with pytest.raises(builtin) as ours:
        MISTAKES[mistake](lance_nb, uri)
    assert isinstance(ours.value, lance_nb.errors.LanceError)
    after = {path: path.read_bytes() for path in uri.rglob("*") if path.is_file()}
    assert {path: after[path] for path in before} == before
    assert lance.dataset(str(uri)).version == 1


def test_an_overwrite_drops_what_that_of_pylance_drops(tmp_path: Path) -> None:
    """The difference is that ours names it."""
    key = {b"lance-schema:unenforced-primary-key": b"true", b"unit": b"m"}
    schema = pa.schema([pa.field("id", pa.int64(), False, key)], metadata={b"owner": b"ada"})
    states = []
    for engine in (lance, lance_nb):
        uri = str(tmp_path / ("ours" if engine is lance_nb else "theirs"))
        dataset = lance.write_dataset(pa.table([range(9)], schema=schema), uri)
        dataset.create_scalar_index("id", "BTREE")
        dataset.update_config({"kept": "1"})
        dataset.tags.create("kept", 1)
        dataset.create_branch("kept")
        with pytest.warns() if engine is lance_nb else nullcontext() as caught:
            engine.write_dataset(pa.table({"id": [1]}), uri, mode="overwrite")
        after = lance.dataset(uri)
        refs = (list(after.tags.list()), list(after.branches.list()))
        states.append(
            (after.describe_indices(), after.schema, after.config(), refs, after.to_table())
        )
        if caught is not None:
            assert [one.category for one in caught] == [lance_nb.errors.SideEffectWarning]
    assert states[0] == states[1]
    indices, schema, *_ = states[0]
    assert (indices, schema.metadata, schema.field("id").metadata) == ([], None, None)

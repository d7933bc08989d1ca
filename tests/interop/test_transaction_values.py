"""Transactions, operations and schemas as values: the same code with pylance and with ours."""

from __future__ import annotations

import dataclasses
import inspect
import json
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
lance = require_pylance()
import lance.fragment as their_fragments  # noqa: E402
import lance.schema as their_schemas  # noqa: E402

ENGINES = [lance, lance_nb]
ROWS = pa.table({"a": [1, 2, 3, 4], "b": ["w", "x", "y", "z"], "c": [1.0, 2.0, 3.0, 4.0]})
UUID = "d02910da-c60f-48da-9df6-846239884c05"


def schemas(engine: Any) -> Any:
    return lance_nb.LanceSchema if engine is lance_nb else their_schemas.LanceSchema


def files(engine: Any) -> Any:
    return lance_nb if engine is lance_nb else their_fragments


def tree(schema: Any) -> list[Any]:
    """The ids and names of a schema of either library."""
    return [(one.id(), one.name(), tree_of(one)) for one in schema.fields()]


def tree_of(field: Any) -> list[Any]:
    return [(one.id(), one.name(), tree_of(one)) for one in field.children()]


def plain(value: Any) -> Any:
    """What a value of either library says, without the classes."""
    if isinstance(value, lance_nb.LanceSchema | their_schemas.LanceSchema):
        return tree(value)
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, lance_nb.Index | lance.Index):
        names = [one.name for one in dataclasses.fields(lance.Index)]
        return {name: plain(getattr(value, name)) for name in names}
    if dataclasses.is_dataclass(value):
        name = type(value).__name__
        homes = (lance.LanceOperation, lance, their_fragments)
        theirs = next(getattr(home, name) for home in homes if hasattr(home, name))
        names = [one.name.lstrip("_") for one in dataclasses.fields(theirs)]
        return {"": name, **{one: plain(getattr(value, one)) for one in names}}
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "__iter__") and not isinstance(value, str | bytes):
        return sorted(value)
    return value


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A dataset of pylance with a transaction of each kind that it can make."""
    uri = str(tmp_path_factory.mktemp("transactions") / "d.lance")
    ds = lance.write_dataset(ROWS, uri, max_rows_per_file=2)
    ds.insert(ROWS, commit_message="more", transaction_properties={"who": "ada"})
    ds.delete("a = 1")
    ds.update({"b": "'v'"}, where="a = 2")
    ds.add_columns({"d": "a + 1"})
    ds.drop_columns(["d"])
    ds.optimize.compact_files()  # before the index: pylance cannot read back a remapped one
    ds.create_scalar_index("a", "BTREE")
    ds.update_config({"x": "1", "y": "2"})
    ds.delete_config_keys(["x"])
    ds.update_field_metadata({"a": {"unit": "m"}}, replace=True)
    ds.update_schema_metadata({"s": "t"})
    ds.drop_index("a_idx")
    lance.dataset(uri, 3).restore()
    ds.checkout_latest()
    return uri


def test_every_transaction_of_a_history_has_the_attributes_of_pylance(history: str) -> None:
    ours, theirs = lance_nb.dataset(history), lance.dataset(history)
    kinds = set()
    for version in range(1, theirs.version + 1):
        mine, other = ours.read_transaction(version), theirs.read_transaction(version)
        kinds.add(type(other.operation).__name__)
        assert isinstance(mine.operation, lance_nb.LanceOperation.BaseOperation)
        if type(other.operation) is lance.LanceOperation.BaseOperation:  # pylance shows nothing
            continue
        assert plain(mine) == plain(other)
        assert pickle.loads(pickle.dumps(mine)) == mine  # noqa: S301
    assert kinds >= {"Overwrite", "Append", "Delete", "Update", "Merge", "Project", "CreateIndex",
                     "Rewrite", "UpdateConfig", "Restore"}  # fmt: skip
    assert [plain(one.uuid) for one in ours.get_transactions(3)] == [
        plain(one.uuid) for one in theirs.get_transactions(3)
    ]


def test_a_clone_is_read_alike(history: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "clone")
    lance.dataset(history).shallow_clone(uri, 2)
    version = lance.dataset(uri).version
    mine = lance_nb.dataset(uri, allow_bases=[history]).read_transaction(version)
    assert plain(mine) == plain(lance.dataset(uri).read_transaction(version))


# --- constructors ---------------------------------------------------------------------------------


def operations(engine: Any, uri: str) -> dict[str, Any]:
    """Operations by keyword and by position, as users of pylance write them."""
    make, values = engine.LanceOperation, files(engine)
    fragment = engine.dataset(uri, 1).get_fragments()[0].metadata
    schema = schemas(engine).from_pyarrow(ROWS.schema)
    details = ("/lance.table.BTreeIndexDetails", b"")
    index = engine.Index(
        UUID, "a_idx", [0], 1, {0, 7}, 0, datetime(2026, 1, 2, tzinfo=UTC), None,
        [engine.IndexFile("x", 3)], details, [1],
    )  # fmt: skip
    file = values.DataFile("x.lance", [0], [0], 2, 2)
    return {
        "append": make.Append([fragment]),
        "append by name": make.Append(fragments=[]),
        "overwrite": make.Overwrite(schema, [fragment]),
        "overwrite in full": make.Overwrite(new_schema=schema, fragments=[], initial_bases=None),
        "delete": make.Delete([fragment], [3, 4], "a = 1"),
        "update": make.Update(),
        "update in full": make.Update(
            [1], [fragment], [fragment], [0], [1], "rewrite_columns", {0: b"\0"}
        ),
        "merge": make.Merge([fragment], schema),
        "merge in full": make.Merge(fragments=[], schema=schema, preserves_nullability=True),
        "project": make.Project(schema),
        "project in full": make.Project(schema=schema, preserves_nullability=True),
        "restore": make.Restore(3),
        "clone": make.Clone(True, None, 3, "/x", "dev"),
        "rewrite": make.Rewrite(
            groups=[make.RewriteGroup([fragment], [fragment])],
            rewritten_indices=[make.RewrittenIndex(UUID, UUID, "x", b"y", 1)],
        ),
        "create index": make.CreateIndex([index], []),
        "replacement": make.DataReplacement([make.DataReplacementGroup(0, file)]),
        "config": make.UpdateConfig(),
        "config in full": make.UpdateConfig(
            make.UpdateMap({"a": "1", "b": None}),
            make.UpdateMap(updates={"t": None}, replace=True),
            make.UpdateMap({}),
            {0: make.UpdateMap({"k": "v"})},
        ),
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_constructors_take_what_those_of_pylance_take(history: str) -> None:
    made = {engine: operations(engine, history) for engine in ENGINES}
    for name, mine in made[lance_nb].items():
        expected = plain(made[lance][name])
        if expected[""] == "Update" and not expected["update_mode"]:
            expected["update_mode"] = "rewrite_rows"  # what an empty mode means
        assert plain(mine) == expected, name
        assert repr(mine).startswith(f"LanceOperation.{type(mine).__name__}(")
        assert pickle.loads(pickle.dumps(mine)) == mine  # noqa: S301
    assert made[lance_nb] == operations(lance_nb, history)
    for name in ("restore", "clone", "config in full", "config"):
        assert repr(made[lance_nb][name]) == repr(made[lance][name])


def test_arguments_have_the_names_order_and_defaults_of_pylance() -> None:
    for name, theirs in vars(lance.LanceOperation).items():
        if name.startswith(("_", "DataOverlay", "BaseOperation")):
            continue
        mine = inspect.signature(getattr(lance_nb.LanceOperation, name)).parameters
        for at, one in enumerate(inspect.signature(theirs).parameters):
            assert list(mine)[at] == one, (name, one)


@pytest.mark.parametrize("value", [1, [1], "x", None])
def test_what_is_no_fragment_or_schema_is_refused_alike(value: Any) -> None:
    for engine in ENGINES:
        with pytest.raises(TypeError):
            engine.LanceOperation.Append(value)
        with pytest.raises(TypeError):
            engine.LanceOperation.Update(updated_fragments=value)
    for kind in (lance_nb.LanceOperation.Project, lance_nb.LanceSchema.from_pyarrow):
        with pytest.raises(TypeError, match="Schema"):
            kind(value)


def test_an_unknown_update_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="'rewrite_rows' or 'rewrite_columns', not 'columns'"):
        lance_nb.LanceOperation.Update(update_mode="columns")


# --- commits --------------------------------------------------------------------------------------


def both(tmp_path: Path, change: Any) -> list[Any]:
    """Apply ``change(engine, uri, dataset)`` to a new dataset with each library."""
    found = []
    for engine in ENGINES:
        uri = str(tmp_path / engine.__name__)
        ds = engine.write_dataset(ROWS, uri)
        found.append(change(engine, uri, ds))
    return found


@pytest.mark.parametrize("schema", ["pyarrow", "lance"])
@pytest.mark.parametrize("names", [["a", "b"], ["x", "b", "c"]])
def test_a_projection_is_committed_alike(tmp_path: Path, schema: str, names: list[str]) -> None:
    types = ROWS.schema.types
    wanted = pa.schema(list(zip(names, types[: len(names)], strict=True)))

    def change(engine: Any, uri: str, _: Any) -> Any:
        given = schemas(engine).from_pyarrow(wanted) if schema == "lance" else wanted
        operation = engine.LanceOperation.Project(given)
        ds = engine.LanceDataset.commit(uri, operation, read_version=1)
        made = plain(ds.read_transaction(2))["operation"]
        return ds.to_table().to_pydict(), tree(ds.lance_schema), made

    ours, theirs = both(tmp_path, change)
    assert ours == theirs


def test_a_merge_with_an_arrow_schema_warns_and_is_committed_alike(tmp_path: Path) -> None:
    wider = ROWS.schema.append(pa.field("d", pa.int8()))

    def change(engine: Any, uri: str, ds: Any) -> Any:
        fragments = [one.metadata for one in ds.get_fragments()]
        with pytest.deprecated_call():
            operation = engine.LanceOperation.Merge(fragments, wider)
        return engine.LanceDataset.commit(uri, operation, read_version=1).to_table().to_pydict()

    ours, theirs = both(tmp_path, change)
    assert ours == theirs


def test_none_deletes_a_key_of_every_map(tmp_path: Path) -> None:
    def change(engine: Any, uri: str, ds: Any) -> Any:
        make = engine.LanceOperation

        def maps(updates: dict[str, Any], *, replace: bool = False) -> Any:
            one = make.UpdateMap(updates, replace)
            return make.UpdateConfig(one, one, one, {0: one})

        for version, operation in enumerate(
            [
                maps({"k": "1", "l": "2", "m": "3"}),
                maps({"k": None, "l": "9", "absent": None}),
                maps({"n": "4", "l": None}, replace=True),
            ],
            1,
        ):
            ds = engine.LanceDataset.commit(uri, operation, read_version=version)
        field = ds.schema.field("a").metadata
        return ds.config(), ds.metadata, ds.schema.metadata, field

    ours, theirs = both(tmp_path, change)
    assert ours == theirs


def test_a_transaction_is_committed_and_read_back(tmp_path: Path) -> None:
    def change(engine: Any, uri: str, ds: Any) -> Any:
        fragments = (
            engine.fragment.write_fragments(ROWS, ds)
            if engine is lance
            else (lance_nb.write_fragments(ROWS, ds))
        )
        made = engine.Transaction(
            1, engine.LanceOperation.Append(fragments), transaction_properties={"who": "ada"}
        )
        assert made.uuid != engine.Transaction(1, made.operation).uuid
        assert made == dataclasses.replace(made)
        ds = engine.LanceDataset.commit(uri, made)
        read = ds.read_transaction(2)
        assert (read.uuid, read.transaction_properties) == (made.uuid, {"who": "ada"})
        none = engine.Transaction(2, engine.LanceOperation.Restore(1), transaction_properties=None)
        ds = engine.LanceDataset.commit(uri, none)
        with pytest.raises(TypeError):
            engine.LanceDataset.commit(uri, engine.Transaction(3, made.operation, "u", {"a": 1}))
        with pytest.raises(TypeError):
            engine.LanceDataset.commit(uri, 3, read_version=1)
        appends = [engine.Transaction(3, made.operation) for _ in range(2)]
        merged = engine.LanceDataset.commit_batch(uri, appends)
        versions = [one.read_version for one in merged["dataset"].get_transactions()]
        return merged["dataset"].count_rows(), type(merged["merged"]).__name__, versions

    ours, theirs = both(tmp_path, change)
    assert ours == theirs


def test_a_uuid_that_is_no_file_name_is_refused(tmp_path: Path) -> None:
    lance_nb.write_dataset(ROWS, tmp_path / "d")
    bad = lance_nb.Transaction(1, lance_nb.LanceOperation.Restore(1), "../../x")
    with pytest.raises(ValueError, match="uuid"):
        lance_nb.LanceDataset.commit(tmp_path / "d", bad)
    with pytest.raises(ValueError, match="uuid"):
        lance_nb.LanceDataset.commit_batch(tmp_path / "d", [bad])
    assert lance_nb.dataset(tmp_path / "d").version == 1


def test_bases_of_an_overwrite_are_registered(tmp_path: Path) -> None:
    found = []
    for engine in ENGINES:
        uri = str(tmp_path / engine.__name__)
        bases = [engine.DatasetBasePath(f"{uri}-more", "more")]
        operation = engine.LanceOperation.Overwrite(ROWS.schema, [], bases)
        engine.LanceDataset.commit(uri, operation)
        written = lance.dataset(uri)._ds.base_paths()
        found.append({key: (one.id, one.name) for key, one in written.items()})
    assert found[0] == found[1]


# --- schemas --------------------------------------------------------------------------------------

KEY = {"lance-schema:unenforced-primary-key": "true"}
NESTED = pa.schema(
    [
        pa.field("a", pa.int64(), False, {**KEY, "k": "v"}),
        pa.field("s", pa.struct([pa.field("X", pa.int8()), pa.field("a.b", pa.list_(pa.int8()))])),
        pa.field("m", pa.map_(pa.string(), pa.int32())),
        pa.field("f", pa.list_(pa.float32(), 4)),
        pa.field("j", pa.json_()),
    ],
    metadata={"m": "n"},
)


def test_a_schema_has_the_methods_of_pylance() -> None:
    mine, other = (schemas(one).from_pyarrow(NESTED) for one in (lance_nb, lance))
    assert tree(mine) == tree(other)
    assert mine.to_pyarrow().equals(other.to_pyarrow(), check_metadata=True)
    for path in ("a", "A", "s", "s.X", "s.x", "S.X", "s.`a.b`", "s.a.b", "", "nope", "a.", "`a"):
        for name in ("field", "field_case_insensitive"):
            found, expected = getattr(mine, name)(path), getattr(other, name)(path)
            assert (found and found.id()) == (expected and expected.id()), (name, path)
    for name in ("unenforced_primary_key", "unenforced_clustering_key"):
        assert [one.id() for one in getattr(mine, name)()] == [
            one.id() for one in getattr(other, name)()
        ]
    for one, theirs in zip(mine.fields(), other.fields(), strict=True):
        assert dict(one.metadata) == theirs.metadata
        assert one.to_arrow().equals(theirs.to_arrow(), check_metadata=True)
        for name in ("is_unenforced_primary_key", "unenforced_primary_key_position",
                     "is_unenforced_clustering_key",
                     "unenforced_clustering_key_position"):  # fmt: skip
            assert getattr(one, name)() == getattr(theirs, name)()
    assert mine == schemas(lance_nb).from_pyarrow(NESTED)
    assert pickle.loads(pickle.dumps(mine)) == mine  # noqa: S301
    assert mine != schemas(lance_nb).from_pyarrow(ROWS.schema)


TYPES = [
    pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.bool_(), pa.null(), pa.string(),
    pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(3), pa.date32(), pa.date64(),
    pa.time32("s"), pa.time64("ns"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "+01:00"),
    pa.timestamp("ms"), pa.duration("ns"), pa.decimal128(10, 2), pa.decimal256(40, 3),
    pa.dictionary(pa.int16(), pa.string()), pa.list_(pa.field("x", pa.int8(), False)),
    pa.large_list(pa.string()), pa.list_(pa.float32(), 4), pa.list_(pa.list_(pa.float32(), 2), 3),
    pa.struct([pa.field("x", pa.list_(pa.int8()), False, {"k": "v"})]), pa.json_(), pa.uuid(),
    pa.list_(pa.struct([("y", pa.int8())])),
]  # fmt: skip


@pytest.mark.parametrize("arrow", TYPES, ids=str)
def test_the_json_of_a_schema_is_the_same_in_both_directions(arrow: pa.DataType) -> None:
    schema = pa.schema([pa.field("x", arrow, True, {"a": "b"}), ("y", arrow)], metadata={"m": "n"})
    mine, other = lance_nb.schema_to_json(schema), their_schemas.schema_to_json(schema)
    assert mine == other
    text = json.loads(json.dumps(mine))
    assert lance_nb.json_to_schema(text).equals(
        their_schemas.json_to_schema(text), check_metadata=True
    )


@pytest.mark.parametrize(
    "arrow",
    [pa.map_(pa.string(), pa.int8()), pa.string_view(), pa.binary_view(), pa.list_view(pa.int8()),
     pa.month_day_nano_interval(), pa.run_end_encoded(pa.int32(), pa.string()),
     pa.decimal32(4, 2)],
    ids=str,
)  # fmt: skip
def test_types_without_a_name_in_json_are_refused_by_both(arrow: pa.DataType) -> None:
    schema = pa.schema([("x", arrow)])
    with pytest.raises(ValueError, match="json"):
        their_schemas.schema_to_json(schema)
    with pytest.raises(NotImplementedError):
        lance_nb.schema_to_json(schema)


@pytest.mark.parametrize(
    "value",
    [
        {}, [], None, 3, {"fields": 3}, {"fields": [3]}, {"fields": [{"name": "x"}]},
        {"fields": [{"name": "x", "type": {"type": "int8"}}]},
        {"fields": [{"name": "x", "type": {"type": "nope"}, "nullable": True}]},
        {"fields": [{"name": "x", "type": {"type": 3}, "nullable": True}]},
        {"fields": [{"name": "x", "type": {"type": "list"}, "nullable": True}]},
        {"fields": [{"name": 3, "type": {"type": "int8"}, "nullable": True}]},
        {"fields": [{"name": "x", "type": {"type": "int8"}, "nullable": 1}]},
        {"fields": [{"name": "x", "type": {"type": "fixed_size_binary"}, "nullable": True}]},
        {"fields": [], "metadata": {"a": 3}},
    ],
    ids=str,
)  # fmt: skip
def test_other_json_is_no_schema(value: Any) -> None:
    with pytest.raises((ValueError, NotImplementedError)):
        lance_nb.json_to_schema(value)
    with pytest.raises((ValueError, TypeError)):
        their_schemas.json_to_schema(value)


def test_deep_json_ends_in_our_error() -> None:
    deep: dict[str, Any] = {"type": "int8"}
    for _ in range(5000):
        deep = {"type": "list", "fields": [{"name": "x", "type": deep, "nullable": True}]}
    with pytest.raises(ValueError, match="100 deep"):
        lance_nb.json_to_schema({"fields": [{"name": "x", "type": deep, "nullable": True}]})

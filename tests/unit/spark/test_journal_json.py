"""Everything that a commit needs survives as JSON, and JSON cannot do anything else."""

from __future__ import annotations

import dataclasses
import json
import random
import sys
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InternalError, InvalidInputError
from lance_nb.spark import journal_json
from lance_nb.spark.journal_json import ResumeOptions, from_json, to_json
from lance_nb.spark.plan import Label, Location, PinnedVersion, Plan
from lance_nb.spark.row_writer import WriteSettings
from lance_nb.spark.tasks.files import plan_write
from tests.unit.spark.conftest import rows

LABEL = Label("why", (("batch", "7"),))


def changed(start: int, stop: int) -> pa.Table:
    ids = pa.array(range(start, stop), pa.int64())
    return pa.table({"id": ids, "name": ["new"] * (stop - start)})


def plan_columns_by_key(dataset: LanceDataset) -> Plan:
    dataset.add_columns({"more": "id"})
    return (
        spark.merge(dataset, changed(5, 15), "id")
        .rewriting_columns()
        .when_matched_update_all()
        .plan()
    )


PLANS: dict[str, Callable[[LanceDataset], Plan]] = {
    "delete": lambda ds: spark.plan_delete(ds, "id % 2 = 0", task_bytes=1),
    "delete whole fragments": lambda ds: spark.plan_delete(ds, "id < 20", task_bytes=1),
    "update": lambda ds: spark.plan_update(ds, {"name": "'x'"}, "id < 15", task_bytes=1),
    "append": lambda ds: spark.plan_append(ds, ds, task_bytes=1),
    "overwrite": lambda ds: plan_write(ds, ds, WriteSettings("overwrite", stable_row_ids=True)),
    "create": lambda ds: plan_write(f"{ds.uri}-new", ds, WriteSettings("create", checksums=True)),
    "backfill": lambda ds: spark.plan_columns(ds, {"twice": "id * 2"}, task_bytes=1),
    "cast": lambda ds: spark.plan_cast(ds, {"id": pa.int32()}, task_bytes=1),
    "compact": lambda ds: spark.plan_compaction(ds, excluded_fragment_ids=[9]),
    "index": lambda ds: spark.plan_index(ds, "id", task_bytes=1),
    "upsert": lambda ds: spark.plan_upsert(ds, changed(95, 110), "id"),
    "columns by key": plan_columns_by_key,
    "clone": lambda ds: spark.plan_clone(ds, f"{ds.uri}-copy", task_bytes=1),
}


def kept(plan: Plan) -> dict[str, Any]:
    names = ("verb", "detail", "pinned", "finish", "commits_without_results", "operation_id")
    return {name: getattr(plan, name) for name in names}


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> LanceDataset:
    """A dataset of ten fragments, some rows deleted, with metadata at its schema and fields."""
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata={"a": "ü"}),
            pa.field("name", pa.string()),
        ],
        metadata={"m": "1"},
    )
    table = pa.table(rows(0, 100).columns, schema=schema)
    made = lance_nb.write_dataset(
        table,
        str(tmp_path / "source.lance"),
        max_rows_per_file=10,
        enable_stable_row_ids=request.param,
    )
    made.delete("id IN (3, 44)")
    return made


@pytest.mark.parametrize("name", PLANS)
def test_work_that_is_kept_is_committed_as_if_it_had_not_been(
    source: LanceDataset, name: str
) -> None:
    plan = PLANS[name](source)
    results = tuple(plan.finalized([one.run() for one in plan.tasks]))
    assert results

    data = to_json((kept(plan), results, LABEL))
    found, again, label = from_json(data, ResumeOptions())

    assert found == kept(plan)
    assert again == results
    assert label == LABEL
    assert to_json((found, again, label)) == data
    made = Plan(**found, tasks=()).commit(again, label)
    made.validate()
    if name == "compact":  # finds that its fragments are gone
        return
    twice = plan.commit(results, LABEL)
    assert made.version == twice.version
    assert made.to_table() == twice.to_table()


# Parts of write options that hold stores: plans with one are not kept.
HAS_STORES = ("BlobBases", "ExternalBlobs", "FilePlace", "StoredPayloads")


def test_every_type_that_can_be_reached_is_listed() -> None:
    """Whoever adds a field of a new type to one of these values lists that type as well."""
    listed = {name: journal_json._listed(name) for name in journal_json._MODULES}
    codecs = {codec.kind for codec in journal_json._CODECS.values()}
    waiting, seen = [kind for kind in listed.values() if dataclasses.is_dataclass(kind)], set()
    while waiting:
        one = waiting.pop()
        if one in seen or one in codecs or one.__name__ in HAS_STORES:
            continue
        seen.add(one)
        assert one in listed.values(), f"{one.__name__} is not listed in journal_json"
        names = {**vars(sys.modules[one.__module__]), **listed}
        hints = typing.get_type_hints(one, vars(journal_json), names)
        for field in dataclasses.fields(one):
            if field.init and field.name != "unmatched_filter":  # tasks have its text instead
                waiting += _dataclasses_in(hints[field.name])


def _dataclasses_in(hint: Any) -> list[type]:
    inner = typing.get_args(hint)
    if inner:
        return [found for part in inner for found in _dataclasses_in(part)]
    return [hint] if isinstance(hint, type) and dataclasses.is_dataclass(hint) else []


def test_a_value_of_another_type_is_not_written() -> None:
    for value in (object(), print, {1, 2}, Plan, lambda: None, Path("/x"), 1j):
        with pytest.raises(InternalError, match="cannot store a value of type"):
            to_json((value,))


def test_numbers_of_numpy_are_numbers() -> None:
    import numpy as np

    value = (np.int64(7), np.uint64(2**64 - 1), np.float64(0.5), np.bool_(True), 2**80)
    assert from_json(to_json(value), ResumeOptions()) == (7, 2**64 - 1, 0.5, True, 2**80)


def test_values_of_python_keep_their_kind() -> None:
    value = ([1, (2,)], {"a": b"\x00\xff", 3: frozenset({2, 1})}, None, True, 1.5, "ü\ud800")
    assert from_json(to_json(value), ResumeOptions()) == value


ODD = [
    b"", b"{", b"[", b"nul", b"\xff\xfe", b"{}", b'{"value": 1}', b"[" * 200_000,
    b'{"shared": [{"is": "shared", "value": 0}], "value": 1}',
]  # fmt: skip
ODD_VALUES = [
    b'{"is": 7}', b"{}", b'{"is": "os.system"}', b'{"is": "shared", "value": 0}',
    b'{"is": "eval", "fields": {"source": "1"}}', b'{"is": "function", "value": "print"}',
    b'{"is": "function", "value": "system"}', b'{"is": "function"}',
    b'{"is": "function", "value": "Addition"}', b'{"is": "commit_edits", "fields": {}}',
    b'{"is": "WhenMatched", "value": "No"}', b'{"is": "WhenMatched", "fields": {}}',
    b'{"is": "subprocess.Popen", "fields": {"args": ["true"]}}',
    b'{"is": "Addition", "fields": {"nope": 1}}', b'{"is": "Addition"}',
    b'{"is": "Addition", "fields": []}',
    b'{"is": "__reduce__", "fields": {}}', b'{"is": "Fragment", "value": "!!!"}',
    b'{"is": "Fragment", "value": 7}', b'{"is": "DeletionVector", "value": "AAAA"}',
    b'{"is": "bytes", "value": "AA=A"}', b'{"is": "dict", "value": [[1]]}',
    b'{"is": "dict", "value": [[{"is": "dict", "value": []}, 1]]}',
    b'{"is": "frozenset", "value": [{"is": "list", "value": []}]}', b'{"is": "list"}',
    b'{"is": "PinnedVersion"}', b'{"is": "PinnedVersion", "fields": {"uri": 1}}',
    b'{"is": "Location", "value": ["x"]}', b'{"is": "numbers", "value": ["int8", [1], "AA=="]}',
    b'{"is": "arrow field", "value": "AAAA"}', b'{"is": "arrow array", "value": "AAAA"}',
    b'{"is": "WriteOptions", "fields": {"max_rows_per_file": 0}}', b'{"is": ["list"]}',
    b'{"is": null}', b'{"is":"list","value":[' * 50_000,
]  # fmt: skip


DOCUMENTS = [*ODD, *(b'{"shared": [], "value": %s}' % value for value in ODD_VALUES)]


@pytest.mark.parametrize("data", DOCUMENTS, ids=lambda data: repr(data[:70]))
def test_what_we_have_not_written_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInputError):
        from_json(data, ResumeOptions())


def test_changed_bytes_are_refused_or_are_another_value(dataset: LanceDataset) -> None:
    plan = PLANS["delete"](dataset)
    results = tuple(one.run() for one in plan.tasks)
    data = to_json((kept(plan), results, LABEL))
    chance = random.Random(7)
    for _ in range(400):
        changed = bytearray(data)
        at = chance.randrange(len(changed))
        changed[at : at + chance.choice((0, 1, 1, 30))] = bytes(
            chance.randrange(256) for _ in range(chance.choice((0, 1, 1, 5)))
        )
        try:
            from_json(bytes(changed), ResumeOptions())
        except InvalidInputError:
            continue


# --- credentials ----------------------------------------------------------------------------------

OPTIONS = (
    ("endpoint_url", "http://here"), ("key", "TOPSECRET-1"), ("secret", "TOPSECRET-2"),
    ("client_kwargs", types.MappingProxyType({"region": "x", "password": "TOPSECRET-3"})),
)  # fmt: skip


def test_credentials_are_left_out_of_places_and_asked_for() -> None:
    pinned = PinnedVersion(Location("s3://bucket/x", OPTIONS), 3, "dev", ("/allowed",), "3 1 x")
    data = to_json(pinned)
    assert b"TOPSECRET" not in data
    assert b"http://here" in data

    given = ResumeOptions()
    from_json(data, given)
    assert list(given.missing) == [
        "storage option 'key'",
        "storage option 'secret'",
        "storage option 'client_kwargs.password'",
    ]
    assert "AWS_SECRET_ACCESS_KEY" in given.missing["storage option 'secret'"]

    given = ResumeOptions({"key": "a", "secret": "b", "client_kwargs": {"password": "c"}})
    found = from_json(data, given)
    assert not given.missing
    assert found.location.storage_options == {
        "endpoint_url": "http://here",
        "key": "a",
        "secret": "b",
        "client_kwargs": {"region": "x", "password": "c"},
    }
    assert (found.uri, found.version, found.branch) == (pinned.uri, 3, "dev")
    assert (found.allow_bases, found.stamp) == (pinned.allow_bases, pinned.stamp)


def test_credentials_are_found_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-env")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "")  # said not to be needed
    data = to_json(Location("s3://bucket/x", OPTIONS[:3]))
    given = ResumeOptions({"secret": None})
    found = from_json(data, given)
    assert not given.missing
    assert found.storage_options == {"endpoint_url": "http://here", "key": "from-env"}


def test_what_is_given_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-env")
    data = to_json(Location("s3://bucket/x", OPTIONS[1:2]))
    found = from_json(data, ResumeOptions({"key": "given", "endpoint_url": "http://there"}))
    assert found.storage_options == {"key": "given", "endpoint_url": "http://there"}


def test_the_password_of_a_uri_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANCE_NB_URI_USERINFO", raising=False)
    data = to_json(PinnedVersion(Location("ftp://me:TOPSECRET@host/x"), 1))
    assert b"TOPSECRET" not in data
    given = ResumeOptions()
    from_json(data, given)
    assert list(given.missing) == ["the user and password of the URI"]
    monkeypatch.setenv("LANCE_NB_URI_USERINFO", "me:again")
    given = ResumeOptions()
    pinned = from_json(data, given)
    assert pinned.location.opening_uri == "ftp://me:again@host/x"
    assert "again" not in repr(pinned)
    assert not given.missing


def test_the_target_of_a_clone_has_credentials_of_its_own() -> None:
    from lance_nb.spark.tasks.maintenance import CommitCopy

    copy = CommitCopy(Location.of("s3://other/y", {"secret": "TOPSECRET"}, is_copy=True))
    data = to_json(copy)
    assert b"TOPSECRET" not in data
    given = ResumeOptions({"secret": "of the source"})
    from_json(data, given)
    assert list(given.missing) == ["storage option 'secret'"]
    found = from_json(data, ResumeOptions({"secret": "of the source"}, {"secret": "of the target"}))
    assert found.target.storage_options == {"secret": "of the target"}


def test_a_kept_plan_is_plain_json(dataset: LanceDataset) -> None:
    data = to_json((kept(PLANS["delete"](dataset)), (), LABEL))
    found = json.loads(data)
    assert found["value"][0]["is"] == "dict"
    assert ["verb", "delete"] in found["value"][0]["value"]

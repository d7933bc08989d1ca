"""Changes of a handle whose successor versions were cleaned up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import RetryableCommitConflictError, VersionNotFoundError
from lance_nb.transactions.lost_changes import lost_change_problem

_NUMBERS = count()
ROWS = pa.table({"id": range(4), "name": list("abcd")})
Change = Callable[[LanceDataset], Any]


@pytest.fixture
def uri() -> str:
    return f"memory://lost/{next(_NUMBERS)}.lance"


def stale(uri: str, *changes: Change, keep: int = 1) -> LanceDataset:
    """Return a handle at version 2; others made changes, of which only the newest is left."""
    lance_nb.write_dataset(ROWS, uri)
    lance_nb.write_dataset(ROWS, uri, mode="append").update_config({"before": "1"})
    lance_nb.dataset(uri).update_schema_metadata({"s": "1"})
    lance_nb.dataset(uri).update_field_metadata({"name": {"f": "1"}})
    handle = lance_nb.dataset(uri)
    for change in (*changes, lambda one: one.update_config({"last": "1"})):
        change(lance_nb.dataset(uri))
    lance_nb.dataset(uri).cleanup_old_versions(timedelta(0), retain_versions=keep)
    assert len(lance_nb.dataset(uri).versions()) == keep
    assert handle.version == 5
    return handle


SETTINGS: dict[str, Change] = {
    "update_config": lambda one: one.update_config({"k": "v"}),
    "delete": lambda one: one.delete_config_keys(["before"]),
    "table metadata": lambda one: one.update_metadata({"k": "v"}),
    "replaced": lambda one: one.update_schema_metadata({"k": "v"}, replace=True),
    "field metadata": lambda one: one.update_field_metadata({"name": {"k": "v"}}),
}
OTHERS: dict[str, Change] = {
    "rows": lambda one: one.insert(ROWS),
    "compaction": lambda one: one.optimize.compact_files(),
    "settings": lambda one: one.update_config({"other": "1"}),
    "column": lambda one: one.add_columns({"more": "id + 1"}),
}


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_nobody_changed_are_changed(uri: str, name: str, others: str) -> None:
    handle = stale(uri, OTHERS[others])
    SETTINGS[name](handle)
    newest = lance_nb.dataset(uri)
    assert handle.version == newest.version == 8
    config = newest.config()
    assert config["last"] == "1"
    assert ("before" in config) == (name != "delete")
    assert config.get("k") == ("v" if name == "update_config" else None)
    assert newest.count_rows() == (12 if others == "rows" else 8)
    expected = {"k": "v"} if name == "replaced" else {"s": "1"}
    assert {k.decode(): v.decode() for k, v in newest.schema.metadata.items()} == expected
    field = {b"f": b"1"} | ({b"k": b"v"} if name == "field metadata" else {})
    assert newest.schema.field("name").metadata == field


@pytest.mark.parametrize(
    ("name", "other", "message"),
    [
        ("update_config", {"k": "theirs"}, "config key 'k' is not what it was"),
        ("delete", {"before": "2"}, "config key 'before' is not what it was"),
    ],
)
def test_a_key_that_somebody_changed_is_a_conflict(uri, name, other, message) -> None:
    handle = stale(uri, lambda one: one.update_config(other))
    with pytest.raises(RetryableCommitConflictError, match=message):
        SETTINGS[name](handle)
    assert lance_nb.dataset(uri).version == 7
    SETTINGS[name](handle.checkout_latest())


def test_metadata_that_would_be_replaced_or_of_another_column_is_a_conflict(uri: str) -> None:
    handle = stale(uri, lambda one: one.update_schema_metadata({"t": "2"}))
    with pytest.raises(RetryableCommitConflictError, match="schema metadata, which would be repl"):
        SETTINGS["replaced"](handle)
    other = stale(f"{uri}-2", lambda one: one.alter_columns({"path": "name", "name": "label"}))
    with pytest.raises(RetryableCommitConflictError, match="not the column that it was"):
        SETTINGS["field metadata"](other)


def test_a_key_of_a_column_that_somebody_changed_is_a_conflict(uri: str) -> None:
    handle = stale(uri, lambda one: one.update_field_metadata({"name": {"f": "2"}}))
    with pytest.raises(RetryableCommitConflictError, match="field metadata key 'f' is not what"):
        handle.update_field_metadata({"name": {"f": "3"}})


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("way", ["insert", "write_dataset"])
def test_rows_are_appended(uri: str, others: str, way: str) -> None:
    handle = stale(uri, OTHERS[others])
    before = lance_nb.dataset(uri).count_rows()
    if way == "insert":
        handle.insert(ROWS)
    else:
        lance_nb.write_dataset(ROWS, handle, mode="append")
    found = lance_nb.dataset(uri)
    assert found.count_rows() == before + 4
    assert found.to_table(["id"])["id"].to_pylist()[-4:] == [0, 1, 2, 3]
    assert found.verify().ok


def test_fragments_are_committed_for_a_version_that_is_there(uri: str) -> None:
    stale(uri, OTHERS["rows"])  # versions up to 6 are gone
    operation = lance_nb.LanceOperation.Append(lance_nb.write_fragments(ROWS, uri))
    with pytest.raises(RetryableCommitConflictError, match="removed in the meantime"):
        LanceDataset.commit(uri, operation, read_version=5)
    lance_nb.dataset(uri).tags.create("kept", 7)
    lance_nb.dataset(uri).update_config({"a": "1"})
    lance_nb.dataset(uri).update_config({"b": "1"})
    lance_nb.dataset(uri).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    assert lance_nb.dataset(uri).version_numbers() == [7, 9]
    assert LanceDataset.commit(uri, operation, read_version=7).count_rows() == 16


def test_files_that_are_there_are_not_appended_again(uri: str) -> None:
    handle = stale(uri)
    made = lance_nb.write_fragments(ROWS, uri)
    LanceDataset.commit(uri, lance_nb.LanceOperation.Append(made), read_version=6)
    problem = lost_change_problem(
        lance_nb.LanceOperation.Append(tuple(made)),
        handle.opened[1].manifest,
        lance_nb.dataset(uri).opened[1].manifest,
    )
    assert problem == "the files of this change are in the dataset already"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one.drop_columns(["name"]), "column 'name' is not what it was"),
        (lambda one: one.alter_columns({"path": "id", "name": "number"}), "'id' is not what it"),
        (lambda one: one.alter_columns({"path": "id", "data_type": pa.int32()}), "'id' is not"),
        (lambda one: one.insert(ROWS.select(["id"]), mode="overwrite"), "'name' is not what"),
    ],
)
def test_rows_are_not_appended_to_another_table(uri: str, change: Change, message: str) -> None:
    handle = stale(uri, change)
    with pytest.raises(RetryableCommitConflictError, match=message):
        handle.insert(ROWS)
    assert lance_nb.dataset(uri).version == 7


def test_an_overwrite_fits_always(uri: str) -> None:
    handle = stale(uri, OTHERS["column"])
    handle.insert(ROWS, mode="overwrite")
    assert lance_nb.dataset(uri).to_table() == ROWS


@pytest.mark.parametrize(
    "verb",
    [
        lambda one: one.delete("id = 1"),
        lambda one: one.update({"name": "'z'"}, where="id = 1"),
        lambda one: one.add_columns({"new": "id * 2"}),
        lambda one: one.drop_columns(["name"]),
        lambda one: one.optimize.compact_files(),
        lambda one: one.create_scalar_index("id", "BTREE"),
    ],
)
def test_other_verbs_plan_again_on_the_newest_version(uri: str, verb: Change) -> None:
    handle = stale(uri, OTHERS["rows"])
    verb(handle)
    assert handle.version == lance_nb.dataset(uri).version > 7
    assert lance_nb.dataset(uri).verify().ok


def test_a_handle_whose_own_version_is_gone_reads_and_cleans_up(uri: str) -> None:
    handle = stale(uri)
    handle.cleanup_old_versions(timedelta(0))
    assert handle.to_table(["id"]).num_rows == 8
    assert handle.checkout_version(5).version == handle.checkout_version(5).version == 5
    assert handle.checkout_version(5) is not handle
    assert handle.checkout_latest().version == 6
    with pytest.raises(VersionNotFoundError):
        handle.checkout_version(5)

"""Metadata of schemas and fields is text; bytes that others stored are carried as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.format.schema import Schema

BAD_VALUE = {b"good": b"ok", b"k": b"\xff\x00"}
BAD_KEY = {b"\xff": b"v"}
NUMBER = pa.int64()


def schemas(metadata: dict[bytes, bytes]) -> list[pa.Schema]:
    field = pa.field("x", NUMBER, metadata=metadata)
    return [
        pa.schema([("a", NUMBER)], metadata=metadata),
        pa.schema([field]),
        pa.schema([("a", pa.struct([field]))]),
        pa.schema([("a", pa.list_(field))]),
    ]


WRITES: dict[str, Callable[[pa.Schema, str], Any]] = {
    "create": lambda schema, uri: lance_nb.write_dataset(schema.empty_table(), uri),
    "file": lambda schema, uri: lance_nb.LanceFileWriter(f"{uri}.lance", schema),
    "commit": lambda schema, uri: LanceDataset.commit(
        uri, lance_nb.LanceOperation.Overwrite(schema, [])
    ),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(
    ("metadata", "message"),
    [(BAD_VALUE, r"metadata 'k' of .* is not UTF-8 text.*base64"), (BAD_KEY, "key .* not UTF-8")],
)
def test_metadata_that_is_no_text_is_not_written(write: str, metadata: Any, message: str) -> None:
    for schema in schemas(metadata):
        uri = f"memory://{uuid4().hex}/d"
        with pytest.raises(InvalidInputError, match=message):
            WRITES[write](schema, uri)
        with pytest.raises(lance_nb.DatasetNotFoundError):
            lance_nb.dataset(uri)


def test_new_columns_and_settings_are_text_too() -> None:
    made = lance_nb.write_dataset(pa.table({"a": [1]}), f"memory://{uuid4().hex}/d")
    with pytest.raises(InvalidInputError, match="metadata 'k' of column 'x'"):
        made.add_columns(pa.field("x", NUMBER, metadata=BAD_VALUE))
    for verb in (made.update_config, made.update_metadata, made.update_schema_metadata):
        for key, value in (("k", "\udcff"), ("\udcff", "v"), ("\udcff", None)):
            with pytest.raises(InvalidInputError, match="UTF-8"):
                verb({key: value})
    with pytest.raises(InvalidInputError, match="UTF-8"):
        made.update_field_metadata({"a": {"k": "\udcff"}})
    assert made.version == 1


def forged(monkeypatch: pytest.MonkeyPatch) -> LanceDataset:
    """Write a dataset as a writer would that stores bytes."""
    with monkeypatch.context() as patch:
        patch.setattr(Schema, "check_text_metadata", lambda _: None)
        field = pa.field("a", NUMBER, metadata=BAD_VALUE)
        table = pa.table({"a": range(6)}, schema=pa.schema([field], metadata=BAD_VALUE))
        return lance_nb.write_dataset(table, f"memory://{uuid4().hex}/d")


CHANGES: dict[str, Callable[[LanceDataset], Any]] = {
    "config": lambda one: one.update_config({"n": "1"}),
    "schema": lambda one: one.update_schema_metadata({"n": "1"}),
    "field": lambda one: one.update_field_metadata({"a": {"n": "1"}}),
    "rows": lambda one: one.insert(one.to_table()),
    "delete": lambda one: one.delete("a = 1"),
    "update": lambda one: one.update({"a": "a + 1"}, mode="rows"),
    "columns": lambda one: one.update({"a": "a + 1"}, mode="columns"),
    "column": lambda one: one.add_columns({"b": "a"}),
    "renamed": lambda one: one.alter_columns({"path": "a", "name": "c"}),
    "compaction": lambda one: (one.insert(one.to_table()), one.optimize.compact_files()),
    "upsert": lambda one: one.merge_insert("a").when_not_matched_insert_all().execute(
        pa.table({"a": [1, 99]})
    ),
    "branch": lambda one: one.create_branch("side").insert(pa.table({"a": [7]})),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_bytes_that_others_stored_stay(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = forged(monkeypatch)
    assert made.schema.metadata == made.schema.field("a").metadata == BAD_VALUE
    CHANGES[change](made)
    found = lance_nb.dataset(made.uri, ("side", None) if change == "branch" else None)
    added = {b"n": b"1"}
    assert found.version > 1
    assert found.schema.metadata == {**BAD_VALUE, **(added if change == "schema" else {})}
    metadata = found.schema.field(0).metadata
    assert metadata == {**BAD_VALUE, **(added if change == "field" else {})}
    assert found.schema_metadata["k"] == "\ufffd\x00"
    if change == "schema":
        made.update_schema_metadata({"k": None})
        assert made.update_schema_metadata({"k": "text"})["k"] == "text"


def test_what_a_schema_is_checked_for() -> None:
    schema = Schema.from_arrow(pa.schema([("a", NUMBER)], metadata={"k": "é"}))
    schema.check_text_metadata()
    with pytest.raises(InvalidInputError, match="metadata 'k' of the schema"):
        replace(schema, metadata={"k": b"\xe9"}).check_text_metadata()

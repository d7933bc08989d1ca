"""What a change drops besides is said before the commit, by a warning, and in the history."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import LanceOperation, spark
from lance_nb.errors import SideEffectWarning
from lance_nb.format.transaction_summary import DROPPED_PROPERTY
from lance_nb.spark.row_writer import RowWriter, WriteSettings
from lance_nb.transactions.side_effects import PARTS_MAX

KEY = {b"lance-schema:unenforced-primary-key": b"true"}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata=KEY | {b"unit": b"rows"}),
        pa.field("v", pa.list_(pa.float32(), 2)),
        pa.field("s", pa.struct([pa.field("a", pa.int64(), metadata={b"why": b"x"})])),
    ],
    metadata={b"owner": b"ada", b"pandas": b"{}"},
)
ROWS = pa.table({"id": range(300), "v": [[1.0, 2.0]] * 300, "s": [{"a": 1}] * 300}, schema=SCHEMA)
OTHER = pa.table({"id": [1], "v": [[3.0, 4.0]], "s": [{"a": 2}]})
INDICES = ["index 'id_idx' on 'id'", "index 'v_idx' on 'v'"]
ALL = [
    *INDICES,
    "the unenforced primary key 'id'",
    "metadata 'unit' of column 'id'",
    "metadata 'why' of column 's.a'",
    "metadata 'owner' of the schema",
]


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    ds = lance_nb.write_dataset(ROWS, str(tmp_path / "x.lance"))
    ds.create_scalar_index("id", "BTREE")
    ds.create_index("v", "IVF_FLAT", num_partitions=1)
    return ds


def _by_hand(ds: Any) -> None:
    fragments = lance_nb.write_fragments(OTHER, ds.uri, mode="overwrite")
    lance_nb.LanceDataset.commit(ds.uri, LanceOperation.Overwrite(OTHER.schema, fragments))


def _by_the_data_source(ds: Any) -> None:
    rows = RowWriter.of(ds.uri, OTHER.schema, WriteSettings("overwrite"))
    rows.plan("overwrite", "a DataFrame").commit([rows.write(OTHER)])


OVERWRITES: dict[str, Callable[[Any], object]] = {
    "write_dataset": lambda ds: lance_nb.write_dataset(OTHER, ds.uri, mode="overwrite"),
    "insert": lambda ds: ds.insert(OTHER, mode="overwrite"),
    "stage": lambda ds: ds.stage().overwrite(OTHER).commit(),
    "commit": _by_hand,
    "spark.write": lambda ds: spark.write(OTHER, ds.uri, "overwrite", engine="local"),
    "data source": _by_the_data_source,
}


@pytest.mark.parametrize("name", OVERWRITES)
def test_an_overwrite_names_all_that_it_drops(dataset: Any, name: str) -> None:
    dataset.tags.create("kept", 1)
    dataset.update_config({"kept": "yes"})
    with pytest.warns(SideEffectWarning) as caught:
        OVERWRITES[name](dataset)
    (warning,) = caught
    newest = lance_nb.dataset(dataset.uri)
    text = "; ".join(ALL)
    assert f"on version 4 of '{dataset.uri}' drops {text}." in str(warning.message)
    assert newest.list_indices() == []
    assert (newest.config()["kept"], list(newest.tags.list())) == ("yes", ["kept"])
    summary = newest.transaction()
    assert summary.properties[DROPPED_PROPERTY] == text
    assert summary.description.endswith(f"; dropped {text}")


def test_a_preview_names_what_a_commit_would_drop(dataset: Any) -> None:
    stage = dataset.stage().overwrite(OTHER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        preview = stage.preview()
    assert list(preview.dropped) == ALL
    assert [line for line in str(preview).splitlines() if line.startswith("drops ")] == [
        f"drops {part}" for part in ALL
    ]
    assert dataset.stage().append(ROWS).preview().dropped == ()


def test_a_filter_that_makes_errors_of_warnings_keeps_everything(dataset: Any) -> None:
    with warnings.catch_warnings(), pytest.raises(SideEffectWarning, match="v_idx"):
        warnings.simplefilter("error", SideEffectWarning)
        lance_nb.write_dataset(OTHER, dataset.uri, mode="overwrite")
    newest = lance_nb.dataset(dataset.uri)
    assert (newest.version, newest.count_rows()) == (3, 300)


def test_what_was_built_meanwhile_is_named_too(dataset: Any) -> None:
    stage = dataset.stage().overwrite(OTHER)
    lance_nb.dataset(dataset.uri).create_scalar_index("id", "BITMAP", name="later")
    with pytest.warns(SideEffectWarning, match="on version 4 .*index 'later' on 'id'"):
        stage.commit()


CHANGES: dict[str, tuple[Callable[[Any], object], list[str]]] = {
    "drop column": (lambda ds: ds.drop_columns(["v"]), INDICES[1:]),
    "drop key": (lambda ds: ds.drop_columns(["id"]), [INDICES[0], ALL[2]]),
    "restore": (lambda ds: ds.checkout_version(2).restore(), INDICES[1:]),
    "delete all": (lambda ds: ds.delete("true"), INDICES[1:]),
    "append": (lambda ds: ds.insert(ROWS), []),
    "same schema": (lambda ds: ds.insert(ROWS, mode="overwrite"), INDICES),
    "delete some": (lambda ds: ds.delete("id < 9"), []),
    "compact": (lambda ds: ds.optimize.compact_files(), []),
    "rename": (lambda ds: ds.alter_columns({"path": "id", "name": "key"}), []),
    "add column": (lambda ds: ds.add_columns({"w": "id + 1"}), []),
    "drop index": (lambda ds: ds.drop_index("id_idx"), []),
    "unset metadata": (lambda ds: ds.update_field_metadata({"id": {"unit": None}}), []),
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_changes_say_what_they_do_not_name(dataset: Any, name: str) -> None:
    change, parts = CHANGES[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SideEffectWarning)
        change(dataset)
    texts = [str(one.message) for one in caught if one.category is SideEffectWarning]
    assert len(texts) == bool(parts)
    assert all(f" drops {'; '.join(parts)}. Version 3 still" in text for text in texts)
    properties = lance_nb.dataset(dataset.uri).transaction().properties
    assert properties.get(DROPPED_PROPERTY, "") == "; ".join(parts)


def test_a_transaction_that_is_committed_again_says_what_it_drops_there(dataset: Any) -> None:
    """The property of an older commit is not taken over."""
    dataset.insert(OTHER, mode="overwrite")
    transaction = dataset.read_transaction(dataset.version)
    assert DROPPED_PROPERTY in transaction.properties
    again = lance_nb.LanceDataset.commit(
        dataset.uri, transaction.operation, read_version=dataset.version
    )
    assert DROPPED_PROPERTY not in again.transaction().properties


def test_of_many_parts_some_are_named(tmp_path: Path) -> None:
    fields = [pa.field(f"c{number:02}", pa.int64(), metadata={"k": "v"}) for number in range(30)]
    rows = pa.table([[1]] * 30, schema=pa.schema(fields))
    uri = str(tmp_path / "wide.lance")
    lance_nb.write_dataset(rows, uri)
    plain = rows.cast(pa.schema([field.remove_metadata() for field in fields]))
    with pytest.warns(SideEffectWarning) as caught:
        lance_nb.write_dataset(plain, uri, mode="overwrite")
    text = str(caught[0].message)
    assert text.count("metadata 'k' of column") == PARTS_MAX
    assert "; 20 more columns. Version 1" in text


def test_metadata_that_goes_on_under_another_name_is_not_dropped(tmp_path: Path) -> None:
    length = pa.field("length", pa.int64(), metadata={b"unit": b"m"})
    width = pa.field("width", pa.int64())
    rows = pa.table([[1], [2]], pa.schema([length, width]))
    ds = lance_nb.write_dataset(rows, str(tmp_path / "x.lance"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds.alter_columns({"path": "length", "name": "width"}, {"path": "width", "name": "length"})
    # An overwrite numbers its fields anew: the first one is another column.
    swapped = pa.table([[1], [2]], pa.schema([length, width]))
    with pytest.warns(SideEffectWarning, match="metadata 'unit' of column 'width'"):
        lance_nb.write_dataset(swapped, ds.uri, mode="overwrite")

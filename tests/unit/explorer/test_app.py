from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lance_nb
from lance_nb.errors import (
    CorruptFileError,
    DatasetNotFoundError,
    InvalidInputError,
    NotSupportedError,
    RefNotFoundError,
    VersionNotFoundError,
)
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.app import Explorer, explore
from lance_nb.explorer.rows.column_choice import ColumnChoice
from lance_nb.format.manifest import parse_manifest
from tests.support.fake_dataset import small_dataset


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Datasets open in memory; returns what was asked for."""
    asked: list[tuple[str, Any]] = []

    def open_dataset(uri: str, storage_options: Any = None) -> Any:
        asked.append((uri, storage_options))
        if "damaged" in uri:
            raise CorruptFileError(f"{uri}/_versions/1.manifest", 0, "a footer", "nothing")
        if "fake" not in uri:
            raise DatasetNotFoundError(uri)
        return small_dataset()

    monkeypatch.setattr(refs, "open_dataset", open_dataset)
    return asked


def test_a_path_a_uri_and_a_dataset_can_be_explored(opened: list[tuple[str, Any]]) -> None:
    assert explore("s3://bucket/fake.lance", storage_options={"key": "k"}).version == 4
    assert explore(Path("data/fake.lance")).version == 4
    assert explore(small_dataset()).version == 4
    assert opened == [("s3://bucket/fake.lance", {"key": "k"}), ("data/fake.lance", None)]


@pytest.mark.parametrize(
    ("version", "label"),
    [
        (2, "main:2"),
        ("v1", "main:2"),
        ("dev", "dev:3"),
        (("dev", 2), "dev:2"),
        ("HEAD~1", "main:3"),
    ],
)
def test_any_ref_can_be_explored(opened: list[Any], version: Any, label: str) -> None:
    assert explore("fake", version).screen["label"] == label


@pytest.mark.parametrize(
    ("uri", "version", "error"),
    [
        ("nowhere", None, DatasetNotFoundError),
        ("damaged", None, CorruptFileError),
        ("fake", 99, VersionNotFoundError),
        ("fake", "v9", RefNotFoundError),
        ("fake", "?:?", InvalidInputError),
    ],
)
def test_what_cannot_be_opened_is_a_card_with_the_reason(
    opened: list[Any], uri: str, version: Any, error: type[Exception]
) -> None:
    explorer = explore(uri, version)
    assert isinstance(explorer.error, error)
    assert explorer.screen["error"]["hint"]


def test_a_mistake_in_the_program_is_raised_and_not_shown_as_a_card(opened: list[Any]) -> None:
    for target in (None, 3, b"bytes", object()):
        with pytest.raises(InvalidInputError, match="expected a path"):
            explore(target)
    with pytest.raises(InvalidInputError, match="height"):
        explore("fake", height=1)
    with pytest.raises(InvalidInputError, match="height"):
        explore("nowhere", height=1)
    with pytest.raises(TypeError):
        explore("fake", colour="red")


def test_a_misspelt_local_name_is_answered_with_the_near_one(
    opened: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "demo.lance" / "_versions").mkdir(parents=True)
    explorer = explore(tmp_path / "demo.lanse")
    assert "did you mean" in explorer.screen["error"]["message"]
    assert "demo.lance" in explorer.screen["error"]["message"]
    assert "did you mean" not in explore("nowhere/at/all").screen["error"]["message"]


def test_the_selection_comes_back_as_a_table() -> None:
    explorer = explore(small_dataset())
    assert explorer.selection.num_rows == 0


def ask(explorer: Explorer, kind: str, **args: Any) -> None:
    """Send a request as the browser does."""
    sent: list[Any] = []
    explorer.send = lambda content, **_buffers: sent.append(content)
    explorer._on_message(explorer, {"id": "1", "type": kind, "args": args}, [])
    assert sent[-1]["ok"], sent[-1]


def test_what_the_page_shows_comes_back_as_values() -> None:
    explorer = explore(small_dataset())
    names = explorer.dataset.schema.names
    assert (explorer.filter, explorer.columns, explorer.compare) == (None, names, None)
    assert explorer.row_ids == []
    here = {"branch": None, "version": 4}
    choice = ColumnChoice(shown=frozenset(names[1:]))
    key = explorer._open_session().row_orders.keep_columns(choice)
    rows = {"filter": "id < 5", "system": False, "arranged": None, "shown": key, "row": 0}
    ends = {"a": {"branch": None, "version": 2}, "b": here}
    ask(explorer, "shown", tab="rows", rows=rows, range=ends)
    assert explorer.filter == "id < 5"
    assert explorer.columns == names[1:]
    assert explorer.compare == (2, 4)
    ask(explorer, "select", **here, filter="id < 5", ranges=[[1, 3]])
    assert explorer.selection["id"].to_pylist() == explorer.row_ids == [1, 2]
    ask(explorer, "shown", range={"a": {"branch": "dev", "version": 3}, "b": here})
    assert explorer.compare == ("dev:3", 4)
    explorer.travel(1)
    assert explorer.compare is None


GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "pylance_14_0_2" / "empty.lance"


def test_an_unknown_reader_flag_is_named_on_the_card(tmp_path: Path) -> None:
    copy = tmp_path / "newer.lance"
    shutil.copytree(GOLDEN, copy)
    for path in (copy / "_versions").glob("*.manifest"):
        manifest = parse_manifest(path.read_bytes(), str(path))
        path.write_bytes(replace(manifest, reader_feature_flags=1 << 20).to_bytes())

    explorer = lance_nb.explore(copy)

    assert isinstance(explorer.error, NotSupportedError)
    assert "bit 20" in explorer.picture().text

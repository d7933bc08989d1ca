"""Databases that LanceDB and pylance's namespaces wrote; their tables, handed to ``explore``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_package, require_pylance

pytestmark = pytest.mark.interop
ROWS = pa.table({"id": range(100)})


@pytest.fixture
def lancedb() -> Any:
    return require_package("lancedb")


def test_a_database_of_lancedb(tmp_path: Path, lancedb: Any) -> None:
    db = lancedb.connect(tmp_path / "db")
    db.create_table("photos", ROWS)
    orders = db.create_table("orders", ROWS)
    orders.delete("id < 10")
    ours = lance_nb.database(tmp_path / "db")
    assert ours.table_names() == sorted(db.list_tables().tables)
    for name in ours:
        assert ours[name].to_table() == db.open_table(name).to_arrow()
    assert ours.describe("orders").num_rows == orders.count_rows() == 90


def test_a_table_of_lancedb_is_explored_at_its_version(tmp_path: Path, lancedb: Any) -> None:
    table = lancedb.connect(tmp_path / "db").create_table("photos", ROWS)
    table.delete("id < 10")
    assert lance_nb.explore(table).dataset.count_rows() == 90
    table.checkout(1)
    explorer = lance_nb.explore(table)
    assert (explorer.dataset.version, explorer.dataset.count_rows()) == (1, 100)
    assert lance_nb.explore(table, 2).dataset.version == 2


def test_a_dataset_of_pylance_is_explored_at_its_version_and_branch(tmp_path: Path) -> None:
    lance = require_pylance()
    theirs = lance.write_dataset(ROWS, tmp_path / "x.lance")
    theirs.delete("id < 5")
    assert lance_nb.explore(theirs).dataset.version == 2
    dev = theirs.create_branch("team/dev")
    dev.delete("id < 50")
    for one in (dev, theirs.checkout_version(("team/dev", None))):
        shown = lance_nb.explore(one).dataset
        assert (shown.branch, shown.version) == ("team/dev", one.version)
        assert shown.to_table() == one.to_table()
    assert lance_nb.explore(theirs.checkout_version(1)).dataset.count_rows() == 100


@pytest.fixture
def namespace(tmp_path: Path) -> Any:
    """A directory namespace of pylance with a table at its root and one in a namespace."""
    lance = require_pylance()
    types = require_package("lance_namespace")
    made = require_package("lance.namespace").DirectoryNamespace(root=str(tmp_path / "catalog"))
    made.create_namespace(types.CreateNamespaceRequest(id=["team"]))
    lance.write_dataset(ROWS, namespace_client=made, table_id=["photos"])
    lance.write_dataset(ROWS.slice(0, 7), namespace_client=made, table_id=["team", "orders"])
    return made


def test_a_directory_namespace_of_pylance(tmp_path: Path, namespace: Any) -> None:
    db = lance_nb.database(tmp_path / "catalog")
    assert db.table_names() == ["photos", "team$orders"]
    assert db["photos"].to_table() == ROWS
    assert db["team$orders"].count_rows() == 7


def test_a_rest_server_of_pylance(tmp_path: Path, namespace: Any) -> None:
    root = str(tmp_path / "catalog")
    with require_package("lance.namespace").RestAdapter("dir", {"root": root}, port=0) as server:
        db = lance_nb.database(f"rest+http://127.0.0.1:{server.port}")
        assert db.table_names() == ["photos", "team$orders"]
        assert db["photos"].to_table() == ROWS
        assert db["team$orders"].count_rows() == 7
        assert db.describe("team$orders").health == "ok"
        with pytest.raises(lance_nb.DatasetNotFoundError):
            db.dataset("nothing")

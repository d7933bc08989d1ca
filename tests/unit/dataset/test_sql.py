""" """

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.sql import open_duckdb
from lance_nb.dataset.statements.translation import translate
from lance_nb.errors import InvalidInputError, LanceError, NotSupportedError
from tests.support.requirements import require_package
from tests.support.sql_escapes import CANARY, ESCAPES, written

NAMES = ["id", "word", "Value"]


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("SELECT id FROM dataset", ["id"]),
        ("SELECT value FROM dataset WHERE ID > 3", ["id", "Value"]),
        ("SELECT * FROM dataset", None),
        ("SELECT d.* FROM dataset d", None),
        ("SELECT count(*) FROM dataset", ["id"]),
        ("SELECT count(*), max(word) FROM dataset", ["word"]),
        ("SELECT x FROM (SELECT word AS x FROM dataset)", ["word"]),
        ("not sql at (all", None),
    ],
)
def test_only_the_columns_that_a_statement_names_are_read(
    statement: str, columns: list[str] | None
) -> None:
    schema = pa.schema([(name, pa.int64()) for name in NAMES])
    (scan,) = translate(statement, {"dataset": schema}).scans
    assert (None if scan.columns is None else list(scan.columns)) == columns


def test_without_duckdb_the_error_says_what_to_install(
    at: Callable[..., LanceDataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)

    with pytest.raises(NotSupportedError, match=r"is not installed: pip install .*\[sql\]"):
        at(1).sql("SELECT 1").build().to_batch_records()


# Needed by every test; imported inside, as the package does.
pytestmark = pytest.mark.usefixtures("duckdb")

# They choose where in the connection's own memory a name is looked up.
HARMLESS = {"schema", "search_path", "current_dialect"}


@pytest.fixture
def duckdb() -> ModuleType:
    return require_package("duckdb")


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    return lance_nb.write_dataset(pa.table({"id": range(9)}), f"memory://{tmp_path.name}/ds")


def by_sql(dataset: LanceDataset, statement: str) -> Any:
    return dataset.sql(statement).build().to_batch_records()


def by_bisect(dataset: LanceDataset, statement: str) -> Any:
    return dataset.bisect(statement)


@pytest.mark.parametrize("ask", [by_sql, by_bisect])
@pytest.mark.parametrize("name", ESCAPES)
def test_a_statement_reaches_nothing_but_its_dataset(
    dataset: LanceDataset, tmp_path: Path, ask: Callable[..., Any], name: str
) -> None:
    a_variable = pa.table({"x": [CANARY]})
    statement = written(ESCAPES[name], tmp_path)

    with pytest.raises(LanceError) as caught:
        ask(dataset, statement)

    assert isinstance(caught.value, InvalidInputError)
    assert CANARY not in str(caught.value)
    assert a_variable.num_rows == 1
    assert [one.name for one in tmp_path.iterdir()] == ["secret.csv"]


@pytest.mark.parametrize("statement", ["SELECT * FROM read_text('/x')", "SET threads = 1"])
def test_the_refusal_says_how_to_read_more(dataset: LanceDataset, statement: str) -> None:
    with pytest.raises(InvalidInputError, match=r"duckdb\.connect\(\)\.register"):
        by_sql(dataset, statement)


def test_no_setting_can_be_changed_or_reset(duckdb: ModuleType) -> None:
    connection = open_duckdb()
    known = connection.sql("SELECT name, value FROM duckdb_settings()").fetchall()
    changeable = set()
    for name, value in known:
        text = str(value).replace("'", "''")
        for statement in (
            f"SET {name} = '{text}'",
            f"SET GLOBAL {name} = '{text}'",
            f"SET SESSION {name} = '{text}'",
            f"RESET {name}",
            f"RESET GLOBAL {name}",
            f"PRAGMA {name} = '{text}'",
        ):
            with suppress(duckdb.Error):
                connection.sql(statement)
                changeable.add(name)

    assert len(known) > 80
    assert changeable <= HARMLESS


def test_the_settings_are_those_that_keep_it_locked() -> None:
    connection = open_duckdb()
    off = (
        "enable_external_access", "python_enable_replacements", "autoinstall_known_extensions",
        "autoload_known_extensions", "allow_community_extensions", "allow_persistent_secrets",
    )  # fmt: skip
    for name in off:
        assert connection.execute(f"SELECT current_setting('{name}')").fetchone() == (False,), name
    (is_locked,) = connection.execute("SELECT current_setting('lock_configuration')").fetchone()
    assert is_locked


def test_what_does_not_fit_in_memory_goes_to_a_folder_that_only_the_user_may_enter() -> None:
    connection = open_duckdb()
    (text,) = connection.execute("SELECT current_setting('temp_directory')").fetchone()
    folder = Path(text)
    assert folder.parent == Path(tempfile.gettempdir())
    assert folder.stat().st_mode & 0o777 == 0o700
    (most,) = connection.execute("SELECT current_setting('max_temp_directory_size')").fetchone()
    assert "90%" not in most

    del connection
    gc.collect()
    assert not folder.exists()


def test_the_folder_is_removed_when_duckdb_cannot_be_opened(
    duckdb: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(duckdb, "connect", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        open_duckdb()
    assert list(tmp_path.iterdir()) == []


def test_a_stream_of_rows_lives_longer_than_what_made_it(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reader = dataset.sql("SELECT * FROM dataset ORDER BY id").build().to_stream_reader()
    gc.collect()
    assert len(list(tmp_path.iterdir())) == 1
    assert reader.read_all()["id"].to_pylist() == list(range(9))
    del reader
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_an_aggregate_of_bisect_reads_no_files(dataset: LanceDataset, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text(CANARY)
    aggregate = f"count(*) > (SELECT count(*) FROM read_text('{secret}'))"  # noqa: S608
    with pytest.raises(InvalidInputError, match="SQL: "):
        dataset.bisect(aggregate)


@pytest.mark.slow
def test_a_variable_of_a_script_is_no_table() -> None:
    script = (
        "import lance_nb, pyarrow as pa\n"
        "frame = pa.table({'x': ['TOPSECRET']})\n"
        "ds = lance_nb.write_dataset(pa.table({'id': [1]}), 'memory://script/ds')\n"
        "print(ds.sql('SELECT * FROM frame').build().to_batch_records())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Table with name frame does not exist" in done.stderr
    assert CANARY not in done.stdout

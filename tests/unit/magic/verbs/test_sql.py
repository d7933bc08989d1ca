from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from lance_nb.magic.command_line import main
from tests.support.requirements import require_package
from tests.support.sql_escapes import CANARY, ESCAPES, written
from tests.unit.magic.conftest import Lance


@pytest.fixture
def opened(lance: Lance, uri: str, shell: InteractiveShell) -> InteractiveShell:
    require_package("duckdb")
    lance(f"open {uri} as dataset")
    shell.user_ns["a_variable"] = pa.table({"x": [CANARY]})
    return shell


def by_line(shell: InteractiveShell, statement: str) -> Any:
    return shell.run_line_magic("lance", f"sql {statement}")


def by_cell(shell: InteractiveShell, statement: str) -> Any:
    return shell.run_cell_magic("lance", "", statement)


@pytest.mark.parametrize("ask", [by_line, by_cell])
@pytest.mark.parametrize("name", ESCAPES)
def test_a_statement_reaches_nothing_but_datasets(
    opened: InteractiveShell, tmp_path: Path, ask: Callable[..., Any], name: str
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    a_variable = opened.user_ns["a_variable"]
    with pytest.raises(UsageError) as caught:
        ask(opened, written(ESCAPES[name], folder))

    assert CANARY not in str(caught.value)
    assert a_variable.num_rows == 1
    assert [one.name for one in folder.iterdir()] == ["secret.csv"]


def test_the_command_refuses_in_one_line(
    uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require_package("duckdb")
    statement = written("SELECT * FROM read_text('{secret}')", tmp_path)
    assert main(["sql", uri, statement]) != 0
    found = capsys.readouterr()
    assert CANARY not in found.out + found.err
    assert "on your own connection" in found.err

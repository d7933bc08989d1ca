from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.sql import _columns_of
from lance_nb.errors import NotSupportedError

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
    assert _columns_of(statement, NAMES) == columns


def test_without_duckdb_the_error_says_what_to_install(
    at: Callable[..., LanceDataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)

    with pytest.raises(NotSupportedError, match=r"lance-nb\[sql\]"):
        at(1).sql("SELECT 1").build().to_batch_records()

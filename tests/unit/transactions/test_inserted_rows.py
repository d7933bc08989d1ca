"""Updates that add rows."""

from __future__ import annotations

from lance_nb.transactions.inserted_rows import inserts_rows
from lance_nb.transactions.operations.update import Update, UpdateMode
from tests.support.versions import Versions, deleted, new_fragment


def test_rows_beyond_those_deleted_are_new() -> None:
    versions = Versions(2)
    before = versions.manifest
    changed = (deleted(versions.fragment(0), 3),)
    for rows, inserts in ((3, False), (4, True)):
        assert inserts_rows(Update((), changed, (new_fragment(rows=rows),)), before) is inserts
        new = (new_fragment(rows=rows + 10),)
        assert inserts_rows(Update((1,), changed, new), before) is inserts


def test_beside_rewritten_columns_every_written_row_is_new() -> None:
    before = Versions(1).manifest
    mode = UpdateMode.REWRITE_COLUMNS
    assert inserts_rows(Update(new_fragments=(new_fragment(),), update_mode=mode), before)
    assert not inserts_rows(Update(update_mode=mode), before)

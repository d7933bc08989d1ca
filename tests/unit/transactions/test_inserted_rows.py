"""Updates that add rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import InlineSequence, RowIdMeta
from lance_nb.format.row_sequences import RowIdSegments
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


def test_an_update_of_every_field_may_insert_as_many_rows_as_it_deletes() -> None:
    versions = Versions(2)
    before = versions.manifest
    every = tuple(one.id for one in before.schema.walk())
    changed, new = (deleted(versions.fragment(0), 3),), (new_fragment(rows=3),)
    named = {"fields_for_preserving_frag_bitmap": every}
    assert inserts_rows(Update((), changed, new, **named), before)
    assert not inserts_rows(Update((), changed, (), **named), before)
    fewer = {"fields_for_preserving_frag_bitmap": every[:-1]}
    assert not inserts_rows(Update((), changed, new, **fewer), before)


def test_with_stable_row_ids_new_rows_are_those_without_an_id() -> None:
    before = replace(Versions(2).manifest, reader_feature_flags=STABLE_ROW_IDS)
    ids = InlineSequence(RowIdSegments.from_numpy(np.arange(3, dtype=np.uint64)).to_bytes())
    for rows, inserts in ((3, False), (4, True)):
        new = (replace(new_fragment(rows=rows), row_id_meta=RowIdMeta(ids)),)
        assert inserts_rows(Update(new_fragments=new), before) is inserts
    assert inserts_rows(Update(new_fragments=(new_fragment(rows=1),)), before)

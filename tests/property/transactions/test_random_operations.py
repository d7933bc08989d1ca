"""Any sequence of operations: what must be true of a history, whatever happened in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.format.fragment import DataFile, Fragment, InlineSequence, RowIdMeta
from lance_nb.format.row_sequences import RowIdSegments, RowVersionSequence, choose_segment
from lance_nb.format.schema import Schema
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.operations.reserve_fragments import ReserveFragments
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.operations.rewrite import Rewrite, RewriteGroup
from lance_nb.transactions.operations.update import Update, UpdateMode
from lance_nb.transactions.operations.update_config import UpdateConfig, UpdateMap
from lance_nb.transactions.transaction import Transaction
from tests.support.examples import examples
from tests.support.versions import SCHEMA, Versions, deleted, index, new_fragment

VERBS = (
    "append", "append", "delete", "drop", "overwrite", "index", "rewrite", "merge", "restore",
    "reserve", "update rows", "update column", "project", "config",
)  # fmt: skip


def live_ids(fragment: Fragment) -> np.ndarray:
    """Return the row ids that a writer would move: all but the first, deleted ones."""
    ids = RowIdSegments.from_bytes(fragment.row_ids.data).to_numpy()
    return ids[fragment.num_deleted_rows :]


def holding(fragment: Fragment, ids: np.ndarray | None, rows: int) -> Fragment:
    new = replace(fragment, id=0, physical_rows=rows, deletion_file=None)
    if ids is None:
        return new
    sequence = RowIdSegments((choose_segment(np.asarray(ids, np.uint64)),))
    return replace(new, row_id_meta=RowIdMeta(InlineSequence(sequence.to_bytes())))


def operation(verb: str, versions: Versions, draw: st.DataObject) -> Operation:
    now = versions.manifest
    fragments = list(now.fragments)
    some = (
        draw.draw(st.lists(st.sampled_from(fragments), max_size=3, unique_by=lambda f: f.id))
        if fragments
        else []
    )
    rows = draw.draw(st.integers(1, 6))
    fields = tuple(one.id for one in now.schema)
    fresh = new_fragment(f"v{now.version}", rows, fields)
    stable = bool(now.reader_feature_flags & 2)
    if verb == "append":
        return Append((fresh,) * draw.draw(st.integers(1, 2)))
    if verb == "delete":
        partly = [one for one in some if one.num_rows > 1]
        return Delete(tuple(deleted(one, one.num_deleted_rows + 1) for one in partly))
    if verb == "drop":
        return Delete((), tuple(one.id for one in some))
    if verb == "overwrite":
        return Overwrite(SCHEMA, (new_fragment("o", rows),))
    if verb == "index":
        field = draw.draw(st.sampled_from(fields))
        covers = tuple(one.id for one in fragments)
        kind = draw.draw(st.sampled_from(["Bitmap", "BTree", "Vector"]))
        return CreateIndex((index(f"on {field}", field, covers=covers, kind=kind),))
    if verb == "rewrite" and some:
        kept = sum(one.num_rows for one in some)
        ids = np.concatenate([live_ids(one) for one in some]) if stable else None
        new = holding(some[0], ids, kept)
        if stable:
            new = replace(new, created_at_version_meta=None, last_updated_at_version_meta=None)
        return Rewrite((RewriteGroup(tuple(some), (new,)),))
    if verb == "merge":
        added = Schema.from_arrow(pa.schema([(f"x{now.version}", pa.int8())]), 100 + now.version)
        file = DataFile(f"x{now.version}.lance", (100 + now.version,), (0,), 2, 2)
        merged = tuple(replace(one, files=(*one.files, file)) for one in fragments)
        return Merge(merged, Schema((*now.schema.fields, *added.fields)), True)
    if verb == "restore":
        return Restore(draw.draw(st.integers(1, now.version)))
    if verb == "reserve":
        return ReserveFragments(rows)
    if verb == "update rows" and some:
        partly = [one for one in some if one.num_rows > 1]
        ids = np.array([live_ids(one)[0] for one in partly]) if stable else None
        moved = () if not partly else (holding(fresh, ids, len(partly) + rows),)
        changed = tuple(deleted(one, one.num_deleted_rows + 1) for one in partly)
        return Update((), changed, moved, (), fields[:1])
    if verb == "update column":
        return Update((), tuple(some), (), fields[:1], (), UpdateMode.REWRITE_COLUMNS)
    if verb == "project" and len(now.schema.fields) > 1:
        return Project(Schema(now.schema.fields[:-1], now.schema.metadata), True)
    return UpdateConfig(UpdateMap({"k": str(now.version)}))


def check_history(versions: Versions, stable: bool) -> None:
    numbers = sorted(versions.built)
    assert numbers == list(range(1, len(numbers) + 1))
    highest = -1
    for number in numbers:
        manifest = versions.built[number].manifest
        ids = [one.id for one in manifest.fragments]
        assert ids == sorted(set(ids))
        top = -1 if manifest.max_fragment_id is None else manifest.max_fragment_id
        assert top >= max(highest, *ids, -1)
        highest = top
        for one in versions.built[number].indices:
            assert all(manifest.schema.field_by_id(field) for field in one.fields)
        if stable:
            check_lineage(manifest)


def check_lineage(manifest: object) -> None:
    seen: list[np.ndarray] = []
    for fragment in manifest.fragments:
        ids = RowIdSegments.from_bytes(fragment.row_ids.data).to_numpy()
        assert len(ids) == fragment.physical_rows
        assert not len(ids) or ids.max() < manifest.next_row_id
        seen.append(ids[fragment.num_deleted_rows :])
        for sequence in (fragment.created_at_versions, fragment.last_updated_at_versions):
            if sequence is not None:
                versions = RowVersionSequence.from_bytes(sequence.data).to_numpy()
                assert versions.max(initial=0) <= manifest.version
    live = np.concatenate(seen) if seen else np.empty(0)
    assert len(np.unique(live)) == len(live)


@examples(60)
@given(st.booleans(), st.lists(st.sampled_from(VERBS), max_size=12), st.data())
def test_any_history_is_whole(stable: bool, verbs: list[str], draw: st.DataObject) -> None:
    versions = Versions(3, stable_row_ids=stable)
    frozen = {}
    for verb in verbs:
        made = operation(verb, versions, draw)
        transaction = Transaction(versions.manifest.version, made, "u")
        assert Transaction.from_bytes(transaction.to_bytes()).to_bytes() == transaction.to_bytes()
        frozen[versions.manifest.version] = versions.manifest.to_bytes()
        versions.apply(made)
    check_history(versions, stable)
    for number, data in frozen.items():
        assert versions.built[number].manifest.to_bytes() == data

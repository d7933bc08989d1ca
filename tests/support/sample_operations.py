"""One rich value of every operation, each applicable to ``Versions()`` with three fragments."""

from __future__ import annotations

from dataclasses import replace

from pyroaring import BitMap

from lance_nb.format.fragment import DataFile, Fragment, InlineSequence, RowIdMeta
from lance_nb.format.index_metadata import IndexFile
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.manifest import BasePath
from lance_nb.format.merged_logs import WAL_INDEX, MergedLog
from lance_nb.format.row_sequences import RowIdSegments
from lance_nb.format.schema import Schema
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.clone import Clone
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.data_overlay import DataOverlay
from lance_nb.transactions.operations.data_replacement import DataReplacement, DataReplacementGroup
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.operations.reserve_fragments import ReserveFragments
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.operations.rewrite import Rewrite, RewriteGroup, RewrittenIndex
from lance_nb.transactions.operations.update import Update, UpdateMode
from lance_nb.transactions.operations.update_bases import UpdateBases
from lance_nb.transactions.operations.update_config import (
    DeprecatedUpdates,
    UpdateConfig,
    UpdateMap,
)
from lance_nb.transactions.operations.update_mem_wal_state import UpdateMemWalState
from tests.support.versions import SCHEMA, Versions, deleted, index, new_fragment

SHARD = "0f0e0d0c-0b0a-0908-0706-050403020100"
LOG = MergedLog(SHARD, 7)
UNKNOWN_FIELD = b"\xba\x3e\x03new"  # field 999, three bytes


def log_index() -> CreateIndex:
    """Return the operation that makes a dataset keep the state of write-ahead logs."""
    return CreateIndex((index(WAL_INDEX, covers=(), kind="MemWal"),))


def rewritten(*old: Fragment) -> Fragment:
    """Return the one fragment that a compaction makes of others without deletions."""
    new = new_fragment("rewritten", sum(one.physical_rows for one in old))
    if old[0].row_ids is None:
        return new
    ids = [part for one in old for part in RowIdSegments.from_bytes(one.row_ids.data).segments]
    return replace(new, row_id_meta=RowIdMeta(InlineSequence(RowIdSegments(tuple(ids)).to_bytes())))


def samples(versions: Versions) -> dict[str, Operation]:
    """Return one operation per arm for the newest version."""
    zero, one, two = (versions.fragment(at) for at in (0, 1, 2))
    part = replace(zero.files[0], path="part.lance", fields=(0, 1), column_indices=(0, 1))
    split = replace(zero, files=(part, DataFile("c.lance", (2,), (0,), 2, 2)))
    keys = KeyFilter((0,), hashes=(1, 2, 3))
    return {
        "append": Append((new_fragment("x"), new_fragment("y", 3))),
        "delete": Delete((deleted(zero, 2),), (2,), "a > 3"),
        "overwrite": Overwrite(SCHEMA, (new_fragment("x"),), (), {"k": "v"}),
        "create_index": CreateIndex(
            (index("i", 0), replace(index("j", 1), files=(IndexFile("f", 3),)))
        ),
        "rewrite": Rewrite(
            (RewriteGroup((zero, one), (rewritten(zero, one),)),),
            (RewrittenIndex(SHARD, index("i", 0).uuid, "/x", b"y", 1, (IndexFile("f", 1),)),),
        ),
        "merge": Merge((split, one, two), SCHEMA, True),
        "restore": Restore(1),
        "reserve_fragments": ReserveFragments(4),
        "update": Update(
            (1,), (deleted(zero, 4),), (new_fragment("moved", 14),), (), (2,),
            UpdateMode.REWRITE_ROWS, {0: BitMap([1, 2]).serialize()}, keys,
        ),
        "project": Project(Schema(SCHEMA.fields[:2], SCHEMA.metadata), True),
        "update_config": UpdateConfig(
            UpdateMap({"k": "v", "gone": None}),
            UpdateMap({"t": "1"}, replace=True),
            UpdateMap({"s": "2"}),
            {0: UpdateMap({"f": "3"})},
            DeprecatedUpdates({"old": "x"}, ("older",), {}, {1: {"m": "n"}}),
        ),
        "data_replacement": DataReplacement(
            (DataReplacementGroup(1, replace(one.files[0], path="other.lance")),)
        ),
        "update_mem_wal_state": UpdateMemWalState((LOG,)),
        "clone": Clone(True, "main", 1, "/source", "dev"),
        "update_bases": UpdateBases((BasePath(0, "/base", name="b"),)),
        "data_overlay": DataOverlay(b""),
    }  # fmt: skip

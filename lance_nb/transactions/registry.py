"""The operations by the name of their arm; no other module knows them all."""

from __future__ import annotations

from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.clone import Clone
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.data_overlay import DataOverlay
from lance_nb.transactions.operations.data_replacement import DataReplacement
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.operations.reserve_fragments import ReserveFragments
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.transactions.operations.update import Update
from lance_nb.transactions.operations.update_bases import UpdateBases
from lance_nb.transactions.operations.update_config import UpdateConfig
from lance_nb.transactions.operations.update_mem_wal_state import UpdateMemWalState

OPERATIONS: dict[str, type[Operation]] = {
    operation.arm: operation
    for operation in (
        Append,
        Delete,
        Overwrite,
        CreateIndex,
        Rewrite,
        Merge,
        Restore,
        ReserveFragments,
        Update,
        Project,
        UpdateConfig,
        DataReplacement,
        UpdateMemWalState,
        Clone,
        UpdateBases,
        DataOverlay,
    )
}

"""The operations by the name of their arm; no other module knows them all.

Each is imported when it is asked for: a commit needs its own, and those committed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from lance_nb.transactions.operation import Operation

_FOLDER = "lance_nb.transactions.operations"
_CLASSES = {
    "append": "Append",
    "delete": "Delete",
    "overwrite": "Overwrite",
    "create_index": "CreateIndex",
    "rewrite": "Rewrite",
    "merge": "Merge",
    "restore": "Restore",
    "reserve_fragments": "ReserveFragments",
    "update": "Update",
    "project": "Project",
    "update_config": "UpdateConfig",
    "data_replacement": "DataReplacement",
    "update_mem_wal_state": "UpdateMemWalState",
    "clone": "Clone",
    "update_bases": "UpdateBases",
    "data_overlay": "DataOverlay",
}  # an arm is the name of its module


class _Operations(Mapping[str, type[Operation]]):
    """The classes, each imported when it is asked for."""

    def __getitem__(self, arm: str) -> type[Operation]:
        name = _CLASSES[arm]
        operation_type: type[Operation] = getattr(import_module(f"{_FOLDER}.{arm}"), name)
        return operation_type

    def __contains__(self, arm: object) -> bool:
        return arm in _CLASSES

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


OPERATIONS: Mapping[str, type[Operation]] = _Operations()

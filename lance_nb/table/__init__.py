"""One version of a dataset, read side: versions, refs, fragments, scans, takes, inspection.

Modules that opening a dataset and reading rows do without are loaded when they are first used, as
attributes of the package.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_nb.table import auto_cleanup as auto_cleanup
    from lance_nb.table import blob_scan as blob_scan
    from lance_nb.table import blobs as blobs
    from lance_nb.table import data_statistics as data_statistics
    from lance_nb.table import deletions as deletions
    from lance_nb.table import diff as diff
    from lance_nb.table import files as files
    from lance_nb.table import history as history
    from lance_nb.table import indices as indices
    from lance_nb.table import inspect as inspect
    from lance_nb.table import page_pruning as page_pruning
    from lance_nb.table import ref_files as ref_files
    from lance_nb.table import row_id_index as row_id_index
    from lance_nb.table import row_ids as row_ids
    from lance_nb.table import row_moves as row_moves
    from lance_nb.table import scan_request as scan_request
    from lance_nb.table import take as take
    from lance_nb.table import tiny_fragments as tiny_fragments
else:
    _ON_DEMAND = frozenset({
        "auto_cleanup", "blob_scan", "blobs", "data_statistics", "deletions", "diff", "files",
        "history", "indices", "inspect", "page_pruning", "ref_files", "row_id_index", "row_ids",
        "row_moves", "scan_request", "take", "tiny_fragments",
    })  # fmt: skip

    def __getattr__(name: str) -> ModuleType:
        """Load a module that a plain read does without."""
        if name not in _ON_DEMAND:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")

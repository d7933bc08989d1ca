"""What the write verbs of the façade do. The façade's classes only name them.

A module is loaded when a verb of it is first used, as an attribute of the package: who only reads
does not pay for writing.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_nb.dataset.verbs import base_targets as base_targets
    from lance_nb.dataset.verbs import bisecting as bisecting
    from lance_nb.dataset.verbs import branching as branching
    from lance_nb.dataset.verbs import checksums as checksums
    from lance_nb.dataset.verbs import cleaning as cleaning
    from lance_nb.dataset.verbs import committing as committing
    from lance_nb.dataset.verbs import compacting as compacting
    from lance_nb.dataset.verbs import compaction_steps as compaction_steps
    from lance_nb.dataset.verbs import comparing as comparing
    from lance_nb.dataset.verbs import configuring as configuring
    from lance_nb.dataset.verbs import deleting as deleting
    from lance_nb.dataset.verbs import dropping as dropping
    from lance_nb.dataset.verbs import evolving as evolving
    from lance_nb.dataset.verbs import fragments as fragments
    from lance_nb.dataset.verbs import index_building as index_building
    from lance_nb.dataset.verbs import indexing as indexing
    from lance_nb.dataset.verbs import merge_options as merge_options
    from lance_nb.dataset.verbs import merging as merging
    from lance_nb.dataset.verbs import space as space
    from lance_nb.dataset.verbs import staging as staging
    from lance_nb.dataset.verbs import transacting as transacting
    from lance_nb.dataset.verbs import updating as updating
    from lance_nb.dataset.verbs import upserting as upserting
    from lance_nb.dataset.verbs import verifying as verifying
    from lance_nb.dataset.verbs import writing as writing
else:
    _ON_DEMAND = frozenset({
        "base_targets", "bisecting", "branching", "checksums", "cleaning", "committing",
        "compacting", "compaction_steps", "comparing", "configuring", "deleting", "dropping",
        "evolving", "fragments", "index_building", "indexing", "merge_options", "merging", "space",
        "staging", "transacting", "updating", "upserting", "verifying", "writing",
    })  # fmt: skip

    def __getattr__(name: str) -> ModuleType:
        """Load a module that reading does without."""
        if name not in _ON_DEMAND:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")

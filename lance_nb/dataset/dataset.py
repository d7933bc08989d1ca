"""LanceDataset: one version of a dataset, the object that users hold.

Names, arguments and behaviour follow pylance 14.0.2 wherever the concept is the same. What pylance
lacks has a name of its own (``history``, ``version_info``, ``inspect``, ``transaction``). The verbs
are in one file per group; here they only come together.
"""

from __future__ import annotations

from typing import Any

from lance_nb.dataset import display
from lance_nb.dataset.branching import Branching
from lance_nb.dataset.changing import Changing
from lance_nb.dataset.comparing import Comparing
from lance_nb.dataset.describing import DatasetStats, Describing
from lance_nb.dataset.evolving import Evolving
from lance_nb.dataset.indexing import Indexing
from lance_nb.dataset.maintaining import Maintaining
from lance_nb.dataset.merge_insert import Merging
from lance_nb.dataset.optimize import Optimizing
from lance_nb.dataset.reading import Reading
from lance_nb.dataset.replaying import Replaying
from lance_nb.dataset.taking import Taking
from lance_nb.dataset.transacting import Transacting
from lance_nb.dataset.travel import Travel
from lance_nb.dataset.unsupported import Unsupported

__all__ = ["DatasetStats", "LanceDataset"]


class LanceDataset(
    Reading,
    Taking,
    Describing,
    Indexing,
    Travel,
    Comparing,
    Changing,
    Merging,
    Evolving,
    Branching,
    Replaying,
    Transacting,
    Optimizing,
    Maintaining,
    Unsupported,
):
    """A dataset at one version. Create one with ``lance_nb.dataset(uri)``."""

    def __repr__(self) -> str:
        where = f"{self.branch or 'main'}:{self.version}"
        return f"<lance_nb.LanceDataset {self.uri!r} at {where}>"

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any] | None:
        return display.mime_bundle(self)

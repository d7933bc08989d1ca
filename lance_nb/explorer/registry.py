"""Every view by name, and what stands in the tabs; the only module that imports the views.

``ValueView`` shows single values, no dataset, and is therefore none of ``VIEWS``.
``RetentionHandlers`` are of the simulator that opens below the timeline of the explorer,
``ReviewHandlers`` of the page that opens from the card of a branch, ``DatabaseTables`` of the cards
of a database, which the module of the explorer shows.

A new tab is a line in ``TABS`` and a line in ``tabs.js``, in the order of the tabs.
"""

from __future__ import annotations

from collections.abc import Mapping

from lance_nb.explorer.changes.widget import DiffView
from lance_nb.explorer.checks.widget import ExpectationsPanel
from lance_nb.explorer.editing.widget import RowEditHandlers
from lance_nb.explorer.history.widget import (
    Overview,
    SchemaTree,
    Timeline,
    ValueView,
    VersionDetail,
)
from lance_nb.explorer.log.widget import OperationsLogView
from lance_nb.explorer.map.widget import EmbeddingMap
from lance_nb.explorer.pictures.widget import PictureWall
from lance_nb.explorer.refs.widget import RefsManager
from lance_nb.explorer.retention.widget import RetentionHandlers
from lance_nb.explorer.review.widget import ReviewHandlers
from lance_nb.explorer.rows.widget import RowGrid
from lance_nb.explorer.stage.widget import StagePanel
from lance_nb.explorer.storage.widget import DeletionMap, FragmentMap, SpaceView, StorageView
from lance_nb.explorer.tables.widget import DatabaseTables
from lance_nb.explorer.widget import LanceWidget

__all__ = [
    "TABS",
    "VIEWS",
    "DatabaseTables",
    "DeletionMap",
    "DiffView",
    "EmbeddingMap",
    "ExpectationsPanel",
    "FragmentMap",
    "OperationsLogView",
    "Overview",
    "PictureWall",
    "RefsManager",
    "RetentionHandlers",
    "ReviewHandlers",
    "RowEditHandlers",
    "RowGrid",
    "SchemaTree",
    "SpaceView",
    "StagePanel",
    "StorageView",
    "Timeline",
    "ValueView",
    "VersionDetail",
]  # fmt: skip

# By the id that the browser has for a tab.
TABS: Mapping[str, type[LanceWidget]] = {
    "rows": RowGrid,
    "changes": DiffView,
    "pictures": PictureWall,
    "map": EmbeddingMap,
    "storage": StorageView,
    "refs": RefsManager,
    "checks": ExpectationsPanel,
    "stage": StagePanel,
    "log": OperationsLogView,
}
VIEWS: dict[str, type[LanceWidget]] = {
    "Overview": Overview,
    "Timeline": Timeline,
    "VersionDetail": VersionDetail,
    "SchemaTree": SchemaTree,
    "FragmentMap": FragmentMap,
    "DeletionMap": DeletionMap,
    "SpaceView": SpaceView,
    **{tab.__name__: tab for tab in TABS.values()},
}

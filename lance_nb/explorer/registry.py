"""Every view by name, and what stands in the tabs; the only module that imports the views.

``ValueView`` shows single values, no dataset, and is therefore none of ``VIEWS``.
``RetentionHandlers`` are of the simulator that opens below the timeline of the explorer,
``ReviewHandlers`` of the page that opens from the card of a branch, ``DatabaseTables`` of the cards
of a database, which the module of the explorer shows.

A new tab is a line in ``TABS`` and a line in ``tabs.js``, in the order of the tabs.
"""

from __future__ import annotations

from lance_nb.explorer.widget import LanceWidget
from lance_nb.explorer.widgets.branches import RefsManager
from lance_nb.explorer.widgets.changes import DiffView
from lance_nb.explorer.widgets.embedding_map import EmbeddingMap
from lance_nb.explorer.widgets.expectations import ExpectationsPanel
from lance_nb.explorer.widgets.metadata import (
    Overview,
    SchemaTree,
    Timeline,
    ValueView,
    VersionDetail,
)
from lance_nb.explorer.widgets.operations_log import OperationsLogView
from lance_nb.explorer.widgets.picture_wall import PictureWall
from lance_nb.explorer.widgets.retention import RetentionHandlers
from lance_nb.explorer.widgets.review import ReviewHandlers
from lance_nb.explorer.widgets.row_editor import RowEditHandlers
from lance_nb.explorer.widgets.rows import RowGrid
from lance_nb.explorer.widgets.stage import StagePanel
from lance_nb.explorer.widgets.storage import DeletionMap, FragmentMap, SpaceView, StorageView
from lance_nb.explorer.widgets.tables import DatabaseTables

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

TABS: tuple[type[LanceWidget], ...] = (
    RowGrid, DiffView, PictureWall, EmbeddingMap, StorageView, RefsManager, ExpectationsPanel,
    StagePanel, OperationsLogView,
)  # fmt: skip
VIEWS: dict[str, type[LanceWidget]] = {
    "Overview": Overview,
    "Timeline": Timeline,
    "VersionDetail": VersionDetail,
    "SchemaTree": SchemaTree,
    "FragmentMap": FragmentMap,
    "DeletionMap": DeletionMap,
    "SpaceView": SpaceView,
    **{tab.__name__: tab for tab in TABS},
}

"""Views of the explorer one by one, each a widget of its own for a notebook cell.

Every view takes a dataset, or its path or URI, and shows the version that the dataset is at::

    from lance_nb import widgets
    ds = lance_nb.dataset("photos.lance")

    widgets.Timeline(ds)                    # versions, branches and tags; a click travels
    widgets.RowGrid(ds)                     # the rows; .selection gives what is selected as Arrow
    widgets.DiffView(ds.checkout_version(3), ds)   # what changed between two versions
    widgets.PictureWall(ds)                 # the pictures of a column, side by side
    widgets.EmbeddingMap(ds)                # rows as points, by a column of vectors
    widgets.SchemaTree(ds)                  # the columns
    widgets.FragmentMap(ds)                 # fragments: rows, bytes, deletions
    widgets.DeletionMap(ds, fragment=3)     # which rows of a fragment are deleted
    widgets.SpaceView(ds)                   # where the bytes of all versions are
    widgets.RefsManager(ds)                 # branches and tags
    widgets.ExpectationsPanel(ds)           # conditions that versions should meet
    widgets.StagePanel(ds)                  # changes before they are committed
    widgets.OperationsLogView(ds)           # what was done from this kernel, with undo

``height`` sets the height in pixels. All of them in one card: ``lance_nb.explore(ds)``.
"""

from __future__ import annotations

from lance_nb.explorer.registry import (
    DeletionMap,
    DiffView,
    EmbeddingMap,
    ExpectationsPanel,
    FragmentMap,
    OperationsLogView,
    PictureWall,
    RefsManager,
    RowGrid,
    SchemaTree,
    SpaceView,
    StagePanel,
    Timeline,
)

__all__ = [
    "DeletionMap",
    "DiffView",
    "EmbeddingMap",
    "ExpectationsPanel",
    "FragmentMap",
    "OperationsLogView",
    "PictureWall",
    "RefsManager",
    "RowGrid",
    "SchemaTree",
    "SpaceView",
    "StagePanel",
    "Timeline",
]

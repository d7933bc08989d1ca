"""Views of the explorer one by one, each a widget of its own for a notebook cell.

Every view takes a dataset, or its path or URI, and shows the version that the dataset is at::

    from lance_nb import widgets
    ds = lance_nb.dataset("photos.lance")

    widgets.Timeline(ds)                    # versions, branches and tags; a click travels
    widgets.RowGrid(ds)                     # the rows; .selection gives what is selected as Arrow
    widgets.DiffView(ds.checkout_version(3), ds)   # what changed between two versions
    widgets.SchemaTree(ds)                  # the columns
    widgets.FragmentMap(ds)                 # fragments: rows, bytes, deletions
    widgets.DeletionMap(ds, fragment=3)     # which rows of a fragment are deleted
    widgets.SpaceView(ds)                   # where the bytes of all versions are
    widgets.RefsManager(ds)                 # branches and tags
    widgets.StagePanel(ds)                  # changes before they are committed

``height`` sets the height in pixels. All of them in one card: ``lance_nb.explore(ds)``.
"""

from __future__ import annotations

from lance_nb.explorer.widgets.branches import RefsManager
from lance_nb.explorer.widgets.changes import DiffView
from lance_nb.explorer.widgets.deletion_view import DeletionMap
from lance_nb.explorer.widgets.fragment_map import FragmentMap
from lance_nb.explorer.widgets.rows import RowGrid
from lance_nb.explorer.widgets.schema_view import SchemaTree
from lance_nb.explorer.widgets.space_view import SpaceView
from lance_nb.explorer.widgets.stage import StagePanel
from lance_nb.explorer.widgets.timeline import Timeline

__all__ = [
    "DeletionMap",
    "DiffView",
    "FragmentMap",
    "RefsManager",
    "RowGrid",
    "SchemaTree",
    "SpaceView",
    "StagePanel",
    "Timeline",
]

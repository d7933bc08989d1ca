"""Every widget by name; the only module that imports them all."""

from __future__ import annotations

from lance_nb.explorer.app import Explorer
from lance_nb.explorer.widget import LanceWidget
from lance_nb.explorer.widgets.overview import Overview
from lance_nb.explorer.widgets.rows import RowGrid
from lance_nb.explorer.widgets.timeline import Timeline
from lance_nb.explorer.widgets.version_detail import VersionDetail

WIDGETS: dict[str, type[LanceWidget]] = {
    "Explorer": Explorer,
    "Overview": Overview,
    "Timeline": Timeline,
    "RowGrid": RowGrid,
    "VersionDetail": VersionDetail,
}

"""The rows of a dataset in a grid that scrolls over any number of them.

Its ES module is ``rows.js``, its models are the parts named below (see ``session.screen``).
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb.explorer.widget import LanceWidget


class RowGrid(LanceWidget):
    """The rows of a dataset in a grid that scrolls over any number of them."""

    entry: ClassVar[str] = "widgets/rows.js"
    parts: ClassVar[tuple[str, ...]] = ("rows",)

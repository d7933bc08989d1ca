"""The header of a dataset: name, version shown, figures, and a box to go to another version.

Its ES module is ``overview.js``, its models are the parts named below (see ``session.screen``).
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb.explorer.widget import LanceWidget


class Overview(LanceWidget):
    """The header of a dataset: name, version shown, figures, and a box to go to another version."""

    entry: ClassVar[str] = "widgets/overview.js"
    parts: ClassVar[tuple[str, ...]] = ("card", "timeline")

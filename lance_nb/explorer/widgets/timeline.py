"""The versions of a dataset: one bar per version, tags as flags, a lane per branch.

Its ES module is ``timeline.js``, its models are the parts named below (see ``session.screen``).
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb.explorer.widget import LanceWidget


class Timeline(LanceWidget):
    """The versions of a dataset: one bar per version, tags as flags, a lane per branch."""

    entry: ClassVar[str] = "widgets/timeline.js"
    parts: ClassVar[tuple[str, ...]] = ("timeline",)

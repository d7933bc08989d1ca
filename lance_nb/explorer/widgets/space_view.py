"""Where the bytes of the folder are: by state, by version, tag and branch, orphans.

Its ES module is ``space_view.js``; its requests are those of ``storage_answers``.
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb.explorer.storage_answers import StorageAnswers
from lance_nb.explorer.view_answers import ViewAnswers
from lance_nb.explorer.widget import LanceWidget


class SpaceView(LanceWidget):
    """Where the bytes of the folder are: by state, by version, tag and branch, orphans.

    ``SpaceView("photos.lance")`` or ``SpaceView(ds)``, at the version that ``ds`` is at.
    """

    entry: ClassVar[str] = "widgets/space_view.js"
    parts: ClassVar[tuple[str, ...]] = ("card",)
    desk: ClassVar[type[ViewAnswers]] = StorageAnswers

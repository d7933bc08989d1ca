"""The fragments of a version: width is rows, height bytes per row, hatched what is deleted.

Its ES module is ``fragment_map.js``; its requests are those of ``storage_answers``.
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb.explorer.storage_answers import StorageAnswers
from lance_nb.explorer.view_answers import ViewAnswers
from lance_nb.explorer.widget import LanceWidget


class FragmentMap(LanceWidget):
    """The fragments of a version: width is rows, height bytes per row, hatched what is deleted.

    ``FragmentMap("photos.lance")`` or ``FragmentMap(ds)``, at the version that ``ds`` is at.
    """

    entry: ClassVar[str] = "widgets/fragment_map.js"
    parts: ClassVar[tuple[str, ...]] = ("card",)
    desk: ClassVar[type[ViewAnswers]] = StorageAnswers

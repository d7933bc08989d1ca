"""The deletion vector of a fragment as a bitmap of any size.

Its ES module is ``deletion_view.js``; its requests are those of ``storage_answers``. The trait
``screen`` has one part more, ``fragment``: the one to begin with, null for that with most deleted
rows.
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb.explorer.opening import Target
from lance_nb.explorer.storage_answers import StorageAnswers
from lance_nb.explorer.view_answers import ViewAnswers
from lance_nb.explorer.widget import LanceWidget


class DeletionMap(LanceWidget):
    """The deletion vector of a fragment as a bitmap of any size.

    ``DeletionMap("photos.lance")`` begins with the fragment that has most deleted rows,
    ``DeletionMap(ds, fragment=3)`` with that one.
    """

    entry: ClassVar[str] = "widgets/deletion_view.js"
    parts: ClassVar[tuple[str, ...]] = ("card",)
    desk: ClassVar[type[ViewAnswers]] = StorageAnswers

    def __init__(
        self, dataset: Target, fragment: int | None = None, *, height: int | None = None
    ) -> None:
        super().__init__(dataset, height=height)
        self.screen = self.screen | {"fragment": fragment}

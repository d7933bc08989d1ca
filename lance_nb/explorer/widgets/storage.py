"""The storage of a version: a map of its fragments, what each is made of, advice, and space.

Its ES module is ``storage.js``; its requests are those of ``storage_answers``.
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb.explorer.storage_answers import StorageAnswers
from lance_nb.explorer.view_answers import ViewAnswers
from lance_nb.explorer.widget import LanceWidget


class StorageView(LanceWidget):
    """Where the bytes, files and deletions of a version lie."""

    entry: ClassVar[str] = "widgets/storage.js"
    parts: ClassVar[tuple[str, ...]] = ("card",)
    desk: ClassVar[type[ViewAnswers]] = StorageAnswers

"""The columns of a version as a tree: names, types, nested fields.

Its ES module is ``schema_view.js``; it asks for nothing.
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb.explorer.widget import LanceWidget


class SchemaTree(LanceWidget):
    """The columns of a version as a tree: names, types, nested fields.

    ``SchemaTree("photos.lance")`` or ``SchemaTree(ds)``, at the version that ``ds`` is at.
    """

    entry: ClassVar[str] = "widgets/schema_view.js"
    parts: ClassVar[tuple[str, ...]] = ("detail",)

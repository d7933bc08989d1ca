"""One version of a dataset: operation, message, counts, schema, transaction.

Its ES module is ``version_detail.js``, its models are the parts named below (see
``session.screen``).
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb.explorer.widget import LanceWidget


class VersionDetail(LanceWidget):
    """One version of a dataset: operation, message, counts, schema, transaction."""

    entry: ClassVar[str] = "widgets/version_detail.js"
    parts: ClassVar[tuple[str, ...]] = ("detail",)

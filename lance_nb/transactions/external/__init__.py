"""External manifest stores: who commits which version is decided in a database, not in the store.

For object stores that cannot create objects exclusively, and for tables that others commit to in
the same way (``s3+ddb://`` tables of pylance). Two ways to ask for one::

    lance_nb.dataset("s3+ddb://bucket/t.lance?ddbTableName=commits", storage_options=...)
    lance_nb.dataset("s3://bucket/t.lance", storage_options={"manifest_store": URL, ...})

with URL one of ``sqlite:////path/manifests.db``, ``redis://host:6379/0``, ``postgresql://host/db``
and ``dynamodb://table?region=eu-central-1``. Everybody who writes to a table must use the same
manifest store; who only reads may do without and sees finished versions, at most one commit late.

``lance_nb.transactions.external.registry`` opens such a dataset.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

OPTION = "manifest_store"


def is_configured(uri: str | os.PathLike[str], storage_options: Mapping[str, Any] | None) -> bool:
    """Return whether a URI or its options ask for an external manifest store."""
    if storage_options and storage_options.get(OPTION):
        return True
    return isinstance(uri, str) and "+ddb:" in uri.partition("//")[0].lower()

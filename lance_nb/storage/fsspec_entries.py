"""What fsspec drivers tell of files: each names times and tags in its own way.

Limits: times without a zone are UTC; a size that is not told counts as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from lance_nb.storage.base import ObjectInfo

_MODIFIED_KEYS = ("LastModified", "last_modified", "mtime", "updated", "created")
_E_TAG_KEYS = ("ETag", "etag", "e_tag")


def object_info(entry: Mapping[str, Any], name: str) -> ObjectInfo:
    """Return an entry of a listing as ours."""
    modified = next((entry[key] for key in _MODIFIED_KEYS if entry.get(key)), None)
    if isinstance(modified, (int, float)):
        modified = datetime.fromtimestamp(modified, UTC)
    if not isinstance(modified, datetime):
        modified = None
    elif modified.tzinfo is None:
        modified = modified.replace(tzinfo=UTC)
    e_tag = next((entry[key] for key in _E_TAG_KEYS if isinstance(entry.get(key), str)), None)
    return ObjectInfo(name, int(entry.get("size") or 0), modified, e_tag)

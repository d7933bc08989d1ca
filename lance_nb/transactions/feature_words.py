"""The two feature words of a new version, computed from what it holds.

Deletion files, stable row ids and base paths are announced to readers and writers, a config and
inline-only transactions to writers. Some bits stay once they are set (``STICKY``), because what
they announce cannot be seen in the manifest.

Source: lance-table ``feature_flags``; pylance 14.0.2 measured for what stays and what goes.
"""

from __future__ import annotations

from lance_nb.format.feature_flags import (
    BASE_PATHS,
    COVERING_INDEX_METADATA,
    DELETION_FILES,
    FIELD_IDS_NOT_REUSED,
    MANAGED_BLOBS,
    MIXED_FILE_VERSIONS,
    NO_TRANSACTION_FILES,
    STABLE_ROW_IDS,
    TABLE_CONFIG,
    TAGGED_FRAGMENT_REUSE,
)
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest

STICKY = MIXED_FILE_VERSIONS | TAGGED_FRAGMENT_REUSE | MANAGED_BLOBS | FIELD_IDS_NOT_REUSED


def flag_words(
    manifest: Manifest,
    indices: list[IndexMetadata],
    *,
    row_ids: bool,
    deletions: bool,
    no_transaction_file: bool,
) -> tuple[int, int]:
    """Return (reader word, writer word). ``manifest`` still has the words of the version before."""
    both = 0
    if deletions:
        both |= DELETION_FILES
    if row_ids:
        both |= STABLE_ROW_IDS
    if manifest.base_paths:
        both |= BASE_PATHS
    if any(one.covering_fields for one in indices):
        both |= COVERING_INDEX_METADATA
    reader = both | manifest.reader_feature_flags & STICKY
    writer = both | manifest.writer_feature_flags & STICKY
    if manifest.config:
        writer |= TABLE_CONFIG
    if no_transaction_file:
        writer |= NO_TRANSACTION_FILES
    return reader, writer

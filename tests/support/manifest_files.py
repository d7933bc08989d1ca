"""Small manifests as bytes, with fragments whose files are named after their numbers."""

from __future__ import annotations

import pyarrow as pa

from lance_nb.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.index_metadata import build_index_section
from lance_nb.format.manifest import Manifest
from lance_nb.format.manifest_history import ManifestSummary, TotalsMemo, parse_summary_tail
from lance_nb.format.schema import Schema

SCHEMA = Schema.from_arrow(pa.schema([("id", pa.int64())]))


UUID = "01234567-89ab-cdef-0123-456789abcdef"


def fragment(number: int, *, deleted: bool = False, base_id: int | None = None) -> Fragment:
    file = DataFile(f"f{number}.lance", (0,), (0,), 2, 2, 50, base_id)
    deletion = DeletionFile(3, 99 + number, DeletionFileType.BITMAP, 2) if deleted else None
    return Fragment(number, (file,), 10, deletion)


def manifest(version: int, fragments: list[Fragment], **more: object) -> bytes:
    index = more.pop("index", None)
    built = Manifest(version, SCHEMA, FragmentList.of(fragments), max_fragment_id=1000, **more)  # type: ignore[arg-type]
    section = None if index is None else build_index_section([index])  # type: ignore[list-item]
    return built.to_bytes(index_section=section)


def parse_summary(data: bytes, path: str, memo: TotalsMemo | None = None) -> ManifestSummary:
    """Parse a whole manifest file."""
    summary = parse_summary_tail(data, len(data), path, memo)
    assert isinstance(summary, ManifestSummary)
    return summary

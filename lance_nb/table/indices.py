"""The secondary indices of a version, from the index section of its manifest file.

Source: message IndexSection of lance.table.
"""

from __future__ import annotations

from lance_nb.format.index_metadata import IndexMetadata, parse_index_section
from lance_nb.storage.base import ByteRange
from lance_nb.table.snapshot import Snapshot


def read_indices(snapshot: Snapshot) -> tuple[IndexMetadata, ...]:
    """Return the indices of the version, none when the manifest has no index section."""
    manifest = snapshot.manifest
    section = manifest.index_section
    if section is None:
        return ()
    data = section.data
    if data is None:
        path = manifest.path.removeprefix(f"{snapshot.locations.home.uri}/")
        raw = snapshot.locations.home.read_range(
            path, ByteRange(section.offset_bytes, manifest.size_bytes)
        )
        size = int.from_bytes(raw[:4], "little")
        data = bytes(raw[4 : 4 + size])
    return parse_index_section(data, manifest.path)

"""The content of a fragment-reuse index that lies in a file of its own, read into the index.

Limits: the file is as long as the manifest says, and no longer than a protobuf file may be; both
are checked before anything is kept.
Source: format/fragment_reuse.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from lance_nb.errors import CorruptFileError
from lance_nb.format import layout
from lance_nb.format.fragment_reuse import details_file
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.wire import FILE_BYTES_MAX
from lance_nb.storage.base import ByteRange, Store

Locate = Callable[[str, int | None], tuple[Store, str]]


def with_content(
    indices: Iterable[IndexMetadata], locate: Locate, manifest: str = ""
) -> tuple[IndexMetadata, ...]:
    """Return the indices with what lies outside of the manifest read.

    ``locate`` turns a path and a base id into a store and a path (table/locations). Raises
    CorruptFileError, ObjectNotFoundError.
    """
    return tuple(_with_content(one, locate, manifest) for one in indices)


def _with_content(index: IndexMetadata, locate: Locate, manifest: str) -> IndexMetadata:
    file = details_file(index)
    if file is None or index.content:
        return index
    if not 0 < file.size_bytes <= FILE_BYTES_MAX:
        limit = f"details of at most {FILE_BYTES_MAX} bytes"
        raise CorruptFileError(manifest, None, limit, f"{file.size_bytes} bytes")
    name = layout.check_relative_path(file.path, manifest)
    place = f"{layout.index_folder(index.uuid, manifest)}/{name}"
    store, path = locate(place, index.base_id)
    stop = file.offset_bytes + file.size_bytes
    data = bytes(store.read_range(path, ByteRange(file.offset_bytes, stop)))
    if len(data) != file.size_bytes:
        where = f"{store.uri}/{path}"
        raise CorruptFileError(where, None, f"{file.size_bytes} bytes", f"{len(data)} bytes")
    return replace(index, content=data)

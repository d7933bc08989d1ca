"""Blobs in the grid: a scan brings where each one lies, a person wants to know how long it is.

Layout of a description: a struct with ``size`` in bytes (``position`` in files of 2.1; ``kind``,
``blob_id`` and ``blob_uri`` besides in 2.2), null where there is no blob.

Source: lance_nb.table.blob_columns.
"""

from __future__ import annotations

import pyarrow as pa

from lance_nb.explorer.models import cells, text

_KEY = b"lance-encoding:blob"
TYPE = "blob"


def is_description(field: pa.Field) -> bool:
    """Tell whether a column of a scan describes blobs."""
    kind = field.type
    marked = (field.metadata or {}).get(_KEY) == b"true"
    return bool(marked and pa.types.is_struct(kind) and kind.get_field_index("size") >= 0)


def blob_texts(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Say how long each blob is; None for null."""
    import pyarrow.compute as pc

    sizes = pc.struct_field(cells.plain(column), "size").to_pylist()
    return [None if one is None else text.size(one) for one in sizes]

"""Statistics of a 0.1 data file: null count, smallest and largest value of each page.

Layout: a small table in the file's own format: one row per batch, one column per field of data,
named by the field's id, a struct of ``null_count`` (int64), ``min_value`` and ``max_value``.

Limits: bounds may be wider than the values (text may be cut), and need not occur in the data.
Empty text as a bound cannot be told from none. Columns of any other shape are left out.
Source: spec page "statistics"; verified against pylance 14.0.2.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Rows
from lance_nb.errors import CorruptFileError
from lance_nb.file.columns import assemble, leaves_of
from lance_nb.file.legacy_metadata import LegacyMetadata
from lance_nb.file.legacy_pages import LegacyPages
from lance_nb.file.source import FileSource


def read_statistics(source: FileSource, metadata: LegacyMetadata) -> pa.Table | None:
    """Return one row per batch and one column per field id; None where there are none.

    Raises CorruptFileError.
    """
    if metadata.statistics is None or metadata.statistics_schema is None:
        return None
    schema, table = metadata.statistics_schema, metadata.statistics
    pages = LegacyPages(source, schema, table)
    owners = {field.id: field.id for field in schema.walk()}
    num_rows = int(table.batch_ends[-1])
    rows = Rows(np.zeros(min(num_rows, 1), np.int64), np.full(min(num_rows, 1), num_rows))
    arrays, fields = [], []
    for field, arrow in zip(schema, schema.to_arrow(), strict=True):
        if not field.name.isdigit() or not pa.types.is_struct(arrow.type):
            continue
        found = pages.read_leaves(list(leaves_of(field, arrow.type, owners)), rows)
        column = assemble(field, arrow.type, found, num_rows)
        if len(column) != num_rows:
            place = f"statistics of field {field.name}"
            raise CorruptFileError(
                source.path, None, f"{num_rows} rows", f"{len(column)} rows", place
            )
        arrays.append(column)
        fields.append(arrow)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

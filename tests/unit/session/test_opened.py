from __future__ import annotations

from uuid import uuid4

import pyarrow as pa

import lance_nb
from lance_nb.explorer.rows.row_page import Window, row_page
from lance_nb.format.schema import Schema


def test_the_arrow_schema_is_made_once_per_version(monkeypatch):
    uri = f"memory://opened-{uuid4().hex}/d.lance"
    made = []
    to_arrow = Schema.to_arrow
    monkeypatch.setattr(
        Schema, "to_arrow", lambda self, **how: made.append(self) or to_arrow(self, **how)
    )
    lance_nb.write_dataset(pa.table({f"c{at}": [at] for at in range(50)}), uri)
    dataset = lance_nb.dataset(uri)
    made.clear()
    assert row_page(dataset, Window()).columns[0].name == "c0"
    assert dataset.schema.names == dataset.checkout_version(1).schema.names
    dataset.add_columns({"more": "c0 + 1"})
    assert dataset.schema.names[-1] == "more"
    assert len(made) < 10

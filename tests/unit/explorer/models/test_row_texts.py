from __future__ import annotations

import pyarrow as pa

from lance_nb.explorer.models import row_texts as module
from lance_nb.explorer.models.row_texts import row_texts


def test_rows_are_lines_of_values_parted_by_tabs() -> None:
    table = pa.table({"a": [1, None], "b\tc": ["x\ty\n", "z"], "v": [[1, 2], None]})
    found = row_texts(table)
    assert found.text == "a\tb⇥c\tv\n1\tx⇥y↵\t[1, 2]\nnull\tz\tnull"
    assert found.rows == 2


def test_there_is_an_end(monkeypatch: object) -> None:
    long = pa.table({"a": ["x" * 5000] * 3000})
    found = row_texts(long)
    assert len(found.text) <= module.MAX_CHARS
    assert 0 < found.rows < 3000
    assert row_texts(pa.table({"a": range(5000)})).rows == module.MAX_ROWS

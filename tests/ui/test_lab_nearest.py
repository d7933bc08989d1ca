"""Vector search in a notebook: an index on a dataset of pylance, its plan, and neighbors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import expect

from tests.support.requirements import require_pylance
from tests.ui.bare_page import Screenshot
from tests.ui.lab_server import LabServer

pytestmark = pytest.mark.ui
CELLS = {
    '%load_ext lance_nb\n%lance open "points.lance" as ds --no-display': "",
    'ds.create_index("vector", "IVF_PQ", num_partitions=8, num_sub_vectors=4);': "",
    'search = {"column": "vector", "q": [0.5] * 16, "k": 3, "nprobes": 4}\n'
    "print(ds.scanner(nearest=search).analyze_plan())": "index: 'vector_idx' (IVF_PQ)",
    "%lance like id=7 --by vector -n 5": "_distance",
}


def test_neighbors_in_a_notebook(lab: LabServer, screenshot: Screenshot) -> None:
    vectors = np.random.default_rng(1).normal(size=(3000, 16)).astype(np.float32)
    rows = pa.table(
        {
            "id": np.arange(len(vectors)),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 16),
        }
    )
    require_pylance().write_dataset(rows, str(lab.work / "points.lance"))
    lab.write("nearest.ipynb", *CELLS)
    notebook = lab.notebook("nearest.ipynb", height=1000)
    notebook.run_all()
    for at, words in enumerate(CELLS.values()):
        cell = notebook.page.locator(".jp-CodeCell").nth(at)
        if words:
            expect(cell.locator(".jp-OutputArea")).to_contain_text(words)
    answer = notebook.page.locator(".jp-CodeCell").last
    expect(answer.locator("tbody tr").first).to_contain_text("7")
    expect(answer.locator("tbody tr")).to_have_count(5)
    screenshot(notebook.page)
    assert notebook.outside == []
    notebook.close()

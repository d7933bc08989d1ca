"""Indices in a notebook, on a dataset of pylance: built, listed, searched, extended, dropped."""

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
    '%load_ext lance_nb\n%lance open "points.lance" --no-display': "",
    "%lance index create vector --type IVF_PQ --set num_partitions=8 --set num_sub_vectors=4": (
        "IVF_PQ on vector"
    ),
    'import lance_nb\nds = lance_nb.dataset("points.lance")\n'
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
    require_pylance().write_dataset(rows, str(lab.anew("points.lance")))
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


LINES = {
    "%load_ext lance_nb\n%lance open words.lance --no-display": "",
    "%lance index create text --type INVERTED": "text_idx",
    "%lance index create kind --type BITMAP": "kind_idx",
    "%lance search 'river stone' --in text -n 4": "_score",
    "%lance explain \"kind = 'k3'\"": "index: 'kind_idx' (Bitmap)",
    "%lance index optimize": "",
    "%lance index list": "text_idx",
    "%lance index drop kind_idx": "kind_idx",
    "%lance index": "text_idx",
}


def test_lines_about_indices_in_a_notebook(lab: LabServer, screenshot: Screenshot) -> None:
    rng = np.random.default_rng(2)
    words = np.array(["river", "stone", "cloud", "<b>fox</b>", "the"])
    rows = pa.table(
        {
            "id": range(600),
            "kind": [f"k{one}" for one in rng.integers(0, 9, 600)],
            "text": [" ".join(rng.choice(words, 5)) for _ in range(600)],
        }
    )
    require_pylance().write_dataset(rows, str(lab.anew("words.lance")))
    lab.write("words.ipynb", *LINES)
    notebook = lab.notebook("words.ipynb", height=1800)
    notebook.run_all()
    for at, expected in enumerate(LINES.values()):
        output = notebook.page.locator(".jp-CodeCell").nth(at).locator(".jp-OutputArea")
        if expected:
            expect(output).to_contain_text(expected)
    found = notebook.page.locator(".jp-CodeCell").nth(3).locator("tbody tr")
    expect(found).to_have_count(4)
    expect(found.first).to_contain_text("river")
    expect(notebook.page.locator(".jp-OutputArea b:text-is('fox')")).to_have_count(0)
    left = notebook.page.locator(".jp-CodeCell").last.locator(".jp-OutputArea")
    expect(left).not_to_contain_text("kind_idx")
    screenshot(notebook.page)
    assert notebook.outside == []
    notebook.close()

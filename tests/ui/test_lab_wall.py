"""The wall of pictures in JupyterLab, on a dataset of pylance."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.support.requirements import require_pylance
from tests.ui.bare_page import Screenshot
from tests.ui.lab_server import LabServer
from tests.ui.test_wall_page import table
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui
CELL = 'import lance_nb\nlance_nb.explore("pictures.lance", height=560)'


def test_pictures_in_a_notebook(lab: LabServer, screenshot: Screenshot) -> None:
    ids = np.arange(400)
    vectors = np.random.default_rng(1).normal(size=(400, 16)).astype(np.float32)
    vectors[390:] = vectors[:10]
    require_pylance().write_dataset(table(ids, ids % 4, vectors), str(lab.anew("pictures.lance")))
    lab.write("wall.ipynb", CELL)
    notebook = lab.notebook("wall.ipynb", height=1000)
    notebook.run_all()
    page = notebook.page
    page.get_by_role("tab", name="Pictures", exact=True).click()
    panel = page.locator(".lnb-panel-pictures")
    expect(panel.locator(".lnb-wall-status")).to_have_text("400 rows")
    eventually(page, lambda: panel.locator(".lnb-wall-tile canvas").count() >= 12)
    screenshot(page)
    panel.get_by_label("show").select_option("duplicates")
    expect(panel.locator(".lnb-wall-status")).to_contain_text("20 rows in 10 groups")
    eventually(page, lambda: panel.locator(".lnb-wall-tile canvas").count() >= 4)
    screenshot(page, "duplicates")
    assert notebook.outside == []
    notebook.close()

"""Forty hostile texts in every name and value at once: nothing becomes markup.

The page's own policy refuses any request; one that is tried, and any script that is refused, is a
complaint that fails the test (see ``bare_page``).
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from lance_nb.explorer.value_pictures import widget_of
from tests.ui.bare_page import OpenWidget
from tests.ui.hostile_dataset import hostile_dataset
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui
FOREIGN = "script, img, iframe, object, embed, link, base, meta, video, math, template, a, style"
HANDLERS = """[...document.querySelectorAll("#here *")].flatMap((one) => [...one.attributes])
  .filter(({ name, value }) => name.startsWith("on") || /^\\s*javascript:/i.test(value)
    && name !== "title").map(({ name, value }) => `${name}=${value}`)"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return hostile_dataset(tmp_path_factory.mktemp("hostile"))


def clean(page: Page) -> None:
    """No element that is not ours, no handler in an attribute, nothing has run."""
    expect(page.locator("#here").locator(FOREIGN)).to_have_count(0)
    assert page.evaluate(HANDLERS) == []
    assert page.evaluate("[window.__x ?? null, window['__x'] ?? null]") == [None, None]


def test_no_value_of_the_engine_becomes_markup(open_widget: OpenWidget, dataset: Any) -> None:
    values = (dataset.version_info(1), dataset.transaction(1), dataset.lance_schema,
              dataset.get_fragments()[1], dataset.stage().delete("id < 9").preview())  # fmt: skip
    bare = open_widget(widget_of(values[0]))
    for value in values:
        widget = widget_of(value)
        text = widget.picture().text.splitlines()[0]
        bare.page.evaluate("window.stop()")
        bare.show(widget)
        bare.page.evaluate("(events) => window.start(events)", bare._traits("screen", "height"))
        expect(bare.page.locator(".lnb-value strong").first).to_have_text(text)
        eventually(bare.page, lambda: bare.page.locator(".lnb-live").count() == 1)
        clean(bare.page)

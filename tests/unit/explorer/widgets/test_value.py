from __future__ import annotations

from lance_nb.explorer.models.value_facts import ValueFacts
from lance_nb.explorer.widgets.value import ValueView

FACTS = ValueFacts("Version 3", ("one line",), (("rows", "5"),), operation="Append")


def test_a_value_is_on_the_screen_and_has_a_picture() -> None:
    view = ValueView(FACTS)
    assert view.error is None
    assert view.screen["value"]["heading"] == "Version 3"
    assert view.screen["value"]["rows"] == [{"label": "rows", "value": "5"}]
    assert "one line" in view.picture().html
    assert repr(view) == view.picture().text

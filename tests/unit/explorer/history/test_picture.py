"""The words, signs and colours of operations: one table in each language, and both are the same."""

from __future__ import annotations

import re
from pathlib import Path

from lance_nb.explorer.history import picture
from lance_nb.format.transaction_summary import (
    DESCRIBERS,
    OPERATION_TITLES,
    operation_name,
    operation_title,
)


def test_titles_are_those_of_the_views_and_every_operation_has_one() -> None:
    folder = Path(picture.__file__).parents[1]
    script = (folder / "js" / "operations.js").read_text(encoding="utf-8")
    table = re.findall(r'^  (\w+): \["(\w+)", "(.)", "(.+)"\],', script, re.MULTILINE)
    assert {name: title for name, _, _, title in table} == dict(OPERATION_TITLES)
    assert {name: (family, glyph) for name, family, glyph, _ in table} == dict(picture._LOOKS)
    assert {operation_name(arm) for arm in DESCRIBERS} <= OPERATION_TITLES.keys()
    assert operation_title("Rewrite") == "Compacted (Rewrite)"
    assert (operation_title("Newer"), operation_title(None)) == ("Newer", "operation not recorded")

"""The generated tables of the documentation say what the registries say."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_nb.magic.registry import VERBS, table_of_verbs
from tests.support import capabilities


@pytest.mark.parametrize("page", capabilities.parts(), ids=lambda page: page.name)
def test_a_page_is_up_to_date(page: Path) -> None:
    text = page.read_text()
    assert capabilities.rendered(page, text) == text, "run make capabilities"
    with pytest.raises(ValueError, match="marker"):
        capabilities.rendered(page, "# lance_nb")


def test_every_registered_arm_has_a_row() -> None:
    tables = capabilities.tables()

    assert all(f"`{arm}`" in tables for arm in capabilities.registry.CODECS)
    assert all(f"`{arm}`" in tables for arm in capabilities.registry.LAYOUTS)


def test_every_verb_has_a_row() -> None:
    assert all(f"`%lance {name}" in table_of_verbs() for name in VERBS)

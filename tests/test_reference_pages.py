"""The generated pages of the documentation say what the registries say."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_nb.encodings import registry
from lance_nb.indices import registry as indices
from lance_nb.magic.registry import VERBS
from tests.support import reference_pages


@pytest.mark.parametrize("page", reference_pages.PAGES, ids=lambda page: page.name)
def test_a_page_is_up_to_date(page: Path) -> None:
    assert page.read_text("utf-8") == reference_pages.PAGES[page](), "run make reference"


def test_every_registered_arm_has_a_row() -> None:
    page = reference_pages.capabilities()
    assert all(f"| `{arm}` |" in page for arm in registry.CODECS.keys() - reference_pages.REFUSED)
    assert all(f"| `{arm}` |" in page for arm in registry.LAYOUTS)


def test_every_index_that_can_be_built_is_said_to_be() -> None:
    page = reference_pages.capabilities()
    assert all(f"| `{kind}` | ✓ |" in page for kind in indices.builders())


def test_every_verb_has_a_row() -> None:
    assert all(f"`%lance {name}" in reference_pages.commands() for name in VERBS)

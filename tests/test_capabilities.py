"""The generated tables of the README say what the registries say."""

from __future__ import annotations

import pytest

from lance_nb.magic.help import table_of_verbs
from lance_nb.magic.registry import VERBS
from tests.support import capabilities


def test_the_readme_is_up_to_date() -> None:
    readme = capabilities.README.read_text()

    assert capabilities.rendered(readme) == readme, "run make capabilities"


def test_a_readme_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="marker"):
        capabilities.rendered("# lance_nb")


def test_every_registered_arm_has_a_row() -> None:
    tables = capabilities.tables()

    assert all(f"`{arm}`" in tables for arm in capabilities.registry.CODECS)
    assert all(f"`{arm}`" in tables for arm in capabilities.registry.LAYOUTS)


def test_every_verb_has_a_row() -> None:
    assert all(f"`%lance {name}" in table_of_verbs() for name in VERBS)

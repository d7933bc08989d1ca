"""The generated tables of the README say what the registries say."""

from __future__ import annotations

import pytest

from lance_nb.magic.registry import VERBS, table_of_verbs
from tests.support import badges, capabilities


def test_the_readme_is_up_to_date() -> None:
    readme = capabilities.README.read_text()

    assert capabilities.rendered(readme) == readme, "run make capabilities"


def test_a_readme_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="marker"):
        capabilities.rendered("# lance_nb")


def test_the_badges_lead_to_the_repository_of_the_project() -> None:
    at_github = badges.badges("https://github.com/someone/something")
    assert "/v2/gh/someone/something/HEAD?urlpath=lab/tree/notebooks/01_tour.ipynb" in at_github
    elsewhere = badges.badges("https://example.org/a/b.git")
    assert "/v2/git/https%3A%2F%2Fexample.org%2Fa%2Fb.git/HEAD?urlpath=voila" in elsewhere
    assert badges.badges(badges.repository()) in capabilities.README.read_text()
    for place in (badges.TOUR, badges.EXPLORER):
        assert (capabilities.README.parent / place[place.index("notebooks") :]).is_file()


def test_every_registered_arm_has_a_row() -> None:
    tables = capabilities.tables()

    assert all(f"`{arm}`" in tables for arm in capabilities.registry.CODECS)
    assert all(f"`{arm}`" in tables for arm in capabilities.registry.LAYOUTS)


def test_every_verb_has_a_row() -> None:
    assert all(f"`%lance {name}" in table_of_verbs() for name in VERBS)

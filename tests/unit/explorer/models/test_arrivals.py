from __future__ import annotations

from dataclasses import replace

from lance_nb.explorer.models.arrivals import arrivals, mark_of
from lance_nb.explorer.models.refs import RefNames

NAMES = RefNames(None, (3, 4, 7), ("dev",), {"v1": "a"})


def test_newer_versions_are_counted_from_the_one_that_was_known() -> None:
    found = arrivals(NAMES, 4, 4)
    assert (found.latest, found.added, found.gone) == (7, 1, False)
    assert arrivals(NAMES, 7, 7).added == 0
    assert arrivals(NAMES, 3, 1).added == 3


def test_a_version_that_was_cleaned_up_beneath_the_reader_is_gone() -> None:
    assert arrivals(NAMES, 5, 7).gone
    assert arrivals(RefNames(None, (), (), {}), 5, 7).gone


def test_the_mark_changes_with_every_name_and_with_a_tag_that_is_moved() -> None:
    marks = {
        mark_of(names)
        for names in (
            NAMES,
            replace(NAMES, numbers=(3, 4, 7, 8)),
            replace(NAMES, numbers=(4, 7)),
            replace(NAMES, branches=("dev", "x")),
            replace(NAMES, tags={}),
            replace(NAMES, tags={"v1": "b"}),
        )
    }
    assert len(marks) == 6
    assert mark_of(NAMES) == mark_of(replace(NAMES))

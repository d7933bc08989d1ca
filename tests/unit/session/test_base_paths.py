"""Base paths as users name them."""

from __future__ import annotations

import pytest

from lance_nb import DatasetBasePath
from lance_nb.errors import BasePathError
from lance_nb.session.base_paths import as_values, registered


def test_ids_are_given_in_order() -> None:
    places = [DatasetBasePath("/a", "one"), DatasetBasePath("/b", id=7), DatasetBasePath("/c")]
    assert [(one.id, one.path, one.name) for one in registered(places)] == [
        (1, "/a", "one"),
        (7, "/b", None),
        (8, "/c", None),
    ]
    assert [one.id for one in as_values(places)] == [0, 7, 0]


@pytest.mark.parametrize(
    "second",
    [
        DatasetBasePath("/b", "one"),
        DatasetBasePath("/a"),
        DatasetBasePath("/b", id=1),
        DatasetBasePath("/b", id=2**32),
        DatasetBasePath(""),
        "/b",
    ],
)
def test_places_that_cannot_be_reported_apart_are_refused(second: object) -> None:
    with pytest.raises(BasePathError):
        registered([DatasetBasePath("/a", "one"), second])

"""Names of file versions."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.file.versions import file_version_of, version_name


@pytest.mark.parametrize(
    ("name", "version"),
    [(None, (2, 2)), ("stable", (2, 2)), ("2.2", (2, 2)), ("2.1", (2, 1)), ("0.3", (2, 0))],
)
def test_names_that_can_be_written(name: str | None, version: tuple[int, int]):
    assert file_version_of(name) == version


@pytest.mark.parametrize("name", ["legacy", "0.1", "2.3", "next"])
def test_names_that_cannot(name: str):
    with pytest.raises(NotSupportedError, match=r"use 2\.0, 2\.1 or 2\.2"):
        file_version_of(name)


@pytest.mark.parametrize("name", ["", "2", "0.2", "2.4", "Stable"])
def test_other_names(name: str):
    with pytest.raises(InvalidInputError, match=r"'2\.2', 'stable'"):
        file_version_of(name)


def test_a_version_has_a_name():
    assert version_name((2, 0)) == "2.0"

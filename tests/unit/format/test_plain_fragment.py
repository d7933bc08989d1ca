"""Fragments of the simplest kind are known as such, all others are left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment
from lance_nb.format.plain_fragment import PlainFragment, plain_fragment

FILE = DataFile("a.lance", (0, 3), (1, 0), 2, 2, file_size_bytes=100)
PLAIN = Fragment(7, (FILE,), 2)
DELETIONS = DeletionFile(1, 1, DeletionFileType.BITMAP, 1)


def test_the_simplest_kind_is_read():
    found = plain_fragment(PLAIN.to_bytes())
    assert found == PlainFragment(2, "a.lance", 100, (2, 2), (0, 3), (1, 0))


@pytest.mark.parametrize(
    "other",
    [
        replace(PLAIN, files=()),
        replace(PLAIN, files=(FILE, FILE)),
        replace(PLAIN, deletion_file=DELETIONS),
        replace(PLAIN, overlays=(b"",)),
        *(
            replace(PLAIN, files=(replace(FILE, **change),))
            for change in (
                {"base_id": 0}, {"file_size_bytes": 0}, {"column_indices": (1,)}, {"path": ""},
                {"path": "../a.lance"}, {"path": "b/a.lance"}, {"path": ".."}, {"path": "a%2fb"},
                {"path": "c:a"}, {"path": "a\\b"}, {"path": "a\0b"},
            )
        ),
    ],
    ids=str,
)  # fmt: skip
def test_everything_else_is_left_alone(other: Fragment):
    assert plain_fragment(other.to_bytes()) is None


def test_bytes_that_are_no_fragment_are_left_alone():
    assert plain_fragment(b"\x08") is None
    assert plain_fragment(PLAIN.to_bytes()[:-3]) is None

from __future__ import annotations

import struct

import pyarrow as pa

from lance_nb.explorer.models.thumbnails import MAX_BYTES, MAX_PIXELS, picture_marks, thumbnails


def png(width: int, height: int, size: int = 60) -> bytes:
    head = (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", width, height)
    )
    return head.ljust(size, b"\0")


def test_small_pictures_are_marked_and_given_as_they_are() -> None:
    values = [png(4, 3), None, b"<svg onload=alert(1)>", png(9, 9, MAX_BYTES + 1), b"", png(5, 5)]
    column = pa.array(values, pa.binary())
    assert picture_marks(column) == "100001"
    found = thumbnails(column)
    assert [(one.at, one.media.mime, one.media.width, one.media.height) for one in found] == [
        (0, "image/png", 4, 3),
        (5, "image/png", 5, 5),
    ]
    assert found[0].data == values[0]
    assert picture_marks(pa.array([b"abc", None])) == ""


def test_a_picture_that_would_be_huge_when_decoded_is_not_given() -> None:
    side = int(MAX_PIXELS**0.5) + 1
    column = pa.array([png(side, side), png(0, 7), b"\xff\xd8\xff"], pa.large_binary())
    assert thumbnails(column) == []


def test_slices_and_views_are_read_in_place() -> None:
    column = pa.array([b"x", png(1, 2), png(3, 4)], pa.binary())
    assert picture_marks(column.slice(1)) == "11"
    assert [one.at for one in thumbnails(column.slice(2))] == [0]
    assert picture_marks(column.cast(pa.binary_view())) == "011"

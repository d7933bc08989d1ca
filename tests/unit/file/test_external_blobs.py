"""Objects that blobs refer to: found by URI, read whole or in part."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_nb.errors import InvalidInputError, ObjectNotFoundError
from lance_nb.file.external_blobs import BlobBases, BlobUris, ExternalBlobs, ExternalPayload
from lance_nb.format.manifest import BasePath
from lance_nb.storage.base import ByteRange
from lance_nb.storage.registry import open_store

TEXT = b"0123456789"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "a file.bin"
    path.write_bytes(TEXT)
    return path


def read(payload: ExternalPayload) -> bytes:
    wanted = ByteRange(payload.start, payload.start + payload.size_bytes)
    return bytes(payload.store.read_range(payload.path, wanted))


@pytest.mark.parametrize(
    ("position", "size", "found"),
    [(0, None, TEXT), (4, None, TEXT[4:]), (2, 3, b"234"), (10, None, b""), (10, 0, b"")],
)
def test_all_of_it_or_a_part(place: Path, position: int, size: int | None, found: bytes):
    for uri in (str(place), place.as_uri()):
        payload = ExternalBlobs().locate(uri, position, size)
        assert (read(payload), payload.size_bytes) == (found, len(found))


@pytest.mark.parametrize(("position", "size"), [(11, None), (8, 3), (0, 2**62), (2**63, None)])
def test_a_part_that_it_does_not_have_is_refused(place: Path, position: int, size: int | None):
    with pytest.raises(InvalidInputError, match="has 10 bytes"):
        ExternalBlobs().locate(str(place), position, size)


def test_what_is_not_there_is_reported(place: Path):
    with pytest.raises(ObjectNotFoundError):
        ExternalBlobs().locate(f"{place}x", 0, None)
    with pytest.raises(InvalidInputError):
        ExternalBlobs().locate("", 0, None)


def test_other_stores_are_opened_once_for_a_folder():
    open_store("memory://external_blobs", None).write("x.bin", TEXT)
    source = ExternalBlobs()
    first = source.locate("memory://external_blobs/x.bin", 0, None)
    assert read(first) == TEXT
    assert source.locate("memory://external_blobs/x.bin", 1, 1).store is first.store


def test_the_longest_base_path_takes_what_lies_below_it():
    bases = BlobBases.of(
        [
            BasePath(3, "/media"),
            BasePath(7, "file:///media/sub/"),
            BasePath(8, "/media/sub/root", is_dataset_root=True),
            BasePath(9, "s3://bucket/media"),
        ]
    )
    assert bases.place_of("file:///media/sub/a b.bin") == (7, "a b.bin")
    assert bases.place_of("/media/sub/root/a.bin") == (7, "root/a.bin")
    assert bases.place_of("/media/suburb/a.bin") == (3, "suburb/a.bin")
    assert bases.place_of("s3://bucket/media/x/y") == (9, "x/y")
    for uri in ("/media/../x", "/media2/x", "s3://bucket/media", "s3://bucket/media/../x"):
        assert bases.place_of(uri) is None
    assert BlobBases().place_of("/media/x") is None


def test_uris_that_no_file_can_have_are_held_like_others():
    uris = BlobUris()
    too_long = f"/{'a' * 5000}/b"
    uris.add([too_long, "file:///nul\0"], 10)
    assert uris.target(too_long) == too_long

"""Details of the fragment-reuse index that lie in a file of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb._pb import index as pb
from lance_nb.errors import CorruptFileError, ObjectNotFoundError
from lance_nb.format.fragment_reuse import REUSE_INDEX, inline_details
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.reuse_content import with_content
from tests.support.versions import index
from tests.unit.format.test_fragment_reuse import FIRST, details

CONTENT = details(FIRST)[2:]  # without tag and length: the content alone


def pointing(
    path: str = "details.binpb", offset: int = 0, size: int = len(CONTENT)
) -> IndexMetadata:
    message = pb.FragmentReuseIndexDetails()
    message.external.path, message.external.offset, message.external.size = path, offset, size
    return replace(index(REUSE_INDEX), details=message.SerializeToString())


def test_the_file_is_read_into_the_index() -> None:
    store = MemoryStore("reuse-content")
    store.write(f"_indices/{pointing().uuid}/details.binpb", b"??" + CONTENT)
    other = index("i", 0)
    found, same = with_content([pointing(offset=2), other], lambda path, _base: (store, path))
    assert inline_details(found) == details(FIRST)
    assert same is other


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"path": "../x"}, CorruptFileError),
        ({"path": "/etc/passwd"}, CorruptFileError),
        ({"size": 0}, CorruptFileError),
        ({"size": 2**40}, CorruptFileError),
        ({"size": 500}, CorruptFileError),
        ({"path": "other.binpb"}, ObjectNotFoundError),
    ],
)
def test_a_manifest_that_lies_is_damage(asked: dict[str, object], error: type[Exception]) -> None:
    store = MemoryStore("reuse-content-2")
    store.write(f"_indices/{pointing().uuid}/details.binpb", CONTENT)
    with pytest.raises(error):
        with_content([pointing(**asked)], lambda path, _base: (store, path))

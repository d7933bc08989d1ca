from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from lance_nb.errors import CorruptFileError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFileType, Fragment
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.locations import Locations
from lance_nb.transactions.deletion_files import (
    PendingDeletions,
    read_deletion_file,
    write_deletion_file,
)
from tests.support.committing import environment

ROWS = 20_000


@pytest.mark.parametrize(
    ("count", "wanted", "found"),
    [
        (3, None, DeletionFileType.ARROW),
        (4999, None, DeletionFileType.ARROW),
        (5000, None, DeletionFileType.BITMAP),
        (3, DeletionFileType.BITMAP, DeletionFileType.BITMAP),
    ],
)
def test_what_is_written_is_read_back(count: int, wanted, found):
    home = MemoryStore(uuid.uuid4().hex)
    vector = DeletionVector.of(range(0, 3 * count, 3))
    file = write_deletion_file(home, 4, 17, vector, environment=environment(), file_type=wanted)
    assert (file.file_type, file.read_version, file.num_deleted_rows) == (found, 17, count)
    suffix = "arrow" if found is DeletionFileType.ARROW else "bin"
    assert home.list_names("_deletions") == [f"4-17-{file.id}.{suffix}"]
    fragment = Fragment(4, (), ROWS, file)
    assert read_deletion_file(Locations(home, home), fragment) == vector


def test_a_fragment_without_deletions_has_an_empty_vector():
    home = MemoryStore(uuid.uuid4().hex)
    assert len(read_deletion_file(Locations(home, home), Fragment(1, (), 10))) == 0


@pytest.mark.parametrize("last", [2**31 - 1, 2**31, 2**32 - 1])
def test_rows_that_were_not_counted_may_be_any_of_32_bits(last: int):
    home = MemoryStore(uuid.uuid4().hex)
    vector = DeletionVector.of([1, last])
    bitmap = DeletionFileType.BITMAP
    file = write_deletion_file(home, 1, 1, vector, environment=environment(), file_type=bitmap)
    assert read_deletion_file(Locations(home, home), Fragment(1, (), 0, file)) == vector


def test_two_files_of_one_fragment_have_different_names():
    home, world = MemoryStore(uuid.uuid4().hex), environment()
    for _ in range(5):
        write_deletion_file(home, 1, 1, DeletionVector.of([1]), environment=world)
    assert len(home.list_names("_deletions")) == 5


def test_a_count_that_is_wrong_is_damage():
    home = MemoryStore(uuid.uuid4().hex)
    file = write_deletion_file(home, 1, 1, DeletionVector.of([1]), environment=environment())
    with pytest.raises(CorruptFileError):
        read_deletion_file(
            Locations(home, home), Fragment(1, (), 10, replace(file, num_deleted_rows=2))
        )


def test_waiting_vectors_are_written_with_checksums_only_where_they_are_wanted():
    for wanted in (None, True):
        pending = PendingDeletions() if wanted is None else PendingDeletions(checksums=wanted)
        file = pending.add(3, 1, DeletionVector.of([1, 2]))
        home = MemoryStore(uuid.uuid4().hex)
        assert pending.write(home) == [file.location(3)]
        names = [one.name for one in home.list_recursive("")]
        assert file.location(3) in names
        assert (len(names) > 1) == bool(wanted)

from __future__ import annotations

import pytest

from lance_nb.errors import DatasetNotFoundError, InvalidInputError, VersionNotFoundError
from lance_nb.format.layout import DETACHED_BIT, HINT_PATH
from lance_nb.table.versions import load_version, version_names
from lance_nb.transactions.operations.overwrite import Overwrite
from tests.support.committing import SCHEMA, Table, file_names
from tests.support.faulty_store import Fault, on


def test_it_is_built_on_its_read_version_and_no_part_of_the_history():
    table = Table()
    table.create()
    table.append(1, "second")
    made = table.commit(table.appending(1, "aside"), detached=True, message="look")
    assert made.version & DETACHED_BIT
    assert file_names(made)[1:] == ["aside.lance"]
    assert [one.version for one in version_names(table.inner)] == [1, 2]
    assert load_version(table.inner, made.version) == made.manifest
    assert bytes(table.inner.read(HINT_PATH)) == b'{"version":2}'
    assert made.transaction.message == "look"


def test_it_conflicts_with_nothing():
    table = Table()
    table.create()
    other = table.transaction(1, Overwrite(SCHEMA, ()))
    table.commit(other)
    assert table.commit(table.appending(1), detached=True).version & DETACHED_BIT


def test_a_detached_version_can_be_built_on():
    table = Table()
    table.create()
    first = table.commit(table.appending(1), detached=True)
    second = table.commit(table.appending(first.version), detached=True)
    assert len(file_names(second)) == 3
    assert second.version != first.version


def test_a_lost_reply_is_recognised():
    table = Table()
    table.create()
    table.root.world.plan = on("write_if_absent", "_versions/d", Fault.LOST_REPLY)
    table.commit(table.appending(1), detached=True)
    names = table.inner.list_names("_versions")
    assert len([name for name in names if name.startswith("d")]) == 1


@pytest.mark.parametrize(
    ("read_version", "error"), [(0, InvalidInputError), (7, VersionNotFoundError)]
)
def test_it_needs_a_version_to_be_built_on(read_version: int, error: type[Exception]):
    table = Table()
    table.create()
    with pytest.raises(error):
        table.commit(table.appending(read_version), detached=True)


def test_it_needs_a_dataset():
    with pytest.raises(DatasetNotFoundError):
        Table().commit(Table().appending(1), detached=True)

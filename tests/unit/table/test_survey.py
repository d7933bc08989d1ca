"""A survey: branches, their versions, and which versions others stand on."""

from __future__ import annotations

import pytest

from lance_nb.errors import CorruptFileError
from lance_nb.format.layout import branch_path, tag_path
from lance_nb.format.refs import Branch, Tag
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.survey import branch_folders, forks, take_survey

BRANCHES = {
    "dev": Branch(None, 2, ((2, "a"),), 1, 1),
    "deep": Branch("dev", 3, ((2, "a"), (3, "b")), 1, 1),
    "orphaned": Branch("gone", 9, ((4, "c"), (9, "d")), 1, 1),
}


def test_branches_of_branches_stand_on_every_version_below_them():
    assert set(forks(BRANCHES, None)) == {("dev", 2), ("deep", 2), ("orphaned", 4)}
    assert set(forks(BRANCHES, "dev")) == {("deep", 3)}
    assert set(forks(BRANCHES, "gone")) == {("orphaned", 9)}


def test_a_survey_finds_branches_without_a_record_and_records_without_versions():
    store = MemoryStore("survey")
    store.write("_versions/18446744073709551614.manifest", b"x")
    store.write("_versions/d9223372036854775810.manifest", b"x")
    store.write("tree/being/made/_versions/18446744073709551613.manifest", b"x")
    store.write("data/a.lance", b"rows")
    store.write(branch_path("dev"), BRANCHES["dev"].to_bytes())
    store.write(tag_path("v1"), Tag(1, None, 1, 1, 1).to_bytes())
    found = take_survey(store)
    assert {folder: line.numbers for folder, line in found.lines.items()} == {
        "": [1],
        "tree/being/made": [2],
        "tree/dev": [],
    }
    assert [one.version for one in found.lines[""].detached] == [9223372036854775810]
    assert found.tagged_versions(None) == {1: ["v1"]}
    assert found.fork_versions(None) == {2: ["dev"]}
    store.write(tag_path("v1"), Tag(1, "main", 1, 1, 1).to_bytes())
    assert take_survey(store).tagged_versions(None) == {1: ["v1"]}
    assert found.without({"v1"}, {"dev"}).tags == {}
    assert found.manifest("", found.lines[""].names[0]) is not None
    assert len(found.files) == 6


@pytest.mark.parametrize("name", ["\\x", "../dev", "a//b"])
@pytest.mark.parametrize("look", [take_survey, branch_folders])
def test_a_branch_that_no_folder_can_be_named_after_is_told_by_its_record(look, name):
    store = MemoryStore("misnamed")
    record = branch_path(name)
    store.write(branch_path("dev"), BRANCHES["dev"].to_bytes())
    store.write(record, BRANCHES["dev"].to_bytes())
    with pytest.raises(CorruptFileError) as caught:
        look(store)
    store.delete(record)
    assert caught.value.path == f"{store.uri}/{record}"
    assert caught.value.found == repr(name)
    assert f"; nobody can open this branch: delete {record} if" in str(caught.value)
    look(store)


def test_a_version_that_is_gone_since_it_was_listed_stays_and_has_its_file():
    class Emptied(MemoryStore):
        def list_names(self, prefix: str) -> list[str]:
            return [] if prefix == "_versions" else super().list_names(prefix)

    store = Emptied("emptied")
    store.write("_versions/18446744073709551614.manifest", b"xyz")
    store.write("data/a.lance", b"rows")
    found = take_survey(store)
    assert found.lines[""].numbers == [1]
    assert set(found.manifests) == {"_versions/18446744073709551614.manifest"}
    listed = found.manifest("", found.lines[""].names[0])
    assert listed is not None
    assert listed.size_bytes == 3

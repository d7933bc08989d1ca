"""A survey: kinds of files, branches, their versions, and the versions that others depend on."""

from __future__ import annotations

import pytest

from lance_nb.errors import CorruptFileError
from lance_nb.format.layout import branch_path, tag_path
from lance_nb.format.refs import Branch, Tag
from lance_nb.storage.base import ObjectInfo
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.survey import (
    branch_folders,
    classified,
    forks,
    homes_in,
    staged_version,
    take_survey,
)

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
def test_a_branch_that_no_folder_can_be_named_after_is_reported_by_its_record(look, name):
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


NEWEST = "18446744073709551613.manifest"


def kinds(*paths: str, branches: tuple[str, ...] = ()) -> dict[str, tuple[str, str, str | None]]:
    listing = [ObjectInfo(path, 1) for path in paths]
    found = classified(listing, homes_in(listing, branches))
    return {one.path: (one.home, one.kind, one.identity) for one in found}


@pytest.mark.parametrize(
    ("path", "kind", "identity"),
    [
        (f"_versions/{NEWEST}", "manifest", None),
        ("_versions/7.manifest", "manifest", None),
        ("_versions/d9223372036854775810.manifest", "manifest", None),
        (f"_versions/{NEWEST}#1", "temporary_manifest", None),
        (f"_versions/{NEWEST}-0a1b", "temporary_manifest", None),
        ("_versions/.tmpAbc", "temporary_manifest", None),
        ("_versions/notes", "other", None),
        ("_versions/latest_version_hint.json", "ref", None),
        ("_transactions/1-a.txn", "transaction", "transaction:1-a.txn"),
        ("_transactions/junk", "other", None),
        ("data/a.lance", "data", "data:a"),
        ("data/a/1000.blob", "data", "data:a"),
        ("data/.tmp12", "data", "data:.tmp12"),
        ("data/a.txt", "other", None),
        ("_deletions/1-2-3.arrow", "deletion", "deletion:1-2-3.arrow"),
        ("_deletions/1-2-3.bin", "deletion", "deletion:1-2-3.bin"),
        ("_deletions/x", "other", None),
        ("_indices/uuid/page.lance", "index", "index:uuid"),
        ("_indices/loose", "index", "index:loose"),
        ("_refs/tags/a.json", "ref", None),
        ("_refs/tags/.tmp-12", "temporary_manifest", None),
        ("_refs/branches/.tmp-12", "temporary_manifest", None),
        ("README.md", "other", None),
        ("tree/lost/data/a.lance", "other", None),
    ],
)
def test_the_kind_follows_from_the_place(path: str, kind: str, identity: str | None):
    assert kinds(path) == {path: ("", kind, identity)}


def test_files_belong_to_the_innermost_branch():
    found = kinds(
        f"tree/a/_versions/{NEWEST}",
        f"tree/a/data/_versions/{NEWEST}",
        "tree/a/data/x.lance",
        "tree/a/data/data/y.lance",
        "tree/b/data/z.lance",
        branches=("b",),
    )
    assert found["tree/a/data/x.lance"] == ("tree/a", "data", "data:x")
    assert found["tree/a/data/data/y.lance"] == ("tree/a/data", "data", "data:y")
    assert found["tree/b/data/z.lance"] == ("tree/b", "data", "data:z")


def test_a_dataset_inside_the_folder_of_another_is_not_ours():
    found = kinds("data/other.lance/_versions/1.manifest", "data/other.lance/data/x.lance")
    assert {kind for _, kind, _ in found.values()} == {"other"}


def test_the_version_of_a_staged_manifest_is_in_its_name():
    assert staged_version("3.manifest-ab") == 3
    assert staged_version(f"{NEWEST}#1") == 2
    assert staged_version("3.manifest") is None
    assert staged_version("x.manifest#1") is None


@pytest.mark.parametrize("branch", ["a", "a/b", "a/b/c"])
@pytest.mark.parametrize(
    ("path", "kind"),
    [("data/x.lance", "data"), ("data/x/1.blob", "data"), ("_indices/u/deep/er/p.lance", "index")],
)
def test_files_of_a_branch_are_found_at_any_depth(branch: str, path: str, kind: str):
    found = kinds(f"tree/{branch}/{path}", branches=("a", branch))
    ((home, what, _),) = found.values()
    assert (home, what) == (f"tree/{branch}", kind)

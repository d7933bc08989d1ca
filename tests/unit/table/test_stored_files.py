"""Files are told apart by where they lie and what they are called."""

from __future__ import annotations

import pytest

from lance_nb.storage.base import ObjectInfo
from lance_nb.table.stored_files import classified, homes_in, staged_version

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

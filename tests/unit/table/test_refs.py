from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import (
    CorruptFileError,
    RefConflictError,
    RefNotFoundError,
)
from lance_nb.format.layout import branch_path
from lance_nb.format.refs import Branch
from lance_nb.storage.local import LocalStore
from lance_nb.table.ref_grammar import resolve
from lance_nb.table.refs import (
    Target,
    branch_names,
    branch_store,
    list_branches,
    list_tags,
    read_branch,
    read_tag,
    tag_names,
    unfinished_problem,
)
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.ref_writer import TagWriter
from lance_nb.writing.branching import BranchWriter
from tests.golden.copies import copy_to_memory, refs
from tests.golden.opening import WatchedStore


def test_tags_and_branches_are_what_pylance_says(history):
    said = refs("history")
    tags = {
        name: {"branch": tag.branch, "version": tag.version}
        for name, tag in list_tags(history).items()
    }
    assert tags == said["tags"]
    branches = {
        name: {"parent_branch": one.parent_branch, "parent_version": one.parent_version}
        for name, one in list_branches(history).items()
    }
    assert branches == said["branches"]


def test_names_are_listed_sorted_and_without_reading(history):
    store = WatchedStore(history)
    assert tag_names(store) == ["first", "on-side"]
    assert branch_names(store) == ["side", "team/deep"]
    assert not store.reads


def test_a_dataset_without_refs_has_none(stores):
    assert list_tags(stores["empty"]) == {}
    assert list_branches(stores["empty"]) == {}


def test_reading_one_ref_that_is_missing_names_the_others(history):
    with pytest.raises(RefNotFoundError, match="'first', 'on-side'"):
        read_tag(history, "nope")
    with pytest.raises(RefNotFoundError, match="'side', 'team/deep'"):
        read_branch(history, "nope")


def test_branches_of_slashed_names_have_nested_folders(history):
    assert branch_store(history, "team/deep").uri == f"{history.uri}/tree/team/deep"
    assert branch_store(history, None) is history


def test_a_branch_written_by_us_is_read_again():
    store = copy_to_memory("empty")
    made = Branch(None, 1, ((1, "0" * 32),), 1_700_000_000, 10)
    store.write("_refs/branches/a%2Fb.json", made.to_bytes())
    assert list_branches(store) == {"a/b": made}


@pytest.mark.parametrize(
    ("kind", "file", "wanted"),
    [("branch", "_refs/branches/%73ide.json", "_refs/branches/side.json"),
     ("tag", "_refs/tags/f%69rst.json", "_refs/tags/first.json")],
)  # fmt: skip
def test_a_record_whose_file_is_misspelled_is_reported_the_same_by_list_and_by_name(
    kind: str, file: str, wanted: str
):
    store = copy_to_memory("history")
    store.write(file, bytes(store.read(wanted)))
    store.delete(wanted)
    name = wanted.rpartition("/")[2].removesuffix(".json")
    listed, read = (list_branches, read_branch) if kind == "branch" else (list_tags, read_tag)
    for ask in (lambda: listed(store), lambda: read(store, name)):
        with pytest.raises(CorruptFileError, match=f"a file named {name}.json") as found:
            ask()
        assert found.value.path.endswith(file)
        assert f"rename it to {name}.json" in found.value.advice
    with pytest.raises(RefNotFoundError, match="does not exist"):
        read(store, "nothing")


def test_a_branch_without_a_version_is_unfinished():
    store = copy_to_memory("history")
    assert [unfinished_problem(store, name) for name in branch_names(store)] == [None] * len(
        branch_names(store)
    )
    store.write(branch_path("new"), Branch("side", 3, ((1, "a"), (3, "b")), 1, 1).to_bytes())
    text = unfinished_problem(store, "new")
    assert text is not None
    assert "branch 'new' is unfinished" in text
    assert "create it again from side:3 to complete it" in text
    store.write(branch_path("other"), Branch(None, 2, ((2, "a"),), 1, 1).to_bytes())
    assert "from main:2" in (unfinished_problem(store, "other") or "")
    store.write("tree/new/_versions/18446744073709551612.manifest", b"x")
    assert unfinished_problem(store, "new") is None


# --- file systems that do not tell capitals apart -------------------------------------------------


class FoldingStore(LocalStore):
    """A folder that finds files whatever their capitals, and lists them as they are."""

    def _full(self, path: str) -> str:
        found = Path(self.uri)
        for part in path.split("/"):
            names = [entry.name for entry in found.iterdir()] if found.is_dir() else []
            alike = (name for name in names if name.casefold() == part.casefold())
            found /= next(alike, part)
        return str(found)

    def child(self, path: str) -> FoldingStore:
        return FoldingStore(self._full(path))


def test_a_ref_in_other_capitals_is_another_one(tmp_path: Path):
    made = lance_nb.write_dataset(pa.table({"a": [1]}), tmp_path / "d")
    made.create_branch("dev").insert(pa.table({"a": [2]}))
    made.tags.create("v1", ("dev", 2))
    root = FoldingStore(str(tmp_path / "d"))
    assert root.exists(branch_path("DEV"))
    place_of = lambda branch: CommitPlace.of(root, branch)
    branches, tags = BranchWriter(root, place_of), TagWriter(root, place_of)
    for call in (
        lambda: resolve(root, ("DEV", None), None),
        lambda: resolve(root, "V1", None),
        lambda: branches.delete("DEV"),
        lambda: branches.delete("DEV", force=True),
        lambda: branches.explain_delete("DEV"),
        lambda: branches.replace_metadata("DEV", {"a": "b"}),
        lambda: tags.delete("V1"),
        lambda: tags.update("V1", Target(None, 1)),
        lambda: tags.replace_metadata("V1", {"a": "b"}),
    ):
        with pytest.raises(RefNotFoundError, match=r"'(DEV|V1)' does not exist"):
            call()
    with pytest.raises(RefConflictError, match=r"not tell capitals apart.*\('dev'\)"):
        branches.create("Dev", Target(None, 1))
    with pytest.raises(RefConflictError, match="already exists"):
        tags.create("V1", Target(None, 1))
    assert made.checkout_version(("dev", None)).count_rows() == 2
    assert lance_nb.dataset(tmp_path / "d", "v1").count_rows() == 2

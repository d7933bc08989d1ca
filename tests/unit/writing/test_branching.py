from __future__ import annotations

import pytest

import lance_nb
from lance_nb.errors import (
    DatasetAlreadyExistsError,
    InvalidInputError,
    InvalidRefError,
    RefConflictError,
    RefNotFoundError,
    VersionNotFoundError,
)


def test_a_tag_names_the_version_that_is_open_or_the_one_given(make, rows, uri):
    made = make()
    made.tags.create("start")
    made.insert(rows)
    made.tags.create("more")
    made.tags.create("again", 1)
    assert {name: tag["version"] for name, tag in made.tags.list().items()} == {
        "again": 1,
        "more": 2,
        "start": 1,
    }
    assert lance_nb.dataset(uri, "start").count_rows() == 10
    assert [name for name, _ in made.tags.list_ordered()] == ["more", "again", "start"]
    assert [name for name, _ in made.tags.list_ordered("asc")] == ["again", "start", "more"]


def test_a_tag_moves_and_goes(make, rows):
    made = make()
    made.tags.create("t")
    made.insert(rows)
    made.tags.update("t")
    assert made.tags.get_version("t") == 2
    made.tags.replace_metadata("t", {"by": "ada"})
    assert made.tags.list()["t"]["metadata"] == {"by": "ada"}
    made.tags.delete("t")
    assert made.tags.names() == []
    with pytest.raises(RefNotFoundError):
        made.tags.delete("t")


def test_names_that_are_taken_or_bad_are_refused(make):
    made = make()
    made.tags.create("t")
    with pytest.raises(RefConflictError, match="already exists"):
        made.tags.create("t")
    with pytest.raises(VersionNotFoundError):
        made.tags.create("u", 99)
    with pytest.raises(InvalidRefError):
        made.tags.create("a b")
    with pytest.raises(InvalidRefError):
        made.create_branch("a//b")


def test_a_branch_is_written_to_without_touching_main(make, rows, uri):
    made = make()
    side = made.create_branch("side")
    assert (side.branch, side.version, side.count_rows()) == ("side", 1, 10)
    side.insert(rows)
    side.delete("id = 1")
    assert (side.branch, side.version, side.count_rows()) == ("side", 3, 18)
    assert lance_nb.dataset(uri).count_rows() == 10
    assert lance_nb.dataset(uri, ("side", None)).count_rows() == 18
    deep = side.create_branch("team/deep", ("side", 2))
    assert deep.count_rows() == 20
    assert made.branches.names() == ["side", "team/deep"]


def test_a_branch_that_others_need_stays_unless_forced(make):
    made = make()
    side = made.create_branch("side")
    side.create_branch("leaf")
    with pytest.raises(RefConflictError, match="'leaf'"):
        made.branches.delete("side")
    made.branches.delete("leaf")
    made.branches.delete("side")
    assert made.branches.names() == []


def test_a_deleted_branch_leaves_no_folders_behind(rows, tmp_path):
    made = lance_nb.write_dataset(rows, tmp_path / "d")
    for name in ("team/deep", "team/deep/below", "team/other"):
        made.create_branch(name).insert(rows)
    tree = tmp_path / "d" / "tree"
    made.branches.delete("team/deep")
    assert sorted(one.name for one in (tree / "team").iterdir()) == ["deep", "other"]
    assert [one.name for one in (tree / "team" / "deep").iterdir()] == ["below"]
    assert made.checkout_version(("team/deep/below", None)).count_rows() == 20
    for name in ("team/deep/below", "team/other"):
        made.branches.delete(name)
    assert not list(tree.iterdir())
    assert made.create_branch("team/deep").count_rows() == 10


def test_clones_read_the_same_rows(make, rows, uri):
    made = make()
    made.delete("id = 0")
    flat = made.deep_clone(uri.replace(".lance", "-deep.lance"))
    thin = made.shallow_clone(uri.replace(".lance", "-thin.lance"))
    for clone in (flat, thin):
        assert clone.version == 2
        assert clone.to_table().equals(rows.slice(1))
        clone.insert(rows.slice(0, 1))
        assert clone.count_rows() == 10
    assert made.checkout_latest().count_rows() == 9
    again = lance_nb.dataset(thin.uri, allow_bases=[uri])
    assert again.count_rows() == 10
    assert again.to_table().num_rows == 10


def test_a_clone_needs_a_place_of_its_own(make, uri):
    made = make()
    with pytest.raises(InvalidInputError, match="its own folder"):
        made.deep_clone(uri)
    other = uri.replace(".lance", "-x.lance")
    made.deep_clone(other)
    with pytest.raises(DatasetAlreadyExistsError):
        made.deep_clone(other)


def test_a_deep_clone_tells_how_far_it_is(make, uri):
    seen = []
    made = make(max_rows_per_file=4)
    made.deep_clone(uri.replace(".lance", "-p.lance"), progress=seen.append)
    assert seen[-1].num_files == seen[-1].num_files_copied == 3


def test_old_manifest_names_are_brought_to_the_new_scheme(make, files):
    made = make(enable_v2_manifest_paths=False)
    made.delete("id = 1")
    assert {"_versions/1.manifest", "_versions/2.manifest"} <= set(files())
    made.migrate_manifest_paths_v2()
    assert not {"_versions/1.manifest", "_versions/2.manifest"} & set(files())
    assert made.checkout_latest().version == 2
    made.insert(made.to_table())
    assert made.version == 3

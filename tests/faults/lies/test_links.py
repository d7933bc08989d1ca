"""Folders and files of a dataset that are symbolic links to some place outside.

Every verb is tried against every folder: what needs the folder is refused with the link's name,
what does not works, and at the other end of the link nothing is read, made, changed or deleted.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, LanceError

pytestmark = pytest.mark.slow

ROWS = pa.table({"id": pa.array(range(20), pa.int64()), "s": [f"s{n}" for n in range(20)]})

WRITES: dict[str, Callable[[LanceDataset], Any]] = {
    "shallow_clone": lambda ds: ds.shallow_clone(f"{ds.uri}-shallow"),
    "deep_clone": lambda ds: ds.deep_clone(f"{ds.uri}-deep"),
    "append": lambda ds: lance_nb.write_dataset(ROWS, ds.uri, mode="append"),
    "insert": lambda ds: ds.insert(ROWS),
    "delete": lambda ds: ds.delete("id = 3"),
    "update": lambda ds: ds.update({"s": "'x'"}, "id = 4"),
    "merge_insert": lambda ds: (
        ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(ROWS)
    ),
    "compact": lambda ds: ds.optimize.compact_files(),
    "create_scalar_index": lambda ds: ds.create_scalar_index("s", "BTREE", name="second"),
    "update_config": lambda ds: ds.update_config({"a": "b"}),
    "update_metadata": lambda ds: ds.update_metadata({"a": "b"}),
    "restore": lambda ds: lance_nb.dataset(ds.uri, 1).restore(),
    "tag": lambda ds: ds.tags.create("new"),
    "tag update": lambda ds: ds.tags.update("old", 1),
    "tag delete": lambda ds: ds.tags.delete("old"),
    "branch": lambda ds: ds.create_branch("new"),
    "branch append": lambda ds: ds.checkout_version(("side", None)).insert(ROWS),
    "branch merge": lambda ds: ds.branches.merge("side"),
    "cleanup of all branches": lambda ds: ds.cleanup_old_versions(
        timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    ),
    "branch delete": lambda ds: ds.branches.delete("side", force=True),
    "stage": lambda ds: ds.stage().append(ROWS).commit("staged"),
    "stage discard": lambda ds: ds.stage().append(ROWS).discard(),
    "commit": lambda ds: lance_nb.LanceDataset.commit(
        ds.uri, lance_nb.LanceOperation.Append([]), read_version=ds.version
    ),
    "add_columns": lambda ds: ds.add_columns({"twice": "id * 2"}),
    "alter_columns": lambda ds: ds.alter_columns({"path": "s", "name": "t"}),
    "cast": lambda ds: ds.alter_columns({"path": "id", "data_type": pa.int32()}),
    "drop_columns": lambda ds: ds.drop_columns(["s"]),
    "drop_index": lambda ds: ds.drop_index("first"),
    "migrate": lambda ds: ds.migrate_manifest_paths_v2(),
    "cleanup": lambda ds: ds.cleanup_old_versions(
        timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    ),
    "overwrite": lambda ds: lance_nb.write_dataset(ROWS, ds.uri, mode="overwrite"),
    "drop": lambda ds: LanceDataset.drop(ds.uri),
}
READS: dict[str, Callable[[LanceDataset], Any]] = {
    "to_table": lambda ds: ds.to_table(),
    "filter": lambda ds: ds.to_table(filter="s = 's3'"),
    "branch": lambda ds: ds.checkout_version(("side", None)).to_table(),
    "tags": lambda ds: ds.tags.list(),
    "branches": lambda ds: ds.branches.list(),
    "space": lambda ds: ds.space(),
    "verify": lambda ds: ds.verify(),
    "history": lambda ds: ds.history(),
    "explain cleanup": lambda ds: ds.explain_cleanup_old_versions(timedelta(0)),
}

# Folder -> what must be refused when it leads away, beside what else may be.
DATA = [
    "append", "insert", "update", "merge_insert", "add_columns", "cast", "compact", "overwrite",
    "stage", "deep_clone", "to_table",
]  # fmt: skip
ALL = [name for name in WRITES if name != "shallow_clone"]
REFUSED = {
    "data": DATA,
    "_versions": [*ALL, "history", "to_table"],
    "_deletions": ["delete", "update", "merge_insert", "to_table", "deep_clone"],
    "_transactions": ["append", "delete", "update_config", "restore", "compact", "overwrite"],
    "_indices": ["create_scalar_index", "deep_clone"],
    "_refs": ["tag", "tag update", "tag delete", "branch", "branch delete", "tags", "cleanup"],
    "_refs/tags": ["tag", "tag update", "tag delete", "tags", "cleanup"],
    "_refs/branches": ["branch", "branch delete", "branches", "cleanup"],
    "tree": ["branch", "branch delete", "branch append", "branch merge", "branch:read"],
    "tree/side": ["branch delete", "branch append", "branch merge", "branch:read"],
    "tree/side/data": ["branch append", "branch:read"],
    "tree/side/_versions": [
        "branch append",
        "branch merge",
        "branch:read",
        "cleanup of all branches",
    ],
    "tree/side/_deletions": ["branch:read"],
    "tree/side/_transactions": ["branch append"],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Build a dataset with deletions, an index, a tag, and a branch with the same.

    It lies in a folder that has nothing else in it. A copy would not do: the branch names the
    absolute path of the files that it shares with main.
    """
    path = tmp_path / "home" / "table.lance"
    ds = lance_nb.write_dataset(ROWS, str(path), max_rows_per_file=10)
    ds.insert(ROWS)
    ds.delete("id = 1")
    ds.create_scalar_index("s", "BTREE", name="first")
    ds.tags.create("old", 2)
    side = ds.create_branch("side")
    side.insert(ROWS)
    side.delete("id = 2")
    ds.insert(ROWS)
    return path


def state(folder: Path) -> dict[str, tuple[int, bytes | None]]:
    """Return everything below a folder: times of change, the bytes of files."""
    return {
        str(one.relative_to(folder)): (
            one.lstat().st_mtime_ns, one.read_bytes() if one.is_file() else None
        )
        for one in (folder, *folder.rglob("*"))
    }  # fmt: skip


def move_away(root: Path, folder: str) -> Path:
    """Put a link to some place outside into the place of a folder; return that place."""
    outside = root.parent.parent / "outside"
    shutil.move(root / folder, outside)
    (root / folder).symlink_to(outside)
    return outside


def attempt(root: Path, call: Callable[[LanceDataset], Any], **options: Any) -> LanceError | None:
    """Open the dataset anew and do something; return the error of ours, if there is one."""
    try:
        call(lance_nb.dataset(str(root), **options))
    except LanceError as error:
        return error
    return None


@pytest.mark.parametrize("folder", REFUSED)
def test_no_verb_goes_through_a_folder_that_leaves_the_dataset(root: Path, folder: str) -> None:
    outside = move_away(root, folder)
    before = state(outside)
    link = str(root / folder)
    calls = {f"{name}:read" if name in WRITES else name: one for name, one in READS.items()}
    refused = {}
    for name, call in {**calls, **WRITES}.items():
        error = attempt(root, call)
        assert state(outside) == before, f"{name} went through {folder}"
        if error is not None:
            refused[name] = str(error)

    for name in REFUSED[folder]:
        assert name in refused, f"{name} was done although {folder} leads away"
        assert repr(link) in refused[name], refused[name]
        assert repr(str(outside)) in refused[name], refused[name]
        assert "symbolic link" in refused[name]


@pytest.mark.parametrize("folder", REFUSED)
def test_what_the_caller_allows_is_read_and_written(root: Path, folder: str) -> None:
    outside = move_away(root, folder)
    ds = lance_nb.dataset(str(root), allow_bases=[str(outside)])
    count = ds.count_rows()
    ds.insert(ds.to_table(limit=5))
    ds.delete("id = 7")
    assert ds.to_table().num_rows == ds.count_rows() > count
    side = ds.checkout_version(("side", None))
    side.insert(side.to_table(limit=5))
    assert side.to_table().num_rows == side.count_rows()
    ds.tags.create("new")
    files = set(outside.rglob("*"))
    # Whatever is deleted, it is not deleted there.
    for name in ("cleanup", "branch delete", "tag delete", "drop"):
        error = attempt(root, WRITES[name], allow_bases=[str(outside)])
        assert error is None or "symbolic link" in str(error)
    assert files <= set(outside.rglob("*"))


@pytest.mark.parametrize("folder", ["data", "_indices", "_deletions", "_transactions", "tree/side"])
def test_a_clean_up_deletes_nothing_through_a_link_that_stays_inside(
    root: Path, folder: str
) -> None:
    """The files at its other end look unused from here, and another name needs them."""
    shutil.move(root / folder, root / "moved")
    (root / folder).symlink_to(root / "moved")
    shutil.copytree(root / "moved", root / "_indices" / "copy", dirs_exist_ok=True)
    before = state(root / "moved")
    ds = lance_nb.dataset(str(root))
    ds.insert(ds.to_table(limit=3))
    ds.cleanup_old_versions(
        timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    )
    assert before.keys() <= state(root / "moved").keys()
    assert lance_nb.dataset(str(root)).to_table().num_rows == ds.count_rows()


def test_two_names_of_one_folder_do_not_let_a_clean_up_delete_data(root: Path) -> None:
    shutil.rmtree(root / "_indices")
    (root / "_indices").symlink_to(root / "data")
    ds = lance_nb.dataset(str(root))
    before = state(root / "data")
    ds.cleanup_old_versions(
        timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    )
    kept = state(root / "data")
    assert {name for name in before if name.endswith(".lance")} <= kept.keys() or (
        lance_nb.dataset(str(root)).to_table().num_rows == ds.count_rows()
    )
    assert lance_nb.dataset(str(root)).to_table().num_rows == ds.count_rows()


def test_a_branch_whose_folder_is_a_link_to_another_is_not_deleted_through_it(root: Path) -> None:
    shutil.rmtree(root / "tree" / "side")
    (root / "tree" / "side").symlink_to(root)
    before = state(root)
    error = attempt(root, WRITES["branch delete"])
    assert isinstance(error, InvalidInputError)
    assert "nothing is deleted through a link" in str(error)
    assert state(root).keys() == before.keys()


def test_files_that_are_links_are_removed_themselves(root: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"keep")
    for name in ("data/orphan.lance", "_transactions/orphan.txn", "_deletions/orphan.bin"):
        (root / name).symlink_to(precious)
    ds = lance_nb.dataset(str(root))
    ds.cleanup_old_versions(
        timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    )
    assert precious.read_bytes() == b"keep"
    assert not (root / "data" / "orphan.lance").is_symlink()
    LanceDataset.drop(str(root))
    assert precious.read_bytes() == b"keep"


@pytest.mark.parametrize("target", ["precious", "not there"])
def test_the_hint_is_never_written_through_a_link(root: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "precious").write_bytes(b"keep")
    hint = root / "_versions" / "latest_version_hint.json"
    hint.unlink()
    hint.symlink_to(tmp_path / target)
    ds = lance_nb.dataset(str(root))
    ds.update_config({"a": "b"})
    assert hint.read_bytes() == b'{"version":%d}' % ds.version
    assert not hint.is_symlink()
    assert (tmp_path / "precious").read_bytes() == b"keep"
    assert not (tmp_path / "not there").exists()


def test_the_name_of_the_next_version_may_be_a_link(root: Path, tmp_path: Path) -> None:
    ds = lance_nb.dataset(str(root))
    manifest = root / "_versions" / f"{2**64 - 2 - ds.version:020d}.manifest"
    manifest.symlink_to(tmp_path / "not there")
    with pytest.raises(LanceError):
        ds.update_config({"a": "b"})
    assert not (tmp_path / "not there").exists()


@pytest.mark.parametrize("name", ["old", "new"])
def test_a_tag_that_is_a_link_is_not_written_through_it(
    root: Path, tmp_path: Path, name: str
) -> None:
    record = root / "_refs" / "tags" / f"{name}.json"
    outside = tmp_path / "tag.json"
    outside.write_bytes((root / "_refs" / "tags" / "old.json").read_bytes())
    before = outside.read_bytes()
    record.unlink(missing_ok=True)
    record.symlink_to(outside)
    for call in (
        lambda ds: ds.tags.update(name, 1),
        lambda ds: ds.tags.create(name),
        READS["tags"],
    ):
        assert isinstance(attempt(root, call), LanceError)
    assert outside.read_bytes() == before


def test_a_root_that_is_a_link_is_a_root(root: Path) -> None:
    alias = root.parent / "alias.lance"
    alias.symlink_to(root)
    for name, call in WRITES.items():
        error = attempt(alias, call)
        assert error is None or "symbolic link" not in str(error), name


def test_a_clone_keeps_the_rule_for_the_folders_of_its_source(root: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "clone.lance")
    clone = lance_nb.dataset(str(root)).shallow_clone(place)
    assert clone.to_table().num_rows == clone.count_rows()
    outside = move_away(root, "data")
    with pytest.raises(InvalidInputError, match="symbolic link that leaves"):
        lance_nb.dataset(place).to_table()
    allowed = lance_nb.dataset(place, allow_bases=[str(root), str(outside)])
    assert allowed.to_table().num_rows == clone.count_rows()


def test_a_sidecar_of_blobs_is_not_read_or_copied_through_a_link(tmp_path: Path) -> None:
    path = tmp_path / "home" / "blobs.lance"
    ds = lance_nb.write_dataset(blobs(b"x" * 300_000), str(path))
    (folder,) = [one for one in (path / "data").iterdir() if one.is_dir()]
    outside = move_away(path, f"data/{folder.name}")
    before = state(outside)
    for call in (
        lambda ds: ds.take_blobs("b", indices=[0])[0].read(),
        lambda ds: ds.deep_clone(str(tmp_path / "copy.lance")),
    ):
        error = attempt(path, call)
        assert isinstance(error, InvalidInputError)
        assert "symbolic link that leaves" in str(error)
    LanceDataset.drop(ds.uri)
    assert state(outside) == before


def test_blobs_behind_a_link_that_stays_inside_are_read_and_copied(tmp_path: Path) -> None:
    path, payload = tmp_path / "blobs.lance", b"x" * 300_000
    ds = lance_nb.write_dataset(blobs(payload), str(path))
    (folder,) = [one for one in (path / "data").iterdir() if one.is_dir()]
    shutil.move(folder, path / "moved")
    folder.symlink_to(path / "moved")
    clone = ds.deep_clone(str(tmp_path / "clone.lance"))
    shutil.rmtree(path)
    assert clone.take_blobs("b", indices=[0])[0].read() == payload


def blobs(payload: bytes) -> pa.Table:
    """Return a row with a payload that is large enough to get a file beside the data file."""
    schema = pa.schema([lance_nb.blob_field("b")])
    return pa.table([lance_nb.blob_array([payload])], schema=schema)

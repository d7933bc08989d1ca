"""Versions that we commit, read and continued by pylance, and the other way round."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CommitConflictError, RefConflictError
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.schema import Schema
from lance_nb.storage.registry import open_store
from lance_nb.table import refs
from lance_nb.table.refs import Target
from lance_nb.transactions.commit import commit, commit_batch
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace
from lance_nb.transactions.environment import new_uuid
from lance_nb.transactions.manifest_migration import migrate_manifest_paths_v2
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.ref_writer import TagWriter
from lance_nb.transactions.transaction import Transaction
from lance_nb.writing.branching import BranchWriter
from lance_nb.writing.cloning import commit_clone, copy_version
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

TABLE = pa.table({"id": pa.array(range(10), pa.int64()), "s": [f"row {n}" for n in range(10)]})
SCHEMA = Schema.from_arrow(TABLE.schema)


@pytest.fixture
def lance() -> Any:
    return require_pylance()


def fragment(lance: Any, uri: Path, table: pa.Table = TABLE) -> Fragment:
    """Have pylance write a data file, and describe it as one of ours."""
    made = lance.fragment.LanceFragment.create(str(uri), table)
    files = tuple(
        DataFile(one.path, tuple(one.fields), tuple(one.column_indices), 2, 2, one.file_size_bytes)
        for one in made.files
    )
    return Fragment(0, files, table.num_rows)


def place(uri: Path, branch: str | None = None) -> CommitPlace:
    return CommitPlace.of(open_store(uri), branch)


def create(lance: Any, uri: Path, **options: Any) -> Any:
    operation = Overwrite(SCHEMA, (fragment(lance, uri),))
    return commit(place(uri), Transaction(0, operation, new_uuid()), CommitOptions(**options))


def append(lance: Any, uri: Path, read_version: int, branch: str | None = None) -> Any:
    home = uri / "tree" / branch if branch else uri
    transaction = Transaction(read_version, Append((fragment(lance, home),)), new_uuid())
    return commit(place(uri, branch), transaction)


def check(lance: Any, uri: Path, versions: list[int], version: Any = None) -> Any:
    """Have both read every version; return pylance's dataset."""
    theirs = lance.dataset(uri, version=version)
    ours = lance_nb.dataset(uri, version=version, allow_bases=[str(uri.parent)])
    assert [one["version"] for one in theirs.versions()] == versions
    assert ours.version_numbers() == versions
    branch = version[0] if isinstance(version, tuple) else None
    for number in versions:
        found = theirs.checkout_version((branch, number) if branch else number)
        found.validate()
        mine = ours.checkout_version(number)
        assert mine.to_table() == found.to_table()
        assert mine.count_rows() == found.count_rows()
        assert found.read_transaction(number) is not None
    return theirs


def test_pylance_reads_what_we_commit(lance, tmp_path: Path):
    uri = tmp_path / "t.lance"
    create(lance, uri, message="the first rows")
    append(lance, uri, 1)
    append(lance, uri, 1)
    commit(place(uri), Transaction(3, Restore(1), new_uuid()))
    theirs = check(lance, uri, [1, 2, 3, 4])
    assert theirs.count_rows() == 10
    transactions = theirs.get_transactions()
    assert [type(one.operation).__name__ for one in transactions] == [
        "Restore",
        "Append",
        "Append",
        "Overwrite",
    ]
    assert transactions[-1].transaction_properties == {"__lance_commit_message": "the first rows"}
    hint = json.loads((uri / "_versions" / "latest_version_hint.json").read_text())
    assert hint == {"version": 4}


def test_pylance_goes_on_where_we_stopped_and_we_where_it_stopped(lance, tmp_path: Path):
    uri = tmp_path / "t.lance"
    create(lance, uri)
    lance.write_dataset(TABLE, uri, mode="append")
    append(lance, uri, 2)
    lance.dataset(uri).delete("id = 3")
    append(lance, uri, 3)
    lance.dataset(uri).optimize.compact_files()
    append(lance, uri, 3)
    lance.dataset(uri).update({"s": "'new'"}, where="id = 4")
    latest = lance.dataset(uri).version
    append(lance, uri, latest)
    theirs = check(lance, uri, list(range(1, latest + 2)))
    assert theirs.count_rows() == 57


def test_stale_writers_of_both_meet(lance, tmp_path: Path):
    uri = tmp_path / "t.lance"
    create(lance, uri)
    stale = lance.dataset(uri, version=1)
    append(lance, uri, 1)
    lance.write_dataset(TABLE, stale, mode="append")
    append(lance, uri, 1)
    stale.delete("id = 1")
    append(lance, uri, 1)
    theirs = check(lance, uri, [1, 2, 3, 4, 5, 6])
    assert theirs.count_rows() == 49


def test_a_conflict_with_pylance_is_refused_by_both(lance, tmp_path: Path):
    uri = tmp_path / "t.lance"
    create(lance, uri)
    lance.write_dataset(TABLE, uri, mode="overwrite")
    with pytest.raises(CommitConflictError, match="Overwrite"):
        append(lance, uri, 1)
    commit(place(uri), Transaction(2, Restore(1), new_uuid()))
    operation = lance.LanceOperation.Append([lance.fragment.LanceFragment.create(str(uri), TABLE)])
    with pytest.raises(OSError, match="Restore"):
        lance.LanceDataset.commit(uri, operation, read_version=2)
    check(lance, uri, [1, 2, 3])


def test_v1_names_stay_until_they_are_migrated(lance, tmp_path: Path):
    uri = tmp_path / "t.lance"
    create(lance, uri, enable_v2_manifest_paths=False)
    append(lance, uri, 1)
    lance.write_dataset(TABLE, uri, mode="append")
    names = {path.name for path in (uri / "_versions").glob("*.manifest")}
    assert names == {"1.manifest", "2.manifest", "3.manifest"}
    assert migrate_manifest_paths_v2(open_store(uri)) == 3
    append(lance, uri, 3)
    lance.write_dataset(TABLE, uri, mode="append")
    assert all(len(path.stem) == 20 for path in (uri / "_versions").glob("*.manifest"))
    check(lance, uri, [1, 2, 3, 4, 5])


def test_a_detached_version_is_found_by_its_number_only(lance, tmp_path: Path):
    uri = tmp_path / "t.lance"
    create(lance, uri)
    transaction = Transaction(1, Append((fragment(lance, uri),)), new_uuid())
    made = commit(place(uri), transaction, CommitOptions(detached=True))
    assert lance.dataset(uri, version=made.version).count_rows() == 20
    assert lance_nb.dataset(uri, version=made.version).count_rows() == 20
    check(lance, uri, [1])


def test_a_batch_is_one_version(lance, tmp_path: Path):
    uri = tmp_path / "t.lance"
    create(lance, uri)
    append(lance, uri, 1)
    parts = [Transaction(n, Append((fragment(lance, uri),)), new_uuid()) for n in (2, 1)]
    made = commit_batch(place(uri), parts)
    assert (made.committed.version, made.merged.read_version) == (3, 1)
    assert check(lance, uri, [1, 2, 3]).count_rows() == 40


# --- refs and clones ------------------------------------------------------------------------------


def _branches(uri: Path) -> BranchWriter:
    return BranchWriter(open_store(uri), lambda branch: place(uri, branch))


def _tags(uri: Path) -> TagWriter:
    return TagWriter(open_store(uri), lambda branch: place(uri, branch))


def test_tags_both_ways(lance, tmp_path: Path):
    uri = tmp_path / "t.lance"
    create(lance, uri)
    append(lance, uri, 1)
    tags = _tags(uri)
    tags.create("ours", Target(None, 1))
    dataset = lance.dataset(uri)
    dataset.tags.create("theirs", 2)
    assert dataset.tags.list() == lance_nb.dataset(uri).tags.list()
    assert lance.dataset(uri, version="ours").version == 1
    dataset.tags.update("ours", 2)
    dataset.tags.replace_metadata("ours", {"k": "v"})
    tags.update("theirs", Target(None, 1))
    tags.replace_metadata("theirs", {"ä": "ö"})
    assert dataset.tags.list() == lance_nb.dataset(uri).tags.list()
    assert dataset.tags.get_version("theirs") == 1
    with pytest.raises(RefConflictError):
        tags.create("theirs", Target(None, 1))
    with pytest.raises(ValueError, match="already exists"):
        dataset.tags.create("ours", 1)
    dataset.tags.delete("ours")
    tags.delete("theirs")
    assert dataset.tags.list() == refs.list_tags(open_store(uri)) == {}


def test_branches_both_ways(lance, tmp_path: Path):
    uri = tmp_path / "t.lance"
    create(lance, uri)
    append(lance, uri, 1)
    branches = _branches(uri)
    branches.create("fix/ours", Target(None, 1))
    lance.dataset(uri).create_branch("theirs", 2)
    append(lance, uri, 2, "theirs")
    lance.write_dataset(
        TABLE, lance.dataset(uri).checkout_version(("fix/ours", None)), mode="append"
    )
    append(lance, uri, 1, "fix/ours")
    branches.create("sub", Target("theirs", 3))
    lance.dataset(uri).checkout_version(("sub", None)).create_branch("subsub", ("sub", None))
    append(lance, uri, 3, "subsub")
    assert lance.dataset(uri).branches.list() == lance_nb.dataset(uri).branches.list()
    counts = {"fix/ours": 30, "theirs": 30, "sub": 30, "subsub": 40}
    for name, count in counts.items():
        theirs = lance.dataset(uri).checkout_version((name, None))
        ours = lance_nb.dataset(uri, version=(name, None))
        theirs.validate()
        assert theirs.count_rows() == ours.count_rows() == count
        assert theirs.to_table() == ours.to_table()
        assert [one["version"] for one in theirs.versions()] == ours.version_numbers()
    with pytest.raises(OSError, match="referenced by"):
        lance.dataset(uri).branches.delete("theirs")
    with pytest.raises(RefConflictError, match="'sub'"):
        branches.delete("theirs")
    lance.dataset(uri).branches.delete("fix/ours")
    branches.delete("subsub")
    assert refs.branch_names(open_store(uri)) == ["sub", "theirs"]
    assert lance.dataset(uri).branches.list().keys() == {"sub", "theirs"}


@pytest.mark.parametrize("where", ["main", "branch", "shallow clone"])
def test_deletions_of_one_fragment_by_both_are_merged(lance, tmp_path: Path, where: str):
    uri = tmp_path / "t.lance"
    create(lance, uri)
    branch = None
    if where == "branch":
        branch = "dev"
        _branches(uri).create(branch, Target(None, 1))
    elif where == "shallow clone":
        commit_clone(
            place(uri), 1, place(tmp_path / "clone.lance"), CommitOptions(), is_shallow=True
        )
        uri = tmp_path / "clone.lance"
    bases = [str(tmp_path)]
    ours = [
        lance_nb.dataset(uri, version=(branch, None), allow_bases=bases).delete for _ in range(2)
    ]
    theirs = [lance.dataset(uri).checkout_version((branch, None)).delete for _ in range(2)]
    for number, delete in enumerate((ours[0], theirs[0], ours[1], theirs[1])):
        delete(f"id = {2 * number}")
    found = lance_nb.dataset(uri, version=(branch, None), allow_bases=bases)
    judge = lance.dataset(uri).checkout_version((branch, None))
    judge.validate()
    assert found.version == judge.version == 5
    assert found.to_table()["id"].to_pylist() == [1, 3, 5, 7, 8, 9]
    assert judge.to_table() == found.to_table()
    assert len(found.get_fragments()) == 1


def test_the_first_manifest_of_a_branch_is_like_pylances(lance, tmp_path: Path):
    uri = tmp_path / "t.lance"
    create(lance, uri)
    lance.dataset(uri).delete("id = 3")
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    lance.dataset(uri).create_branch("theirs", 3)
    _branches(uri).create("ours", Target(None, 3))
    found = [commit_of(uri, name) for name in ("theirs", "ours")]
    assert found[0] == found[1]


def commit_of(uri: Path, branch: str) -> tuple[Any, ...]:
    from lance_nb.transactions.version_slots import VersionSource

    source = VersionSource(place(uri, branch).slots)
    source.head(0)
    version = source.load(3)
    manifest = version.manifest
    operation = source.transaction(3).operation
    return (
        manifest.schema,
        list(manifest.fragments),
        manifest.max_fragment_id,
        manifest.base_paths,
        manifest.reader_feature_flags,
        manifest.writer_feature_flags,
        manifest.data_format,
        version.indices,
        (operation.is_shallow, operation.ref_version, operation.ref_name, operation.ref_path),
    )


def test_clones_of_a_branch_of_ours_open_in_pylance(lance, tmp_path: Path):
    uri = tmp_path / "t.lance"
    create(lance, uri)
    lance.dataset(uri).delete("id = 3")
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    _branches(uri).create("dev", Target(None, 3))
    append(lance, uri, 3, "dev")
    expected = lance.dataset(uri).checkout_version(("dev", 4)).to_table()
    shallow, deep = tmp_path / "shallow.lance", tmp_path / "deep.lance"
    commit_clone(place(uri, "dev"), 4, place(shallow), CommitOptions(), is_shallow=True)
    seen = []
    copy_version(place(uri, "dev"), 4, place(deep), CommitOptions(), seen.append)
    assert seen[-1].num_files == seen[-1].num_files_copied == len(seen) >= 5
    for clone in (shallow, deep):
        theirs = check(lance, clone, [4])
        assert theirs.to_table() == expected
        lance.write_dataset(TABLE, clone, mode="append")
        append(lance, clone, 5)
        assert check(lance, clone, [4, 5, 6]).count_rows() == 39
    uri.rename(tmp_path / "moved.lance")
    assert lance.dataset(deep).to_table().num_rows == 39
    assert lance.dataset(deep).describe_indices()[0].name == "id_idx"


def test_a_clone_of_ours_and_of_pylance_hold_the_same(lance, tmp_path: Path):
    uri = tmp_path / "t.lance"
    create(lance, uri)
    lance.dataset(uri).delete("id = 3")
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    theirs, ours = tmp_path / "a.lance", tmp_path / "b.lance"
    lance.dataset(uri).deep_clone(theirs, 3)
    copy_version(place(uri), 3, place(ours), CommitOptions())
    names = [
        {
            str(path.relative_to(clone))
            for path in clone.rglob("*")
            if path.is_file() and "_transactions" not in path.parts
        }
        for clone in (theirs, ours)
    ]
    assert names[0] == names[1]

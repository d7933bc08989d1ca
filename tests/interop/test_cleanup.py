"""Clean-ups beside pylance: the same history leaves the same files, and pylance reads them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

NOW = timedelta(0)
FIELDS = (
    "bytes_removed",
    "old_versions",
    "data_files_removed",
    "transaction_files_removed",
    "index_files_removed",
    "deletion_files_removed",
    "failed_deletes",
)


class _Pylance:
    """pylance, imported by the first test that needs it: it must not be in every worker."""

    def __getattr__(self, name: str) -> Any:
        return getattr(require_pylance(), name)


lance = _Pylance()


def rows(start: int, stop: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(range(start, stop), pa.int64()), "s": [f"r{i}" for i in range(start, stop)]}
    )


def tree(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
    }


def age(folder: Path, pattern: str, days: float) -> None:
    moment = time.time() - days * 86400
    for path in folder.glob(pattern):
        os.utime(path, (moment, moment))


# --- histories ------------------------------------------------------------------------------------


def mixed(uri: str) -> None:
    """Appends, overwrites, deletions, an index, an update, a compaction."""
    found = lance.write_dataset(rows(0, 60), uri, max_rows_per_file=20)
    found.delete("id = 3 or id > 55")
    found.create_scalar_index("id", "BTREE")
    found = lance.write_dataset(rows(100, 120), uri, mode="append")
    found.update({"s": "'new'"}, "id = 101")
    found.optimize.compact_files(target_rows_per_fragment=1000)
    found.create_scalar_index("id", "BTREE", replace=True)
    found.add_columns({"twice": "id * 2"})
    lance.write_dataset(rows(5, 9), uri, mode="append")


def overwrites(uri: str) -> None:
    for start in range(6):
        lance.write_dataset(rows(start, start + 5), uri, mode="overwrite" if start else "create")


def blobs(uri: str) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), field])
    for number in range(3):
        data = pa.table({"id": [number], "b": [bytes([number]) * 100_000]}, schema=schema)
        lance.write_dataset(data, uri, mode="overwrite" if number else "create")


def stable_ids(uri: str) -> None:
    found = lance.write_dataset(rows(0, 40), uri, enable_stable_row_ids=True)
    found.update({"s": "'x'"}, "id < 5")
    found.delete("id = 9")
    found.restore() if found.version == 1 else found.checkout_version(1).restore()


def tagged(uri: str) -> None:
    overwrites(uri)
    lance.dataset(uri).tags.create("second", 2)


def with_orphans(uri: str) -> None:
    overwrites(uri)
    for name in ("data/old.lance", "data/left/1.blob", "_indices/gone/page.lance", "data/note.txt"):
        path = Path(uri) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"orphan")
        age(Path(uri), name, 8)
    (Path(uri) / "data/young.lance").write_bytes(b"orphan")


HISTORIES = (mixed, overwrites, blobs, stable_ids, tagged, with_orphans)
RULES: tuple[dict[str, Any], ...] = (
    {"older_than": NOW},
    {"retain_versions": 2},
    {"versions": [1, 3]},
    {},
)


@pytest.mark.parametrize("history", HISTORIES, ids=lambda one: one.__name__)
def test_the_same_files_remain_and_the_same_is_counted(
    history: Callable[[str], None], tmp_path: Path
):
    first = tmp_path / "first.lance"
    history(str(first))
    for number, rule in enumerate(RULES):
        twins = [tmp_path / f"{number}-{name}.lance" for name in ("theirs", "ours")]
        for twin in twins:
            shutil.copytree(first, twin)
        more = {**rule, "error_if_tagged_old_versions": False}
        planned = lance_nb.dataset(twins[1]).cleanup_old_versions(**more, dry_run=True)
        theirs = lance.dataset(twins[0]).cleanup_old_versions(**more)
        ours = lance_nb.dataset(twins[1]).cleanup_old_versions(**more)
        assert tree(twins[0]) == tree(twins[1]), rule
        for name in FIELDS:
            assert getattr(ours, name) == getattr(theirs, name), (rule, name)
        assert planned.stats == ours
        gone = set(tree(first)) - set(tree(twins[1]))
        assert {one.path for one in planned.candidate_files} == gone
        found = lance.dataset(twins[1])
        for entry in found.versions():
            old = found.checkout_version(entry["version"])
            assert old.to_table() == lance.dataset(first, version=entry["version"]).to_table()
        assert lance_nb.dataset(twins[1]).verify().ok


def test_explanations_agree(tmp_path: Path):
    uri = str(tmp_path / "t.lance")
    with_orphans(uri)
    for more in ({"older_than": NOW}, {"retain_versions": 3}, {"older_than": NOW, "max_files": 2}):
        theirs = lance.dataset(uri).explain_cleanup_old_versions(**more, include_files=True)
        ours = lance_nb.dataset(uri).explain_cleanup_old_versions(**more, include_files=True)
        assert ours.read_version == theirs.read_version
        assert ours.candidate_files_truncated == theirs.candidate_files_truncated
        assert ours.candidate_file_limit == theirs.candidate_file_limit
        assert ours.warnings == theirs.warnings
        assert ours.stats.bytes_removed == theirs.stats.bytes_removed
        if not theirs.candidate_files_truncated:
            place = uri.lstrip("/")
            assert sorted(
                (one.path, one.kind, one.unverified, one.size_bytes) for one in ours.candidate_files
            ) == sorted(
                (one.path.removeprefix(f"{place}/"), one.kind, one.unverified, one.size_bytes)
                for one in theirs.candidate_files
            )
    short = lance_nb.dataset(uri).explain_cleanup_old_versions(NOW)
    assert (short.candidate_files, short.candidate_files_truncated) == ([], False)
    assert short.candidate_file_limit == 1000


def branched(uri: str) -> None:
    overwrites(uri)
    found = lance.dataset(uri)
    dev = found.create_branch("dev", 2)
    dev.insert(rows(200, 210))
    dev.insert(rows(210, 220))
    dev.delete("id = 3")
    deep = dev.create_branch("dev/deep", 3)
    deep.insert(rows(300, 301))
    dev.insert(rows(400, 401), mode="overwrite")
    found.tags.create("on-dev", ("dev", 4))


def contents(uri: Path) -> dict[str, pa.Table]:
    found = lance.dataset(str(uri))
    tables = {
        f"main:{one['version']}": found.checkout_version(one["version"]).to_table()
        for one in found.versions()
    }
    for name in found.branches.list():
        branch = found.checkout_version((name, None))
        for one in branch.versions():
            tables[f"{name}:{one['version']}"] = found.checkout_version(
                (name, one["version"])
            ).to_table()
    for name in found.tags.list():
        tables[name] = found.checkout_version(name).to_table()
    return tables


@pytest.mark.parametrize("branch", [None, "dev", "dev/deep"])
def test_branches_and_tags_stay_readable_whatever_is_cleaned_up(branch: str | None, tmp_path: Path):
    first = tmp_path / "first.lance"
    branched(str(first))
    before = contents(first)
    twins = [tmp_path / "theirs.lance", tmp_path / "ours.lance"]
    for twin in twins:
        # Their manifests hold the absolute path of the parent: each twin is made where it stays.
        branched(str(twin))
        for name in (branch,):
            handle = (lance if twin is twins[0] else lance_nb).dataset(str(twin))
            if name is not None:
                handle = handle.checkout_version((name, None))
            handle.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    theirs, ours = contents(twins[0]), contents(twins[1])
    assert set(theirs) == set(ours)
    for place, table in ours.items():
        assert table == before[place], place
    assert lance_nb.dataset(twins[1]).verify().ok
    counts = [len([path for path in tree(twin) if "_transactions" not in path]) for twin in twins]
    assert counts[0] == counts[1]


def test_a_version_that_a_branch_started_from_stays_as_long_as_the_branch(tmp_path: Path):
    """pylance lets it go once the branch needs none of its files; merging would miss it."""
    uri = str(tmp_path / "t.lance")
    overwrites(uri)
    branch = lance.dataset(uri).create_branch("dev", 2)
    branch.insert(rows(1, 2), mode="overwrite")
    lance_nb.dataset(uri).checkout_version(("dev", None)).cleanup_old_versions(NOW)
    ours = lance_nb.dataset(uri)
    ours.cleanup_old_versions(NOW)
    assert ours.version_numbers() == [2, 6]
    lance.dataset(uri).cleanup_old_versions(NOW)
    assert ours.version_numbers() == [6]


def test_tagged_versions_are_reported_as_pylance_does(tmp_path: Path):
    uri = str(tmp_path / "t.lance")
    tagged(uri)
    for module in (lance, lance_nb):
        with pytest.raises(OSError, match="second"):
            module.dataset(uri).cleanup_old_versions(NOW)
        module.dataset(uri).cleanup_old_versions(versions=[1])


@pytest.mark.parametrize(
    "wrong",
    [{"retain_versions": 0}, {"versions": []}, {"delete_rate_limit": 0}, {"delete_concurrency": 0}],
)
def test_wrong_arguments_are_refused_as_pylance_does(wrong: dict[str, Any], tmp_path: Path):
    uri = str(tmp_path / "t.lance")
    overwrites(uri)
    for module in (lance, lance_nb):
        with pytest.raises(OSError):
            module.dataset(uri).cleanup_old_versions(**wrong)


def test_space_that_would_be_freed_is_what_pylance_frees(tmp_path: Path):
    uri = str(tmp_path / "t.lance")
    mixed(uri)
    before = tree(Path(uri))
    space = lance_nb.dataset(uri).space()
    assert space.total_bytes == sum(before.values())
    freed = space.freed_if(retain_versions=3)
    stats = lance.dataset(uri).cleanup_old_versions(retain_versions=3)
    assert (freed.size_bytes, freed.num_versions) == (stats.bytes_removed, stats.old_versions)
    assert set(freed.paths) == set(before) - set(tree(Path(uri)))


def test_validate_finds_what_pylance_finds(tmp_path: Path):
    uri = tmp_path / "t.lance"
    mixed(str(uri))
    for module in (lance, lance_nb):
        module.dataset(str(uri)).validate()
    newest = max((uri / "data").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    data = newest.read_bytes()
    for damage in (None, data[:100]):
        newest.unlink(missing_ok=True)
        if damage is not None:
            newest.write_bytes(damage)
        for module in (lance, lance_nb):
            with pytest.raises(OSError):
                module.dataset(str(uri)).validate()


NESTED = pa.table(
    {
        "id": pa.array(range(3000), pa.int64()),
        "s": [f"v{n % 50}" for n in range(3000)],
        "st": [{"a": n, "b": {"c": n / 2}} for n in range(3000)],
        "l": [[n, n + 1] for n in range(3000)],
        "n": pa.nulls(3000, pa.int32()),
    }
)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "legacy"])
def test_data_statistics_are_equal(version: str, tmp_path: Path):
    uri = str(tmp_path / "t.lance")
    data = NESTED if version != "legacy" else NESTED.select(["id", "s"])
    found = lance.write_dataset(data, uri, data_storage_version=version)
    if version != "legacy":
        found.add_columns({"k": "id + 1"})
        found.drop_columns(["s"])
        found.delete("id < 100")
    theirs, ours = (module.dataset(uri).stats for module in (lance, lance_nb))
    assert [(one.id, one.bytes_on_disk) for one in ours.data_stats().fields] == [
        (one.id, one.bytes_on_disk) for one in theirs.data_stats().fields
    ]
    assert not any(one.payload_bytes for one in ours.data_stats().fields)
    assert ours.dataset_stats() == theirs.dataset_stats()
    assert ours().num_rows == found.count_rows()
    assert lance_nb.dataset(uri).verify().ok


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_payloads_of_blobs_are_counted(version: str, tmp_path: Path):
    """pylance counts the pages alone; what blob columns have beside them is told apart."""
    uri = str(tmp_path / "t.lance")
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    inner = pa.struct([blob, ("n", pa.int8())])
    sizes = [5, 0, 70_000, 5_000_000, 12]
    payloads: list[bytes | None] = [*map(bytes, sizes), None]
    structs = [{"b": bytes(100), "n": 1}] * 6
    schema = pa.schema([("id", pa.int64()), blob, ("s", inner)])
    columns = [range(6), pa.array(payloads, pa.large_binary()), pa.array(structs, inner)]
    found = lance.write_dataset(
        pa.table(columns, schema=schema), uri, data_storage_version=version, max_rows_per_file=2
    )
    found.delete("id = 2")
    theirs, ours = (module.dataset(uri).stats.data_stats().fields for module in (lance, lance_nb))
    assert [(one.id, one.bytes_on_disk - one.payload_bytes) for one in ours] == [
        (one.id, one.bytes_on_disk) for one in theirs
    ]
    payload_bytes = [one.payload_bytes for one in ours if one.payload_bytes]
    assert payload_bytes == [sum(sizes), 600]
    space = lance_nb.dataset(uri).space()
    written = sum(one.stat().st_size for one in (tmp_path / "t.lance").rglob("*") if one.is_file())
    assert space.total_bytes == written
    assert space.current_bytes > sum(payload_bytes)


def test_manifest_names_are_migrated_as_pylance_does(tmp_path: Path):
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(0, 5), uri, enable_v2_manifest_paths=False)
    lance.write_dataset(rows(5, 9), uri, mode="append")
    assert (tmp_path / "t.lance/_versions/2.manifest").exists()
    lance_nb.dataset(uri).migrate_manifest_paths_v2()
    lance_nb.dataset(uri).migrate_manifest_paths_v2()
    lance.dataset(uri).migrate_manifest_paths_v2()
    assert lance.dataset(uri).to_table() == lance_nb.dataset(uri).to_table() == rows(0, 9)
    lance_nb.dataset(uri).cleanup_old_versions(NOW)
    assert lance.dataset(uri).version == 2


def test_a_plan_is_not_run_after_a_commit_of_pylance(tmp_path: Path) -> None:
    for one in range(3):
        lance.write_dataset(rows(one, one + 5), tmp_path / "a", mode="overwrite")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    plan = lance_nb.dataset(tmp_path / "a").cleanup_old_versions(
        NOW, error_if_tagged_old_versions=False, dry_run=True
    )
    theirs = lance.dataset(tmp_path / "b").cleanup_old_versions(NOW)
    assert (plan.stats.old_versions, plan.stats.data_files_removed) == (2, 2)
    assert plan.stats.data_files_removed == theirs.data_files_removed
    lance.dataset(tmp_path / "a").tags.create("kept", 1)
    before = tree(tmp_path / "a")
    with pytest.raises(lance_nb.CommitConflictError):
        plan.run()
    assert tree(tmp_path / "a") == before
    lance.dataset(tmp_path / "a").tags.delete("kept")
    assert plan.run() == plan.stats
    assert lance.dataset(tmp_path / "a").to_table() == rows(2, 7)
    assert [one["version"] for one in lance.dataset(tmp_path / "a").versions()] == [3]

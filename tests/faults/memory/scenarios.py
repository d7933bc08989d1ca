"""What the crash grid does to a dataset: one change each, with what it looks like before and after.

A scenario prepares a dataset without faults, then acts through the faulty store. ``act`` may be
called again on what an earlier, failed call left behind; it is the same change, not a second one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, partial
from typing import Any

from lance_nb.errors import RefNotFoundError, StorageError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.layout import NamingScheme, branch_root, list_versions, parse_manifest_name
from lance_nb.merging.branch_merging import plan_merge
from lance_nb.merging.merge_base import Side
from lance_nb.merging.merge_plan import MergeOptions, commit_merge
from lance_nb.table import refs
from lance_nb.table.refs import Target
from lance_nb.table.retention import RetentionPolicy
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.versions import load_latest, load_manifest, version_names
from lance_nb.transactions.commit import commit, commit_batch
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.deletion_files import write_deletion_file
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.manifest_migration import migrate_manifest_paths_v2
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.operations.update_config import UpdateConfig, UpdateMap
from lance_nb.transactions.ref_writer import TagWriter
from lance_nb.transactions.version_slots import VersionSource
from lance_nb.writing.branching import BranchWriter
from lance_nb.writing.cleanup import Cleanup, CleanupOptions
from lance_nb.writing.cloning import commit_clone, copy_version
from tests.support.committing import SCHEMA, Table, file_names, fragment


@dataclass(frozen=True, slots=True)
class Scenario:
    """One change. ``state`` is what a reader sees of it.

    ``needs_listings``: it works on what a listing shows, so that one that lags makes it do less.
    ``is_whole`` tells whether nothing half done is left, which is asked after Ctrl-C. ``between``
    tells whether a state may be seen half-way, beside those before and after.
    """

    prepare: Callable[[Table], Any]
    act: Callable[[Table, Any], Any]
    state: Callable[[Table], Any]
    needs_listings: bool = False
    is_whole: Callable[[Table], bool] = lambda _: True
    between: Callable[[Any], bool] = lambda _: False


def versions(table: Table) -> tuple[int, ...]:
    """Load every version of main; return the numbers. A broken one raises."""
    names = version_names(table.inner) if table.inner.list_names("_versions") else []
    for name in names:
        CommitPlace.of(table.inner).slots.read(name)
    return tuple(name.version for name in names)


def latest(table: Table) -> Any:
    """What a reader sees of main: version, files, deletions."""
    if not versions(table):
        return None
    found = load_latest(table.inner)
    return (
        found.version,
        [file.path for one in found.fragments for file in one.files],
        [one.deletion_file and one.deletion_file.num_deleted_rows for one in found.fragments],
        dict(found.config),
    )


def _existing(table: Table, count: int = 1) -> None:
    table.create()
    for version in range(1, count):
        table.append(version, f"f{version}")


def _commit(table: Table, transaction: Any, **options: Any) -> Any:
    return commit(table.place, transaction, table.options(**options))


def _committing(make: Callable[[Table], Any], count: int = 2, **options: Any) -> Scenario:
    def prepare(table: Table) -> Any:
        if count:
            _existing(table, count)
        return make(table)

    return Scenario(prepare, lambda table, made: _commit(table, made, **options), latest)


def _deletion(table: Table, offset: int) -> tuple[Any, dict[int, DeletionVector]]:
    """Return a deletion of one row of fragment 0, planned on version 1, and the rows."""
    vector = DeletionVector.of([offset])
    file = write_deletion_file(table.inner, 0, 1, vector, environment=table.environment)
    old = load_latest(table.inner).fragments[0]
    operation = Delete((replace(old, deletion_file=file),), (), f"id = {offset}")
    return table.transaction(1, operation), {0: vector}


def _rebased_deletion() -> Scenario:
    def prepare(table: Table) -> Any:
        _existing(table, 1)
        mine, rows = _deletion(table, 3)
        other, other_rows = _deletion(table, 7)
        commit(table.sound, other, table.options(affected_rows=other_rows))
        return mine, rows

    return Scenario(
        prepare, lambda table, made: _commit(table, made[0], affected_rows=made[1]), latest
    )


def _with_parts(table: Table) -> Any:
    _existing(table, 3)
    return [table.appending(1, "mine"), table.appending(2, "more")]


# --- refs -----------------------------------------------------------------------------------------


def _tags(table: Table) -> TagWriter:
    return TagWriter(table.root, lambda b: CommitPlace.of(table.root, b), table.environment)


def _branches(table: Table) -> BranchWriter:
    return BranchWriter(table.root, lambda b: CommitPlace.of(table.root, b), table.environment)


def _tag_state(table: Table) -> Any:
    found = refs.list_tags(table.inner)
    return {name: (tag.version, dict(tag.metadata)) for name, tag in found.items()}, latest(table)


def _with_tag(table: Table) -> None:
    _existing(table, 3)
    TagWriter(table.inner, lambda b: CommitPlace.of(table.inner, b), table.environment).create(
        "v1", Target(None, 1)
    )


def _tagging(act: Callable[[TagWriter], Any], prepare: Callable[[Table], None]) -> Scenario:
    return Scenario(prepare, lambda table, _: act(_tags(table)), _tag_state)


def _branch_state(table: Table) -> Any:
    found = {}
    for name, branch in refs.list_branches(table.inner).items():
        home = table.inner.child(f"tree/{name}")
        numbers = tuple(one.version for one in list_versions(home.list_names("_versions")))
        found[name] = (branch.parent_version, numbers, numbers and load_latest(home).branch)
    # A branch whose creation or deletion was interrupted is listed and has no versions.
    whole = {name: one for name, one in found.items() if one[1]}
    return whole, latest(table)


def _has_no_unfinished_branch(table: Table) -> bool:
    return all(
        refs.unfinished_problem(table.inner, name) is None
        for name in refs.branch_names(table.inner)
    )


def _with_branch(table: Table) -> None:
    _existing(table, 3)
    place = lambda branch: CommitPlace.of(table.inner, branch)
    BranchWriter(table.inner, place, table.environment).create("dev", Target(None, 2))


def _create_branch(table: Table, _: Any) -> None:
    _branches(table).create("dev", Target(None, 2))


def _delete_branch(table: Table, _: Any) -> None:
    try:
        _branches(table).delete("dev")
    except RefNotFoundError:
        if not table.inner.list_recursive("tree"):
            raise
        _branches(table).delete("dev", force=True)


# --- merges ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Versions:
    """Every version of a table, for planning a merge."""

    root: Any

    def branches(self) -> Any:
        return refs.list_branches(self.root)

    def load(self, branch: str | None, version: int | None) -> Side:
        place = CommitPlace.of(self.root, branch)
        source = VersionSource(place.slots)
        head = source.head(version or 0)
        found = source.load(version or (head.version if head else 0))
        where = place.locations(found.manifest)
        return Side.of(Snapshot(found.manifest, where, branch), found.indices)

    def transactions(self, branch: str | None, versions: Any) -> Any:
        source = VersionSource(CommitPlace.of(self.root, branch).slots)
        source.head(1)
        return iter([source.transaction(one) for one in versions])

    def home_uri(self, branch: str | None) -> str:
        return CommitPlace.of(self.root, branch).home.uri


def _with_two_sides(table: Table) -> None:
    _with_branch(table)
    dev = CommitPlace.of(table.inner, "dev")
    commit(dev, table.appending(2, "dev"), table.options())


def _merge(table: Table, _: Any) -> None:
    known = _Versions(table.root)
    planned = plan_merge(known, known.load("dev", None), known.load(None, None), MergeOptions())
    commit_merge(table.place, planned, _tags(table), table.options())


# --- clones, names --------------------------------------------------------------------------------


def _cloned(clone: Callable[..., Any]) -> Scenario:
    """The dataset under test is the target; its source has no faults."""

    def prepare(table: Table) -> Any:
        source = Table(seed=9)
        made = source.create()
        for name in file_names(made):
            source.inner.write(f"data/{name}", b"rows")
        return source

    return Scenario(
        prepare, lambda table, source: clone(source.sound, 1, table.place, table.options()), latest
    )


def _v1(table: Table) -> None:
    table.create(enable_v2_manifest_paths=False)
    table.append(1)


def _names(table: Table) -> Any:
    parsed = [parse_manifest_name(name) for name in table.inner.list_names("_versions")]
    found = [one for one in parsed if one is not None]
    mixed = len({one.scheme for one in found}) > 1
    return "mixed" if mixed else (found[0].scheme is NamingScheme.V2, versions(table))


# --- clean-ups ------------------------------------------------------------------------------------

TAGGED, FORKED, NEWEST = 2, 3, 6
STAY = {TAGGED, FORKED, NEWEST}


@cache
def _many_versions() -> dict[str, bytes]:
    """Six versions, each with a data file of its own; one is tagged, one has a branch."""
    table = Table(seed=5)
    table.inner.write(f"data/{file_names(table.create())[0]}", b"rows")
    for version in range(1, NEWEST):
        operation = Overwrite(SCHEMA, (fragment(f"made-{version}"),))
        commit(table.sound, table.transaction(version, operation), table.options())
        table.inner.write(f"data/made-{version}.lance", b"rows")
    place = lambda branch: CommitPlace.of(table.inner, branch)
    TagWriter(table.inner, place, table.environment).create("kept", Target(None, TAGGED))
    BranchWriter(table.inner, place, table.environment).create("dev", Target(None, FORKED))
    listing = table.inner.list_recursive("")
    return {item.name: bytes(table.inner.read(item.name)) for item in listing}


def _with_many_versions(table: Table) -> None:
    for path, data in _many_versions().items():
        table.inner.write(path, data)


def _clean(table: Table, _: Any) -> None:
    policy = RetentionPolicy.of(
        timedelta(0), None, None, delete_unverified=True, error_if_tagged_old_versions=False
    )
    # The clock is the real one: the store's modification times are.
    options = CleanupOptions(environment=Environment())
    stats = Cleanup(table.root, "", NEWEST, policy, options).run()
    if stats.failed_deletes:
        raise StorageError("data", f"{stats.failed_deletes} files were not deleted")


def _readable(table: Table) -> Any:
    """Return the versions that are listed, all of whose files are there, and the data files."""
    files = {item.name for item in table.inner.list_recursive("data")}
    numbers = set()
    for folder in ("", branch_root("dev")):
        home = table.inner.child(folder) if folder else table.inner
        for name in version_names(home):
            manifest = load_manifest(home, name)
            needed = {file.path for part in manifest.fragments for file in part.files}
            assert needed <= files, f"version {name.version} of {folder!r} lacks {needed - files}"
            numbers |= set() if folder else {name.version}
    return tuple(sorted(numbers)), tuple(sorted(files))


SCENARIOS = {
    "create": _committing(lambda table: table.creating("mine"), count=0),
    "create with V1 names": _committing(
        lambda table: table.creating("mine"), count=0, enable_v2_manifest_paths=False
    ),
    "append": _committing(lambda table: table.appending(2, "mine")),
    "append of a stale writer": _committing(lambda table: table.appending(1, "mine"), count=4),
    "overwrite": _committing(
        lambda table: table.transaction(2, Overwrite(SCHEMA, (fragment("mine"),)))
    ),
    "restore": _committing(lambda table: table.transaction(2, Restore(1))),
    "config": _committing(
        lambda table: table.transaction(2, UpdateConfig(UpdateMap({"mine": "1"}))), count=3
    ),
    "deletion of a fragment": _committing(
        lambda table: table.transaction(2, Delete((), (0,), "true")), count=3
    ),
    "deletion that is rebased": _rebased_deletion(),
    "batch": Scenario(
        _with_parts, lambda table, parts: commit_batch(table.place, parts, table.options()), latest
    ),
    "tag created": _tagging(
        lambda tags: tags.create("v1", Target(None, 2)), lambda table: _existing(table, 3)
    ),
    "tag moved": _tagging(lambda tags: tags.update("v1", Target(None, 2)), _with_tag),
    "tag described": _tagging(lambda tags: tags.replace_metadata("v1", {"a": "b"}), _with_tag),
    "tag deleted": _tagging(lambda tags: tags.delete("v1"), _with_tag),
    "branch created": Scenario(
        lambda table: _existing(table, 3),
        _create_branch,
        _branch_state,
        is_whole=_has_no_unfinished_branch,
    ),
    "branch deleted": Scenario(_with_branch, _delete_branch, _branch_state),
    "branch merged": Scenario(_with_two_sides, _merge, _branch_state, needs_listings=True),
    "shallow clone": _cloned(partial(commit_clone, is_shallow=True)),
    "deep clone": _cloned(copy_version),
    "V1 names migrated": Scenario(
        _v1, lambda table, _: migrate_manifest_paths_v2(table.root), _names, needs_listings=True,
        # Readers refuse a dataset in the middle of it; repeating it is what mends it.
        between=lambda state: state == "mixed",
    ),
    "clean-up": Scenario(
        _with_many_versions, _clean, _readable, needs_listings=True,
        between=lambda state: set(state[0]) >= STAY,
    ),
}  # fmt: skip

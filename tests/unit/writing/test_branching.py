from __future__ import annotations

import json
import threading

import pytest

import lance_nb
from lance_nb.errors import (
    CommitStateUnknownError,
    DatasetAlreadyExistsError,
    InvalidInputError,
    InvalidRefError,
    LanceError,
    RefConflictError,
    RefNotFoundError,
    StorageError,
    VersionNotFoundError,
)
from lance_nb.format.layout import manifest_path
from lance_nb.format.refs import Branch
from lance_nb.table import refs
from lance_nb.table.refs import Target
from lance_nb.table.versions import load_latest, version_names
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.ref_writer import TagWriter
from lance_nb.writing import branching
from lance_nb.writing.branching import BranchDeletion, BranchUsers, BranchWriter, users_of
from tests.support.committing import Table, file_names
from tests.support.faulty_store import LISTS, Crash, Fault, at, no_faults, on


def _table(versions: int = 3) -> Table:
    table = Table()
    table.create()
    for version in range(1, versions):
        table.append(version)
    return table


def _branches(table: Table) -> BranchWriter:
    return BranchWriter(
        table.root, lambda branch: CommitPlace.of(table.root, branch), table.environment
    )


def _append(table: Table, branch: str, read_version: int, name: str = ""):
    place = CommitPlace.of(table.inner, branch)
    return commit(place, table.appending(read_version, name), table.options())


def test_a_branch_starts_with_the_number_and_files_of_its_parent():
    table = _table()
    made = _branches(table).create("fix/one", Target(None, 2))
    home = table.inner.child("tree/fix/one")
    found = load_latest(home)
    assert made.manifest == found
    assert (found.version, found.branch) == (2, "fix/one")
    assert [(one.id, one.path, one.is_dataset_root, one.name) for one in found.base_paths] == [
        (0, table.inner.uri, True, None)
    ]
    assert [file.base_id for one in found.fragments for file in one.files] == [0, 0]
    assert found.reader_feature_flags == found.writer_feature_flags == 16
    clone = made.transaction.operation
    assert (clone.is_shallow, clone.ref_version, clone.branch_name) == (True, 2, "fix/one")
    assert (clone.ref_path, clone.ref_name) == (table.inner.uri, None)


def test_its_record_is_written_as_pylance_writes_it():
    table = _table()
    made = _branches(table).create("fix/one", Target(None, 2))
    record = json.loads(bytes(table.inner.read("_refs/branches/fix%2Fone.json")))
    uuid = made.transaction.uuid.replace("-", "")
    assert record == {
        "parentBranch": None,
        "identifier": {"version_mapping": [[2, uuid]]},
        "parentVersion": 2,
        "createAt": 1_700_000_000,
        "manifestSize": table.inner.size("_versions/18446744073709551613.manifest"),
        "metadata": {},
    }


def test_writing_on_a_branch_goes_on_from_there_and_leaves_main_alone():
    table = _table()
    _branches(table).create("dev", Target(None, 2))
    made = _append(table, "dev", 2, "new")
    assert made.version == 3
    assert [file.base_id for one in made.manifest.fragments for file in one.files] == [0, 0, None]
    assert [one.version for one in version_names(table.inner)] == [1, 2, 3]
    assert "new.lance" not in str(list(load_latest(table.inner).fragments))
    assert json.loads(bytes(table.inner.read("tree/dev/_versions/latest_version_hint.json"))) == {
        "version": 3
    }


def test_a_branch_of_a_branch_repeats_its_ancestors():
    table = _table()
    _branches(table).create("dev", Target(None, 2))
    _append(table, "dev", 2)
    made = _branches(table).create("sub", Target("dev", None))
    bases = {one.id: (one.path, one.name) for one in made.manifest.base_paths}
    assert bases == {
        0: (table.inner.uri, None),
        1: (f"{table.inner.uri}/tree/dev", "dev"),
    }
    assert [file.base_id for one in made.manifest.fragments for file in one.files] == [0, 0, 1]
    parent, found = (refs.read_branch(table.inner, name) for name in ("dev", "sub"))
    assert found.identifier[:-1] == parent.identifier
    assert (found.parent_branch, found.parent_version, found.identifier[-1][0]) == ("dev", 3, 3)


def test_a_name_is_taken_once():
    table = _table()
    _branches(table).create("dev", Target(None, 2))
    for version in (2, 3):
        with pytest.raises(RefConflictError, match="'dev' already exists"):
            _branches(table).create("dev", Target(None, version))
    assert [one.version for one in version_names(table.inner.child("tree/dev"))] == [2]


@pytest.mark.parametrize("target", [Target(None, 9), Target("nope", None), Target("nope", 1)])
def test_a_start_that_is_not_there_is_reported(target: Target):
    table = _table()
    with pytest.raises((VersionNotFoundError, RefNotFoundError)):
        _branches(table).create("dev", target)
    assert table.inner.list_recursive("tree") == table.inner.list_recursive("_refs") == []


@pytest.mark.parametrize(
    "name", ["", "main", "/a", "a/", "a//b", "a/../b", "..", "a\\b", "a b", "a.lock", "a/.", "x%2f"]
)
def test_names_that_break_the_rules_are_refused(name: str):
    table = _table()
    for act in (lambda b: b.create(name, Target(None, 1)), lambda b: b.delete(name, force=True)):
        with pytest.raises(InvalidRefError):
            act(_branches(table))


def test_of_8_creators_one_wins_and_the_folder_is_the_winners():
    table = _table()
    won: list[int] = []
    lost: list[LanceError] = []

    def race(version: int) -> None:
        writer = BranchWriter(table.inner, lambda b: CommitPlace.of(table.inner, b))
        try:
            won.append(writer.create("dev", Target(None, version)).version)
        except RefConflictError as error:
            lost.append(error)

    threads = [threading.Thread(target=race, args=(1 + n % 3,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 7)
    assert refs.read_branch(table.inner, "dev").parent_version == won[0]
    assert [one.version for one in version_names(table.inner.child("tree/dev"))] == won


def test_a_creation_that_failed_leaves_the_name_free():
    table = _table()
    table.root.world.plan = on("write_if_absent", "tree/dev", Fault.NO_SPACE)
    with pytest.raises(StorageError):
        _branches(table).create("dev", Target(None, 2))
    assert refs.branch_names(table.inner) == []
    assert _branches(table).create("dev", Target(None, 2)).version == 2


def test_a_creation_of_unknown_outcome_keeps_the_name():
    table = _table()
    table.root.world.plan = on("write_if_absent", "tree/dev", Fault.UNKNOWN_BEFORE, times=99)
    with pytest.raises(CommitStateUnknownError):
        _branches(table).create("dev", Target(None, 2))
    assert refs.branch_names(table.inner) == ["dev"]


def test_a_branch_stays_whose_folder_cannot_be_listed_after_its_first_version():
    table = _table()
    table.root.world.plan = lambda step: (
        Fault.ERROR_BEFORE
        if step.method in LISTS
        and step.path == "tree/dev/_versions"
        and table.inner.exists(f"tree/dev/{manifest_path(2)}")
        else None
    )
    with pytest.raises(CommitStateUnknownError, match="branch 'dev' has been created") as caught:
        _branches(table).create("dev", Target(None, 2))
    assert caught.value.version == 2
    table.root.world.plan = no_faults
    assert refs.branch_names(table.inner) == ["dev"]
    assert load_latest(table.inner.child("tree/dev")).version == 2


def _interrupted(table: Table, target: Target) -> None:
    """Create a branch and be killed between its record and its first version."""
    table.root.world.plan = on("write_if_absent", "tree/dev", Fault.CRASH_BEFORE)
    with pytest.raises(Crash):
        _branches(table).create("dev", target)
    table.root.world.plan = no_faults


def test_a_creation_that_was_interrupted_is_completed_at_once():
    table = _table()
    _interrupted(table, Target(None, 2))
    record = refs.read_branch(table.inner, "dev")
    with pytest.raises(RefConflictError, match=r"unfinished: its creation from main:2.*main:3"):
        _branches(table).create("dev", Target(None, 3))
    made = _branches(table).create("dev", Target(None, 2))
    assert made.version == 2
    assert made.transaction.uuid.replace("-", "") == record.identifier[-1][1]
    assert refs.read_branch(table.inner, "dev") == record
    assert load_latest(table.inner.child("tree/dev")).branch == "dev"
    with pytest.raises(RefConflictError, match="already exists"):
        _branches(table).create("dev", Target(None, 2))


def _create_as_pylance(table: Table, version: int) -> None:
    """Write the first version of branch dev without its record, as pylance does at first."""
    writer = BranchWriter(table.inner, lambda branch: CommitPlace.of(table.inner, branch))
    writer._clone("dev", Branch(None, version), "11111111-2222-4333-8444-555555555555")


def test_a_version_that_pylance_made_at_the_same_time_is_taken_over():
    """It has seen our record by then, and gives up: else there would be no branch at all."""
    table = _table()
    table.root.world.plan = lambda step: (
        _create_as_pylance(table, 2)
        if step.path == "tree/dev/_versions"
        and table.inner.exists("_refs/branches/dev.json")
        and not table.inner.list_names("tree/dev/_versions")
        else None
    )
    made = _branches(table).create("dev", Target(None, 2))
    table.root.world.plan = no_faults
    assert made.transaction.uuid == "11111111-2222-4333-8444-555555555555"
    assert (made.version, refs.branch_names(table.inner)) == (2, ["dev"])
    assert refs.unfinished_problem(table.inner, "dev") is None


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_branch_that_pylance_creates_from_another_version_is_not_reported_created(
    version: int, is_first: bool
):
    table = _table()

    def plan(step):
        has_ours = table.inner.exists(f"tree/dev/{manifest_path(2)}")
        if (
            step.path == "tree/dev/_versions"
            and table.inner.exists("_refs/branches/dev.json")
            and (is_first or has_ours)
            and not table.inner.exists(f"tree/dev/{manifest_path(version)}")
        ):
            path = "tree/dev/_versions"
            held = {
                name: table.inner.read(f"{path}/{name}") for name in table.inner.list_names(path)
            }
            for name in held:
                table.inner.delete(f"{path}/{name}")
            _create_as_pylance(table, version)
            for name, data in held.items():
                table.inner.write(f"{path}/{name}", data)

    table.root.world.plan = plan
    words = "already exists" if is_first else f"created from main:{version} by another program"
    with pytest.raises(RefConflictError, match=words):
        _branches(table).create("dev", Target(None, 2))
    table.root.world.plan = no_faults
    assert refs.branch_names(table.inner) == ([] if is_first else ["dev"])
    _branches(table).delete("dev", force=True)
    assert _branches(table).create("dev", Target(None, 2)).version == 2
    assert load_latest(table.inner.child("tree/dev")).version == 2


@pytest.mark.parametrize("parent", [None, "up"])
@pytest.mark.parametrize("left", [False, True], ids=["new", "left without a record"])
def test_ctrl_c_in_a_creation_leaves_no_name_without_versions(parent: str | None, left: bool):
    """At every call of the store, before and after it is done."""
    interrupts = 0
    for fault in (Fault.INTERRUPT_BEFORE, Fault.INTERRUPT_AFTER):
        for number in range(1, 1000):
            table = _table()
            if parent is not None:
                _branches(table).create(parent, Target(None, 2))
            if left:  # as pylance leaves it
                _branches(table).create("dev", Target(parent, 2))
                table.inner.delete("_refs/branches/dev.json")
            table.root.steps.clear()
            table.root.world.plan = at(number, fault)
            try:
                _branches(table).create("dev", Target(parent, 2))
            except KeyboardInterrupt:
                interrupts += 1
            else:
                break
            table.root.world.plan = no_faults
            names = refs.branch_names(table.inner)
            problems = [refs.unfinished_problem(table.inner, name) for name in names]
            assert not any(problems), f"{fault} at {number}: {problems}"
            if "dev" in names:
                assert load_latest(table.inner.child("tree/dev")).branch == "dev"
                with pytest.raises(RefConflictError, match="already exists"):
                    _branches(table).create("dev", Target(parent, 2))
            else:
                assert _branches(table).create("dev", Target(parent, 2)).version == 2
    assert interrupts >= 14


def test_a_creation_that_is_interrupted_on_a_full_disk_leaves_what_can_be_completed():
    table = _table()
    steps = iter([Fault.INTERRUPT_BEFORE])
    manifests = lambda step: step.method == "write_if_absent" and "tree/dev" in step.path
    table.root.world.plan = lambda step: (
        next(steps, Fault.UNKNOWN_BEFORE) if manifests(step) else None
    )
    with pytest.raises(KeyboardInterrupt):
        _branches(table).create("dev", Target(None, 2))
    table.root.world.plan = no_faults
    assert "create it again from main:2" in refs.unfinished_problem(table.inner, "dev")
    assert _branches(table).create("dev", Target(None, 2)).version == 2


def test_who_is_still_creating_a_branch_and_who_completes_it_make_one():
    table = _table()
    real = table.inner.write_if_absent
    done = []

    def overtaken(path: str, data: bytes) -> None:
        if "refs/branches" in path and not done:
            real(path, data)
            done.append(_branches(table).create("dev", Target(None, 2)))
            return
        real(path, data)

    table.inner.write_if_absent = overtaken
    first = _branches(table).create("dev", Target(None, 2))
    assert first.manifest == done[0].manifest
    assert refs.branch_names(table.inner) == ["dev"]
    assert [one.version for one in version_names(table.inner.child("tree/dev"))] == [2]


def test_a_branch_of_a_branch_that_was_made_anew_is_not_completed():
    """The version of the same number that the parent has now is another one."""
    table = _table()
    branches = _branches(table)
    branches.create("up", Target(None, 2))
    _interrupted(table, Target("up", 2))
    branches.delete("up", force=True)
    branches.create("up", Target(None, 2))
    with pytest.raises(RefConflictError, match="unfinished"):
        branches.create("dev", Target("up", 2))


def test_a_record_that_does_not_say_which_transaction_it_is_for_is_to_be_removed():
    table = _table()
    table.inner.write("_refs/branches/dev.json", Branch(None, 2).to_bytes())
    with pytest.raises(RefConflictError, match=r"; remove it with branches\.delete\('dev'\) first"):
        _branches(table).create("dev", Target(None, 2))
    _branches(table).delete("dev")
    assert _branches(table).create("dev", Target(None, 2)).version == 2


def test_a_version_without_a_record_is_completed_if_it_is_the_copy_asked_for():
    table = _table()
    made = _branches(table).create("dev", Target(None, 2))
    record = refs.read_branch(table.inner, "dev")
    table.inner.delete("_refs/branches/dev.json")
    with pytest.raises(RefConflictError, match="force=True"):
        _branches(table).create("dev", Target(None, 3))
    assert _branches(table).create("dev", Target(None, 2)).transaction == made.transaction
    assert refs.read_branch(table.inner, "dev").identifier == record.identifier
    _append(table, "dev", 2)
    table.inner.delete("_refs/branches/dev.json")
    with pytest.raises(RefConflictError, match="force=True"):
        _branches(table).create("dev", Target(None, 2))


def test_the_newest_version_goes_last_when_a_branch_is_deleted():
    """Whoever looks meanwhile sees the newest version or none, and never one without its files."""
    table = _table()
    branches = _branches(table)
    branches.create("dev", Target(None, 2))
    for version in (2, 3):
        _append(table, "dev", version)
    home = table.inner.child("tree/dev")
    newest_first = [f"_versions/{one}" for one in sorted(home.list_names("_versions"))[:3]]
    home.write("data/x.lance", b"1")
    home.write("_deletions/x.bin", b"1")
    table.root.steps.clear()
    branches.delete("dev")
    deleted = [one.path for one in table.root.steps if one.method == "delete"]
    assert deleted[:4] == [
        f"tree/dev/{one}" for one in ("_versions/latest_version_hint.json", *newest_first[::-1])
    ]
    assert deleted[-1] == "_refs/branches/dev.json"


def test_an_unfinished_branch_is_an_unknown_outcome_and_can_be_completed_or_removed():
    """It was told as failed, though a record was left behind."""
    table = _table()
    table.root.world.plan = lambda step: (
        Fault.NO_SPACE
        if step.path.startswith("tree/dev") and step.method == "write_if_absent"
        else Fault.ERROR_BEFORE
        if step.method == "delete"
        else None
    )
    with pytest.raises(CommitStateUnknownError, match="'dev' has no version") as caught:
        _branches(table).create("dev", Target(None, 2))
    assert "No space left" in str(caught.value)
    assert "create it again from main:2" in str(caught.value)
    assert "branches.delete('dev')" in str(caught.value)
    assert refs.branch_names(table.inner) == ["dev"]
    table.root.world.plan = no_faults
    assert _branches(table).create("dev", Target(None, 2)).version == 2


def test_a_claim_whose_deletion_is_not_answered_is_looked_at():
    """The deletion reports an error and has been done: the branch was not created, certainly."""
    table = _table()
    table.root.world.plan = lambda step: (
        Fault.NO_SPACE
        if step.path.startswith("tree/dev") and step.method == "write_if_absent"
        else Fault.LOST_REPLY
        if step.method == "delete"
        else None
    )
    with pytest.raises(StorageError, match="No space left"):
        _branches(table).create("dev", Target(None, 2))
    assert refs.branch_names(table.inner) == []


def test_a_temporary_file_of_a_failed_creation_is_no_version():
    """It was taken for one: the branch could not be created again."""
    table = _table()
    table.inner.write("tree/dev/_versions/.tmp-0123", b"half a manifest")
    assert _branches(table).create("dev", Target(None, 2)).version == 2


def test_a_creation_that_was_interrupted_can_be_deleted():
    table = _table()
    _interrupted(table, Target(None, 2))
    _branches(table).delete("dev")
    assert _branches(table).create("dev", Target(None, 3)).version == 3


def test_leftovers_without_a_record_are_not_built_upon():
    table = _table()
    _branches(table).create("dev", Target(None, 2))
    table.inner.delete("_refs/branches/dev.json")
    with pytest.raises(RefConflictError, match="force=True"):
        _branches(table).create("dev", Target(None, 3))
    with pytest.raises(RefNotFoundError):
        _branches(table).delete("dev")
    _branches(table).delete("dev", force=True)
    assert _branches(table).create("dev", Target(None, 3)).version == 3


def test_deleting_removes_folder_and_record_but_nothing_of_others():
    table = _table()
    branches = _branches(table)
    for name in ("dev", "dev/data", "dev2"):
        branches.create(name, Target(None, 2))
        _append(table, name, 2)
    table.inner.write("tree/dev/_indices/x/page.lance", b"1")
    before = {one.name for one in table.inner.list_recursive("")}
    branches.delete("dev")
    after = {one.name for one in table.inner.list_recursive("")}
    assert refs.branch_names(table.inner) == ["dev/data", "dev2"]
    assert not [one for one in after if one.startswith("tree/dev/") and "/dev/data/_" not in one]
    assert [one for one in before - after if "dev2" in one or "/dev/data/_" in one] == []
    assert load_latest(table.inner.child("tree/dev/data")).version == 3


def test_a_branch_that_others_depend_on_is_kept_unless_forced():
    table = _table()
    branches = _branches(table)
    branches.create("dev", Target(None, 2))
    branches.create("sub", Target("dev", 2))
    branches.create("deep", Target("sub", 2))
    TagWriter(table.root, branches.place_of, table.environment).create("t", Target("dev", 2))
    told = []
    found = users_of(table.inner, branches.place_of, "dev", lambda *step: told.append(step))
    assert found == BranchUsers((("deep", 2), ("sub", 2)), (("t", 2),))
    assert told == [(0, 3), (1, 3), (2, 3)]
    assert branches.explain_delete("dev").users == found
    with pytest.raises(RefConflictError, match=r"'sub'.*'t'"):
        branches.delete("dev")
    branches.delete("dev", force=True)
    assert refs.branch_names(table.inner) == ["deep", "sub"]


def test_what_a_deletion_takes_away_is_reported_before():
    table = _table()
    branches = _branches(table)
    branches.create("dev", Target(None, 2))
    branches.create("dev/below", Target(None, 1))
    _append(table, "dev", 2)
    told = branches.explain_delete("dev")
    assert (told.fork, told.versions, told.users) == (Target(None, 2), (2, 3), BranchUsers())
    before = {one.name: one.size_bytes for one in table.inner.list_recursive("tree")}
    branches.delete("dev")
    after = {one.name for one in table.inner.list_recursive("tree")}
    gone = [size for name, size in before.items() if name not in after]
    assert (told.num_files, told.size_bytes) == (len(gone), sum(gone))
    with pytest.raises(RefNotFoundError, match="dev/below"):
        branches.explain_delete("dev")


def test_a_deletion_is_summarized_in_correct_plurals():
    deletion = BranchDeletion("dev", Target(None, 2), (2,), 1, 1_423, BranchUsers())
    assert str(deletion) == "deleting branch 'dev': 1 version, 1 file, 1,423 bytes"


def test_a_pin_that_a_commit_prunes_meanwhile_does_not_stop_a_deletion(
    monkeypatch: pytest.MonkeyPatch,
):
    table = _table()
    branches = _branches(table)
    branches.create("dev", Target(None, 2))
    monkeypatch.setattr(branching, "users_of", lambda *_: BranchUsers(pins=("merged-dev-2",)))
    branches.delete("dev")
    assert refs.branch_names(table.inner) == []


def test_a_deletion_that_was_interrupted_can_be_repeated():
    table = _table()
    branches = _branches(table)
    branches.create("dev", Target(None, 2))
    table.root.world.plan = on("delete", "", Fault.CRASH_BEFORE, skip=1)
    with pytest.raises(Crash):
        branches.delete("dev")
    table.root.world.plan = no_faults
    assert refs.branch_names(table.inner) == ["dev"]
    branches.delete("dev")
    assert table.inner.list_recursive("tree") == []
    with pytest.raises(RefNotFoundError):
        branches.delete("dev")


def test_metadata_is_replaced():
    table = _table()
    branches = _branches(table)
    branches.create("dev", Target(None, 2))
    branches.replace_metadata("dev", {"k": "v"})
    assert refs.read_branch(table.inner, "dev").metadata == {"k": "v"}
    with pytest.raises(RefNotFoundError):
        branches.replace_metadata("nope", {})


def test_file_names_of_a_branch_are_the_parents():
    table = _table()
    made = _branches(table).create("dev", Target(None, None))
    assert file_names(made) == [
        file.path for one in load_latest(table.inner).fragments for file in one.files
    ]


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

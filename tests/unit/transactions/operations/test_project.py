"""Project."""

from __future__ import annotations

from dataclasses import replace

from lance_nb.format.fragment import DataFile
from lance_nb.format.schema import Schema
from lance_nb.transactions.conflict_grid import check
from lance_nb.transactions.conflict_rules import Verdict
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.operations.update_config import UpdateConfig, UpdateMap
from tests.support.versions import SCHEMA, Versions, index, new_fragment

WITHOUT_C = Schema(SCHEMA.fields[:2])


def test_files_keep_their_columns_and_files_without_one_are_left_out() -> None:
    versions = Versions(1)
    old = versions.fragment(0)
    part = replace(old.files[0], fields=(0, 1), column_indices=(0, 1))
    split = replace(old, files=(part, DataFile("c.lance", (2,), (0,), 2, 2)))
    versions.apply(Merge((split,), SCHEMA))
    versions.apply(Project(WITHOUT_C, True))
    assert versions.fragment(0).files == (part,)
    assert versions.manifest.schema.names == ["a", "b"]


def test_schema_metadata_stays() -> None:
    versions = Versions(1)
    versions.apply(UpdateConfig(schema_metadata_updates=UpdateMap({"k": "v"})))
    versions.apply(Project(WITHOUT_C))
    assert versions.manifest.schema.metadata == {"k": b"v"}


def test_indices_on_dropped_columns_go_and_system_indices_stay() -> None:
    versions = Versions(1)
    system = index("__lance_mem_wal", covers=(), kind="MemWal")
    versions.apply(CreateIndex((index("b", 1), index("c", 2), system)))
    versions.apply(Project(WITHOUT_C))
    assert [one.name for one in versions.newest.indices] == ["b", "__lance_mem_wal"]


def test_a_promise_about_nulls_makes_room_for_appends() -> None:
    append = Append((new_fragment(),))
    for promised, verdict in ((True, Verdict.COMPATIBLE), (False, Verdict.RETRYABLE)):
        project = Project(WITHOUT_C, promised)
        assert check(project, append).verdict is verdict
        assert check(append, project).verdict is verdict


def test_metadata_of_the_schema_that_others_changed_is_not_lost() -> None:
    project = Project(WITHOUT_C, True)
    schema = UpdateConfig(schema_metadata_updates=UpdateMap({"k": "v"}))
    config = UpdateConfig(config_updates=UpdateMap({"k": "v"}))
    assert check(project, schema).verdict is Verdict.RETRYABLE
    assert check(project, config).verdict is Verdict.COMPATIBLE

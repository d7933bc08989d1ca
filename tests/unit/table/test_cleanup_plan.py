"""What would be deleted: by reference, by age, and by where a file lies; also for hostile names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.format.manifest import BasePath
from lance_nb.storage.base import ObjectInfo
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.cleanup_plan import Candidate, CleanupPlan, Rule, make_plan
from lance_nb.table.file_references import References
from lance_nb.table.survey import (
    MANIFEST,
    TEMPORARY_MANIFEST,
    LineOfVersions,
    StoredFile,
    Survey,
    classified,
    homes_in,
)
from tests.support.manifest_files import UUID, manifest

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OLD, YOUNG = NOW - timedelta(days=8), NOW - timedelta(days=1)


def planned(
    files: dict[str, datetime | None],
    versions: list[bytes],
    gone: int = 0,
    *,
    unread: int = 0,
    everything: bool = False,
) -> CleanupPlan:
    """Plan to delete the first ``gone`` versions, of which ``unread`` were not read."""
    store = MemoryStore(f"plan-{id(files)}")
    names = [ManifestName(number, NamingScheme.V2) for number in range(1, len(versions) + 1)]
    for name, data in zip(names, versions, strict=True):
        store.write(name.path, data)
    listing = [ObjectInfo(path, 7, moment) for path, moment in files.items()]
    listing += [ObjectInfo(name.path, 9, YOUNG) for name in names]
    found = tuple(classified(listing, homes_in(listing, ())))
    lines = {"": LineOfVersions("", None, tuple(names), ())}
    manifests = {one.path: one for one in found if one.kind == "manifest"}
    survey = Survey(store, found, lines, {}, {}, manifests)
    references = References()
    references.read(store, "", names[unread:])
    return make_plan(survey, references, "", names[:gone], Rule(NOW, everything))


def holding(version: int, *paths: str, **more: object) -> bytes:
    base_id = more.pop("base_id", None)
    fragments = [
        Fragment(number, (DataFile(path, (0,), (0,), 2, 2, 7, base_id),), 5)  # type: ignore[arg-type]
        for number, path in enumerate(paths)
    ]
    return manifest(version, fragments, **more)


def paths(plan: CleanupPlan) -> dict[str, bool]:
    return {one.file.path: one.unverified for one in plan.other_files}


def test_files_of_versions_that_go_go_however_young():
    files = {"data/a.lance": YOUNG, "data/b.lance": YOUNG, "data/a/10.blob": YOUNG}
    plan = planned(files, [holding(1, "a.lance", "b.lance"), holding(2, "b.lance")], 1)
    assert paths(plan) == {"data/a.lance": False, "data/a/10.blob": False}
    assert [one.version for one in plan.other_files] == [1, 1]
    assert [one.file.path for one in plan.manifests] == ["_versions/18446744073709551614.manifest"]


@pytest.mark.parametrize(("moment", "goes"), [(OLD, True), (YOUNG, False), (None, False)])
def test_files_without_a_version_go_when_they_are_old(moment: datetime | None, goes: bool):
    plan = planned({"data/orphan.lance": moment}, [holding(1)])
    assert paths(plan) == ({"data/orphan.lance": True} if goes else {})
    assert paths(planned({"data/orphan.lance": moment}, [holding(1)], everything=True))


def test_what_an_interrupted_commit_left_goes_when_it_is_old():
    name = "_versions/.tmp_18446744073709551614.manifest_1"
    (found,) = planned({name: OLD}, [holding(1)]).other_files
    assert (found.file.path, found.unverified, found.version) == (name, True, None)
    assert found.reason == "left behind by a commit that was interrupted"
    assert planned({name: YOUNG}, [holding(1)]).other_files == ()


def test_versions_that_were_not_read_leave_their_files_to_be_judged_by_age():
    files = {"data/a.lance": OLD, "data/b.lance": YOUNG}
    plan = planned(files, [holding(1, "a.lance", "b.lance"), holding(2)], 1, unread=1)
    assert paths(plan) == {"data/a.lance": True}


def test_a_base_path_inside_of_the_dataset_protects_what_lies_there():
    base = BasePath(1, "memory://plan/data/sub")
    index = IndexMetadata(UUID, "i", (0,), 1, base_id=1)
    versions = [holding(1, "x.lance", base_id=1, base_paths=(base,), index=index)]
    files = {
        "data/sub/x.lance": OLD,
        f"data/sub/_indices/{UUID}/page.lance": OLD,
        "data/sub/y.lance": OLD,
    }
    assert paths(planned(files, versions)) == {"data/sub/y.lance": True}


@pytest.mark.parametrize(
    "name", ["../../etc/x.lance", "/etc/x.lance", "", "a\0b.lance", "%2e%2e/x.lance"]
)
def test_hostile_names_delete_nothing(name: str):
    plan = planned({"data/kept.lance": YOUNG}, [holding(1, name), holding(2)], 1)
    assert paths(plan) == {}


def test_what_nobody_knows_stays():
    files = dict.fromkeys(("README.md", "data/a.txt", "_refs/tags/a.json", "x/y.lance"), OLD)
    assert paths(planned(files, [holding(1)], everything=True)) == {}


@pytest.mark.parametrize(
    ("kind", "version", "reason"),
    [
        (MANIFEST, 3, "version 3 is deleted"), ("data", 0, "the newest is 0"),
        ("data", 3, "the newest is 3"), (TEMPORARY_MANIFEST, None, "interrupted"),
        ("data", None, "no version refers to it"), (TEMPORARY_MANIFEST, 4, "the newest is 4"),
    ],
)  # fmt: skip
def test_a_file_that_goes_has_a_reason(kind: str, version: int | None, reason: str) -> None:
    file = StoredFile("data/a.lance", 7, datetime(2026, 6, 1, tzinfo=UTC), "", kind)
    assert reason in Candidate(file, False, version).reason

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import RefConflictError
from lance_nb.storage.registry import open_store
from lance_nb.writing import branching
from lance_nb.writing.pins import KEEPS, MADE_FOR, pin_of, prune_pins

NOW = timedelta(0)


def _rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64())})


@pytest.fixture
def main() -> Any:
    """Main, into which ``dev`` was merged: main:2 reads one file of dev:2 in place."""
    made = lance_nb.write_dataset(_rows(0, 10), f"memory://{uuid4().hex}/d.lance")
    made.create_branch("dev").insert(_rows(100, 5))
    made.branches.merge("dev")
    return made.checkout_latest()


def _ids(main: Any) -> list[int]:
    return sorted(lance_nb.dataset(main.uri).to_table()["id"].to_pylist())


def _clean(main: Any, branch: str | None = None) -> None:
    here = lance_nb.dataset(main.uri).checkout_version((branch, None))
    here.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)


def _compact(main: Any) -> None:
    lance_nb.dataset(main.uri).optimize.compact_files()


def test_a_pin_says_what_it_keeps_and_for_whom(main: Any) -> None:
    tag = main.tags.list()["merged-dev-2"]
    assert tag["metadata"] == {KEEPS: "dev:2", MADE_FOR: "main:2"}
    pin = pin_of("merged-dev-2", tag["branch"], tag["version"], tag["metadata"])
    assert pin is not None
    assert (pin.keeps.version, pin.made_for.branch, pin.made_for.version) == (2, None, 2)
    assert pin_of("merged-dev-2", "dev", 3, tag["metadata"]) is None, "it was moved"
    for text in ("", "dev", "dev:", ":2", "dev:x", "dev:" + "9" * 30):
        assert pin_of("t", "dev", 2, {KEEPS: text, MADE_FOR: "main:2"}) is None


def test_a_preview_names_the_pin_and_what_it_keeps(main: Any) -> None:
    dev = main.checkout_version(("dev", None))
    dev.insert(_rows(200, 5))
    plan = main.branches.plan_merge("dev")
    assert plan.pin == "merged-dev-3"
    assert plan.source_files[0] == 1
    assert plan.source_files[1] > 0
    assert "kept by tag 'merged-dev-3', which goes once no version reads them" in str(plan)
    assert main.tags.names() == ["merged-dev-2"]
    assert main.branches.plan_merge("dev", pin=False).pin is None
    assert main.branches.plan_merge("dev", copy=True).pin is None
    main.tags.create("merged-dev-3", 1)  # a person's
    assert plan.pin == "merged-dev-3-1"
    plan.commit()
    assert main.tags.list()["merged-dev-3-1"]["branch"] == "dev"
    assert plan.pin not in main.tags.names()


def test_a_pin_goes_when_no_version_reads_the_files(main: Any) -> None:
    _clean(main)
    assert main.tags.names() == ["merged-dev-2"], "the newest version reads them"
    _compact(main)
    _clean(main, "dev")
    assert main.tags.names() == ["merged-dev-2"], "main:2 reads them still"
    with pytest.raises(RefConflictError, match="merged-dev-2"):
        main.branches.delete("dev")
    _clean(main)
    assert main.tags.names() == []
    main.branches.delete("dev")
    assert _ids(main) == [*range(10), *range(100, 105)]


def test_a_pin_goes_with_the_last_branch_that_needs_it(main: Any) -> None:
    other = main.create_branch("other", 1)
    main.checkout_version(("dev", None)).insert(_rows(200, 5))
    other.branches.merge("dev", "other")
    assert main.tags.names() == ["merged-dev-2", "merged-dev-3"]
    deletion = main.branches.explain_delete("dev")
    assert {name for name, _ in deletion.users.tags} == {"merged-dev-2", "merged-dev-3"}
    assert deletion.users.pins == ()
    main.branches.delete("other")
    assert main.tags.names() == ["merged-dev-2", "merged-dev-3"], "main reads a file of both"
    _compact(main)
    _clean(main)
    assert main.tags.names() == []


def test_the_pin_of_a_merge_under_way_stays(main: Any) -> None:
    _compact(main)
    tags = main.tags
    tags.replace_metadata("merged-dev-2", {KEEPS: "dev:2", MADE_FOR: "main:4"})
    _clean(main)
    assert tags.names() == ["merged-dev-2"], "main:4 may come"
    with pytest.raises(RefConflictError, match="merged-dev-2"):
        main.branches.delete("dev")
    lance_nb.dataset(main.uri).insert(_rows(300, 1))  # main:4 is another's
    main.branches.delete("dev")
    assert tags.names() == []


def test_a_tag_of_a_person_stays(main: Any) -> None:
    main.tags.update("merged-dev-2", ("dev", 1))
    main.tags.create("mine", ("dev", 2))
    _compact(main)
    _clean(main)
    assert main.tags.names() == ["merged-dev-2", "mine"]
    with pytest.raises(RefConflictError, match="mine"):
        main.branches.delete("dev")


def test_a_pin_stays_while_a_version_cannot_be_read(main: Any) -> None:
    other = main.create_branch("other", 1)
    _compact(main)
    lance_nb.dataset(main.uri).cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    main.tags.create("merged-again", ("dev", 2))
    main.tags.replace_metadata("merged-again", {KEEPS: "dev:2", MADE_FOR: "main:2"})
    store = open_store(other.uri)
    (name,) = [one for one in store.list_names("tree/other/_versions") if one.endswith("manifest")]
    good = bytes(store.read(f"tree/other/_versions/{name}"))
    store.write(f"tree/other/_versions/{name}", b"junk")
    assert prune_pins(branching.tag_writer(main._session)) == []
    store.write(f"tree/other/_versions/{name}", good)
    assert prune_pins(branching.tag_writer(main._session)) == ["merged-again"]
    assert main.tags.names() == []

"""What a repair leaves, pylance opens as we do: it reads, writes, lists versions and branches."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.format.layout import manifest_path
from tests.support.damages import DAMAGES, MENDED, NEWEST, Damage, Damaged, build
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

CASES = [
    pytest.param(damage, stable, id=f"{damage.name.replace(' ', '-')}-{kind}")
    for damage in DAMAGES
    for kind, stable in (("plain", False), ("stable", True))
    if damage.code in MENDED and damage.only in ("", kind)
]


@pytest.mark.parametrize(("damage", "stable"), CASES)
def test_pylance_opens_what_a_repair_leaves(damage: Damage, stable: bool, tmp_path: Path) -> None:
    lance = require_pylance()
    world = build(str(tmp_path / "d.lance"), stable_row_ids=stable)
    damage.plant(world)
    result = lance_nb.plan_repair(world.uri, older_than=timedelta(0)).run()
    assert result.done
    assert not result.failed
    ds = lance.dataset(world.uri)
    ds.validate()
    ours = lance_nb.dataset(world.uri)
    assert (ds.version, ds.count_rows()) == (ours.version, ours.count_rows())
    assert ds.to_table(filter="id = 7")["s"].to_pylist() == ["text 7"]
    assert ds.tags.list().keys() == ours.tags.list().keys()
    assert ds.branches.list().keys() == ours.branches.list().keys()
    for branch in ds.branches.list():
        there = ds.checkout_version((branch, None))
        assert there.count_rows() == lance_nb.dataset(world.uri, (branch, None)).count_rows()
    lance.write_dataset(pa.table({"id": [99], "s": ["new"]}, ds.schema), world.uri, mode="append")
    assert lance_nb.dataset(world.uri).count_rows() == ours.count_rows() + 1
    listed = [one["version"] for one in lance.dataset(world.uri).versions()]
    assert listed == lance_nb.dataset(world.uri).version_numbers()
    assert lance_nb.verify(world.uri).ok


def test_a_handle_of_pylance_on_the_lost_version_sees_the_repair(tmp_path: Path) -> None:
    """It read the newest version before it was torn; its commit must not hide what was lost."""
    lance = require_pylance()
    world: Damaged = build(str(tmp_path / "d.lance"), stable_row_ids=False)
    before = lance.dataset(world.uri)
    assert before.version == NEWEST
    rows = before.count_rows()
    world.root.write(manifest_path(NEWEST), b"")
    lance_nb.plan_repair(world.uri, older_than=timedelta(0)).run()
    with pytest.raises((OSError, ValueError)):
        before.delete("id = 7")
    assert lance.dataset(world.uri).count_rows() == rows  # the lost version changed the config only
    assert lance.dataset(world.uri).version == NEWEST + 1


def test_pylance_leaves_the_quarantine_alone(tmp_path: Path) -> None:
    lance = require_pylance()
    world: Damaged = build(str(tmp_path / "d.lance"), stable_row_ids=False)
    world.root.write(manifest_path(NEWEST), b"torn")
    lance_nb.plan_repair(world.uri, older_than=timedelta(0)).run()
    ds = lance.dataset(world.uri)
    ds.cleanup_old_versions(
        timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    )
    assert lance_nb.undo_repair(world.uri) == [manifest_path(NEWEST)]
    assert lance.dataset(world.uri).count_rows() == 28

"""Every kind of damage is found, under its code; what is whole has no finding."""

from __future__ import annotations

from functools import cache

import pytest

import lance_nb
from lance_nb.table.verification.findings import CODES
from tests.support.damages import DAMAGES, Damage, Damaged, Files, worlds
from tests.support.recorded_texts import FINDINGS, built, findings_text, heading, recorded

pytestmark = [pytest.mark.slow, pytest.mark.mutants]

_TEXTS = recorded(FINDINGS)


@cache
def whole(stable: bool) -> tuple[Damaged, Files]:
    """Return the dataset before anything is damaged, and its files."""
    return built(dict(worlds())[stable], stable=stable)


@pytest.mark.parametrize("stable", [False, True], ids=["plain", "stable"])
def test_what_is_whole_has_no_finding(stable: bool) -> None:
    world, files = whole(stable)
    world.put(files)
    found = lance_nb.verify(world.uri)
    assert found.findings == ()
    assert found.ok


CASES = [
    pytest.param(damage, kind == "stable", id=f"{damage.name.replace(' ', '-')}-{kind}")
    for damage in DAMAGES
    for kind in ("plain", "stable")
    if damage.only in ("", kind)
]


@pytest.mark.parametrize(("damage", "stable"), CASES)
def test_damage_is_found(damage: Damage, stable: bool) -> None:
    world, files = whole(stable)
    world.put(files)
    damage.plant(world)
    found = lance_nb.verify(world.uri)
    assert damage.code in {one.code for one in found.findings}, found
    assert damage.code in repr(found)
    assert found.ok == all(one.severity == "note" for one in found.findings)
    assert found.to_table().num_rows == len(found.findings)
    assert findings_text(found) == _TEXTS[heading(damage, stable=stable)]


def test_every_code_is_planted() -> None:
    assert {one.code for one in DAMAGES} == set(CODES)

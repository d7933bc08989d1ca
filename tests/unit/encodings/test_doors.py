"""Doors: arms by name, loaded when they are first used."""

from __future__ import annotations

from types import ModuleType

import pytest

from lance_nb.encodings.doors import Doors


class _Arm:
    pass


@pytest.fixture
def package() -> ModuleType:
    made = ModuleType("package")
    made.plain = ModuleType("package.plain")
    made.plain.Arm = _Arm
    return made


def test_an_arm_is_made_once(package):
    doors = Doors(package, {"plain": "plain:Arm", "built": lambda: doors["plain"]})

    assert isinstance(doors["plain"], _Arm)
    assert doors["plain"] is doors["plain"] is doors["built"]


def test_names_are_known_without_loading_anything():
    doors = Doors(ModuleType("empty"), {"plain": "plain:Arm"})

    assert "plain" in doors
    assert "other" not in doors
    assert list(doors) == ["plain"]
    assert len(doors) == 1


def test_an_unknown_arm_is_a_key_error(package):
    with pytest.raises(KeyError, match="other"):
        Doors(package, {})["other"]

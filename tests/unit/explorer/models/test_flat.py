from __future__ import annotations

import copy
from dataclasses import asdict, dataclass

import pytest

from lance_nb.explorer.models.flat import flat
from lance_nb.explorer.models.timeline import VersionBar


@dataclass(frozen=True, slots=True)
class _Outer:
    name: str
    inner: VersionBar


BAR = VersionBar(3, "today", 12, "Append", "", 5, None, 0)


def test_fields_come_by_name_in_their_order() -> None:
    assert flat(BAR) == asdict(BAR)
    assert list(flat(BAR)) == list(asdict(BAR))


def test_nothing_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(value: object, memo: object = None) -> object:
        raise AssertionError(value)

    monkeypatch.setattr(copy, "deepcopy", refuse)
    assert flat(_Outer("a", BAR))["inner"] is BAR

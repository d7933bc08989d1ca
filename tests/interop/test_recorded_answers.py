"""The recorded answers that unit tests replay are those that pylance gives."""

from __future__ import annotations

import pytest

from tests.interop.recording import Pylance, all_groups
from tests.support.recorded_answers import groups, questions_of, table_of

pytestmark = pytest.mark.interop


def test_the_recorded_groups_are_those_that_are_recorded() -> None:
    assert sorted(all_groups()) == groups()


@pytest.mark.parametrize("group", ["documents", "kinds", "lists", "numbers", "values"])
def test_pylance_answers_as_it_did_when_it_was_recorded(group: str) -> None:
    pylance = Pylance(table_of(group))
    different = [
        one.text for one in questions_of(group) if pylance.answer(one.kind, one.text) != one.answer
    ]
    pylance.close()

    assert not different

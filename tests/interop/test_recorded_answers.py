"""The recorded answers that unit tests replay are those that pylance gives.

Each run asks a third of the questions: the release of pylance is pinned, so its answers change with
the pin, and then many do. ``make test-interop SIZE=100`` asks all.
"""

from __future__ import annotations

from itertools import islice

import pytest

from tests.interop.matrix import SCALE
from tests.interop.recording import Pylance, all_groups
from tests.support.recorded_answers import groups, questions_of, table_of

pytestmark = pytest.mark.interop
STEP = 3 if SCALE <= 1 else 1


def test_the_recorded_groups_are_those_that_are_recorded() -> None:
    assert sorted(all_groups()) == groups()


@pytest.mark.parametrize("group", ["documents", "kinds", "lists", "numbers", "values"])
def test_pylance_answers_as_it_did_when_it_was_recorded(group: str) -> None:
    pylance = Pylance(table_of(group))
    asked = islice(questions_of(group), 0, None, STEP)
    different = [one.text for one in asked if pylance.answer(one.kind, one.text) != one.answer]
    pylance.close()

    assert not different

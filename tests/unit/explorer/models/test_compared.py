from __future__ import annotations

import pytest

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.explorer.models.compared import MAX_DIFFS, ChangeDesk, key_of
from lance_nb.explorer.models.source import compared_source
from lance_nb.explorer.session import Session
from tests.unit.explorer.fakes import small_dataset
from tests.unit.explorer.stored_datasets import changed_dataset


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(changed_dataset())


def test_a_diff_is_made_once(session: Session) -> None:
    desk = ChangeDesk(session)
    first = desk.diff((None, 1), (None, 7))
    assert desk.diff((None, 1), (None, 7)) is first
    assert desk.diff((None, 1), (None, 7), ("id",)) is not first
    for version in range(2, 2 + MAX_DIFFS):
        desk.diff((None, version), (None, 7))
    assert desk.diff((None, 1), (None, 7)) is not first


def test_a_key_that_is_no_column_is_refused(session: Session) -> None:
    with pytest.raises(ColumnNotFoundError):
        ChangeDesk(session).diff((None, 1), (None, 7), ("nothing",))


def test_what_cannot_be_compared_says_so() -> None:
    with pytest.raises(NotSupportedError, match="cannot be compared"):
        compared_source(small_dataset())


@pytest.mark.parametrize("key", ["id", [], [1], ["x"] * 17, ["x" * 1001]])
def test_keys_in_requests_are_lists_of_names(key: object) -> None:
    with pytest.raises(InvalidInputError, match="key must be a list"):
        key_of({"key": key})
    assert key_of({"key": None}) is None
    assert key_of({"key": ["a", "b"]}) == ("a", "b")

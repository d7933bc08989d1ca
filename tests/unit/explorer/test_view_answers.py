from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.messages import Answer
from lance_nb.explorer.registry import VIEWS
from lance_nb.explorer.session import Session
from lance_nb.explorer.view_answers import ViewAnswers
from tests.unit.explorer.fakes import small_dataset


class Words(ViewAnswers):
    requests: ClassVar[Mapping[str, str]] = {"words.count": "on_count"}

    def on_count(self, args: Mapping[str, Any]) -> Answer:
        return Answer({"rows": self.source(args).count_rows()})


def test_requests_are_answered_by_their_methods() -> None:
    answer = Words(Session(small_dataset())).handlers()["words.count"](
        {"branch": "dev", "version": 2}
    )
    assert answer == Answer({"rows": 30})
    with pytest.raises(InvalidInputError):
        Words(Session(small_dataset())).source({"version": "x"})


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_every_view_has_a_method_for_each_of_its_requests(name: str) -> None:
    desk = VIEWS[name].desk
    assert all(callable(getattr(desk, method)) for method in desk.requests.values())
    assert all(kind.count(".") == 1 for kind in desk.requests)

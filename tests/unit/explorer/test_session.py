from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.code_lines import Python
from lance_nb.errors import InvalidInputError, ObjectNotFoundError, VersionNotFoundError
from lance_nb.explorer.messages import Answer, handle
from lance_nb.explorer.rows.nearest_rows import NearestQuery
from lance_nb.explorer.rows.row_order import FilteredRows, SortedRows
from lance_nb.explorer.rows.row_query import RowQuery
from lance_nb.explorer.session import (
    MAX_KEPT,
    MAX_OPEN,
    MAX_SELECTED,
    RequestHandlers,
    RowOrderCache,
    Selection,
    Session,
    selection_of,
)
from tests.support.fake_dataset import many_versions, one_table, small_dataset

PARTS = ("card", "timeline", "rows", "detail")
NO_CODE = Python("None")


def ask(session: Session, kind: str, **args: Any) -> dict[str, Any]:
    reply, _ = handle({"id": "1", "type": kind, "args": args}, session.handlers())
    assert reply["ok"], reply
    return reply["result"]


def refused(session: Session, kind: str, **args: Any) -> str:
    reply, _ = handle({"id": "1", "type": kind, "args": args}, session.handlers())
    assert not reply["ok"]
    return str(reply["error"]["message"])


def test_the_first_screen_holds_every_part_and_stays_small() -> None:
    screen = Session(many_versions(10_000)).screen(PARTS)
    assert screen["label"] == "main:10000"
    assert screen["rows"]["num_rows"] == 50
    assert screen["code"]["magic"] == "%lance at main:10000"
    size = len(json.dumps(screen, default=lambda raw: "x" * len(raw)))
    assert size < 200_000


def test_the_card_takes_the_newest_version_from_the_timeline() -> None:
    old = many_versions(30).checkout_version((None, 12))
    assert Session(old).screen(PARTS)["card"]["latest"] == 30
    assert Session(old).screen(("card",))["card"]["latest"] == 30
    dev = small_dataset().checkout_version(("dev", 2))
    assert Session(dev).screen(PARTS)["card"]["latest"] == 3


def test_a_wide_first_screen_stays_small() -> None:
    table = pa.table({f"column {at}": ["x" * 5000] * 500 for at in range(300)})
    screen = Session(one_table(table)).screen(PARTS)
    size = len(json.dumps(screen, default=lambda raw: "x" * len(raw)))
    assert size < 200_000
    assert screen["rows"]["page"]["num_rows"] > 0


def test_rows_that_cannot_be_read_leave_the_other_parts() -> None:
    dataset = small_dataset()
    dataset.row_error = ObjectNotFoundError("data/x.lance", "fragment 0")
    screen = Session(dataset).screen(PARTS)
    assert screen["rows"]["error"]["title"] == "A file of the dataset is missing"
    assert screen["card"]["name"] == "fake.lance"
    assert screen["detail"]["version"] == 4


def test_travelling_moves_and_a_failed_journey_does_not() -> None:
    session = Session(small_dataset())
    session.travel("dev:2")
    assert (session.dataset.branch, session.dataset.version) == ("dev", 2)
    with pytest.raises(VersionNotFoundError):
        session.travel("99")
    assert session.dataset.version == 2
    session.stand((None, 1))
    assert (session.dataset.branch, session.dataset.version) == (None, 1)


def test_only_a_few_versions_stay_open() -> None:
    session = Session(many_versions(100))
    for version in range(1, 50):
        session.open((None, version))
    assert len(session._opened) == MAX_OPEN


def test_a_window_of_rows_can_be_asked_for_at_any_version() -> None:
    session = Session(small_dataset())
    window = {"offset": 5, "limit": 3, "first_column": 1, "num_columns": 1}
    page = ask(session, "rows", branch=None, version=2, **window)
    assert (page["offset"], page["num_rows"], page["first_column"]) == (5, 3, 1)
    assert [column["name"] for column in page["columns"]] == ["text"]
    assert "limit" in refused(session, "rows", branch=None, version=2, **window | {"limit": 10**9})


def test_details_of_versions_can_be_asked_for() -> None:
    session = Session(small_dataset())
    found = ask(session, "versions", branch=None, version=4, numbers=[1, 3, 99])
    assert [bar["version"] for bar in found["details"]] == [1, 3]
    assert "numbers" in refused(session, "versions", branch=None, version=4, numbers=[1] * 1000)
    assert ask(session, "detail", branch="dev", version=2)["label"] == "dev:2"


def test_a_whole_cell_can_be_asked_for() -> None:
    session = Session(one_table(pa.table({"s": ["x" * 10_000, None, ""]})))
    assert len(ask(session, "cell", branch=None, version=1, row=0, column=0)["text"]) == 4096
    assert ask(session, "cell", branch=None, version=1, row=1, column=0)["null"] is True
    assert ask(session, "cell", branch=None, version=1, row=2, column=0) == {
        "text": "",
        "null": False,
        "bytes": False,
    }
    assert "column" in refused(session, "cell", branch=None, version=1, row=0, column=1)


def test_the_selection_is_a_table_of_the_selected_rows() -> None:
    session = Session(small_dataset())
    assert session.selection().num_rows == 0
    assert ask(session, "select", ranges=[[3, 5], [0, 1]]) == {"num_rows": 3}
    assert session.selection().column("id").to_pylist() == [0, 3, 4]
    assert "row" in refused(session, "select", ranges=[[0, 10**6]])
    assert "pair" in refused(session, "select", ranges=[[1]])
    session.travel("1")
    assert session.selection().num_rows == 0


def test_a_selection_has_a_limit() -> None:
    session = Session(one_table(pa.table({"n": pa.array(range(300_000))})))
    assert "100,000" in refused(session, "select", ranges=[[0, 200_000]])
    with pytest.raises(InvalidInputError):
        session.travel("")


def test_rows_and_columns_are_read_in_the_order_of_the_grid() -> None:
    found = selection_of({"ranges": [[3, 5], [0, 1]], "columns": [1]}, RowQuery())
    table = found.table(small_dataset())
    assert table.to_pydict() == {"text": ["row 0", "row 3", "row 4"]}
    assert found.num_rows == 3


def test_columns_alone_mean_the_first_rows() -> None:
    assert Selection(columns=(0,)).table(small_dataset()).num_rows == 25
    assert Selection().table(small_dataset()).num_rows == 0
    assert Selection(columns=(99,)).table(small_dataset()).column_names == ["id", "text"]


def test_a_selection_of_what_passes_a_filter() -> None:
    found = Selection(((1, 3),), (0,), RowQuery("id < 9", system=True))
    assert found.table(small_dataset())["id"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "args",
    [
        {}, {"ranges": 5}, {"ranges": [[1]]}, {"ranges": [["a", 2]]}, {"ranges": [[0, 2]] * 1001},
        {"ranges": [], "columns": "x"}, {"ranges": [], "columns": [-1]},
        {"ranges": [[0, MAX_SELECTED + 1]]},
    ],
)  # fmt: skip
def test_nonsense_is_refused(args: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        selection_of(args, RowQuery())


def ordered() -> SortedRows:
    return SortedRows(np.zeros(1, np.uint64), 1)


def test_an_order_belongs_to_its_version() -> None:
    kept, one = RowOrderCache(), ordered()
    key = kept.keep((None, 1), one)
    assert kept.order_of((None, 1), key) is one
    for place, wrong in [
        ((None, 2), key),
        ((None, 1), "o99"),
        ((None, 1), 5),
        ((None, 1), "x" * 99),
    ]:
        with pytest.raises(InvalidInputError):
            kept.order_of(place, wrong)


def test_only_the_newest_of_each_are_kept() -> None:
    kept = RowOrderCache()
    like = kept.keep_vector(NearestQuery("v", pa.scalar([1.0]), NO_CODE))
    passing = kept.keep((None, 1), FilteredRows("x > 1", (), np.zeros(0, np.int64)))
    keys = [kept.keep((None, 1), ordered()) for _ in range(MAX_KEPT + 1)]
    with pytest.raises(InvalidInputError, match="sort the rows again"):
        kept.order_of((None, 1), keys[0])
    assert kept.order_of((None, 1), keys[1])
    assert kept.vector(like).column == "v"
    assert isinstance(kept.order_of((None, 1), passing), FilteredRows)
    with pytest.raises(InvalidInputError, match="choose its row again"):
        kept.vector("v99")


def test_a_filter_goes_on_without_what_was_forgotten() -> None:
    assert RowOrderCache().order_of((None, 1), "p7") is None


class Words(RequestHandlers):
    prefix: ClassVar[str] = "words"

    def on_count(self, args: Mapping[str, Any]) -> Answer:
        return Answer({"rows": self.source(args).count_rows()})


def test_requests_are_answered_by_their_methods() -> None:
    answer = Words(Session(small_dataset())).handlers()["words.count"](
        {"branch": "dev", "version": 2}
    )
    assert answer == Answer({"rows": 30})
    with pytest.raises(InvalidInputError):
        Words(Session(small_dataset())).source({"version": "x"})


def test_an_outline_has_the_rows_of_versions_and_what_is_left() -> None:
    session = Session(many_versions(40))
    place: dict[str, Any] = {"branch": None, "version": 40}
    found = ask(session, "versions.outline", **place, numbers=[40, 1, 20])
    assert found["points"][0] == [40, 50, 3_400_000]
    assert [point[0] for point in found["points"]] + found["left"] == [40, 1, 20]
    words = refused(session, "versions.outline", **place, numbers=[1] * 257)
    assert words == "numbers must be a list of up to 256 versions"
    assert "n must be" in refused(session, "versions.outline", **place, numbers=["x"])

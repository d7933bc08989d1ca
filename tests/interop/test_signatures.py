"""Every public name and parameter of pylance is here, or on the list of absences with its reason.

The list must stay true: an entry for something that is here all the same fails as well. Run
``python -m tests.support.api_report`` for the totals.
"""

# ruff: noqa: ARG005 (signatures under test)

from __future__ import annotations

import pytest

from tests.support import api_absences, api_comparison
from tests.support.api_report import report

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def entries() -> list[api_comparison.Entry]:
    return api_comparison.compare()


def test_every_name_and_parameter_is_here_or_has_a_reason(
    entries: list[api_comparison.Entry],
) -> None:
    problems = [one for one in entries if one.problem is not None]

    assert [
        f"{one.place}: {one.problem}" for one in problems if api_absences.reason_for(one) is None
    ] == []


def test_nothing_listed_is_here_after_all(entries: list[api_comparison.Entry]) -> None:
    assert api_absences.stale_keys(entries) == []
    assert [key for key, reason in api_absences.MISSING.items() if len(reason) < 20] == []


def test_report_gives_totals_and_a_reason_for_each_absence(
    entries: list[api_comparison.Entry],
) -> None:
    lines = report(entries)

    assert lines[0].startswith("public names: ")
    assert lines[1].startswith("parameters: ")
    assert [line for line in lines if "NOT LISTED" in line] == []


def test_reference_is_read_in_full(entries: list[api_comparison.Entry]) -> None:
    """The comparison must not pass because it has stopped to find anything."""
    places = {one.place for one in entries}

    assert len(places) > 2500
    assert places >= {
        "LanceDataset.to_table(columns)", "LanceFragment.take", "LanceOperation.Append(fragments)",
        "LanceSchema.fields", "write_dataset(mode)", "Session", "CommitLock", "DataFile.path",
        "LanceDataset.sort_by", "Version.timestamp",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "problem"),
    [
        (lambda a, b=2: None, None),
        (lambda a, b=2, *, more=1: None, None),
        (lambda a, c=0: None, "missing"),
        (lambda b, a=2: None, "at position 0 instead of 1"),
        (lambda a, *, b=2: None, "taken by keyword only"),
        (lambda a, b: None, "required, and the reference has the default 2"),
        (lambda a, b=3: None, "default 3 instead of 2"),
        (lambda a, b=2, /: None, "taken by position only"),
        (lambda a, **options: None, "missing"),
    ],
)
def test_a_difference_of_a_parameter_is_found(ours: object, problem: str | None) -> None:
    def theirs(a, b=2): ...

    wanted = api_comparison.parameters(theirs)["b"]
    assert api_comparison.difference(1, wanted, api_comparison.parameters(ours)) == problem

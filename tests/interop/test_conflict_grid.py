"""Every ordered pair of changes, committed for real by us and by pylance, in every combination.

Whoever comes second made the change for the version before the first one landed. It is committed,
and then the dataset is as after one of the two serial orders; or it is refused, and the dataset is
as the first one left it. We refuse whatever pylance refuses, and the few pairs that pylance accepts
although the outcome is not serializable.
"""

from __future__ import annotations

import shutil

import pytest

from lance_nb.errors import CommitConflictError, RetryableCommitConflictError
from lance_nb.transactions.conflict_grid import check
from lance_nb.transactions.conflict_rules import Circumstances, Verdict
from tests.support.conflict_pairs import CHANGES, Pairs, Prepared
from tests.support.requirements import require_pylance

pytestmark = [pytest.mark.interop, pytest.mark.slow]

COMMITTED, RETRYABLE, INCOMPATIBLE = "committed", "retryable", "incompatible"

# (first, second): pylance commits the second, and something is lost or twice.
LOST_BY_PYLANCE = {
    ("drop c", "index on c"),
    ("drop e", "index on e"),
    ("upsert key 500", "upsert key 500"),
    ("upsert key 600", "upsert key 600"),
    ("schema metadata", "drop b"),
    ("schema metadata", "drop c"),
    ("schema metadata", "drop e"),
    ("metadata of c", "drop b"),
    ("metadata of c", "drop e"),
}
# Refused by us although nothing would be lost: pylance's verb reads the newest version first
# (restore), and nothing says that the keys differ (upserts, and merges that may be upserts).
STRICTER = {
    ("schema metadata", "restore"),
    ("metadata of c", "restore"),
    ("metadata of c", "drop c"),
    ("upsert key 500", "upsert key 600"),
    ("upsert key 600", "upsert key 500"),
    ("upsert key 500", "update b of rows 1, 2"),
    ("upsert key 600", "update b of rows 1, 2"),
    ("update b of rows 1, 2", "upsert key 500"),
    ("update b of rows 1, 2", "upsert key 600"),
}


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "stable row ids"])
def pairs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    lance = require_pylance()
    return Pairs(lance, tmp_path_factory.mktemp("pairs"), stable_row_ids=request.param)


@pytest.mark.parametrize("second", CHANGES)
def test_what_we_commit_second_is_serializable_and_as_the_grid_says(
    pairs: Pairs, second: str
) -> None:
    wrong = []
    for first in CHANGES:
        expected = expected_outcome(pairs, first, second)
        # Ours comes first with row ids, pylance's without: verdicts do not depend on row ids.
        by = "ours" if pairs.stable_row_ids else "pylance"
        outcome, serial = commit_pair(pairs, first, second, (by, "ours"))
        if outcome != expected or not serial:
            wrong.append((first, by, outcome, expected, serial))
    assert wrong == []


# Verdicts do not depend on row ids; what we commit is tested with them.
@pytest.mark.parametrize("pairs", [False], ids=["plain"], indirect=True)
@pytest.mark.parametrize("second", CHANGES)
def test_what_pylance_commits_second_over_ours_is_what_we_would_commit(
    pairs: Pairs, second: str
) -> None:
    wrong = []
    for first in CHANGES:
        expected = expected_outcome(pairs, first, second)
        outcome, serial = commit_pair(pairs, first, second, ("ours", "pylance"))
        pair = (first, second)
        if pair in LOST_BY_PYLANCE:
            as_known = outcome == COMMITTED and not serial and expected != COMMITTED
        elif pair in STRICTER:
            as_known = outcome == COMMITTED and serial and expected != COMMITTED
        else:
            as_known = outcome == expected and serial
        if not as_known:
            wrong.append((first, outcome, expected, serial))
    assert wrong == []


def expected_outcome(pairs: Pairs, first: str, second: str) -> str:
    """Return what the grid says; conditions that only a rebase can tell are added."""
    ours, theirs = pairs.prepared[second], pairs.prepared[first]
    # Without row ids, a merge that updates as many rows as it writes may insert and delete as well.
    merges = ("upsert",) if pairs.stable_row_ids else ("upsert", "update b of rows")
    inserts = first.startswith(merges) and second.startswith(merges)
    known = Circumstances(knows_rows=ours.affected_rows is not None, both_insert=inserts)
    verdict = check(ours.transaction.operation, theirs.transaction.operation, known).verdict
    if verdict is Verdict.REBASABLE and ours.affected_rows and not can_merge(ours, theirs):
        return RETRYABLE
    outcomes = {Verdict.RETRYABLE: RETRYABLE, Verdict.INCOMPATIBLE: INCOMPATIBLE}
    return outcomes.get(verdict, COMMITTED)


def can_merge(ours: Prepared, theirs: Prepared) -> bool:
    """Tell whether both only delete, and not the same row."""
    operations = (ours.transaction.operation, theirs.transaction.operation)
    if any(getattr(one, "fields_modified", ()) for one in operations):
        return False
    return not any(
        rows.contains(theirs.affected_rows[fragment].offsets()).any()
        for fragment, rows in ours.affected_rows.items()
        if fragment in theirs.affected_rows
    )


def commit_pair(pairs: Pairs, first: str, second: str, who: tuple[str, str]) -> tuple[str, bool]:
    """Return the outcome, and whether the dataset is as it should be then."""
    path = pairs.copy()
    try:
        pairs.stale_commit(path, first, second, who)
        outcome = COMMITTED
    except RetryableCommitConflictError:
        outcome = RETRYABLE
    except CommitConflictError:
        outcome = INCOMPATIBLE
    except OSError as error:
        outcome = outcome_of_pylance(str(error))
    state = pairs.state(path)
    shutil.rmtree(path)
    if outcome == COMMITTED:
        return outcome, state in (pairs.serial(first, second), pairs.serial(second, first))
    return outcome, state == pairs.serial(first)


def outcome_of_pylance(text: str) -> str:
    if "preempted" in text or "Too many concurrent writers" in text:
        return RETRYABLE
    if "incompatible" in text.lower() or "does not exist" in text:
        return INCOMPATIBLE
    return text

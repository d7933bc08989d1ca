"""ds.check: evaluate expectations at versions, and the gate that staging asks before a commit.

The gate applies a staged write to the version that it was made for, in memory, and checks that. It
refuses where an expectation fails that held before, or fails for more rows than before, so that a
dataset that is broken already can be mended step by step. What others commit at the same moment is
not part of it: two appends may each keep a key unique and break it together.

Source: our own; see format/expectations.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lance_nb.dataset.checks.evaluation import Checker, Progress
from lance_nb.dataset.checks.result import CheckOutcome, CheckResult
from lance_nb.errors import ExpectationFailedError
from lance_nb.format.expectations import ConfiguredExpectations
from lance_nb.table.refs import Target

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.dataset.session import Session
    from lance_nb.table.snapshot import Snapshot


def check(
    dataset: LanceDataset,
    versions: Iterable[LanceDataset],
    names: Sequence[str] | None,
    cache: bool,
    allow_bases: Sequence[str],
    progress: Progress | None,
    *,
    num_versions: int = 1,
) -> list[CheckResult]:
    """Evaluate the expectations of ``dataset`` at opened versions, one after the other.

    ``progress`` counts the expectations of one version, or several versions.
    """
    checker = Checker(dataset, names, cache=cache, allow_bases=allow_bases)
    found: list[CheckResult] = []
    try:
        for at in versions:
            if progress is not None and num_versions > 1:
                progress(len(found), num_versions)
            found.append(checker.at(at, progress if num_versions == 1 else None))
    finally:
        checker.save()  # also what was found before it was cancelled
    return found


def broken_by(
    session: Session, before: Snapshot, after: Snapshot, configured: ConfiguredExpectations
) -> list[CheckOutcome]:
    """Return the outcomes after a change that fail, and did not or for fewer rows before it."""
    from lance_nb.dataset.dataset import LanceDataset

    old = LanceDataset.from_opened(session, before)
    new = LanceDataset.from_opened(session, after)
    checker = Checker(old, configured=configured)
    failed = checker.at(new).failed
    if not failed:
        return []
    known = {one.name: one for one in checker.at(old).outcomes}
    checker.save()
    return [one for one in failed if _is_worse(known[one.name], one)]


def _is_worse(before: CheckOutcome, after: CheckOutcome) -> bool:
    if before.status != "fail":
        return True
    if before.num_failed is None or after.num_failed is None:
        return before.measured != after.measured
    return after.num_failed > before.num_failed


def gate_of(session: Session, branch: str | None) -> ConfiguredExpectations | None:
    """Return the expectations of the newest version if its gate is closed, else None."""
    config = session.load(Target(branch, None)).manifest.config
    found = ConfiguredExpectations.of(config)
    return found if found.is_gated and found.expectations else None


def refuse_broken(broken: Sequence[CheckOutcome]) -> None:
    """Raise ExpectationFailedError if there is an outcome that fails."""
    if broken:
        listed = "; ".join(f"{one.statement}: {one.detail}" for one in broken)
        raise ExpectationFailedError(
            f"the commit would break {len(broken)} "
            f"expectation{'' if len(broken) == 1 else 's'}: {listed}. Change what is staged, "
            "remove the expectation with ds.expectations.remove(...), or commit with "
            "check_expectations=False"
        )

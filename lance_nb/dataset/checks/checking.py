"""ds.check: evaluate expectations at versions, and the gate that staging asks before a commit.

The gate applies a staged write to the version that it was made for, in memory, and checks that. It
refuses where an expectation fails that held before, or fails for more rows than before, so that a
dataset that is broken already can be mended step by step. What others commit at the same moment is
not part of it: two appends may each keep a key unique and break it together.

Source: our own; see format/expectations.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_nb.dataset.checks.evaluation import Checker, Progress
from lance_nb.dataset.checks.result import CheckOutcome, CheckResult
from lance_nb.errors import ExpectationFailedError
from lance_nb.format.expectations import ConfiguredExpectations
from lance_nb.table.refs import Target
from lance_nb.value_classes import dataclass

STAGED_COLUMNS = 8  # of the rows that a staged change would bring

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.session.session import Session


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
    results: list[CheckResult] = []
    try:
        for version in versions:
            if progress is not None and num_versions > 1:
                progress(len(results), num_versions)
            results.append(checker.evaluate(version, progress if num_versions == 1 else None))
    finally:
        checker.save()  # also what was found before it was cancelled
    return results


@dataclass(frozen=True, slots=True)
class StagedCheck:
    """What a staged change would do to the expectations of the newest version.

    ``num_expectations``: how many were checked. ``is_gated``: whether a commit is refused while
    ``broken`` holds one: outcomes that fail, and did not before the change or for fewer rows.
    ``rows``: by the name of a broken expectation the first rows that fail, of the changed fragments
    where there are any.

    Examples:
        >>> _ = ds.expectations.add("id < 100", name="small")
        >>> found = ds.stage().append(pa.table({"id": [500], "label": ["z"]})).check()
        >>> [one.name for one in found.broken], found.rows["small"]["id"].to_pylist()
        (['small'], [500])
    """

    num_expectations: int
    is_gated: bool
    broken: tuple[CheckOutcome, ...] = ()
    rows: Mapping[str, pa.Table] = field(default_factory=dict)

    @property
    def is_refused(self) -> bool:
        """Whether a commit would be refused."""
        return self.is_gated and bool(self.broken)


def staged_check(
    old: LanceDataset,
    new: LanceDataset,
    configured: ConfiguredExpectations,
    num_rows: int,
    progress: Progress | None,
) -> StagedCheck:
    """Check a version that a change would make beside the one that it was made for."""
    checker = Checker(old, configured=configured)
    rows: dict[str, pa.Table] = {}
    try:
        result = checker.evaluate(new, progress)
        before_outcomes = (
            {outcome.name: outcome for outcome in checker.evaluate(old).outcomes}
            if result.failed
            else {}
        )
        broken = tuple(
            outcome
            for outcome in result.failed
            if _is_worse(before_outcomes[outcome.name], outcome)
        )
        raw_before = set(old.opened[1].manifest.fragments.raw)
        fragments = new.opened[1].manifest.fragments
        ids = fragments.counts().ids.tolist()
        changed = {
            ids[position] for position, raw in enumerate(fragments.raw) if raw not in raw_before
        }
        for outcome in broken if num_rows else ():
            if outcome.num_failed:
                own = checker.columns_of(outcome.name)
                names = list(dict.fromkeys((*own, *new.schema.names)))[:STAGED_COLUMNS]
                rows[outcome.name] = checker.failing_rows(
                    new, num_rows, names, name=outcome.name, first=frozenset(changed)
                )
    finally:
        checker.save()
    return StagedCheck(len(result.outcomes), configured.is_gated, broken, rows)


def _is_worse(before: CheckOutcome, after: CheckOutcome) -> bool:
    if before.status != "fail":
        return True
    if before.num_failed is None or after.num_failed is None:
        return before.measured != after.measured
    return after.num_failed > before.num_failed


def newest_expectations(session: Session, branch: str | None) -> ConfiguredExpectations:
    """Return the expectations of the newest version of a branch, and its gate."""
    return ConfiguredExpectations.of(session.load(Target(branch, None)).manifest.config)


def refuse_broken(broken: Sequence[CheckOutcome]) -> None:
    """Raise ExpectationFailedError if there is an outcome that fails."""
    if broken:
        listed = "; ".join(f"{outcome.statement}: {outcome.detail}" for outcome in broken)
        raise ExpectationFailedError(
            f"the commit would break {len(broken)} "
            f"expectation{'' if len(broken) == 1 else 's'}: {listed}. Change what is staged, "
            "remove the expectation with ds.expectations.remove(...), or commit with "
            "check_expectations=False"
        )

"""A small share of the faults on a disk; the long form: ``python -m tests.faults kills``..."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lance_nb.errors import LanceError
from tests.faults.command import try_verb
from tests.faults.disk.looking import Judge
from tests.faults.disk.replies import NAMING, ReplyCase
from tests.faults.verbs import VERBS
from tests.faults.verbs.jobs import JOBS_VERBS
from tests.house.source import ROOT
from tests.support.requirements import require_pylance

pytestmark = [pytest.mark.interop, pytest.mark.slow]

# Kind -> verbs, rounds of each, and a state that must have been seen.
SHARES = {
    "kills": (
        ("append", "cleanup_old_versions", "create_branch", "tags.update", "merge_insert, upsert"),
        4,
        "'after': ",
    ),
    # Found by it: new folders, deleted tags, branches and old names were not synced.
    "losses": (
        ("create", "append", "tags.delete", "branches.delete", "migrate_manifest_paths_v2"),
        12,
        "'after': ",
    ),
    "beside": (("append", "update", "compact"), 6, "'died': "),
    "cleaned": (
        (
            "append",
            "update",
            "delete",
            "compact",
            "create_scalar_index",
            "branches.merge",
            "branches.merge with copied files",
            "branches.merge of every commit",
            "cherry_pick",
            "staged batch",
            "staged upsert",
            "staged add_columns",
            "staged overwrite",
            *JOBS_VERBS,
        ),
        8,
        "'done': ",
    ),
    # Found by it: a drop that was killed between manifests could not be repeated.
    "stores": (("append", "create_branch", "drop"), 4, "'after': "),
}


@pytest.mark.parametrize("kind", SHARES)
def test_a_writer_that_ends_leaves_the_state_before_or_after(kind: str) -> None:
    """In a process of its own: it forks, and so must have no threads of other tests."""
    require_pylance()
    verbs, rounds, end = SHARES[kind]
    options = [part for verb in verbs for part in ("--verb", verb)]
    command = [sys.executable, "-m", "tests.faults", kind, "1", "1", *options]
    done = subprocess.run(
        [*command, "--per-verb", str(rounds)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    print(done.stdout.splitlines()[-1:])
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    assert end in done.stdout


# --- replies --------------------------------------------------------------------------------------

REPLIES = (
    "create", "append", "append of three files", "overwrite", "delete", "update", "restore",
    "tags.create", "tags.update", "tags.replace_metadata", "tags.delete", "create_branch",
    "append to a branch", "branches.delete", "shallow_clone", "deep_clone", "fragment.delete",
)  # fmt: skip


@pytest.fixture(scope="module")
def judge() -> Any:
    require_pylance()
    process = Judge()
    yield process
    process.close()


def failing_rounds(case: ReplyCase) -> tuple[Counter[str], list[str]]:
    failures: list[str] = []
    counts = try_verb(case, f"{case.name}, seed 1", failures)
    return counts, failures


@pytest.mark.parametrize("name", REPLIES)
def test_what_is_reported_of_a_change_is_true(name: str, judge: Judge, tmp_path: Path) -> None:
    counts, failures = failing_rounds(ReplyCase(name, 1, tmp_path / "case", judge, 0))
    assert not failures, failures[0]
    print(f"{name}: {dict(counts)}")


@pytest.mark.parametrize("name", ["job overwrite", "job delete"])
def test_what_is_reported_of_a_job_is_true(name: str, judge: Judge, tmp_path: Path) -> None:
    """Found by it: a job whose record could not be removed after its commit reported an error."""
    counts, failures = failing_rounds(ReplyCase(name, 1, tmp_path / "case", judge, 40))
    assert not failures, failures[0]
    print(f"{name}: {dict(counts)}")


def test_what_is_reported_of_a_branch_is_true_when_two_calls_fail_in_a_row(
    judge: Judge, tmp_path: Path
) -> None:
    """The record was left behind when the next call failed too, and the outcome was "failed"."""
    case = ReplyCase("create_branch", 1, tmp_path / "case", judge, 0, times=2)
    ends = {case.round(failure) for failure in case.rounds() if failure.call in NAMING}
    assert {"failed", "unknown"} <= ends


def test_a_change_that_hides_its_failure_is_found(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = VERBS["tags.delete"]

    def act(dataset: Any) -> None:
        with suppress(LanceError):
            sound.act(dataset)

    monkeypatch.setitem(VERBS, "tags.delete", replace(sound, act=act))
    counts, failures = failing_rounds(ReplyCase("tags.delete", 1, tmp_path / "case", judge, 0))
    assert 0 < len(failures) == counts["end:found"] < counts["verb:tags.delete"]
    assert "done (None), readers see before" in failures[0]

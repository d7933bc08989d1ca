"""The benchmark of real tables: its table, its check, and a small run held to stored ratios."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.benchmarks.__main__ import BENCHMARKS, main
from tests.benchmarks.tables import command
from tests.benchmarks.tables.operations import GROWTH
from tests.benchmarks.tables.processes import PROCESSES
from tests.benchmarks.tables.report import (
    RATIOS,
    Figures,
    Row,
    fallen,
    growth_table,
    ratios,
    store,
    stored_ratios,
    table,
)
from tests.benchmarks.tables.sizes import SIZES
from tests.benchmarks.timing import Timing


def figures(cpu: float, wall: float, first: float = 1.0) -> Figures:
    return Figures(Timing(first, first), Timing(wall, cpu), 100.0)


def row(key: str, cpu: float, wall: float = 1.0, goal: float | None = None) -> Row:
    """Return a row in which we take a second and pylance so many."""
    return Row(key, f"do {key}", goal, figures(1, 1), figures(cpu, wall, first=2))


def test_the_worst_ratio_stands_first():
    lines = table([row("a", 3), row("b", 0.5), row("c", 1)]).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| do b", "| do c", "| do a"]


def test_a_row_shows_ratios_seconds_memory_and_goal():
    assert table([row("a", 1.5, 3, goal=1.2)]).splitlines()[2] == (
        "| do a | 1.50 | 3.00 | 2.00 / 2.00 | 1.0000 / 1.0000 | 1.5000 / 3.0000 "
        "| 100 / 100 | 1.2 | yes |"
    )


def test_every_line_has_as_many_cells():
    lines = table([row("a|b", 1), row("c", 2, goal=3)]).splitlines()
    assert len({line.count("|") for line in lines}) == 1


@pytest.mark.parametrize(
    ("cpu", "wall", "goal", "verdict"),
    [
        (1.2, 1.2, 1.2, "yes"),
        (1.2, 1.1, 1.2, "cpu only"),
        (1.1, 1.2, 1.2, "wall only"),
        (1.1, 1.1, 1.2, "no"),
        (0.1, 0.1, None, ""),
    ],
)
def test_a_goal_is_held_against_both_times(cpu, wall, goal, verdict):
    assert row("a", cpu, wall, goal).verdict == verdict


def test_growth_is_shown_for_each_fragment():
    assert growth_table([row("fragments-10", 2)]).splitlines()[2] == (
        "| do fragments-10 | 100000.0 | 200000.0 | 2.00 | 1.00 |"
    )


def test_a_ratio_that_fell_by_more_than_a_third_is_reported():
    stored = ratios([row("a", 3), row("b", 3), row("gone", 1)])
    found = ratios([row("a", 1.99), row("b", 2.01), row("new", 0.1)])
    assert fallen(stored, found) == {
        "a": "a: 1.99 times as fast as pylance by processor time, 3.00 in the stored ratios"
    }
    assert not fallen(stored, found, "ci")
    assert list(fallen(stored, ratios([row("a", 1.19), row("b", 1.21)]), "ci")) == ["a"]


def test_stored_ratios_of_other_rows_and_sizes_stay(tmp_path):
    path = tmp_path / "ratios.json"
    store(path, "full", ratios([row("a", 1), row("b", 2)]))
    store(path, "ci", ratios([row("a", 3)]))
    store(path, "full", ratios([row("b", 4)]))
    found = {key: one["cpu"] for key, one in stored_ratios(path, "full").items()}
    assert found == {"a": 1, "b": 4}
    assert stored_ratios(path, "ci")["a"]["cpu"] == 3


@pytest.mark.parametrize(("again", "problems"), [(2.9, 0), (1.0, 1)])
def test_a_fall_is_measured_once_more_before_it_counts(tmp_path, monkeypatch, again, problems):
    path = tmp_path / "ratios.json"
    store(path, "ci", ratios([row("head", 3), row("take", 3)]))
    measured = []

    def measure(operation, size, shared):
        measured.append(operation.key)
        return row(operation.key, again)

    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(command, "write_data", lambda *_: None)
    found = command.check([row("head", 1.1), row("take", 3)], SIZES["ci"], path)
    assert (measured, len(found)) == (["head"], problems)


def test_keys_are_unique_and_stored_ratios_are_those_of_the_table():
    assert len(command.BY_KEY) == len(command.ROWS) + len(GROWTH)
    keys = {operation.key for operation in command.ROWS}
    assert stored_ratios(RATIOS, "ci").keys() == keys
    assert stored_ratios(RATIOS, "full").keys() <= keys


@pytest.mark.parametrize("operation", PROCESSES, ids=lambda operation: operation.key)
def test_a_process_uses_one_verb_of_what_it_opened(operation):
    compile(operation.script, operation.key, "exec")
    assert bool(operation.reads) != bool(operation.copied)
    assert bool(operation.copied) == bool(operation.source)


def test_a_check_without_stored_ratios_is_a_problem(tmp_path):
    path = tmp_path / "ratios.json"
    store(path, "ci", ratios([row("head", 3)]))
    (problem,) = command.check([row("head", 3)], SIZES["full"], path)
    assert "no ratios of size full" in problem


@pytest.mark.interop
@pytest.mark.slow
def test_no_ratio_against_pylance_collapsed():
    """Measure small tables; what fell by 60 % is measured again before it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "tables", "--size", "ci", "--check"],
        cwd=RATIOS.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"


def test_a_planted_fall_ends_the_command_with_an_error(tmp_path, monkeypatch, capsys):
    path = tmp_path / "ratios.json"
    path.write_text(json.dumps({"ci": {"head": {"cpu": 1e6}}}))
    monkeypatch.setattr(command, "write_data", lambda *_: None)
    monkeypatch.setattr(command, "measure", lambda operation, *_: row(operation.key, 1))
    monkeypatch.setattr(command, "check", lambda rows, size: check(rows, size, path))
    assert main(["tables", "--size", "ci", "--only", "open, head(100)", "--check"]) == 1
    assert "1000000.00 in the stored ratios" in capsys.readouterr().err


check = command.check


@pytest.mark.interop
@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_has_a_command_line_that_says_what_it_measures(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert all(flag in out for flag in ("usage: python -m tests.benchmarks", name, "-h, --help"))


def test_a_benchmark_that_does_not_exist_is_refused_with_the_names(capsys):
    with pytest.raises(SystemExit):
        main(["reed"])
    assert "'reed' (choose from" in capsys.readouterr().err

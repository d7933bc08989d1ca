"""What scripts rely on: every verb in a terminal has JSON, its exit status, and plain values."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.magic.command_line import _NOTEBOOK_ONLY, main
from lance_nb.magic.registry import VERBS

# A line for each verb; words in capitals are places, made anew for each test.
LINES = {
    "open": "open URI",
    "tables": "tables FOLDER",
    "show": "show URI",
    "at": "at URI 1",
    "schema": "schema URI",
    "head": "head URI",
    "fragments": "fragments URI",
    "indices": "indices URI",
    "export": "export URI OUT.csv",
    "log": "log URI",
    "bisect": "bisect URI 'id < 5000000'",
    "diff": "diff URI 1 2",
    "index": "index URI",
    "explain": "explain URI 'id = 1000001'",
    "like": "like VECTORS id=1",
    "duplicates": "duplicates VECTORS",
    "doubts": "doubts VECTORS id",
    "search": "search URI x --in name",
    "row": "row URI id=1000001",
    "branch": "branch URI",
    "tag": "tag URI create one",
    "restore": "restore URI 1",
    "merge": "merge URI dev --dry-run",
    "cherry-pick": "cherry-pick URI dev:3 --dry-run",
    "revert": "revert URI 2 --dry-run",
    "check": "check URI",
    "expect": "expect URI add 'id > 0' --name positive",
    "review": "review URI dev",
    "space": "space URI",
    "doctor": "doctor URI",
    "compact": "compact URI",
    "clean": "clean URI --dry-run",
    "sql": "sql URI SELECT id, name FROM dataset ORDER BY id",
    "spark": "spark",
}
OF_TERMINALS = [name for name in VERBS if name not in _NOTEBOOK_ONLY]
EXIT_FINDING = {"bisect URI 'id > 1000001'": 1, "doctor BROKEN": 1, "tables HALF": 1}

Run = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> Run:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    uri = tmp_path / "db" / "rows.lance"
    rows = pa.table({"id": [1_000_000, 1_000_001, 1_000_002], "name": ["", None, "x"]})
    ds = lance_nb.write_dataset(rows, uri)
    ds.insert(pa.table({"id": [2_000_000], "name": ["y"]}))
    ds.create_branch("dev").delete("id = 1000002")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 0.0, 3.0, 4.0], pa.float32()), 2)
    lance_nb.write_dataset(pa.table({"id": [1, 2], "vector": vectors}), tmp_path / "v.lance")
    broken = tmp_path / "half" / "broken.lance"
    lance_nb.write_dataset(rows, broken)
    for file in (broken / "data").iterdir():
        file.write_bytes(file.read_bytes()[:-10])
    lost = tmp_path / "half" / "lost.lance" / "_versions"
    lost.mkdir(parents=True)
    (lost / "1.manifest").write_bytes(b"damaged")
    places = {
        "URI": uri, "BROKEN": broken, "FOLDER": tmp_path / "db", "HALF": tmp_path / "half",
        "VECTORS": tmp_path / "v.lance",
        "OUT.csv": tmp_path / "out.csv",
    }  # fmt: skip

    def call(line: str) -> tuple[int, str, str]:
        status = main([str(places.get(word, word)) for word in shlex.split(line)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def test_every_verb_has_its_line() -> None:
    assert [name for name in OF_TERMINALS if name not in LINES] == []


@pytest.mark.parametrize("name", OF_TERMINALS)
def test_a_verb_speaks_json_and_its_errors_are_one_line(run: Run, name: str) -> None:
    # The text of a verb begins behind the options.
    line = LINES[name].replace("URI", "URI --json", 1) if name == "sql" else f"{LINES[name]} --json"
    status, out, err = run(line)
    assert (status, err) == (0, "")
    json.loads(out)
    status, out, err = run(f"{name} --no-such-option")
    assert (status, out) == (2, "")
    assert err.startswith("lance-nb: ")
    assert err.count("\n") == 1
    if VERBS[name].needs_dataset:
        words = LINES[name].split()
        assert run(" ".join([words[0], "/nothing.lance", *words[2:]]))[0] == 2


@pytest.mark.parametrize(("line", "status"), EXIT_FINDING.items())
def test_a_finding_is_status_1(run: Run, line: str, status: int) -> None:
    for form in (line, f"{line} --json"):
        found, out, err = run(form)
        assert (found, err) == (status, "")
        assert out


def test_values_are_written_as_data(run: Run) -> None:
    """Numbers without separators, NULL apart from an empty text, in tables and in JSON."""
    for line in ("head URI", LINES["sql"]):
        status, out, _ = run(line)
        assert status == 0
        assert "1000001" in out
        assert "1,000,001" not in out
        lines = [one.split() for one in out.splitlines() if one.split()[:1] == ["1000001"]]
        assert lines == [["1000001", "NULL"]]
        assert [one.split() for one in out.splitlines() if one.split()[:1] == ["1000000"]] == [
            ["1000000"]
        ]
    rows = json.loads(run("head URI --json")[1])
    assert [one["name"] for one in rows[:2]] == ["", None]
    assert [one["id"] for one in rows[:2]] == [1_000_000, 1_000_001]


def test_nothing_to_do_is_status_0(run: Run) -> None:
    assert run("log URI -n 1")[0] == 0
    assert run("")[0] == 0  # the list of commands

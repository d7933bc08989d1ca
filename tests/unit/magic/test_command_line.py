from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from lance_nb.errors import MissingPackageError
from lance_nb.magic import command_line
from lance_nb.magic.command_line import main
from lance_nb.magic.registry import VERBS


def test_a_verb_takes_the_dataset_first(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", uri, "-n", "2"]) == 0
    out = capsys.readouterr().out
    assert "Update" in out
    assert "Append" not in out


def test_json_can_be_read_by_programs(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", uri, "--json", "-n", "3"]) == 0
    assert [one["version"] for one in json.loads(capsys.readouterr().out)] == [7, 6, 5]
    assert main(["sql", uri, "SELECT count(*) AS n FROM dataset@v1"]) == 0
    assert main(["sql", uri, "--json", "SELECT count(*) AS n FROM dataset@v1"]) == 0
    assert json.loads(capsys.readouterr().out.partition("[")[2].join(["[", ""])) == [{"n": 30}]


def test_open_says_what_there_is(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["open", uri]) == 0
    assert "49 rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["log"], "the dataset comes first"),
        (["log", "nowhere"], "no Lance dataset at"),
        (["lgo", "x"], "did you mean 'log'"),
        (["commit", "-m", "x"], "use %lance there"),
    ],
)
def test_errors_are_one_line_and_status_two(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out


@pytest.mark.parametrize(
    "words",
    [
        ["--help", "log"],
        ["log", "--help"],
        ["log", "photos.lance", "--help"],
        ["log", "--help", "photos.lance", "-n", "3"],
        ["log", "-h", "photos.lance"],
        ["sql", "--help"],
    ],
)
def test_help_is_given_wherever_it_is_asked_for(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    verb = next(word for word in words if not word.startswith("-"))
    assert f"lance-nb {verb} URI" in capsys.readouterr().out


def test_a_comment_in_sql_is_no_question_for_help(
    uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", uri, "SELECT 7 AS n --help\n", "-- x"]) == 0
    assert "7" in capsys.readouterr().out


# Runs as a process of its own: what is loaded cannot be unloaded.
WITHOUT_NOTEBOOK = """
import importlib.abc, io, json, sys
from contextlib import redirect_stdout, redirect_stderr

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

MISSING = {"anywidget", "IPython", "ipywidgets", "traitlets", "pandas", "jupyterlab", "duckdb",
           "comm", "ipykernel", "notebook", "nbconvert"}
sys.meta_path.insert(0, Missing())
from lance_nb.magic.command_line import main

answers = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(words)
    if not answers:
        loaded = sorted(sys.modules)
    answers.append((words, status, out.getvalue(), err.getvalue()))
sys.__stdout__.write(json.dumps({"answers": answers, "loaded": loaded}))
"""
NOT_FOR_A_LOG = (
    "lance_nb.explorer.session", "lance_nb.explorer.stage.card", "lance_nb.spark.run",
    "lance_nb.table.verification.findings", "lance_nb.table.diff.compare_plan", "sqlglot",
)  # fmt: skip


def test_every_verb_of_a_terminal_runs_without_the_packages_of_a_notebook(
    uri: str, tmp_path: Path
) -> None:
    lines = [
        ["log", uri], ["show", uri], ["open", uri], ["at", uri, "v1"], ["schema", uri],
        ["head", uri, "-n", "3"], ["fragments", uri], ["indices", uri],
        ["export", uri, str(tmp_path / "rows.csv")],
        ["diff", uri, "1..3"], ["row", uri, "id=3"], ["branch", uri], ["tag", uri],
        ["space", uri], ["doctor", uri], ["spark"], ["help"], ["help", "log"], ["--version"],
        ["expect", uri, "add", "id < 1000"], ["check", uri], ["review", uri, "dev"],
        ["tag", uri, "create", "here"], ["compact", uri], ["restore", uri, "3"],
        ["clean", uri, "--dry-run"], ["demo", "--help"], ["tables", str(Path(uri).parent)],
        ["index", uri], ["explain", uri, "id = 3"], ["search", "--help"], ["like", "--help"],
        ["duplicates", "--help"], ["doubts", "--help"],
        ["report", uri], ["report", uri, "v1"],
    ]  # fmt: skip
    missing = [["sql", uri, "SELECT 1"], ["bisect", uri, "count(*) < 40"], ["lab", uri],
               ["view", uri]]  # fmt: skip
    known = {*command_line.COMMANDS, *VERBS} - command_line._NOTEBOOK_ONLY
    untried = known - {words[0] for words in [*lines, *missing]}

    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NOTEBOOK, json.dumps([*lines, *missing])],
        capture_output=True, text=True, check=False, timeout=240, cwd=tmp_path,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    wrong = [one for one in said["answers"][: len(lines)] if one[1] != 0 or one[3]]
    assert not wrong
    errors = [one[3] for one in said["answers"][len(lines) :]]
    packages = [
        ("SQL", "DuckDB", "sql"), ("SQL", "DuckDB", "sql"), ("lab", "JupyterLab", "lab"),
        ("view", "anywidget", "lab"),
    ]  # fmt: skip
    assert errors == [
        f"lance-nb: {MissingPackageError(purpose, package, f'lance-nb[{extra}]')}\n"
        for purpose, package, extra in packages
    ]
    assert untried <= {"merge", "cherry-pick", "revert"}, "changes of history are tried elsewhere"
    assert [name for name in NOT_FOR_A_LOG if name in said["loaded"]] == []
    assert [name for name in NOT_FOR_A_LOG if find_spec(name) is None] == []


def run(*words: str, **how: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "lance_nb.magic.command_line", *words]
    return subprocess.run(command, check=False, capture_output=True, timeout=300, **how)


@pytest.mark.slow
def test_a_process_ends_as_scripts_expect(uri: str, tmp_path: Path) -> None:
    """Exit status 0, 1 for a finding, 2 for an error; nothing but the answer on stdout."""
    whole = run("doctor", uri, "--json", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (whole.returncode, whole.stderr) == (0, b"")
    said = json.loads(whole.stdout)
    assert (said["ok"], said["findings"], said["versions"]) == (True, [], 9)
    cut = shutil.copytree(uri, tmp_path / "cut.lance")
    victim = max((cut / "data").iterdir())
    victim.write_bytes(victim.read_bytes()[:100])
    damaged = run("doctor", str(cut))
    assert damaged.returncode == 1
    assert victim.name.encode() in damaged.stdout
    assert b"\x1b" not in damaged.stdout
    nowhere = run("doctor", str(tmp_path / "no.lance"))
    assert (nowhere.returncode, nowhere.stdout, nowhere.stderr.count(b"\n")) == (2, b"", 1)


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(uri: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "lance_nb.magic.command_line", "log", uri]
    with os.fdopen(writing, "wb") as broken:
        done = subprocess.run(
            command, check=False, stdout=broken, stderr=subprocess.PIPE, timeout=300
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_the_system_refuses_and_an_interrupt_are_one_line(
    uri: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(path: Path, *, force: bool = False) -> str:
        raise PermissionError(13, "Permission denied", str(path)) if force else KeyboardInterrupt

    monkeypatch.setattr(command_line, "ensure", stop)
    assert main(["demo", "x.lance", "--force"]) == 2
    assert main(["demo", "x.lance"]) == 130
    said = capsys.readouterr().err.splitlines()
    assert said == ["lance-nb: [Errno 13] Permission denied: 'x.lance'", "lance-nb: interrupted"]


def test_the_version_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("lance-nb")


def test_help_needs_no_dataset(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["help"], ["--help"], ["log", "--help"], ["help", "log"]):
        assert main(words) == 0
    said = capsys.readouterr().out
    assert "lance-nb log URI [REF] [-n LIMIT]" in said
    assert "Example: lance-nb log photos.lance -n 5" in said
    assert "--no-display" not in said


def test_lab_writes_a_notebook_that_explores_the_dataset(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbformat

    monkeypatch.chdir(tmp_path)
    path = command_line._notebook_for(uri)
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert repr(uri) in notebook.cells[0].source
    assert path == Path("explore_photos.ipynb")
    path.write_text("mine")
    assert command_line._notebook_for(uri).read_text() == "mine"


@pytest.mark.parametrize(("user", "allowed"), [(0, ["--allow-root"]), (1000, [])])
def test_lab_starts_on_the_notebook_also_for_root(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, allowed: list[str]
) -> None:
    from jupyterlab.labapp import LabApp

    started: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: user, raising=False)
    monkeypatch.setattr(LabApp, "launch_instance", started.extend)
    assert main(["lab", uri, "--no-browser"]) == 0
    address = "--LabApp.default_url=/lab/tree/explore_photos.ipynb"
    settings = started.pop(2).removeprefix("--ServerApp.tornado_settings=")
    run = ast.literal_eval(settings)["page_config_data"]["lanceNbRun"]
    assert run["path"] == "explore_photos.ipynb"  # our extension runs its cell
    assert len(run["id"]) == 16
    assert started == ["explore_photos.ipynb", address, "--no-browser", *allowed]


@pytest.mark.parametrize(
    ("words", "passed_on"),
    [
        (["--port", "9797"], ["--port=9797"]),
        (["--port=9797"], ["--port=9797"]),
        (["--ServerApp.port", "9797", "--no-browser"], ["--ServerApp.port=9797", "--no-browser"]),
        (["--no-browser"], ["--no-browser"]),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_values_of_options_of_jupyterlab_may_be_words_of_their_own(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, words: list[str],
    passed_on: list[str], is_first: bool,
) -> None:  # fmt: skip
    from jupyterlab.labapp import LabApp

    started: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 1000, raising=False)
    monkeypatch.setattr(LabApp, "launch_instance", started.extend)
    assert main(["lab", *words, uri] if is_first else ["lab", uri, *words]) == 0
    assert started[0] == "explore_photos.ipynb"
    assert started[3:] == passed_on


def test_values_of_options_may_follow_an_equals_sign(
    uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", uri, f"--output={tmp_path / 'a=b.html'}"]) == 0
    assert (tmp_path / "a=b.html").is_file()
    assert main(["view", uri, "--port=99999"]) == 2
    assert (
        "argument --port: expected a number up to 65535; usage: lance-nb view URI"
        in capsys.readouterr().err
    )


def test_two_versions_are_written_with_or_without_dots(
    uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", uri, "3..5", "--json"]) == 0
    with_dots = capsys.readouterr().out
    assert main(["diff", uri, "3", "5", "--json"]) == 0
    assert capsys.readouterr().out == with_dots
    assert main(["diff", uri, "3..5", "5"]) == 2
    assert "use either" in capsys.readouterr().err


def test_the_demo_dataset_is_written_and_what_to_do_with_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[Path, bool]] = []

    def ensure(path: Path, *, force: bool = False) -> str:
        asked.append((path, force))
        return f"wrote {path}"

    monkeypatch.setattr(command_line, "ensure", ensure)
    assert main(["demo"]) == 0
    assert "lance-nb lab demo.lance" in capsys.readouterr().out
    assert main(["demo", "here.lance", "--force"]) == 0
    assert asked == [(Path("demo.lance"), False), (Path("here.lance"), True)]
    assert main(["demo", "one", "two"]) == 2
    assert "usage: lance-nb demo" in capsys.readouterr().err


def test_what_only_a_terminal_has_is_in_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out
    for name in command_line.COMMANDS:
        assert f"lance-nb {name}" in listed
        for words in (["help", name], [name, "--help"]):
            assert main(words) == 0
            assert command_line.COMMANDS[name].help in capsys.readouterr().out
    assert "lance-nb commit" not in listed

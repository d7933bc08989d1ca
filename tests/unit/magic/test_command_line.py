from __future__ import annotations

import json
from pathlib import Path

import pytest

from lance_nb.magic import command_line
from lance_nb.magic.command_line import main


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


def test_help_needs_no_dataset(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["help"], ["--help"], ["log", "--help"], ["help", "log"]):
        assert main(words) == 0
    assert "lance-nb log" in capsys.readouterr().out


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


def test_two_versions_are_written_with_or_without_dots(
    uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", uri, "3..5", "--json"]) == 0
    with_dots = capsys.readouterr().out
    assert main(["diff", uri, "3", "5", "--json"]) == 0
    assert capsys.readouterr().out == with_dots
    assert main(["diff", uri, "3..5", "5"]) == 2
    assert "not both" in capsys.readouterr().err


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
            assert command_line.COMMANDS[name][1] in capsys.readouterr().out
    assert "lance-nb commit" not in listed

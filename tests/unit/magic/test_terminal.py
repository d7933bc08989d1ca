"""A dataset whose every text would like to command a terminal, through every verb."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import lance_nb
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.stage import staging_area
from lance_nb.magic.command_line import COMMANDS, main
from lance_nb.magic.registry import VERBS
from lance_nb.magic.verb import one_line
from lance_nb.shown_text import INVISIBLE
from tests.unit.magic.conftest import Lance

# Colours and a title, one control of C1, a bidirectional override, a carriage return, a backspace.
EVIL = "evil\x1b[31m\x1b]0;t\x07\x9b2J\u202etxt\rx\x08\u2028\u200b"
EVILS = (EVIL, f"{EVIL}\n2")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("terminal") / f"{EVIL}.lance"
    rows = pa.table({"id": [1, 2], EVIL: EVILS, "deep": [{EVIL: [EVIL]}] * 2})
    lance_nb.write_dataset(
        rows.replace_schema_metadata({EVIL: EVIL}), path, commit_message=EVIL,
        transaction_properties={EVIL: EVIL},
    )  # fmt: skip
    dataset = lance_nb.dataset(path)
    dataset.update({EVIL: f"'{EVIL}!'"}, where="id = 1")
    dataset.update_config({EVIL: EVIL})
    dataset.update_field_metadata({"id": {EVIL: EVIL}})
    dataset.create_scalar_index("id", "BTREE", name=EVIL)
    dataset.tags.create("t", 1)
    branch = dataset.create_branch("b")
    branch.delete("id = 2")
    refs, name = path / "_refs", quote(EVIL, safe="")
    shutil.copy(refs / "tags" / "t.json", refs / "tags" / f"{name}.json")
    shutil.copy(refs / "branches" / "b.json", refs / "branches" / f"{name}.json")
    shutil.copytree(path / "tree" / "b", path / "tree" / EVIL)
    return path


@pytest.fixture
def evil(written: Path, tmp_path: Path) -> Iterator[str]:
    copy = shutil.copytree(written, tmp_path / written.name)
    yield str(copy)
    staging_area._AREAS.clear()


LINES: dict[str, tuple[list[str], ...]] = {
    "open": ([], ["as", EVIL]),
    "tables": ([EVIL], ["."]),
    "show": ([],),
    "at": (["HEAD~1"], [EVIL], [f"tag:{EVIL}"], [f"no{EVIL}"]),
    "schema": ([],),
    "head": ([], ["--columns", EVIL], ["--columns", f"no{EVIL}"], ["--where", f"`{EVIL}` = 3"],
             ["--where", f"id = '{EVIL}'"], ["--where", EVIL]),
    "fragments": ([],),
    "indices": ([],),
    "export": ([f"{EVIL}.csv"], [f"no/{EVIL}.csv"], [EVIL]),
    "log": ([], ["--graph"], [EVIL]),
    "bisect": ([f"`{EVIL}` <> 'a'"], [EVIL], [f"`{EVIL}` <> '{EVIL}!'"]),
    "diff": (["1..HEAD"], ["1..HEAD", "--rows", "--key", "id"], ["1..HEAD", "--config"],
             ["1..HEAD", "--schema"], ["1..HEAD", "--transactions"], ["1..HEAD", "--indices"],
             ["1..HEAD", "--files"], ["1..HEAD", "--rows", "--key", EVIL], [EVIL], [f"1..{EVIL}"]),
    "row": ([f"{EVIL}={EVIL}!"], ["id=1"], [f"id={EVIL}"], [f"no{EVIL}=1"]),
    "branch": ([], ["create", EVIL], ["delete", f"no{EVIL}"], ["delete", EVIL]),
    "tag": ([], ["create", EVIL], ["delete", f"no{EVIL}"], ["delete", EVIL]),
    "restore": (["1"], [EVIL]),
    "merge": ([EVIL, "--dry-run"], ["b", "--into", EVIL], ["b", "-m", EVIL], [f"no{EVIL}"]),
    "cherry-pick": (["b:4", "-m", EVIL], [EVIL]),
    "revert": (["2", "-m", EVIL], [EVIL], ["3"]),
    "stage": (["delete", f"`{EVIL}` = 'x'"], ["update", f"{EVIL}='x'"], ["append", EVIL]),
    "status": ([],),
    "commit": (["-m", EVIL],),
    "discard": ([],),
    "check": ([], ["--all"], ["--name", EVIL], [EVIL], ["--junit", f"{EVIL}.xml"]),
    "expect": ([], ["bisect", EVIL], ["add", "id > 0", "--name", EVIL],
               ["add", f"`{EVIL}` <> '{EVIL}'"],
               ["not-null", EVIL], ["drift", EVIL, "--against", EVIL], ["remove", EVIL],
               ["reference", EVIL, "--uri", EVIL, "--to", EVIL], ["gate", EVIL], ["list"]),
    "review": ([EVIL], ["b", "-m", EVIL, "--author", EVIL], ["b", "--approve"], ["b"],
               ["b", "--html", f"{EVIL}.html"], ["b", "--into", EVIL]),
    "space": ([],),
    "doctor": ([], ["--quick"]),
    "compact": ([],),
    "clean": (["--keep", "1"], ["--keep", EVIL], [EVIL]),
    "index": ([], ["stats", EVIL], ["create", EVIL], ["create", "id", "--name", EVIL],
              ["drop", f"no{EVIL}"], ["optimize", EVIL], ["create", "id", "--set", EVIL]),
    "explain": (["id = 3", "--run"], [f"`{EVIL}` = '{EVIL}'"], [EVIL]),
    "sql": (['SELECT *, 1 AS "?" FROM dataset'.replace("?", EVIL)], [EVIL], [f'SELECT "no{EVIL}"'],
            [f"SELECT error('{EVIL}')"]),
    "search": ([EVIL, "--in", EVIL], [f"no{EVIL}"], ["a", "--in", f"no{EVIL}"],
               [EVIL, "--in", EVIL, "--where", EVIL]),
    "like": (["id=1", "--by", EVIL], [EVIL], [f"{EVIL}={EVIL}!", "--by", f"no{EVIL}"]),
    "duplicates": (["--by", EVIL], ["--by", f"no{EVIL}"], ["--by", "id", "--where", EVIL]),
    "doubts": ([EVIL, "--by", EVIL], [f"no{EVIL}", "--by", "id"], [EVIL]),
    "spark": (["--cancel", EVIL],),
}  # fmt: skip


def test_every_verb_has_its_lines() -> None:
    assert list(LINES) == list(VERBS)


def check(said: str) -> None:
    """Only breaks of lines are left."""
    found = INVISIBLE.search(said.replace("\n", ""))
    assert found is None, f"{found!r} in {said[:500]!r}"


@pytest.mark.parametrize("verb", VERBS)
def test_the_command_writes_nothing_that_a_terminal_obeys(
    verb: str,
    evil: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    first = [evil] if VERBS[verb].needs_dataset or VERBS[verb].is_text else []
    if verb == "open":
        first = [evil]
    for words in LINES[verb]:
        options = [] if VERBS[verb].is_text else [["--json"], ["--debug"]]
        for option in ([], *options):
            assert main([verb, *first, *words, *option]) in {0, 1, 2}
            captured = capsys.readouterr()
            assert captured.out + captured.err
            check(captured.out)
            check(captured.err)


def test_what_only_the_command_has_writes_nothing_either(
    evil: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_more(path: Path, *, force: bool = False) -> str:
        return f"wrote {path}"

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lance_nb.magic.command_line.ensure", no_more)
    for words in (["demo", EVIL], ["demo", EVIL, "x"], [EVIL], ["help", EVIL], ["report", EVIL],
                  ["report", EVIL, "-o"], ["report", f"-{EVIL}"]):  # fmt: skip
        main(words)
        captured = capsys.readouterr()
        assert captured.out + captured.err
        check(captured.out + captured.err)
    assert set(COMMANDS) == {"lab", "view", "report", "demo"}


@pytest.mark.parametrize("verb", VERBS)
def test_the_magic_shows_nothing_that_a_terminal_obeys(
    verb: str,
    evil: str,
    shell: InteractiveShell,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def lance(line: str) -> Any:
        return shell.run_line_magic("lance", line)

    monkeypatch.chdir(Path(evil).parent)
    shell.user_ns.update(uri=evil, more=pa.table({"id": [9]}))
    lance("open {uri} as ds --no-display")
    for words in LINES[verb]:
        shell.user_ns.update({f"w{at}": one for at, one in enumerate(words)})
        filled = [one if one.isascii() else f"$w{at}" for at, one in enumerate(words)]
        line = " ".join((verb, *(words if VERBS[verb].is_text else filled)))
        for option in ("", "--debug"):
            try:
                found = lance(f"{line} {option}")
            except UsageError as error:
                check(str(error))
            else:
                picture = found.picture() if isinstance(found, Explorer) else found.picture
                check(repr(found))
                check(picture.html)
                shell.display_formatter.format(found)  # an explorer writes its picture
            captured = capsys.readouterr()
            check(captured.out + captured.err)


def test_programs_get_the_texts_as_they_are(
    evil: str, shell: InteractiveShell, lance: Lance, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.user_ns["uri"] = evil
    lance("open {uri} --no-display")
    said = str(lance("log --json"))
    assert main(["log", evil, "--json"]) == 0
    for one in (said, capsys.readouterr().out):
        check(one)
        assert json.loads(one)[-1]["message"] == EVIL


def test_what_other_packages_say_is_reported_without_it() -> None:
    error = OSError(EVIL)
    error.add_note(f"column {EVIL}")
    check(one_line(error))


def test_a_damaged_file_of_such_a_name_is_reported_without_it(
    evil: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for one in (Path(evil) / "data").iterdir():
        one.write_bytes(one.read_bytes()[:50])
    assert main(["doctor", evil]) == 1
    assert main(["head", evil]) == 2
    captured = capsys.readouterr()
    check(captured.out + captured.err)
    assert "⟨U+001B⟩" in captured.out + captured.err
    check(repr(lance_nb.dataset(evil)))
    check(repr(lance_nb.explore(evil)))

"""Every verb through a real IPython shell: help, completion, display, JSON, variables, an error.

A verb that is added to the registry fails here until it has its line in ``CASES``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import lance_nb
from lance_nb.explorer.app import Explorer
from lance_nb.magic.registry import VERBS
from lance_nb.magic.verb import Result
from tests.unit.magic.conftest import Lance, rows


@dataclass(frozen=True)
class Case:
    """One verb: a line that works, what its text says, what is completed, a line that does not."""

    line: str
    says: str
    completes: tuple[str, str]
    wrong: str
    error: str
    before: str = ""


CASES = {
    "open": Case("open ds", "main:7", ("open d", "ds"), "open", "usage: %lance open"),
    "tables": Case("tables FOLDER", "1 table", ("tables d", "ds"), "tables", "usage: %lance"),
    "show": Case("show", "main:7", ("sho", "show"), "show 3", "unrecognized arguments: 3"),
    "at": Case("at v1", "main:3", ("at tag:l", "tag:late"), "at v9", "names that exist"),
    "schema": Case("schema v1", "label", ("schema de", "dev"), "schema 99", "version 99"),
    "head": Case("head -n 1", "label", ("head --columns i", "id"), "head --columns x", "'x'"),
    "fragments": Case("fragments", "fragment", ("fragments v", "v1"), "fragments 1 2", "usage"),
    "indices": Case("indices", "Indices of", ("indices lat", "late"), "indices no", "'no'"),
    "export": Case("export OUT.csv --overwrite", "49 rows", ("export x de", "dev"),
                   "export x.xls", "end with"),
    "log": Case("log -n 1", "Update", ("log --gr", "--graph"), "log -n -1", "must not be negative"),
    "bisect": Case("bisect 'label IS NOT NULL'", "Version 5", ("bisect x --good v", "v1"),
                   "bisect 'nope > 1'", "cannot be evaluated on version 7"),
    "diff": Case("diff v1 late", "rows", ("diff v1..d", "dev"), "diff 1..99", "version 99"),
    "row": Case("row id=2", "created", ("ro", "row"), "row x", "id=7"),
    "branch": Case("branch", "dev", ("branch delete ", "dev"), "branch create", "needs the name"),
    "tag": Case("tag", "late", ("tag move l", "late"), "tag delete no", "'no'"),
    "restore": Case("restore v1", "main:8", ("restore la", "late"), "restore dev:4", "branch"),
    "merge": Case("merge dev --dry-run", "rows", ("merge d", "dev"), "merge no", "'no'"),
    "cherry-pick": Case("cherry-pick dev:4 --dry-run", "rows", ("cherry-pick d", "dev"),
                        "cherry-pick 99", "version 99"),
    "revert": Case("revert 6 --dry-run", "rows", ("revert HEA", "HEAD"), "revert 1", "first"),
    "stage": Case("stage append more", "49 -> 54", ("stage append mor", "more"),
                  "stage append no", "neither a variable nor a file"),
    "status": Case("status", "48", ("stat", "status"), "status x", "unrecognized",
                   "stage delete 'id = 9'"),
    "commit": Case("commit -m less", "less", ("comm", "commit"), "commit", "nothing is staged",
                   "stage delete 'id = 9'"),
    "discard": Case("discard", "removed", ("disc", "discard"), "discard", "nothing is staged",
                    "stage append more"),
    "check": Case("check", "no expectations", ("check v", "v1"), "check --name no", "'no'"),
    "expect": Case("expect", "Expectations of", ("expect unique i", "id"), "expect remove no",
                   "'no'"),
    "review": Case("review dev", "dev:4 into main", ("review de", "dev"), "review no", "'no'"),
    "space": Case("space", "current", ("spa", "space"), "space x", "unrecognized"),
    "doctor": Case("doctor --quick", "whole", ("doctor --q", "--quick"), "doctor x", "no Lance"),
    "compact": Case("compact", "main", ("compact --t", "--target-rows"), "compact --target-rows x",
                    "invalid int"),
    "clean": Case("clean --keep 1", "add --really", ("clean --dr", "--dry-run"),
                  "clean --dry-run --really", "exclude each other"),
    "index": Case("index create label --type BITMAP --replace", "Bitmap on label",
                  ("index create la", "label"), "index create", "needs a column"),
    "explain": Case("explain 'id = 3'", "filter: id = 3", ("explain x --r", "--run"),
                    "explain 'nope > 1'", "nope"),
    "sql": Case("sql SELECT max(id) AS m FROM ds", "49", ("sq", "sql"), "sql SELECT", "SQL:"),
    "search": Case("search 'x' --in label -n 4", "that match x", ("search x --in lab", "label"),
                   "search x", "needs an INVERTED index"),
    "like": Case("like id=3 --by vector -n 4", "_distance", ("like 3 --by ve", "vector"),
                 "like x", "a key such as id=7", "open points --no-display"),
    "duplicates": Case("duplicates --by vector --metric l2 --threshold 9", "20 rows in 1 group",
                       ("duplicates --by ve", "vector"), "duplicates --by id", "fixed-size lists",
                       "open points --no-display"),
    "doubts": Case("doubts id --by vector -k 3", "Doubts about id", ("doubts i", "id"),
                   "doubts no", "no", "open points --no-display"),
    "spark": Case("spark", "session", ("spark --st", "--start"), "spark x", "unrecognized"),
}  # fmt: skip
EVERY = pytest.mark.parametrize("name", VERBS)


@pytest.fixture(scope="module")
def points() -> lance_nb.LanceDataset:
    """Rows with vectors."""
    numbers = pa.array(np.arange(40, dtype=np.float32))
    vectors = pa.FixedSizeListArray.from_arrays(numbers, 2)
    return lance_nb.write_dataset({"id": np.arange(20), "vector": vectors}, "memory://points/d")


@pytest.fixture(autouse=True)
def opened(
    lance: Lance, shell: InteractiveShell, uri: str, tmp_path: object, points: object
) -> None:
    shell.user_ns.update(more=rows(50, 55), OUT=f"{tmp_path}/out", FOLDER=str(Path(uri).parent))
    shell.user_ns["points"] = points
    lance(f"open {uri} as ds --no-display")


def run(lance: Lance, shell: InteractiveShell, name: str, line: str) -> object:
    """Run a line of a case, its preparation first."""
    if CASES[name].before:
        lance(CASES[name].before)
    for word in ("OUT", "FOLDER"):
        line = line.replace(word, str(shell.user_ns[word]))
    return lance(line)


def test_the_table_has_every_verb() -> None:
    assert list(CASES) == list(VERBS)


@EVERY
def test_a_verb_keeps_every_promise(
    lance: Lance, shell: InteractiveShell, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One shell for all forms of a verb: making one takes as long as all that follows."""
    case = CASES[name]
    _is_displayed(run(lance, shell, name, case.line), case.says, shell)
    arguments = case.line.removeprefix(name)
    said = run(lance, shell, name, f"{name} --json {arguments}")
    assert isinstance(json.loads(str(said)), dict | list)
    assert repr(said) == str(said)
    _is_kept(lance, shell, name)
    _is_helped(lance, shell, name)
    _is_completed(shell, name)
    _fails_in_one_line(lance, name, capsys)


def _is_displayed(found: object, says: str, shell: InteractiveShell) -> None:
    if isinstance(found, Explorer):
        assert found.screen["label"] == says
        found = found.picture()
    formatted, _ = shell.display_formatter.format(found)
    assert says in formatted["text/plain"]
    assert formatted["text/html"].startswith("<details open>")
    parser = HTMLParser()
    parser.feed(formatted["text/html"])
    parser.close()


def _is_kept(lance: Lance, shell: InteractiveShell, name: str) -> None:
    arguments = CASES[name].line.removeprefix(name)
    found = run(lance, shell, name, f"kept << {name} {arguments}")
    value = shell.user_ns["kept"]
    assert value is (found.value if isinstance(found, Result) else found)
    assert run(lance, shell, name, f"{name} -o also --no-display {arguments}") is None
    assert type(shell.user_ns["also"]).__name__ == type(value).__name__


def _is_helped(lance: Lance, shell: InteractiveShell, name: str) -> None:
    verb = VERBS[name]
    for line in (f"help {name}", f"{name} --help", f"{name} -h", f"{name} ?"):
        text = lance(line).picture.text
        assert all(one in text for one in (verb.usage, verb.help, "--no-display"))
        assert all(one.help in text for one in verb.arguments)
    assert verb.usage in shell.find_line_magic("lance").__doc__


def _is_completed(shell: InteractiveShell, name: str) -> None:
    def offered(line: str) -> set[str]:
        with provisionalcompleter():
            return {one.text for one in shell.Completer.completions(line, len(line))}

    assert name in offered(f"%lance {name[:2]}")
    assert offered(f"%lance {name} --") >= {"--json", "--no-display", "--debug", "--help"}
    written, expected = CASES[name].completes
    assert expected in offered(f"%lance {written}")


def _fails_in_one_line(lance: Lance, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES[name]
    with pytest.raises(UsageError) as caught:
        lance(case.wrong)
    said = str(caught.value)
    assert said.startswith(f"%lance {name}: ")
    assert case.error in said
    assert "\n" not in said
    assert "Traceback" not in "".join(capsys.readouterr())
    with pytest.raises(UsageError):
        lance(f"{name} --debug {case.wrong.removeprefix(name)}")
    assert "Traceback" in capsys.readouterr().err


def test_every_verb_says_what_to_do_when_no_dataset_is_open(
    shell: InteractiveShell, lance: Lance
) -> None:
    shell.run_line_magic("reload_ext", "lance_nb")
    for name, case in CASES.items():
        if name in {"open", "tables", "spark", "sql", "status", "commit", "discard"}:
            continue
        with pytest.raises(UsageError, match="use %lance open") as caught:
            lance(case.line.replace("OUT", str(shell.user_ns["OUT"])))
        assert "\n" not in str(caught.value)

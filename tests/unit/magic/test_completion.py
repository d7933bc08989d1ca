from __future__ import annotations

from pathlib import Path

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

from lance_nb.magic.context import MagicContext
from lance_nb.magic.shell import Matcher
from tests.unit.magic.conftest import Lance


def offered(shell: InteractiveShell, line: str) -> list[str]:
    with provisionalcompleter():
        return [one.text for one in shell.Completer.completions(line, len(line))]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%lance lo", ["log"]),
        ("%lance help bis", ["bisect"]),
        ("%lance at tag:", ["tag:late", "tag:v1"]),
        ("%lance at d", ["dev", "dev:"]),
        ("%lance at HE", ["HEAD", "HEAD~1"]),
        ("%lance branch ", ["create", "delete", "list"]),
        ("%lance branch delete ", ["dev"]),
        ("%lance tag move l", ["late"]),
        ("%lance head --columns id,p", ["price"]),
        ("%lance log --gr", ["--graph"]),
        ("%lance stage append myr", ["myrows"]),
        ("%lance open phot", ["photos"]),
        ("%lance bisect x --good v", ["v1"]),
        ("%lance nonsense ", []),
    ],
)
def test_words_are_completed_by_what_they_mean(
    shell: InteractiveShell, lance: Lance, uri: str, line: str, expected: list[str]
) -> None:
    lance(f"open {uri} as photos")
    shell.user_ns["myrows"] = 1
    found = offered(shell, line)
    assert sorted(found) == expected if expected else not set(found) & {"dev", "log"}


def test_folders_and_datasets_are_completed(uri: str) -> None:
    folder = Path(uri).parent
    (folder / "phone").mkdir()
    found = Matcher(MagicContext()).match(f"%lance open {folder}/ph")
    assert [one.text for one in found["completions"]] == [f"{folder}/phone/", uri]


def test_other_lines_are_left_to_others(shell: InteractiveShell) -> None:
    shell.Completer.use_jedi = False  # it leaves names out when it takes long
    assert offered(shell, "prin") == ["print"]
    assert Matcher(MagicContext()).match("lanceolate lo") == {"completions": [], "suppress": False}


def test_unloading_takes_the_matcher_away(shell: InteractiveShell) -> None:
    before = len(shell.Completer.custom_matchers)
    shell.run_line_magic("unload_ext", "lance_nb")
    assert len(shell.Completer.custom_matchers) == before - 1

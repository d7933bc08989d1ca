from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from lance_nb.errors import DatasetNotFoundError
from lance_nb.explorer import opening
from lance_nb.explorer.app import Explorer
from lance_nb.magic import VERBS, LanceMagics, load_ipython_extension, unload_ipython_extension
from tests.unit.explorer.fakes import small_dataset


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[InteractiveShell]:
    def open_dataset(uri: str, storage_options: Any = None) -> Any:
        if "fake" not in uri:
            raise DatasetNotFoundError(uri)
        return small_dataset()

    monkeypatch.setattr(opening, "open_dataset", open_dataset)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = InteractiveShell()
    shell.history_manager.enabled = False
    load_ipython_extension(shell)
    yield shell
    shell.history_manager.end_session()


def lance(shell: InteractiveShell, line: str) -> Any:
    return shell.run_line_magic("lance", line)


def test_open_shows_the_dataset_and_names_it(shell: InteractiveShell) -> None:
    explorer = lance(shell, "open data/fake.lance as photos")
    assert isinstance(explorer, Explorer)
    assert explorer.screen["label"] == "main:4"
    assert shell.user_ns["photos"].version == 4


def test_open_without_a_name_touches_no_variable(shell: InteractiveShell) -> None:
    before = set(shell.user_ns)
    lance(shell, "open 'data/fake.lance'")
    assert set(shell.user_ns) == before


def test_at_moves_and_the_variable_follows(shell: InteractiveShell) -> None:
    lance(shell, "open fake as ds")
    journey = [("2", "main:2"), ("dev:2", "dev:2"), ("tag:v1", "main:2"), ("main", "main:4")]
    for ref, label in journey:
        assert lance(shell, f"at {ref}").screen["label"] == label
    assert shell.user_ns["ds"].version == 4
    assert lance(shell, "show").screen["label"] == "main:4"


def test_versions_are_listed_newest_first_as_an_object(shell: InteractiveShell) -> None:
    lance(shell, "open fake")
    picture = lance(shell, "versions -n 2")
    assert "drop five" in picture.text
    assert picture.text.index("4 (shown)") < picture.text.index("drop five")
    shell.run_line_magic("config", "LanceMagics.versions_shown = 1")
    assert "drop five" not in lance(shell, "versions").text


def test_help_lists_every_verb(shell: InteractiveShell) -> None:
    for line in ("", "help"):
        text = lance(shell, line).text
        assert all(verb.usage in text for verb in VERBS.values())
    assert "HEAD~2" in lance(shell, "help at").text
    assert "%lance open" not in lance(shell, "help at").text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("opne fake", "did you mean 'open'"),
        ("frobnicate", "it has open, versions"),
        ("open", "usage: %lance open"),
        ("open fake as", "usage: %lance open"),
        ("open fake as 3x", "'3x' is not a variable name"),
        ("open nowhere", "no Lance dataset at 'nowhere'"),
        ("at", "usage: %lance at"),
        ("at v2", "tag 'v2' does not exist; tags that exist: 'v1'"),
        ("at 99", "version 99"),
        ("versions -n x", "usage: %lance versions"),
        ("versions 3", "usage: %lance versions"),
        ("show now", "usage: %lance show"),
        ("open 'fake", "a quote is not closed"),
        ("help nothing", "no verb 'nothing'"),
    ],
)
def test_an_error_is_one_line_that_helps(shell: InteractiveShell, line: str, words: str) -> None:
    lance(shell, "open fake")
    with pytest.raises(UsageError) as caught:
        lance(shell, line)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_verb_before_open_says_what_to_do_first(shell: InteractiveShell) -> None:
    for line in ("show", "at 3", "versions"):
        with pytest.raises(UsageError, match="begin with %lance open"):
            lance(shell, line)


def test_an_error_is_shown_without_a_trace(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("%lance open nowhere")
    captured = capsys.readouterr()
    assert "Traceback" not in captured.out + captured.err
    assert "no Lance dataset" in captured.out + captured.err


def test_the_extension_can_be_unloaded_and_loaded_again(shell: InteractiveShell) -> None:
    unload_ipython_extension(shell)
    assert shell.find_line_magic("lance") is None
    load_ipython_extension(shell)
    assert shell.find_line_magic("lance") is not None
    unload_ipython_extension(shell)
    unload_ipython_extension(shell)


def test_the_docstring_names_the_help() -> None:
    assert "%lance help" in (LanceMagics.lance.__doc__ or "")

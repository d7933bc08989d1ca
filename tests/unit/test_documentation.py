"""The pages of the documentation: their code gives the answers shown, their links lead to files."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "notebooks").rglob("*.md"))
# Code, and behind it what it prints and the value of its last expression.
_BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
_LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")
_NAV = re.compile(r"^ +- [^:]+: (\S+)$", re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT / "notebooks").as_posix()


def answer_of(code: str, names: dict[str, object]) -> str:
    """Run code as a cell of a notebook and return what it shows."""
    tree = ast.parse(code)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(tree, "page", "exec"), names)  # noqa: S102 - the pages are ours
        value = None if last is None else eval(compile(last, "page", "eval"), names)  # noqa: S307
    return said.getvalue() + (f"{value!r}\n" if value is not None else "")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_code_of_a_page_gives_the_answers_that_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code, shown in _BLOCK.findall(page.read_text("utf-8")):
        assert answer_of(code, names) == shown, code


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_links_of_a_page_lead_to_files(page: Path) -> None:
    targets = _LINK.findall(page.read_text("utf-8"))
    assert [one for one in targets if not (page.parent / one).is_file()] == []


def test_every_page_is_in_the_contents_once() -> None:
    listed = _NAV.findall((ROOT / "mkdocs.yml").read_text("utf-8"))
    notebooks = [one.name for one in (ROOT / "notebooks").glob("0*.ipynb")]
    assert sorted(listed) == sorted([*map(name_of, PAGES), *notebooks])


def test_the_reference_names_what_exists() -> None:
    import lance_nb

    named = re.findall(r"^::: (\S+)$", "\n".join(one.read_text() for one in PAGES), re.MULTILINE)
    assert len(named) > 20
    for name in named:
        module, _, attribute = name.rpartition(".")
        value = __import__(module, fromlist=[attribute]) if module else lance_nb
        assert getattr(value, attribute, None) or __import__(name, fromlist=["x"])

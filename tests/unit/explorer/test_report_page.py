from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from lance_nb.explorer.report_page import SECTIONS, report_page
from lance_nb.magic.command_line import main
from tests.support.explorer_datasets import worn_dataset
from tests.support.fake_dataset import hostile_dataset
from tests.support.markup_payloads import PAYLOADS
from tests.support.pictures import check_picture, texts_of

_SVG = re.compile(r"<svg .*?</svg>", re.DOTALL)
# Elements of the page around the pictures.
_PAGE = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "nav", "a", "section",
         "figure", "script"}  # fmt: skip


class Elements(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def pictures_of(page: str) -> list[str]:
    found = _SVG.findall(page)
    for one in found:
        check_picture(one)
    return found


@pytest.fixture(scope="module")
def worn(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return worn_dataset(tmp_path_factory.mktemp("report") / "worn.lance")


def test_a_report_has_a_picture_of_every_section(worn: Any) -> None:
    page = report_page(worn)
    pictures = pictures_of(page)
    there = [title for name, title, _views in SECTIONS if name != "pictures"]
    for title, picture in zip(there, pictures, strict=True):
        assert f"{title}: worn.lance at main:6" in picture
    said = " ".join(text for picture in pictures for text in texts_of(picture))
    for words in ("6 versions", "rows 0 – 11 of 270", "main:5 → main:6", "Deleted rows", "Advice",
                  "1 branch, 1 tag", "0 expectations", "270 points of 270 rows"):  # fmt: skip
        assert words in said
    assert len(page) < 150_000


def test_the_policy_allows_one_script_and_one_sheet_and_nothing_is_loaded(worn: Any) -> None:
    page = report_page(worn)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy.group(1).startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy.group(1)
    assert re.findall(r"""(?:src|href)=["']?(?!#|data:image/)([^"'> ]+)""", page) == []
    assert "url(" not in page
    assert "@import" not in page


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_hostile_texts_become_no_markup(payload: str) -> None:
    page = report_page(hostile_dataset(payload))
    outside = Elements(_SVG.sub("", page)).found
    assert {tag for tag, _ in outside} <= _PAGE
    assert sum(tag == "script" for tag, _ in outside) == 1
    for _, attributes in outside:
        assert set(attributes) <= {"lang", "charset", "name", "content", "http-equiv", "href", "id",
                                   "type"}  # fmt: skip
    assert len(pictures_of(page)) == page.count("<h2 id=") == len(SECTIONS) - 2


def test_the_command_writes_a_report(
    worn: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", worn.uri]) == 0
    assert "wrote worn_report.html: " in capsys.readouterr().out
    assert "worn.lance at main:6" in Path("worn_report.html").read_text("utf-8")
    assert main(["report", worn.uri, "v1", "-o", "old.html"]) == 0
    assert "at version main:2" in capsys.readouterr().out
    assert "worn.lance at main:2" in Path("old.html").read_text("utf-8")


@pytest.mark.parametrize(
    "words", [[], ["a", "b", "c"], ["a", "-o"], ["a", "--open"], ["no-such.lance"]]
)
def test_the_command_refuses_in_one_line(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["report", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("lance-nb: ")
    assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []

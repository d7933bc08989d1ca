from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from lance_nb.errors import DatasetNotFoundError, InvalidInputError
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.export import page_of
from lance_nb.explorer.pictures import Picture
from tests.unit.explorer.fakes import one_table, small_dataset
from tests.unit.explorer.payloads import PAYLOADS


def test_one_file_with_nothing_to_load_and_a_policy(tmp_path: Path) -> None:
    path = Explorer(small_dataset()).to_html(tmp_path / "out.html")
    page = path.read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert "<link" not in page
    assert not re.search(r"(src|href)\s*=", page.split("<script")[0])
    assert page.count("<script") == page.count("</script>") == 2
    assert "fake.lance" in page


def test_hostile_names_and_values_never_become_markup(tmp_path: Path) -> None:
    names = [f"{text}{at}" for at, text in enumerate(PAYLOADS)]
    table = pa.table({name: list(PAYLOADS) for name in names})
    page = Explorer(one_table(table)).to_html(tmp_path / "out.html").read_text("utf-8")
    assert page.count("<script") == page.count("</script>") == 2
    assert not re.search(
        r"<(img|svg|iframe|object|embed|base|form|link)\b", page.partition("START(")[0]
    )


def test_without_a_dataset_there_is_nothing_to_write(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        Explorer(DatasetNotFoundError("x")).to_html(tmp_path / "out.html")
    assert not (tmp_path / "out.html").exists()


@pytest.mark.parametrize("payload", PAYLOADS)
def test_the_title_of_the_page_is_escaped(payload: str) -> None:
    page = page_of(payload, Picture("text", "<p>still</p>"), {}, 400)

    title = re.search("<title>(.*?)</title>", page, re.DOTALL)
    assert title is not None
    assert "<" not in title[1]
    assert ">" not in title[1]
    assert page.count("<script") == page.count("</script>") == 2

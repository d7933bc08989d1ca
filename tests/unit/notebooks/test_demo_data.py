"""The script that `make` and Binder call; the dataset itself is tests/unit/magic/test_demo.py's."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from lance_nb.magic.demo import LAST_TAG
from tests.house.source import ROOT


def test_the_script_says_what_there_is_and_refuses_what_is_not_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = runpy.run_path(str(ROOT / "notebooks" / "demo_data.py"))["main"]
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit, match="not a Lance dataset"):
        main([str(tmp_path), "--force"])

    tag = tmp_path / "_refs" / "tags" / f"{LAST_TAG}.json"
    tag.parent.mkdir(parents=True)
    tag.write_text("{}")
    main([str(tmp_path)])
    assert "already exists" in capsys.readouterr().out


def test_the_makefile_looks_for_the_tag_that_is_made_last() -> None:
    assert f"_refs/tags/{LAST_TAG}.json" in (ROOT / "Makefile").read_text()

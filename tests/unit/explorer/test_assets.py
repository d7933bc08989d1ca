from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from lance_nb.errors import InternalError
from lance_nb.explorer import assets
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.assets import SHEET_END, compose_module, compose_style, modules_of
from lance_nb.explorer.registry import VIEWS

LIMIT_GZIP_BYTES = 80_000
WIDGETS = {"Explorer": Explorer, **VIEWS}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(assets, "ROOT", tmp_path)
    return tmp_path


def test_modules_are_linked_in_the_order_of_dependence(folder: Path) -> None:
    (folder / "js").mkdir()
    (folder / "js" / "low.js").write_text("export const ONE = 1;\nexport function two() {}\n")
    (folder / "top.js").write_text(
        'import { ONE, two } from "./js/low.js";\nexport default { ONE, two };\n'
    )
    text = compose_module("top.js")
    assert text.index("const $low") < text.index("const $top")
    assert "const { ONE, two } = $low;" in text
    assert "return { ONE, two };" in text
    assert text.rstrip().endswith("export default $top.$default;")
    assert [path.name for path in modules_of("top.js")] == ["low.js", "top.js"]


def test_comments_on_lines_of_their_own_stay_behind(folder: Path) -> None:
    source = (
        '// head\n/** a\n * b */\nconst x = "// kept";\n  // inside\nexport default x; // kept\n'
    )
    (folder / "top.js").write_text(source.replace("x; // kept", "x;"))
    text = compose_module("top.js")
    assert '"// kept"' in text
    assert not any(word in text for word in ("head", "* b", "inside"))


def test_style_sheets_beside_modules_come_along(folder: Path) -> None:
    (folder / "top.js").write_text("export default 1;\n")
    (folder / "top.css").write_text(".a { top: 0 }")
    assert compose_style("top.js") == ".lnb {\n.a { top: 0 }}"


def test_sheets_that_views_share_are_the_same_text_and_can_be_told_apart() -> None:
    grid, timeline = (
        compose_style(f"widgets/{one}.js").split(SHEET_END) for one in ("rows", "timeline")
    )
    both = set(grid) & set(timeline)
    assert any(".lnb-input {" in sheet for sheet in both)  # comes once: what builds on it stays
    assert any(".lnb-filter {" in sheet for sheet in set(grid) - both)
    assert all(sheet.startswith(".lnb {") for sheet in (*grid, *timeline))


@pytest.mark.parametrize(
    "source",
    [
        'import x from "./low.js";\nexport default 1;\n',
        'import { x } from "pkg";\nexport default 1;\n',
        'export * from "./low.js";\nexport default 1;\n',
        "export let x = 1;\nexport default 1;\n",
        "const x = 1;\n",
        'import { x } from "./top.js";\nexport default 1;\n',
    ],
)
def test_what_cannot_be_linked_is_refused(folder: Path, source: str) -> None:
    (folder / "top.js").write_text(source)
    (folder / "low.js").write_text("export const x = 1;\n")
    with pytest.raises(InternalError):
        compose_module("top.js")


def test_two_modules_of_one_name_do_not_meet() -> None:
    for widget in WIDGETS.values():
        names = [path.stem for path in modules_of(widget.entry)]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("name", WIDGETS)
def test_every_widget_links_and_stays_within_its_budget(name: str) -> None:
    widget = WIDGETS[name]
    module = compose_module(widget.entry)
    assert len(gzip.compress(module.encode())) < LIMIT_GZIP_BYTES
    assert "https://" not in module
    assert ".lnb" in compose_style(widget.entry)

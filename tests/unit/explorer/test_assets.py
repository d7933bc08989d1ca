from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lance_nb.explorer import assets
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.assets import (
    LATE_VIEWS,
    LOADER,
    ViewCode,
    code_key,
    modules_of,
    view_code,
)
from lance_nb.explorer.registry import VIEWS
from tests.support.fake_dataset import one_table, rows, small_dataset

FIRST_SCREEN_GZIP_BYTES = 85_000  # modules and style sheets of any view, and the loader
WIDGETS = {"Explorer": Explorer, **VIEWS}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(assets, "ROOT", tmp_path)
    # Texts of the package stay in the cache for other tests, those of a test do not.
    monkeypatch.setattr(assets, "_module", assets._module.__wrapped__)
    return tmp_path


def test_modules_come_in_the_order_of_dependence_and_name_what_they_import(folder: Path) -> None:
    (folder / "js").mkdir()
    (folder / "js" / "low.js").write_text("export const ONE = 1;\n")
    (folder / "js" / "mid.js").write_text('export { ONE } from "./low.js";\n')
    (folder / "top.js").write_text(
        'import {\n  ONE,\n} from "./js/mid.js";\nimport { two } from "./js/low.js";\n'
        'const text = `from "./js/low.js"`;\n'
    )
    code = dict(view_code("top.js")["modules"])
    assert list(code) == ["js/low.js", "js/mid.js", "top.js"]
    assert code["js/mid.js"] == 'export { ONE } from "js/low.js";\n'
    assert code["top.js"].startswith('import {\nONE,\n} from "js/mid.js";\n')
    assert '`from "./js/low.js"`' in code["top.js"]
    assert list(dict(view_code("top.js", without="js/mid.js")["modules"])) == ["top.js"]


def test_comments_and_indentation_stay_behind_and_lines_keep_their_numbers(folder: Path) -> None:
    source = '// head\n/** a\n * b */\nconst x = "// kept"; // kept\n  // inside\n  const y = 1;\n'
    (folder / "top.js").write_text(source)
    [(_, text)] = view_code("top.js")["modules"]
    assert text == '\n\n\nconst x = "// kept"; // kept\n\nconst y = 1;\n'


def test_style_sheets_beside_modules_come_along(folder: Path) -> None:
    (folder / "low.js").write_text("export const ONE = 1;\n")
    (folder / "low.css").write_text(".low { top: 0 }")
    (folder / "top.js").write_text('import { ONE } from "./low.js";\n')
    (folder / "top.css").write_text("/* why */\n.a {\n  top: 0;\n}\n")
    sheets = [("low.js", ".lnb{.low { top: 0 }}"), ("top.js", ".lnb{.a { top: 0; }}")]
    assert view_code("top.js")["sheets"] == sheets
    assert view_code("top.js", without="low.js")["sheets"] == sheets[1:]


def _gzip_bytes(code: assets.Code) -> int:
    text = "".join(text for part in code.values() for _, text in part)
    return len(gzip.compress(text.encode(), mtime=0))


@pytest.mark.parametrize("name", WIDGETS)
def test_every_view_stays_within_its_budget_and_brings_no_other(name: str) -> None:
    code = view_code(WIDGETS[name].entry)
    loader = len(gzip.compress(LOADER.encode(), mtime=0))
    assert _gzip_bytes(code) + loader <= FIRST_SCREEN_GZIP_BYTES
    assert code["sheets"]
    modules = dict(code["modules"])
    assert "export default" in modules[WIDGETS[name].entry]
    assert name == "Explorer" or "app.js" not in modules


def test_the_views_of_tabs_that_open_later_are_not_part_of_the_first_screen() -> None:
    first = set(modules_of("app.js"))
    assert first.isdisjoint(LATE_VIEWS)
    sources = [
        (assets.ROOT / path).read_text("utf-8") for path in modules_of("app.js", *LATE_VIEWS)
    ]
    loaded = r'(?:entry: |loadViews\((?:this\.)?ctx\.kernel, )"([^"]+)"'
    assert set(re.findall(loaded, "".join(sources))) == set(LATE_VIEWS)


# Classes whose rules come with a view that is loaded whenever they matter: that of the row editor,
# of the review, of the grid in a sheet of the Changes tab, and of the places around a write button.
WITH_ANOTHER_VIEW = {"lnb-edit-bar", "lnb-br-review", "lnb-current", "lnb-write-place"}


def _styled(modules: set[str]) -> set[str]:
    sheets = ((assets.ROOT / path).with_suffix(".css") for path in modules)
    texts = [sheet.read_text("utf-8") for sheet in sheets if sheet.is_file()]
    return {name for text in texts for name in re.findall(r"\.(lnb-[a-z0-9-]+)", text)}


@pytest.mark.parametrize("entry", ["app.js", *LATE_VIEWS])
def test_a_view_comes_with_the_style_of_all_its_parts(entry: str) -> None:
    """Else it depends on which tabs were opened before: a page of a test may load all of them."""
    modules = {*modules_of("app.js", entry)}
    every = _styled(
        {path.relative_to(assets.ROOT).as_posix() for path in assets.ROOT.rglob("*.css")}
    )
    missing = (every - _styled(modules)) - WITH_ANOTHER_VIEW
    used = {
        (path, name)
        for path in modules
        for name in re.findall(r"(?<![\w-])lnb-[a-z0-9-]+", (assets.ROOT / path).read_text("utf-8"))
    }
    assert [place for place in sorted(used) if place[1] in missing] == []


# The loader and the smallest screen travel with every cell that is run; the views must not.
MOST_BYTES = 12_000


def _state(widget: Any) -> dict[str, Any]:
    state: dict[str, Any] = widget.get_state()
    return state


def test_the_code_of_the_views_is_not_sent_with_every_explorer() -> None:
    first, second = _state(Explorer(one_table(rows(1)))), _state(Explorer(one_table(rows(2))))
    assert first["_views"] == second["_views"]
    assert first["_esm"] == second["_esm"] == LOADER
    assert "_css" not in first
    sent = json.dumps({name: value for name, value in second.items() if name != "screen"})
    assert len(sent) < MOST_BYTES
    assert "mountExplorer" not in json.dumps(second, default=str)


def test_the_model_that_a_widget_names_holds_its_code() -> None:
    state = _state(Explorer(small_dataset()))
    model = ViewCode.of(Explorer.entry)
    assert state["_views"] == f"IPY_MODEL_{model.model_id}"
    assert model._code == view_code(state["_entry"])
    assert model._code_key == state["_code_key"] == code_key()


def _load_view(explorer: Explorer, entry: Any) -> Any:
    replies: list[Any] = []
    explorer.send = lambda content, **_buffers: replies.append(content)
    request = {"id": "1", "type": "views.load", "args": {"entry": entry}}
    explorer._on_message(explorer, request, [])
    return replies[0]


def test_a_late_view_comes_when_its_tab_is_opened_without_what_the_page_has() -> None:
    explorer = Explorer(small_dataset())
    result = _load_view(explorer, LATE_VIEWS[-1])["result"]
    assert result["key"] == _state(explorer)["_code_key"]
    paths = [path for path, _ in result["modules"]]
    assert paths[-1] == LATE_VIEWS[-1]
    assert set(paths).isdisjoint(modules_of("app.js"))
    assert result["sheets"]


@pytest.mark.parametrize("entry", ["app.js", "../app.js", "js/dom.js", "", None])
def test_no_other_module_is_loaded_later(entry: Any) -> None:
    assert not _load_view(Explorer(small_dataset()), entry)["ok"]


def test_a_model_that_was_closed_is_made_anew() -> None:
    model = ViewCode.of(Explorer.entry)
    before = model.model_id
    model.close()
    after = _state(Explorer(small_dataset()))["_views"]
    assert after == f"IPY_MODEL_{ViewCode.of(Explorer.entry).model_id}"
    assert after != f"IPY_MODEL_{before}"

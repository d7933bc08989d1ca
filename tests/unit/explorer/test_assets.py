from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from lance_nb.errors import InternalError
from lance_nb.explorer import assets
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.assets import (
    LATE_VIEWS,
    LOADER,
    SHEET_END,
    ViewModule,
    compose_module,
    compose_style,
    key_of,
    modules_of,
    texts,
)
from lance_nb.explorer.registry import VIEWS
from tests.support.fake_dataset import one_table, rows, small_dataset

LIMIT_GZIP_BYTES = 85_000  # modules and style sheet of a first screen
FIRST_SCREEN_GZIP_BYTES = 85_000
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
WITHOUT_STATE = {
    "canvas.js",
    "conflict_table.js",
    "consequence_card.js",
    "long_action.js",
    "sample_table.js",
    "tool_select.js",
    "write_guard.js",
}  # several late views hold a copy
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
    assert "const { ONE, two } = $low;" in text or "const{ONE,two}=$low;" in text
    assert "return { ONE, two };" in text
    assert "\nexport default $top.$default;\n//# sourceMappingURL=" in text
    assert [path.name for path in modules_of("top.js")] == ["low.js", "top.js"]


def test_comments_stay_behind(folder: Path) -> None:
    source = (
        '// head\n/** a\n * b */\nconst x = "// kept"; // gone\n  // inside\n'
        'const y = `a // kept ${x}`; // gone, isn\'t it\nconst z = /a\\//; // gone "too"\n'
        "const w = 4 / 2; // gone\nconst v = 'a // kept';\nexport default x;\n"
    )
    (folder / "top.js").write_text(source)
    text = compose_module("top.js")
    assert '"// kept"' in text
    assert "`a // kept ${x}`;\n" in text
    assert "const z = /a\\//" in text
    assert "'a // kept';\n" in text
    assert "const w = 4 / 2;\n" in text
    assert not any(word in text for word in ("head", "* b", "inside", "isn"))
    assert text.count("gone") == 1  # behind a regular expression: it stays


def test_style_sheets_beside_modules_come_along(folder: Path) -> None:
    (folder / "top.js").write_text("export default 1;\n")
    (folder / "top.css").write_text(".a { top: 0 }")
    assert compose_style("top.js") == ".lnb{.a{top:0}}"


def test_sheets_that_views_share_are_the_same_text_and_can_be_distinguishable() -> None:
    grid, timeline = (
        compose_style(entry).split(SHEET_END) for entry in ("rows/rows.js", "history/timeline.js")
    )
    both = set(grid) & set(timeline)
    assert any(".lnb-input{" in sheet for sheet in both)  # comes once: what builds on it stays
    assert any(".lnb-filter{" in sheet for sheet in set(grid) - both)
    assert all(sheet.startswith(".lnb{") for sheet in (*grid, *timeline))


def _gzip_bytes(text: str) -> int:
    return len(gzip.compress(text.encode(), mtime=0))


def test_the_first_screen_of_the_explorer_stays_within_its_budget() -> None:
    module = compose_module(assets.REGISTRATION, views="app.js", late=LATE_VIEWS)
    sent = _gzip_bytes(assets.LOADER) + _gzip_bytes(module)
    assert sent + _gzip_bytes(compose_style("app.js")) <= FIRST_SCREEN_GZIP_BYTES


def test_the_views_of_tabs_that_open_later_are_not_part_of_the_first_screen() -> None:
    first = set(modules_of("app.js"))
    tabs = (assets.ROOT / "tabs.js").read_text("utf-8")
    assert sorted(re.findall(r'entry: "([^"]+)"', tabs)) == sorted(
        {*LATE_VIEWS}
        - {"history/history_strip.js", "retention/retention.js"}
        - {"review/review.js", "editing/row_editor.js"}
    )
    own = [set(modules_of(entry)) - first for entry in LATE_VIEWS]
    for entry, modules in zip(LATE_VIEWS, own, strict=True):
        assert (assets.ROOT / entry).resolve() in modules
    held = [path for modules in own for path in modules]
    twice = {path.name for path in held if held.count(path) > 1}
    assert twice <= WITHOUT_STATE  # else state has two instances


# Classes whose rules come with a view that is loaded whenever they matter: that of the row editor,
# of the review, of the grid in a sheet of the Changes tab, and of the places around a write button.
WITH_ANOTHER_VIEW = {"lnb-edit-bar", "lnb-br-review", "lnb-current", "lnb-write-place"}


def _styled(modules: set[Path]) -> set[str]:
    sheets = (path.with_suffix(".css") for path in modules)
    texts = [sheet.read_text("utf-8") for sheet in sheets if sheet.is_file()]
    return {name for text in texts for name in re.findall(r"\.(lnb-[a-z0-9-]+)", text)}


@pytest.mark.parametrize("entry", ["app.js", *LATE_VIEWS])
def test_a_view_comes_with_the_style_of_all_its_parts(entry: str) -> None:
    """Else it depends on which tabs were opened before: a page of a test may load all of them."""
    modules = {*modules_of("app.js"), *modules_of(entry)}
    every = _styled({path.with_suffix(".js") for path in assets.ROOT.rglob("*.css")})
    missing = (every - _styled(modules)) - WITH_ANOTHER_VIEW
    used = {
        (path.name, name)
        for path in modules
        for name in re.findall(r"(?<![\w-])lnb-[a-z0-9-]+", path.read_text("utf-8"))
    }
    assert [one for one in sorted(used) if one[1] in missing] == []


def test_a_late_view_is_a_function_of_the_modules_that_it_shares(folder: Path) -> None:
    (folder / "low.js").write_text("export const ONE = 1;\n")
    (folder / "top.js").write_text('import { ONE } from "./low.js";\nexport default ONE;\n')
    (folder / "own.js").write_text("export const TWO = 2;\n")
    (folder / "late.js").write_text(
        'import { ONE } from "./low.js";\nimport { TWO } from "./own.js";\n'
        "export default ONE + TWO;\n"
    )
    (folder / "low.css").write_text(".low { top: 0 }")
    (folder / "own.css").write_text(".own { top: 0 }")
    (folder / "put.js").write_text("export default VIEWS;\n")
    first = compose_module("put.js", views="top.js", late=["late.js"])
    assert "const VIEWS = Object.assign($top.$default, { modules: { $low } });" in first
    late = compose_module("put.js", views="late.js", base="top.js")
    assert "const VIEWS = ({ $low }) => {\nconst $own" in late
    assert "return $late.$default;\n};\n" in late
    assert "const $low" not in late
    assert compose_style("late.js", base="top.js") == ".lnb{.own{top:0}}"


def test_the_source_map_leads_each_line_to_its_file_and_line() -> None:
    for text in (
        compose_module("app.js"),
        compose_module("js/view_registration.js", views="app.js"),
        compose_module("js/view_registration.js", views="changes/changes.js", base="app.js"),
    ):
        *lines, _, comment = text.rstrip("\n").split("\n")
        places = _places(comment)
        assert len(places) == len(lines)
        checked = 0
        for line, (source, number) in zip(lines, places, strict=True):
            own = (assets.ROOT.parents[1] / source).read_text().split("\n")[number]
            if line and not line.startswith(
                ("const $", "const VIEWS", "const{", "return {", "return $", "})")
            ):
                first = re.split(r"\W", line.lstrip("})], "), maxsplit=1)[0]
                assert first in own
                checked += 1
        assert checked > 700


def _places(comment: str) -> list[tuple[str, int]]:
    """Read a source map that has one place for each line."""
    source_map = json.loads(unquote(comment.split("application/json,")[1]))
    file = line = 0
    places = []
    for mapping in source_map["mappings"].split(";"):
        steps, value, shift = [], 0, 0
        for sign in mapping:
            digit = DIGITS.index(sign)
            value += (digit & 31) << shift
            shift += 5
            if not digit & 32:
                steps.append(-(value >> 1) if value & 1 else value >> 1)
                value = shift = 0
        column, files, lines, start = steps
        assert (column, start) == (0, 0)
        file, line = file + files, line + lines
        places.append((source_map["sources"][file], line))
    return places


def test_texts_and_regular_expressions_keep_their_spaces(folder: Path) -> None:
    source = """const a = "x = y, z";
const b = 'x = y';
const c = `x = ${a} , y`;
const d = /a = b/;
const f = "a / b = c" + `d = e`;
const g = "a ` = b" + `c = d`;
const e = a + +b - -1 ? { a, b } : [a, b];
export default a;
"""
    (folder / "top.js").write_text(source)
    text = compose_module("top.js")
    for kept in (
        '"x = y, z"',
        "'x = y'",
        "`x = ${a} , y`",
        "/a = b/",
        "a + +b - -1",
        '"a / b = c" + `d = e`',
    ):
        assert kept in text


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
    style = compose_style(widget.entry)
    sent = sum(len(gzip.compress(text.encode())) for text in (module, style))
    assert sent < LIMIT_GZIP_BYTES
    assert "https://" not in module
    assert ".lnb" in style


# The loader and the smallest screen travel with every cell that is run; the views must not.
MOST_BYTES = 12_000


def _state(widget: Any) -> dict[str, Any]:
    found: dict[str, Any] = widget.get_state()
    return found


def test_the_text_of_the_views_is_not_sent_with_every_explorer() -> None:
    first, second = _state(Explorer(one_table(rows(1)))), _state(Explorer(one_table(rows(2))))
    assert first["_views"] == second["_views"]
    assert first["_esm"] == second["_esm"] == LOADER
    assert "_css" not in first
    sent = json.dumps({name: value for name, value in second.items() if name != "screen"})
    assert len(sent) < MOST_BYTES
    assert "mountExplorer" not in json.dumps(second, default=str)


def test_the_model_that_a_widget_names_holds_its_views() -> None:
    state = _state(Explorer(small_dataset()))
    held = ViewModule.of(Explorer.entry)
    assert state["_views"] == f"IPY_MODEL_{held.model_id}"
    assert (held.key, held.style) == (state["_views_key"], texts(Explorer.entry)[1])
    assert "mountExplorer" in held._esm


@pytest.mark.parametrize("name", VIEWS)
def test_each_kind_of_view_has_a_key_of_its_own(name: str) -> None:
    entry = VIEWS[name].entry
    assert key_of(entry) != key_of(Explorer.entry)
    assert key_of(entry) == key_of(entry)


def _ask_for_views(explorer: Explorer, **args: Any) -> Any:
    replies: list[Any] = []
    explorer.send = lambda content, **_buffers: replies.append(content)
    explorer._on_message(explorer, {"id": "1", "type": "views.load", "args": args}, [])
    return replies[0]


def test_a_late_view_is_sent_when_its_tab_is_opened() -> None:
    explorer = Explorer(small_dataset())
    reply = _ask_for_views(explorer, entry="stage/stage.js", again=False)
    held = ViewModule.late("stage/stage.js")
    assert reply["result"] == {"key": held.key}
    assert held.base == _state(explorer)["_views_key"] != held.key
    assert "mountStage" in held._esm
    assert "mountStage" not in ViewModule.of(Explorer.entry)._esm
    assert "function h(" not in held._esm  # elements are made by the module of the explorer
    assert held.style


def test_a_late_view_that_did_not_arrive_is_sent_once_more() -> None:
    held = ViewModule.late("refs/branches.js")
    before = held.model_id
    assert ViewModule.late("refs/branches.js").model_id == before
    reply = _ask_for_views(Explorer(small_dataset()), entry="refs/branches.js", again=True)
    assert reply["result"] == {"key": held.key}
    assert ViewModule.late("refs/branches.js").model_id != before


@pytest.mark.parametrize("entry", ["app.js", "../app.js", "rows/rows.js", "", None])
def test_no_other_module_is_loaded_later(entry: Any) -> None:
    assert not _ask_for_views(Explorer(small_dataset()), entry=entry)["ok"]


def test_a_model_that_was_closed_is_made_anew() -> None:
    held = ViewModule.of(Explorer.entry)
    before = held.model_id
    held.close()
    after = _state(Explorer(small_dataset()))["_views"]
    assert after == f"IPY_MODEL_{ViewModule.of(Explorer.entry).model_id}"
    assert after != f"IPY_MODEL_{before}"

"""Write a report of a dataset: one HTML file with the pictures of all views, to mail or publish.

Needs neither pandas nor the packages of a notebook.

Layout of the file: a content security policy that allows the one script and the one style sheet in
it by their hashes, images as ``data:`` and nothing else; a list of the sections; a ``<figure>``
with an SVG for each (see ``drawing``); the script (``js/pan_zoom.js``), without which the
pictures stand still. In a dark scheme the style sheet replaces the colours of the pictures.

Limits: as for pictures; ``MAX_DETAILS`` versions described on the timeline.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from lance_nb.explorer import text
from lance_nb.explorer.changes import picture as changes
from lance_nb.explorer.checks import picture as checks
from lance_nb.explorer.drawing import Panel, dark_rules, svg_of
from lance_nb.explorer.history import picture as history
from lance_nb.explorer.history.versions import timeline
from lance_nb.explorer.html_page import escaped, html_page
from lance_nb.explorer.map import picture as map_picture
from lance_nb.explorer.picture_view import View
from lance_nb.explorer.pictures import picture as wall
from lance_nb.explorer.refs import picture as refs
from lance_nb.explorer.rows import picture as rows
from lance_nb.explorer.session import Session
from lance_nb.explorer.source import Source
from lance_nb.explorer.storage import picture as storage

MAX_DETAILS = 64
# What stands in a report, in this order: an id, a title, the views. Those of ``OFFERED`` stand in
# that of a version that has pictures, or vectors.
SECTIONS: tuple[tuple[str, str, tuple[View, ...]], ...] = (
    ("versions", "Versions", (history.HEADER, history.VERSIONS)),
    ("rows", "Rows", (rows.VIEW,)),
    ("pictures", "Pictures", (wall.VIEW,)),
    ("map", "Map", (map_picture.VIEW,)),
    ("changes", "Changes of this version", (changes.VIEW,)),
    ("columns", "Columns", (history.COLUMNS, history.DETAIL)),
    ("storage", "Storage", (storage.STORAGE,)),
    ("refs", "Branches and tags", (refs.VIEW,)),
    ("checks", "Checks", (checks.VIEW,)),
)
OFFERED = ("pictures", "map")
_PARTS = ("card", "timeline", "rows", "detail")
_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 16px; max-width: 1100px; font: 14px/1.5 system-ui, sans-serif;
  background: #f6f7f9; color: #1c2024; }
h1 { font-size: 20px; margin: 0 0 2px; } h2 { font-size: 15px; margin: 22px 0 6px; }
p { margin: 0 0 8px; color: #5d6670; } nav a { color: #1a66c2; margin-right: 14px; }
figure { margin: 0; position: relative; } svg { display: block; width: 100%; height: auto; }
figure[data-zoomed] svg { cursor: grab; touch-action: none; }
figure:focus-visible { outline: 2px solid #1a66c2; outline-offset: 2px; border-radius: 6px; }
.tools { position: absolute; top: 6px; right: 6px; display: flex; gap: 4px; opacity: 0.25; }
figure:hover .tools, figure:focus-within .tools { opacity: 1; }
button { font: inherit; padding: 0 8px; border: 1px solid #d9dde2; border-radius: 4px;
  background: #fff; color: #1c2024; }
@media print { .tools, nav { display: none; } }
@media (prefers-color-scheme: dark) {
body { background: #0f1114; color: #e6e9ec; } p { color: #9aa4ae; } nav a { color: #6cb0ff; }
button { background: #22272d; color: #e6e9ec; border-color: #3a4048; }
"""


def report_page(dataset: Source) -> str:
    """Return the report of a dataset, at the version that it is at, as the text of one file."""
    session = Session(dataset, read_only=True)
    session.reads_for_pictures = True
    offers = session.screen(_PARTS)["offers"]
    session.parts["timeline"] = timeline(dataset, MAX_DETAILS)
    label = f"{text.name(dataset.name)} at {text.ref_label(dataset.branch, dataset.version)}"
    figures, links = [], []
    for name, title, views in SECTIONS:
        if name in OFFERED and name not in offers:
            continue
        panels: list[Panel] = [panel for view in views for panel in view.panels(session, {})]
        picture = svg_of(f"{title}: {label}", panels)
        heading = f'<h2 id="{name}">{escaped(title)}</h2>'
        figures.append(f"<section>{heading}<figure>{picture}</figure></section>")
        links.append(f'<a href="#{name}">{escaped(title)}</a>')
    subtitle = f"{text.moment(datetime.now(UTC))} · {text.line(dataset.uri)}"
    body = (
        f"<h1>{escaped(label)}</h1><p>{escaped(subtitle)}</p><nav>{''.join(links)}</nav>\n"
        f"{chr(10).join(figures)}"
    )
    script = (Path(__file__).parent / "js" / "pan_zoom.js").read_text("utf-8")
    script += "\npanAndZoom(document);\n"
    return html_page(label, body, style=f"{_STYLE}{dark_rules('svg')}\n}}\n", script=script)

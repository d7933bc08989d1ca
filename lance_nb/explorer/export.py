"""An explorer as one HTML file that stands by itself: no kernel, no network, nothing else to load.

Layout of the file: a content security policy that allows the one script and the one style sheet in
it by their hashes and nothing else; the static picture, for readers without scripts; the snapshot
(see ``snapshot``) as a block of JSON in which ``<`` is escaped; the linked module of
``snapshot_app.js``, which shows the explorer over the snapshot.

Limits: those of ``snapshot``, about 12 MB.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import Any

from lance_nb.explorer import assets
from lance_nb.explorer.models import text
from lance_nb.explorer.pictures import LEFT, Picture

ENTRY = "snapshot_app.js"
_PAGE_STYLE = """
:root { color-scheme: light dark; }
body { margin: 14px; font: 13px/1.45 system-ui, sans-serif; background: #fff; color: #1c2024; }
@media (prefers-color-scheme: dark) { body { background: #16191d; color: #e6e9ec; } }
table { border-collapse: collapse; } td, th { padding: 1px 8px; text-align: left; }
"""


def page_of(title: str, picture: Picture, snapshot: dict[str, Any], height: int) -> str:
    """Write the file. ``picture`` stands there until the script has begun."""
    script = f"{_module()}\nSTART(document);\n"
    style = f"{_PAGE_STYLE}{assets.compose_style(ENTRY)}"
    # Backslash forms, so that no text within can end the block or begin another.
    data = json.dumps(snapshot | {"height": height}, ensure_ascii=True).replace("<", "\\u003c")
    still = picture.html.replace(LEFT, "")  # the policy allows no style in an attribute
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src blob:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(text.name(title))}</title><style>{style}</style></head>\n"
        f'<body><main id="explorer">{still}</main>\n'
        f'<script type="application/json" id="snapshot">{data}</script>\n'
        f'<script type="module">{script}</script></body></html>\n'
    )


def _module() -> str:
    """Return the linked module with its default export as a constant."""
    return assets.compose_module(ENTRY).replace("export default ", "const START = ")


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"

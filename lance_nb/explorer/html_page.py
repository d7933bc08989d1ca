"""Write an HTML page of this package: one file, with a policy for what it holds and loads.

Every page is written here: the snapshot of ``to_html``, a report, a review, and what ``lance-nb
view`` serves. A page may run its one script and use its one style sheet, which the content security
policy allows by their hashes, so that no text in it can become another. It loads nothing unless the
caller names a source. Data for the script stands in a block of JSON in which ``<`` is escaped.

Source: Content Security Policy Level 3 (W3C).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from typing import Any

from lance_nb.explorer.drawing import dark_rules
from lance_nb.shown_text import visible_lines

# For pages whose place ``explorer`` holds a picture until the script has replaced it.
EXPLORER_STYLE = f"""
:root {{ color-scheme: light dark; }}
body {{ margin: 14px; font: 13px/1.45 system-ui, sans-serif; background: #fff; color: #1c2024; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #16191d; color: #e6e9ec; }} }}
#explorer > svg {{ display: block; max-width: 100%; height: auto; }}
@media (prefers-color-scheme: dark) {{
{dark_rules("#explorer > svg")}
}}
"""


def content_hash(content: str) -> str:
    """Return the hash by which a content security policy allows a script or a style sheet."""
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def escaped(value: object) -> str:
    """Make a text of any number of lines safe between tags and inside of quoted attributes."""
    return escape(visible_lines(str(value)), quote=True)


def html_page(
    title: str,
    body: str,
    *,
    style: str,
    sources: str = "img-src data:",
    script: str | None = None,
    head: str = "",
) -> str:
    """Return the text of a page.

    Args:
        title: any text.
        body: markup whose texts are escaped.
        style: the text of its style sheet.
        sources: further directives of the policy.
        script: the text of its module; without one the page runs none.
        head: more elements of the head.
    """
    directives = ["default-src 'none'"]
    if script is not None:
        directives.append(f"script-src '{content_hash(script)}'")
    directives += [f"style-src '{content_hash(style)}'", sources]
    policy = "; ".join([*directives, "base-uri 'none'", "form-action 'none'"])
    module = "" if script is None else f'\n<script type="module">{script}</script>'
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"{head}<title>{escaped(title)}</title><style>{style}</style></head>\n"
        f"<body>{body}{module}</body></html>\n"
    )


def explorer_page(
    title: str,
    views: tuple[str, str],
    data: tuple[str, Mapping[str, Any]],
    *,
    sources: str,
    picture: str = "",
    head: str = "",
) -> str:
    """Return a page that runs views over data.

    Args:
        title: any text.
        views: the linked module, whose default export starts it, and its style sheet.
        data: the name under which the module finds it, and JSON-able values.
        sources: further directives of the policy.
        picture: an SVG that is shown until the module has started, and where scripts are disabled.
        head: more elements of the head.
    """
    module, style = views
    script = f"{module.replace('export default ', 'const START = ')}\nSTART(document);\n"
    name, values = data
    # Backslash forms, so that no text within can end the block or begin another.
    block = json.dumps(values, ensure_ascii=True).replace("<", "\\u003c")
    body = (
        f'<main id="explorer">{picture}</main>\n'
        f'<script type="application/json" id="{name}">{block}</script>'
    )
    style = EXPLORER_STYLE + style
    return html_page(title, body, style=style, sources=sources, script=script, head=head)

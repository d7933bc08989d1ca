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
#explorer {{ display: grid; min-height: calc(100vh - 28px); }}
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
    makes_modules: bool = False,
    head: str = "",
) -> str:
    """Return the text of a page.

    Args:
        title: any text.
        body: markup whose texts are escaped.
        style: the text of its style sheet.
        sources: further directives of the policy.
        script: the text of its module; without one the page runs none.
        makes_modules: whether the script imports modules that it makes of text (see ``assets``).
        head: more elements of the head.
    """
    directives = ["default-src 'none'"]
    if script is not None:
        blobs = " blob:" if makes_modules else ""
        directives.append(f"script-src '{content_hash(script)}'{blobs}")
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
    views: tuple[str, Mapping[str, Any]],
    data: tuple[str, Mapping[str, Any]],
    *,
    sources: str,
    picture: str = "",
    head: str = "",
) -> str:
    """Return a page that runs views over data.

    Args:
        title: any text.
        views: the script that starts them and the code that it reads, see ``assets.page_views``.
        data: the name under which the views find it, and JSON-able values.
        sources: further directives of the policy.
        picture: an SVG that is shown until the views have started, and where scripts are disabled.
        head: more elements of the head.
    """
    script, code = views
    blocks = _json_block("code", code) + _json_block(*data)
    return html_page(
        title,
        f'<main id="explorer">{picture}</main>{blocks}',
        style=EXPLORER_STYLE,
        sources=sources,
        script=script,
        makes_modules=True,
        head=head,
    )


def _json_block(name: str, values: Mapping[str, Any]) -> str:
    """Return an element with JSON, in which no text can end it or begin another."""
    block = json.dumps(values, ensure_ascii=True).replace("<", "\\u003c")
    return f'\n<script type="application/json" id="{name}">{block}</script>'

"""The content security policy of the pages that this package writes or serves.

A page may run its one script and use its one style sheet, which are allowed by their hashes, so
that no text in it can become another. It loads nothing unless the caller names a source.
Source: Content Security Policy Level 3 (W3C).
"""

from __future__ import annotations

import base64
import hashlib


def content_hash(content: str) -> str:
    """Return the hash by which a content security policy allows a script or a style sheet."""
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def page_policy(style: str, sources: str, *, script: str | None = None) -> str:
    """Return the policy of a page.

    Args:
        style: the text of its style sheet.
        sources: further directives, such as ``img-src data:``.
        script: the text of its script; without one the page runs none.
    """
    directives = ["default-src 'none'"]
    if script is not None:
        directives.append(f"script-src '{content_hash(script)}'")
    directives += [f"style-src '{content_hash(style)}'", sources]
    return "; ".join([*directives, "base-uri 'none'", "form-action 'none'"])

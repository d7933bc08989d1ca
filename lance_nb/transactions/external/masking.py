"""Keep the credentials of a manifest store's URL out of every text."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

_USER = re.compile(r"//[^/@]*@")
_SHOWN = frozenset({"region", "endpoint", "dbname", "host", "port", "sslmode", "connect_timeout"})
_HARMLESS_LENGTH_MAX = 3


def masked_url(url: str) -> str:
    """Return a URL without its user, password and unknown parameters."""
    plain, _, query = url.partition("?")
    plain = _USER.sub("//***@", plain)
    shown = [f"{name}={value}" for name, value in parse_qsl(query) if name in _SHOWN]
    return f"{plain}?{'&'.join(shown)}" if shown else plain


def without_secrets(text: str, url: str) -> str:
    """Return a driver's text with the secrets of the URL replaced."""
    parts = urlsplit(url)
    hidden = [value for name, value in parse_qsl(parts.query) if name not in _SHOWN]
    hidden += [one for one in (parts.password, unquote(parts.password or "")) if one]
    for secret in sorted({url, *hidden}, key=len, reverse=True):
        if len(secret) > _HARMLESS_LENGTH_MAX:
            text = text.replace(secret, "***")
    return text

"""Take pictures apart: they are well-formed, and hold nothing but what may stand in one."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, fromstring

SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = frozenset(
    {"svg", "title", "desc", "g", "rect", "line", "text", "tspan", "polyline", "path", "image"}
)
ATTRIBUTES = frozenset(
    {"width", "height", "viewBox", "role", "aria-label", "font-family", "font-size", "transform",
     "x", "y", "x1", "y1", "x2", "y2", "rx", "d", "points", "fill", "stroke", "stroke-width",
     "fill-opacity", "font-weight", "text-anchor", "text-decoration", "href"}
)  # fmt: skip
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")
_PLAIN = re.compile(r"[#\w .,()%-]*")
_FREE = frozenset({"aria-label", "font-family", "href"})


def parsed(svg: str) -> Element:
    """Parse a picture."""
    return fromstring(svg)  # noqa: S314 - our own text


def check_picture(svg: str) -> Element:
    """Parse a picture and check every element and attribute; returns its root."""
    assert "<!" not in svg, "neither a document type nor a comment"
    assert "<?" not in svg
    root = parsed(svg)
    for one in root.iter():
        assert one.tag.startswith(SVG), one.tag
        assert one.tag.removeprefix(SVG) in ELEMENTS, one.tag
        for name, value in one.attrib.items():
            assert name in ATTRIBUTES, name
            assert name in _FREE or _PLAIN.fullmatch(value), (name, value)
            assert name != "href" or _IMAGE.fullmatch(value), value[:80]
    return root


def texts_of(svg: str) -> list[str]:
    """Return the texts that a reader sees."""
    return ["".join(one.itertext()) for one in parsed(svg).iter(f"{SVG}text")]

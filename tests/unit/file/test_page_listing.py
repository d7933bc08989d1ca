"""How the pages of 2.x files are spelled out."""

from __future__ import annotations

import pytest

from lance_nb._pb import encodings, encodings21
from lance_nb.file.metadata import ARRAY_ENCODING_URL, PAGE_LAYOUT_URL, PageMetadata
from lance_nb.file.page_listing import describe

FLAT = encodings.ArrayEncoding(flat=encodings.Flat(bits_per_value=16)).SerializeToString()
CONSTANT = encodings21.PageLayout(
    constant_layout=encodings21.ConstantLayout(inline_value=b"\1", layers=[1])
).SerializeToString()


@pytest.mark.parametrize(
    ("url", "encoding", "found"),
    [
        (ARRAY_ENCODING_URL, FLAT, "flat[16]"),
        (PAGE_LAYOUT_URL, CONSTANT, "constant(inline)"),
        (PAGE_LAYOUT_URL, b"\xff", f"? ({PAGE_LAYOUT_URL})"),
        (ARRAY_ENCODING_URL, b"\xff", f"? ({ARRAY_ENCODING_URL})"),
        ("x" * 100, CONSTANT, f"? ({'x' * 80})"),
    ],
)
def test_a_page_is_described_or_named_by_its_url(url: str, encoding: bytes, found: str) -> None:
    assert describe(PageMetadata((), (), 1, url, encoding)) == found

"""The conformance suite of codecs, with the metadata that makes each of them be chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

from lance_nb.encodings.page_encoder import LAYOUT_ENCODERS
from lance_nb.encodings.registry import CODECS, codec_of
from tests.conformance.codec_tests import ALL_SIZES, CodecTests, check_page, options, page_arms
from tests.support.leaf_values import MAKERS, make


class TestDefaults(CodecTests):
    """What is chosen without an option."""

    sizes = ALL_SIZES


@pytest.mark.slow
class TestPlain(CodecTests):
    metadata: ClassVar[Mapping[str, str]] = {"compression": "none"}


@pytest.mark.slow
class TestZstd(CodecTests):
    metadata: ClassVar[Mapping[str, str]] = {"compression": "zstd", "compression-level": "1"}


@pytest.mark.slow
class TestLz4WithSplitBytes(CodecTests):
    metadata: ClassVar[Mapping[str, str]] = {"compression": "lz4", "bss": "on"}


@pytest.mark.slow
class TestFsst(CodecTests):
    metadata: ClassVar[Mapping[str, str]] = {"compression": "fsst"}


@pytest.mark.slow
class TestFullZip(CodecTests):
    metadata: ClassVar[Mapping[str, str]] = {"structural-encoding": "fullzip"}


@pytest.mark.slow
class TestMiniBlock(CodecTests):
    metadata: ClassVar[Mapping[str, str]] = {"structural-encoding": "miniblock"}


@pytest.mark.slow
class TestSmallChunks(CodecTests):
    metadata: ClassVar[Mapping[str, str]] = {"minichunk-size": "1024"}


OPTIONS = (
    {},
    {"compression": "zstd"},
    {"compression": "lz4", "bss": "on"},
)
STRUCTS_ONLY = {"packed_struct", "variable_packed_struct"}  # see the tests of these codecs


@pytest.fixture(scope="module")
def reached() -> set[str]:
    """The arms of everything that the suite writes."""
    found: set[str] = set()
    for option in OPTIONS:
        for kind in MAKERS:
            found |= page_arms(check_page(make(kind, 3000, 0.1), options(option, (2, 2))))
    return found


def test_every_codec_that_can_be_written_is_reached(reached: set[str]) -> None:
    roles = ("nominate_chunks", "nominate_blocks", "nominate_values")
    written = {arm for arm in CODECS if any(codec_of(arm).has(role) for role in roles)}
    assert written - STRUCTS_ONLY <= reached


def test_every_layout_that_can_be_written_is_reached(reached: set[str]) -> None:
    assert set(LAYOUT_ENCODERS) <= reached

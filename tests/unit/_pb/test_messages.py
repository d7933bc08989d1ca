"""The messages of protos/, in a pool of their own and made on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lance_nb import _pb
from lance_nb._pb import encodings21, table


def test_every_message_and_enum_of_every_file_is_there():
    for name in _pb.__all__:
        module = getattr(_pb, name)
        assert sys.modules[module.__name__] is module
        for member in dir(module):
            assert getattr(module, member) is getattr(module, member)


def test_messages_enums_and_their_values_are_attributes():
    message = table.Manifest(version=3)
    assert table.Manifest.FromString(message.SerializeToString()).version == 3
    assert table.Manifest is type(message)
    assert encodings21.CompressionScheme.Name(encodings21.COMPRESSION_ALGORITHM_LZ4)
    assert "Manifest" in dir(table)


def test_a_message_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Nope'"):
        _ = table.Nope


def test_loading_them_needs_none_of_the_slow_modules():
    slow = ("importlib.resources", "google.protobuf.descriptor_pb2", "tempfile")
    code = (
        "import sys, lance_nb._pb as pb; pb.table.Manifest();"
        f"print([name for name in {slow!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stdout.strip() == "[]"

"""The serialized fragments of a manifest in one piece, so that growing a list copies no fragment.

Appending to 100,000 fragments must not serialize them again. They stand together in the manifest
that was read, between its schema and its version: that stretch of bytes is taken over as it is.

How it is found: the message is parsed once more as ``ManifestFrame``, which knows every field but
the fragments. What the frame serializes to is the message without that stretch; only if it is so,
byte for byte, is the stretch used. Of a message in another order the fragments are serialized anew.
Where it is, and what was appended, is kept for the manifests that follow.

Source: ``Manifest.fragments``, field 2; our message ``ManifestFrame``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import overload

from lance_nb._pb import table as pb
from lance_nb.format.wire import parse

FEW_FRAGMENTS = 64  # below this, serializing them again is quicker

_TAG = b"\x12"  # field 2, length-delimited


class Joined(Sequence[bytes]):
    """Two sequences as one, without a copy."""

    def __init__(self, first: Sequence[bytes], second: Sequence[bytes]) -> None:
        self._first = first
        self._second = second

    def followed_by(self, more: Sequence[bytes]) -> Joined:
        """Return these with others behind them, no deeper than they are."""
        return Joined(self._first, [*self._second, *more])

    def __len__(self) -> int:
        return len(self._first) + len(self._second)

    def __iter__(self) -> Iterator[bytes]:
        return chain(self._first, self._second)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(index, slice):
            return list(self)[index]
        start = len(self._first)
        position = index + len(self) if index < 0 else index
        return self._first[position] if position < start else self._second[position - start]


class FragmentWire:
    """Serialized fragments: those of ``message`` (a serialized Manifest), or ``raw``; then more.

    ``tail`` is the field of what came behind them, serialized.
    """

    def __init__(
        self,
        raw: Sequence[bytes],
        message: bytes | memoryview | None = None,
        tail: bytes = b"",
    ) -> None:
        self._raw = raw
        self._message = message
        self._tail = tail
        self._stretch: memoryview | None = None  # of the message; looked for once

    def followed_by(self, more: Sequence[bytes]) -> FragmentWire:
        """Return these with others behind them."""
        made = FragmentWire(self._raw, self._message, b"".join([self._tail, *map(entry, more)]))
        made._stretch = self._stretch
        return made

    def pieces(self) -> list[bytes | memoryview]:
        """Return pieces that, joined, are the serialized field."""
        if self._message is not None and len(self._raw) >= FEW_FRAGMENTS:
            if self._stretch is None:
                self._stretch = stretch(memoryview(self._message))
            if self._stretch is not None:
                return [self._stretch, self._tail]
        return [pb.Manifest(fragments=self._raw).SerializeToString(), self._tail]


def stretch(message: memoryview) -> memoryview | None:
    """Return the part of a serialized Manifest that holds its fragments, None if there is no one.

    The message must have no fields but those of ``Manifest``.
    """
    frame = parse(pb.ManifestFrame, message, "")
    frame.DiscardUnknownFields()
    around = frame.SerializeToString(deterministic=True)
    start = len(pb.ManifestFrame(fields=frame.fields).SerializeToString())
    stop = start + len(message) - len(around)
    if message[:start] != around[:start] or message[stop:] != around[start:]:
        return None
    return message[start:stop]


def entry(fragment: bytes) -> bytes:
    """Return one serialized fragment with its tag and length."""
    length = len(fragment)
    prefix = bytearray(_TAG)
    while length >= 0x80:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + fragment

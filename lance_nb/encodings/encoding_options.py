"""Encoding options of a field: the ``lance-encoding:*`` keys of its metadata.

Layout (key, values, effect)::

    compression          none lz4 zstd fsst   general compression of values; none = store plainly
    compression-level    integer              level of zstd
    structural-encoding  miniblock fullzip    page layout
    rle-threshold        0.0 - 1.0            run-length encoding below this share of runs
    bss                  off on auto          byte stream split under a general compression
    dict-divisor         integer > 0          dictionary below num_values / divisor distinct values
    dict-size-ratio      0.0 < r <= 1.0       dictionary below this share of the plain size
    dict-max-size        integer > 0          largest dictionary, in bytes
    dict-values-compression        none lz4 zstd    of the dictionary's items (2.2)
    dict-values-compression-level  integer
    minichunk-size       integer > 0          bytes aimed at per mini-block chunk
    packed               true false           store a struct row by row (also: plain key "packed")
    blob                 true false           payloads outside of the pages

Limits: chunks of 2.1 files stay below 32 KiB, so a larger ``minichunk-size`` is refused there.
Source: https://docs.rs/lance-encoding/14.0.2/lance_encoding/constants/ and pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from lance_nb.errors import InvalidInputError
from lance_nb.value_classes import dataclass

PREFIX = "lance-encoding:"
_CHUNK_BYTES_2_1 = 32 * 1024
_CHUNK_BYTES = 8 * 1024 - 8  # with its header a chunk stays within two disk blocks
_INT32_MAX = (1 << 31) - 1
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodingOptions:
    """How one field wants to be encoded, and for which file version."""

    file_version: tuple[int, int]
    compression: str | None = None
    compression_level: int | None = None
    structural: str | None = None
    rle_threshold: float | None = None
    bss: str = "auto"
    dict_divisor: int | None = None
    dict_size_ratio: float | None = None
    dict_max_size_bytes: int | None = None
    dict_values_compression: str | None = None
    dict_values_compression_level: int | None = None
    minichunk_size_bytes: int | None = None
    is_packed: bool = False
    is_blob: bool = False
    is_wrapped: bool = False  # the values are those of a general compression already

    @classmethod
    def from_metadata(
        cls, metadata: Mapping[str, bytes], file_version: tuple[int, int]
    ) -> EncodingOptions:
        """Read the keys of a field. Raises InvalidInputError for a value that has no meaning."""
        if not any(key.startswith(PREFIX) or key == "packed" for key in metadata):
            return _default_options(file_version)
        keys = _Keys(metadata)
        options = cls(
            file_version=file_version,
            compression=keys.one_of("compression", "none", "lz4", "zstd", "fsst"),
            compression_level=keys.integer("compression-level", -_INT32_MAX, _INT32_MAX),
            structural=keys.one_of("structural-encoding", "miniblock", "fullzip"),
            rle_threshold=keys.share("rle-threshold"),
            bss=keys.one_of("bss", "off", "on", "auto") or "auto",
            dict_divisor=keys.integer("dict-divisor", 1, 1 << 62),
            dict_size_ratio=keys.share("dict-size-ratio", above_zero=True),
            dict_max_size_bytes=keys.integer("dict-max-size", 1, 1 << 62),
            dict_values_compression=keys.one_of("dict-values-compression", "none", "lz4", "zstd"),
            dict_values_compression_level=keys.integer(
                "dict-values-compression-level", -_INT32_MAX, _INT32_MAX
            ),
            minichunk_size_bytes=keys.integer("minichunk-size", 1, 1 << 30),
            is_packed=keys.flag("packed") or keys.plain_flag("packed"),
            is_blob=keys.flag("blob"),
        )
        size = options.minichunk_size_bytes
        if size is not None and size >= _CHUNK_BYTES_2_1 and file_version < (2, 2):
            raise _refused(
                f"{PREFIX}minichunk-size", str(size), f"below {_CHUNK_BYTES_2_1} in a 2.1 file"
            )
        return options

    @property
    def wrapped(self) -> EncodingOptions:
        """The options for what is below a general compression."""
        return replace(self, is_wrapped=True)

    @property
    def plain(self) -> EncodingOptions:
        """The options for rows that are stored as they are."""
        return replace(self, compression="none")

    @property
    def for_levels(self) -> EncodingOptions:
        """The options for levels: nothing that was asked for the values."""
        return EncodingOptions(file_version=self.file_version)

    @property
    def for_dictionary(self) -> EncodingOptions:
        """The options for the items of a dictionary: LZ4 unless told otherwise, from 2.2 on."""
        scheme = self.dict_values_compression or ("lz4" if self.has_large_chunks else None)
        return EncodingOptions(
            file_version=self.file_version,
            compression=scheme,
            compression_level=self.dict_values_compression_level,
        )

    @property
    def has_large_chunks(self) -> bool:
        """Tell whether chunk words and value sizes have 32 bits (file version 2.2)."""
        return self.file_version >= (2, 2)

    @property
    def chunk_bytes(self) -> int:
        """Bytes aimed at for the values of one mini-block chunk."""
        return self.minichunk_size_bytes or _CHUNK_BYTES


@lru_cache(maxsize=8)
def _default_options(file_version: tuple[int, int]) -> EncodingOptions:
    """Return the options of most fields."""
    return EncodingOptions(file_version=file_version)


class _Keys:
    """The metadata of a field, one typed question per key."""

    def __init__(self, metadata: Mapping[str, bytes]) -> None:
        self._metadata = metadata

    def one_of(self, name: str, *allowed: str) -> str | None:
        text = self._text(PREFIX + name)
        if text is not None and text not in allowed:
            raise _refused(PREFIX + name, text, ", ".join(allowed))
        return text

    def integer(self, name: str, least: int, most: int) -> int | None:
        text = self._text(PREFIX + name)
        if text is None:
            return None
        value = _converted(int, text)
        if value is None or not least <= value <= most:
            raise _refused(PREFIX + name, text, f"an integer from {least} to {most}")
        return value

    def share(self, name: str, *, above_zero: bool = False) -> float | None:
        text = self._text(PREFIX + name)
        if text is None:
            return None
        value = _converted(float, text)
        if value is None or not 0.0 <= value <= 1.0 or (above_zero and value == 0.0):
            raise _refused(PREFIX + name, text, "a number from 0.0 to 1.0")
        return value

    def flag(self, name: str) -> bool:
        return self._flag(PREFIX + name)

    def plain_flag(self, name: str) -> bool:
        return self._flag(name)

    def _flag(self, key: str) -> bool:
        text = self._text(key)
        if text is None:
            return False
        if text.lower() not in {"true", "false"}:
            raise _refused(key, text, "true, false")
        return text.lower() == "true"

    def _text(self, key: str) -> str | None:
        value = self._metadata.get(key)
        if value is None:
            return None
        return value.decode("utf-8", "replace").strip()


def _converted(kind: Callable[[str], T], text: str) -> T | None:
    try:
        return kind(text)
    except ValueError:
        return None


def _refused(key: str, value: str, allowed: str) -> InvalidInputError:
    return InvalidInputError(f"field metadata {key!r} is {value!r}; allowed: {allowed}")

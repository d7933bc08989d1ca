"""Types of file version 2.0: a page is a tree of array encodings over a few buffers.

An *arm* decodes the wanted rows of one array encoding, step by step (``encodings.steps``); its
children go through the ``ArrayCodecs`` lookup that it is handed, so that no arm imports another.
Rows of an inner encoding are counted in its own values: bytes of a binary, items of a list.

Limits: a page holds at most ``VALUES_MAX`` values of any encoding; encodings that store no bytes
for a value yield at most ``FREE_VALUES_MAX`` values at a time.
Source: message ``ArrayEncoding`` of lance.encodings; layouts as in lance's ``previous`` encodings.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings
from lance_nb.encodings.base import (
    VALUES_MAX,
    Bytes,
    DataBlock,
    FixedWidth,
    Ints,
    Rows,
    corrupt,
)
from lance_nb.encodings.steps import Region, Steps
from lance_nb.value_classes import dataclass

Mask = npt.NDArray[np.bool_]
FREE_VALUES_MAX = 1 << 28


@dataclass(frozen=True, slots=True)
class ItemRanges:
    """List rows: row ``i`` has the items ``[starts[i], stops[i])`` of its page, in order."""

    starts: Ints
    stops: Ints


@dataclass(frozen=True, slots=True)
class Values:
    """Decoded values. ``validity`` is one bool per value, None when all are valid."""

    block: DataBlock | ItemRanges
    validity: Mask | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The buffers that a page may refer to.

    ``keeps_dictionary`` tells that the column itself is of a dictionary type: its indices then
    count items from 0, where those of a string column keep 0 for null.
    """

    page_buffers: tuple[Region, ...]
    column_buffers: tuple[Region, ...] = ()
    file_buffers: tuple[Region, ...] = ()
    keeps_dictionary: bool = False

    def region(self, buffer: encodings.Buffer) -> Region:
        """Return the buffer that an encoding names. Raises CorruptFileError."""
        kinds = (self.page_buffers, self.column_buffers, self.file_buffers)
        if buffer.buffer_type >= len(kinds):
            raise corrupt("a page, column or file buffer", f"buffer type {buffer.buffer_type}")
        regions = kinds[buffer.buffer_type]
        if buffer.buffer_index >= len(regions):
            raise corrupt(f"a buffer number below {len(regions)}", str(buffer.buffer_index))
        return regions[buffer.buffer_index]


class ArrayCodecs(Protocol):
    """The lookup that decodes a child, whatever its arm."""

    def decode(self, encoding: encodings.ArrayEncoding, rows: Rows, page: Page) -> Steps[Values]:
        """Decode ``rows``. Raises NotSupportedError for an unknown arm, CorruptFileError."""
        ...


# ``encoding`` is Any below: each arm has a message type of its own.
class ArrayCodec(Protocol):
    """One arm of ArrayEncoding."""

    def decode(self, encoding: Any, rows: Rows, page: Page, codecs: ArrayCodecs) -> Steps[Values]:
        """Decode exactly ``rows`` (which may be none) of the arm's own message."""
        ...


def scaled(rows: Rows, factor: int) -> Rows:
    """Return the parts of rows that are ``factor`` values each. Raises CorruptFileError."""
    if rows.stops.size and int(rows.stops[-1]) * factor > VALUES_MAX:
        product = f"{int(rows.stops[-1])} times {factor}"
        raise corrupt(f"at most {VALUES_MAX} values in a page", product)
    return Rows(rows.starts * factor, rows.stops * factor)


def check_free(num_values: int) -> None:
    """Refuse to make up more values than any page has, where no bytes stand behind them."""
    if num_values > FREE_VALUES_MAX:
        raise corrupt(f"at most {FREE_VALUES_MAX} values without bytes", str(num_values))


def fixed_width(values: Values, bits: int, subject: str) -> Bytes:
    """Return the data of non-null values of ``bits`` bits. Raises CorruptFileError."""
    block = values.block
    if not isinstance(block, FixedWidth) or block.bits_per_value != bits:
        raise corrupt(f"{subject} of {bits} bits each", _described(block))
    if values.validity is not None:
        raise corrupt(f"{subject} without nulls", "nulls")
    return block.data


def _described(block: DataBlock | ItemRanges) -> str:
    if isinstance(block, FixedWidth):
        return f"values of {block.bits_per_value} bits"
    return type(block).__name__

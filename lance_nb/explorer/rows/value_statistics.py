"""Statistics of the values of a column: mean, deviation, quantiles, odd values, distinct values.

Quantiles are interpolated linearly and the deviation is that of a sample (n - 1), as pandas does.
NaN and infinities are counted on their own and belong to no statistic. A histogram leaves out the
outermost values where a few of them would press the others into one or two bars: then its range
holds at least 98 % of the values, and those outside are counted below and above it.

The functions of numbers take them in order: sorting once costs less than one selection for each
quantile, and gives the bars of a histogram as well.

Distinct values are counted exactly as long as there are few, and estimated beyond, with a standard
error of 0.8 %.

Source: Flajolet et al., HyperLogLog: the analysis of a near-optimal cardinality estimation
algorithm (2007); Ertl, New cardinality estimation algorithms for HyperLogLog sketches (2017).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.encodings.kernels.memory import to_floats

Floats = npt.NDArray[np.float64]
Edges = tuple[float, float]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_INNER = (0.01, 0.99)
_PRESSED = 4.0  # times as wide as the inner range: of 20 bars, 5 are left for 98 % of the values
_FEW = 50  # values that are shown as they are
_REGISTER_BITS = 14
_RANKS = 64 - _REGISTER_BITS + 1
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_BYTE_MULTIPLIER = 0x100000001B3


class OddValues(NamedTuple):
    """How many values are no finite numbers."""

    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0


def odd_values(values: pa.Array) -> OddValues:
    """Count NaN and infinities in a column without nulls."""
    if not pa.types.is_floating(values.type) or not len(values):
        return OddValues()
    numbers = to_floats(values)
    infinite = np.isinf(numbers)
    above = int((numbers[infinite] > 0).sum())
    return OddValues(int(np.isnan(numbers).sum()), above, int(infinite.sum()) - above)


def quantiles(ordered: Floats, shares: Sequence[float] = QUANTILES) -> Floats:
    """Return the values below which shares of the values lie, of at least one value in order."""
    places = np.asarray(shares) * (ordered.size - 1)
    before = places.astype(np.int64)
    low, high = ordered[before], ordered[np.minimum(before + 1, ordered.size - 1)]
    part = places - before
    with np.errstate(over="ignore", invalid="ignore"):
        step = high - low
        # From the nearer of both ends, so that neither is missed by rounding.
        values: Floats = np.where(part < 0.5, low + step * part, high - step * (1 - part))
    return values


def bar_counts(ordered: Floats, edges: Edges, bars: int) -> npt.NDArray[np.int64]:
    """Count values, which are in order, in equally wide bars between two edges.

    The greatest edge belongs to the last bar. There is one bar when both edges are the same.
    """
    low, high = edges
    if high <= low:
        bars, high = 1, low + 1
    with np.errstate(over="ignore"):
        # Quarters, where the range itself is too wide for a float.
        limits = np.linspace(low / 4, high / 4, bars + 1) * 4
    limits[0], limits[-1] = low, high
    places = ordered.searchsorted(limits[:-1])
    end = ordered.searchsorted(limits[-1], side="right")
    counts: npt.NDArray[np.int64] = np.diff(places, append=end)
    return counts


def mean_and_deviation(values: Floats) -> tuple[float, float | None]:
    """Return the mean, and the deviation of two values or more."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(values.mean())
        return mean, float(values.std(ddof=1)) if values.size > 1 else None


def robust_range(ordered: Floats) -> Edges:
    """Return the range that a histogram shows: from the least to the greatest value, or less."""
    low, high = float(ordered[0]), float(ordered[-1])
    if ordered.size < _FEW:
        return low, high
    inner_low, inner_high = (float(value) for value in quantiles(ordered, _INNER))
    width = inner_high - inner_low
    with np.errstate(over="ignore"):
        if not width or high - low <= _PRESSED * width:
            return low, high
    return max(low, inner_low - width / 2), min(high, inner_high + width / 2)


class DistinctCount:
    """A HyperLogLog sketch of values: 2**14 registers of the greatest rank seen."""

    def __init__(self) -> None:
        self._ranks = np.zeros(1 << _REGISTER_BITS, np.uint8)

    def add(self, values: pa.Array) -> None:
        """Take values without nulls into account."""
        if not len(values):
            return
        hashes = _hashes(values)
        registers = (hashes >> np.uint64(64 - _REGISTER_BITS)).astype(np.int64)
        remainder = hashes << np.uint64(_REGISTER_BITS)
        # The rank is one more than the zeros before the first one of the other bits.
        ranks = 65 - _bit_lengths(remainder)
        np.maximum.at(self._ranks, registers, np.minimum(ranks, _RANKS).astype(np.uint8))

    def estimate(self) -> int:
        """Return the number of different values, by the estimator of Ertl (2017)."""
        size = len(self._ranks)
        counts = np.bincount(self._ranks, minlength=_RANKS + 1).tolist()
        total = size * _tau(1 - counts[_RANKS] / size)
        for rank in range(_RANKS - 1, 0, -1):
            total = (total + counts[rank]) / 2
        total += size * _sigma(counts[0] / size)
        return round(size * size / (2 * math.log(2) * total))


def _sigma(share: float) -> float:
    """Return what registers that no value reached add to the harmonic sum."""
    if share == 1:
        return math.inf
    total, before, weight = share, -1.0, 1.0
    while total != before:
        share, before = share * share, total
        total += share * weight
        weight *= 2
    return total


def _tau(share: float) -> float:
    """Return what registers add that cannot rise any more; ``share`` of them still can."""
    if share in (0, 1):
        return 0.0
    total, before, weight = 1 - share, -1.0, 1.0
    while total != before:
        share, before, weight = math.sqrt(share), total, weight / 2
        total -= (1 - share) ** 2 * weight
    return total / 3


def _bit_lengths(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the number of bits of each value; 0 for 0."""
    high = (values >> np.uint64(32)).astype(np.float64)
    low = (values & np.uint64(0xFFFFFFFF)).astype(np.float64)
    upper, lower = np.frexp(high)[1], np.frexp(low)[1]
    return np.where(high > 0, upper + 32, lower).astype(np.int64)


def _hashes(values: pa.Array) -> npt.NDArray[np.uint64]:
    kinds = pa.types
    if kinds.is_boolean(values.type):
        values = values.cast(pa.uint8())
    if kinds.is_string(values.type) or kinds.is_large_string(values.type):
        return _mixed(_text_words(values))
    if kinds.is_decimal(values.type):
        values = values.cast(pa.string())
        return _mixed(_text_words(values))
    plain: Any = values
    if kinds.is_temporal(values.type):
        plain = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    numbers = plain.to_numpy(zero_copy_only=False)
    if numbers.dtype.kind == "f":
        numbers = numbers.astype(np.float64) + 0.0  # -0.0 is 0.0
        numbers[np.isnan(numbers)] = np.nan
        return _mixed(numbers.view(np.uint64))
    return _mixed(
        numbers.astype(np.int64 if numbers.dtype.kind == "i" else np.uint64).view(np.uint64)
    )


def _text_words(values: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a number for each text: its bytes as the digits of a number, modulo 2**64."""
    texts = values.cast(pa.large_string())
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][: len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    lengths = np.diff(offsets)
    if not data.size:
        return lengths.astype(np.uint64)
    digits = np.arange(data.size) - np.repeat(offsets[:-1] - offsets[0], lengths)
    weights = _weights(int(lengths.max()))[digits]
    sums = np.zeros(len(data) + 1, np.uint64)
    np.cumsum((data.astype(np.uint64) + np.uint64(1)) * weights, out=sums[1:])
    places = offsets - offsets[0]
    words: npt.NDArray[np.uint64] = sums[places[1:]] - sums[places[:-1]]
    return words + lengths.astype(np.uint64)


def _weights(count: int) -> npt.NDArray[np.uint64]:
    weights = np.full(max(count, 1), _BYTE_MULTIPLIER, np.uint64)
    weights[0] = 1
    powers: npt.NDArray[np.uint64] = np.multiply.accumulate(weights)
    return powers


def _mixed(words: Any) -> npt.NDArray[np.uint64]:
    """Spread the bits of numbers: the finalizer of splitmix64."""
    words = words + _MULTIPLIER
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = words ^ (words >> np.uint64(31))
    return mixed

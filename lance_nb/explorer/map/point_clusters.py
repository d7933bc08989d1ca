"""Find dense groups of points on the map, and name them by a column of texts.

============== =====================================================================
Clusters       the groups of a version, the group of each point, and what the labels are
============== =====================================================================

Points are counted in the squares of a grid over the middle of the map; the counts are smoothed, and
each square belongs to the peak that the way upwards leads to. Two peaks are one group when the way
between them is hardly lower than the lower of them, or not more than by chance.

A group is named by a random sample of all points. Where few texts are different, as those of labels
are, its name is its most frequent text. Otherwise its name is up to ``MAX_WORDS`` words that more
texts inside of the group have than texts outside of it: those with the largest log odds ratio,
measured in its standard errors. So words that are frequent everywhere name no group.

Layout: ``codes`` is uint8 with the place of the group of each point, ``NO_CLUSTER`` for none.

Limits: ``MAX_CLUSTERS`` groups of at least one point in ``CLUSTER_SHARE``; ``SAMPLE_POINTS`` texts,
of which the first ``TEXT_CHARS`` characters count, until ``SAMPLE_BYTES`` are read; the
``MAX_VOCABULARY`` most frequent words.
Source: mode seeking on a grid, as in Cuevas et al., "Cluster analysis: a further approach based on
density estimation"; Monroe, Colaresi, Quinn, "Fightin' Words", for the weight of words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.errors import ColumnNotFoundError, NotSupportedError
from lance_nb.explorer import cells, text
from lance_nb.explorer.map.embedding_map import Coordinates, PointSet, Progress
from lance_nb.explorer.map.point_styles import Codes, LegendEntry, densest
from lance_nb.explorer.source import ScannedSource

MAX_CLUSTERS = 40
CLUSTER_SHARE = 500
LEAST_POINTS = 8
NO_CLUSTER = 255
SAMPLE_POINTS = 8192
SAMPLE_BYTES = 32_000_000
FIRST_POINTS = 8
STEP_POINTS = 512
TEXT_CHARS = 400
MAX_WORDS = 3
MAX_VOCABULARY = 20_000
LABEL_CHARS = 80
DISTINCT_SHARE = 4  # fewer different texts than one in so many: they are labels
_LEAST_Z = 3.0
_LEAST_SHARE = 0.05  # of the texts of a group have the word
_GRID = 48
_BLUR = 1.2  # standard deviation, in squares
_SADDLE = 0.75  # of the lower peak: a way that is not lower joins two peaks
_NOISE = 3.0  # standard deviations that a peak is higher than the way to another one
_SEPARATORS = r"[^\p{L}\p{M}\p{N}]+"


@dataclass(frozen=True, slots=True)
class Clusters:
    """Groups of points. ``kind`` is ``values`` or ``words``; ``sampled`` texts were read."""

    column: str
    kind: str
    codes: Codes
    entries: tuple[LegendEntry, ...]
    sampled: int

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values, without the codes."""
        description = (
            "the most frequent value of each group"
            if self.kind == "values"
            else "words that are more frequent in a group than elsewhere"
        )
        return {
            "column": text.name(self.column),
            "raw": self.column,
            "entries": [entry.to_json() for entry in self.entries],
            "words": f"{description}, by {text.plural(self.sampled, 'row')}",
        }


def label_columns(schema: pa.Schema) -> list[str]:
    """Return the columns of texts that groups can be named by."""
    return [field.name for field in schema if _is_text(field.type)]


def _is_text(kind: pa.DataType) -> bool:
    return cells.is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def find_clusters(xy: Coordinates) -> Codes:
    """Return the group of each point, the largest group first.

    Args:
        xy: coordinates of the shape (points, 2).
    """
    codes = np.full(len(xy), NO_CLUSTER, np.uint8)
    if len(xy) < LEAST_POINTS:
        return codes
    low, high = np.quantile(xy, (0.005, 0.995), axis=0)
    scaled = (xy - low) / np.maximum(high - low, 1) * _GRID
    squares = np.clip(scaled.astype(np.int64), 0, _GRID - 1)
    square = squares[:, 0] * _GRID + squares[:, 1]
    counts = np.bincount(square, minlength=_GRID * _GRID).reshape(_GRID, _GRID)
    basin = _basins(_blurred(counts.astype(np.float64)))
    sizes = np.bincount(basin[square], minlength=_GRID * _GRID)
    least = max(LEAST_POINTS, len(xy) // CLUSTER_SHARE)
    largest = np.argsort(-sizes, kind="stable")[:MAX_CLUSTERS]
    largest = largest[sizes[largest] >= least]
    table = np.full(_GRID * _GRID, NO_CLUSTER, np.uint8)
    table[largest] = np.arange(largest.size, dtype=np.uint8)
    cluster_codes: Codes = table[basin[square]]
    return cluster_codes


def _blurred(grid: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return a grid after a Gaussian blur."""
    reach = np.arange(_GRID)
    weights = np.exp(-np.square(reach[:, None] - reach) / (2 * _BLUR**2))
    blurred: npt.NDArray[np.float64] = weights @ grid @ weights
    return blurred


def _basins(density: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the peak of each square of a grid, as the number of a square."""
    numbers = np.arange(density.size).reshape(density.shape)
    padded = np.pad(density, 1, constant_values=-1.0)
    shifts = [(dx, dy) for dx in range(3) for dy in range(3)]
    around = np.stack([padded[dx : dx + _GRID, dy : dy + _GRID] for dx, dy in shifts])
    steps = np.array([(dx - 1) * _GRID + dy - 1 for dx, dy in shifts])
    # Of equal squares the first one around is the way on, the same for all: no way is a circle.
    highest = np.where(around.max(0) > density, around.argmax(0), 4)
    basin: npt.NDArray[np.int64] = (numbers + steps[highest]).ravel()
    while not np.array_equal(basin, onward := basin[basin]):
        basin = onward
    flat = density.ravel()
    pairs = np.concatenate(
        [
            np.stack([cell.ravel(), neighbour.ravel()], axis=1)
            for cell, neighbour in (
                (numbers[:-1], numbers[1:]),
                (numbers[:, :-1], numbers[:, 1:]),
                (numbers[:-1, :-1], numbers[1:, 1:]),
                (numbers[:-1, 1:], numbers[1:, :-1]),
            )
        ]
    )
    pairs = pairs[basin[pairs[:, 0]] != basin[pairs[:, 1]]]
    saddles = flat[pairs].min(1)
    for index in np.argsort(-saddles, kind="stable"):
        a, b = basin[pairs[index]]
        lower, higher = sorted((a, b), key=lambda cell: flat[cell])
        peak = flat[lower]
        # Weights of a blur are 1 at most, so the variance of a sum of counts is half of it.
        least = max((1 - _SADDLE) * peak, _NOISE * np.sqrt(peak / 2))
        if a != b and peak - saddles[index] <= least:
            basin[basin == lower] = higher
    return basin


def label_clusters(
    source: ScannedSource, points: PointSet, column: str, progress: Progress
) -> Clusters:
    """Find the groups of points and name them by a column of texts.

    Args:
        source: the version that the points are of.
        points: the points.
        column: the column of texts.
        progress: called with texts read and texts in all.

    Raises ColumnNotFoundError, NotSupportedError.
    """
    if column not in source.schema.names:
        raise ColumnNotFoundError(column, tuple(source.schema.names))
    kind = source.schema.field(column).type
    if not _is_text(kind):
        raise NotSupportedError(f"groups cannot be named by {column!r}, which is a {kind}")
    codes = find_clusters(points.xy)
    texts, places = _sample(source, points, column, progress)
    is_valid = texts.is_valid().to_numpy(zero_copy_only=False)
    groups = codes[places[is_valid]]
    coded = texts.drop_null().dictionary_encode()
    if len(coded.dictionary) * DISTINCT_SHARE <= max(len(coded), DISTINCT_SHARE):
        named, labels = "values", _most_frequent(coded, groups)
    else:
        named, labels = "words", _telling_words(texts.drop_null(), groups)
    counts = np.bincount(codes, minlength=NO_CLUSTER + 1)
    entries = tuple(
        LegendEntry(code, labels[code], int(counts[code]), *densest(points.xy[codes == code]))
        for code in range(MAX_CLUSTERS)
        if counts[code] and code in labels
    )
    return Clusters(column, named, codes, entries, len(texts))


def _sample(
    source: ScannedSource, points: PointSet, column: str, progress: Progress
) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Read the texts of points that are chosen at random, and return their places."""
    import pyarrow.compute as pc

    random = np.random.default_rng(points.num_points)
    sample_size = min(SAMPLE_POINTS, points.num_points)
    places = random.choice(points.num_points, sample_size, replace=False)
    parts = [pa.array([], pa.large_string())]
    done = num_bytes = 0
    step = FIRST_POINTS
    while done < sample_size and num_bytes < SAMPLE_BYTES:
        progress(done, sample_size)
        some = np.sort(places[done : done + step])
        places[done : done + some.size] = some
        read = cells.plain(source.take_rows(points.ids[some], columns=[column]).column(0))
        num_bytes += read.nbytes
        cut = pc.utf8_slice_codeunits(pc.cast(read, pa.large_string()), 0, TEXT_CHARS)
        parts.append(cut)
        done += some.size
        # As many as fit into the rest, by the mean size of those before.
        fitting = (SAMPLE_BYTES - num_bytes) * done // max(1, num_bytes)
        step = max(1, min(STEP_POINTS, 8 * step, fitting))
    return pa.concat_arrays(parts), places[:done]


def _most_frequent(coded: pa.DictionaryArray, groups: Codes) -> dict[int, str]:
    """Return the most frequent text of each group."""
    if not len(coded):
        return {}
    width = len(coded.dictionary)
    pairs = groups.astype(np.int64) * width + coded.indices.to_numpy(zero_copy_only=False)
    counts = np.bincount(pairs, minlength=(NO_CLUSTER + 1) * width).reshape(-1, width)
    best = counts.argmax(1)
    return {
        code: text.line(coded.dictionary[int(best[code])].as_py(), LABEL_CHARS)
        for code in range(MAX_CLUSTERS)
        if counts[code, best[code]]
    }


def _telling_words(texts: pa.Array, groups: Codes) -> dict[int, str]:
    """Return the words that more texts of a group have than others."""
    import pyarrow.compute as pc

    words = pc.split_pattern_regex(pc.utf8_lower(texts), _SEPARATORS)
    rows = pc.list_parent_indices(words).to_numpy(zero_copy_only=False).astype(np.int64)
    coded = pc.list_flatten(words).dictionary_encode()
    vocabulary = coded.dictionary
    num_chars = pc.utf8_length(vocabulary).to_numpy(zero_copy_only=False)
    num_bytes = pc.binary_length(vocabulary).to_numpy(zero_copy_only=False)
    is_ascii = num_chars == num_bytes  # other scripts say more with two characters
    is_word = pc.match_substring_regex(vocabulary, r"\p{L}").to_numpy(zero_copy_only=False)
    is_word &= (num_chars >= np.where(is_ascii, 3, 2)) & (num_chars <= 24)
    width = max(1, len(vocabulary))
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    pairs = np.unique(rows * width + codes)  # each word once for each text
    rows, codes = pairs // width, pairs % width
    having = np.bincount(codes, minlength=width) * is_word
    word_codes = np.argsort(-having, kind="stable")[:MAX_VOCABULARY]
    word_codes = word_codes[having[word_codes] > 1]
    if not word_codes.size:
        return {}
    place = np.full(width, -1)
    place[word_codes] = np.arange(word_codes.size)
    is_kept = place[codes] >= 0
    cell = groups[rows[is_kept]].astype(np.int64) * word_codes.size + place[codes[is_kept]]
    counts = np.bincount(cell, minlength=(NO_CLUSTER + 1) * word_codes.size).reshape(
        -1, word_codes.size
    )
    sizes = np.bincount(groups, minlength=NO_CLUSTER + 1)
    labels = {}
    for code in np.flatnonzero(sizes[:MAX_CLUSTERS]).tolist():
        inside = counts[code]
        weights = _weights(
            inside, int(sizes[code]), having[word_codes] - inside, len(texts) - sizes[code]
        )
        weights[inside < max(2, _LEAST_SHARE * sizes[code])] = 0
        best = np.argsort(-weights, kind="stable")[: 4 * MAX_WORDS]
        chosen: list[str] = []
        for word in pc.take(vocabulary, word_codes[best[weights[best] > _LEAST_Z]]).to_pylist():
            if not any(word in other or other in word for other in chosen):  # cat and cats
                chosen.append(word)
        if chosen:
            labels[code] = text.line(" · ".join(chosen[:MAX_WORDS]), LABEL_CHARS)
    return labels


def _weights(
    inside: npt.NDArray[np.int64], size: int, outside: npt.NDArray[np.int64], num_others: int
) -> npt.NDArray[np.float64]:
    """Return the log odds ratios of words in standard errors.

    Args:
        inside: for each word, how many texts of the group have it.
        size: texts of the group.
        outside: for each word, how many of the other texts have it.
        num_others: the other texts.
    """
    table = [inside + 0.5, size - inside + 0.5, outside + 0.5, num_others - outside + 0.5]
    a, b, c, d = (np.asarray(cell, np.float64) for cell in table)
    errors = np.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    weights: npt.NDArray[np.float64] = np.log(a * d / (b * c)) / errors
    return weights

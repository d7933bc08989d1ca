"""Product quantization: a vector is cut into m pieces, each named by the nearest codeword.

There are 256 codewords for each piece, or 16 with codes of 4 bits.

Column ``__pq_code``: a fixed-size list of m bytes, or of m / 2 with two codes in a byte, the first
one in its low half. Within a partition the codes are transposed: first the first byte of every
vector, then the second, and so on. The codebook is a tensor in a global buffer, m times the
codewords. Unless the metric is dot, what is coded is the difference to the centroid.

A distance is the sum of m numbers from a table of the query's distances to each codeword. Under
cosine it is the squared Euclidean distance of vectors of length one, twice the cosine distance: so
pylance reports it.

Source: files and answers of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.kernels import table_sums
from lance_nb.errors import CorruptFileError
from lance_nb.indices.vectors.kmeans import nearest_centroids
from lance_nb.indices.vectors.stored_vectors import Floats, Matrix, Settings

COLUMN = "__pq_code"


class ProductCodes:
    """Names of codewords. ``codebook`` has the shape (m, codewords, numbers of a piece)."""

    def __init__(self, settings: Settings, codebook: Floats) -> None:
        path = settings.path
        bits = int(settings.number("nbits", 4, 8))
        pieces = int(settings.number("num_sub_vectors", 1, settings.dimension))
        if bits not in (4, 8) or settings.dimension % pieces or (bits == 4 and pieces % 2):
            raise CorruptFileError(
                path, None, "codes of 4 or 8 bits", f"{pieces} pieces of {bits} bits"
            )
        if codebook.size != settings.dimension << bits:
            raise CorruptFileError(
                path,
                None,
                f"a codebook of {settings.dimension << bits} numbers",
                str(codebook.size),
            )
        self.width = pieces * bits // 8
        self._bits = bits
        self._metric = settings.metric
        self._centroids = settings.centroids
        if not np.isfinite(codebook).all():
            raise CorruptFileError(path, None, "a codebook of numbers", "NaN or infinity")
        self.codebook = codebook.reshape(pieces, 1 << bits, -1).astype(np.float32)
        self.is_transposed = settings.storage.get("transposed") is not False
        self._by_piece = np.ascontiguousarray(self.codebook.transpose(0, 2, 1))
        self._squares = np.einsum("mcd,mcd->mc", self.codebook, self.codebook)

    def encode(self, vectors: Floats, partitions: npt.NDArray[np.int64]) -> Matrix:
        """Name the nearest codeword of each piece."""
        residuals = vectors
        if self._metric != "dot":
            residuals = vectors - self._centroids[partitions].astype(np.float32)
        size = self.codebook.shape[2]
        codes = np.empty((len(residuals), len(self.codebook)), np.uint8)
        for piece, words in enumerate(self.codebook):
            part = np.ascontiguousarray(residuals[:, piece * size : (piece + 1) * size], np.float32)
            codes[:, piece] = nearest_centroids(part, words)
        return codes if self._bits == 8 else codes[:, ::2] | codes[:, 1::2] << 4

    def tables(self, query: Floats, partitions: Sequence[int]) -> npt.NDArray[np.float32]:
        """Return (partitions, m, codewords): what each codeword adds to a distance."""
        pieces = len(self.codebook)
        if self._metric == "dot":
            table = 1.0 - np.matmul(query.reshape(pieces, 1, -1), self._by_piece)[:, 0]
            return np.broadcast_to(table.astype(np.float32), (len(partitions), *table.shape))
        residuals = (query - self._centroids[list(partitions)]).astype(np.float32)
        parts = np.ascontiguousarray(
            residuals.reshape(len(residuals), pieces, -1).transpose(1, 0, 2)
        )
        tables = np.matmul(parts, self._by_piece)
        tables *= -2
        tables += self._squares[:, None]
        tables += np.einsum("mpd,mpd->mp", parts, parts)[:, :, None]
        return np.ascontiguousarray(np.maximum(tables, 0).transpose(1, 0, 2))

    def distances(
        self, query: Floats, partitions: Sequence[int], rows: Sequence[Matrix]
    ) -> list[npt.NDArray[np.float32]]:
        """Add up what the table says of each code."""
        offset = 1.0 - len(self.codebook) if self._metric == "dot" else 0.0
        distances = []
        for table, codes in zip(self.tables(query, partitions), rows, strict=True):
            sums = table_sums.table_sums(table, self._transposed(codes), self._bits)
            distances.append(sums + np.float32(offset) if offset else sums)
        return distances

    def _transposed(self, codes: Matrix) -> npt.NDArray[np.uint8]:
        """Return the codes with a row for each byte of a code."""
        if self.is_transposed:
            return codes.reshape(self.width, -1)
        return np.ascontiguousarray(codes.T)

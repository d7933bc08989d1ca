"""Blob columns under construction: payloads go out at once, the pages only say where they are.

First generation (2.1, 2.2): payloads lie in the data file, aligned; the page holds (position, size)
as a packed struct inside a BlobLayout. What has no payload keeps its levels in the position:
definition in bits 16-31. Second generation (2.2): five fields, stored one row after the other.

==========  ==========================================  =================================
kind        payload                                     default
==========  ==========================================  =================================
0 inline    in the data file, aligned                   up to 65,536 bytes
1 packed    in a shared file beside it                  up to 4 MiB, files of up to 1 GiB
2 own file  in a file of its own beside it              above
3 external  wherever ``uri`` says; size 0 = all of it   values that have a uri
==========  ==========================================  =================================

Where external blobs are taken in (``ingest``), values that have a uri are read and stored as the
others are. Payloads that are stored already are copied, the larger ones in pieces, so that memory
does not grow with them (``blob_values``).

Not supported: lists of blobs of the first generation.
Source: message BlobLayout; files of pylance 14.0.2.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import Mask
from lance_nb.encodings.base import Bytes, Ints
from lance_nb.encodings.kernels.ranges import scatter
from lance_nb.encodings.page_encoder import EncodedPage, encode_blob_page
from lance_nb.encodings.repdef import Entries, StripedLeaf, page_levels
from lance_nb.errors import InvalidInputError, LanceError, NotSupportedError
from lance_nb.file.blob_values import IN_MEMORY, Payloads, check_one_form
from lance_nb.file.column_writer import LeafPlan, LeafWriter
from lance_nb.file.external_blobs import URIS_MAX
from lance_nb.file.sink import ALIGNMENT, FileSink
from lance_nb.format.blob_fields import DESCRIPTION_V2, blob_threshold

_INLINE_BYTES = 64 * 1024
_PACKED_BYTES = 4 * 1024 * 1024
_COPIED_BYTES = 16 * 1024  # payloads up to this mean size are put side by side before writing
_INLINE, _PACKED, _OWN, _EXTERNAL = range(4)


def write_payloads(sink: FileSink, payloads: Payloads) -> Ints:
    """Write payloads into the data file, each aligned; returns their positions (0 if empty)."""
    positions: Ints = np.zeros(payloads.sizes.size, np.int64)
    some = np.flatnonzero(payloads.sizes)
    if not some.size:
        return positions
    positions[some] = np.concatenate(
        [_write_group(sink, group) for group in payloads.chosen(some).groups()]
    )
    return positions


def _write_group(sink: FileSink, group: Payloads) -> Ints:
    """Write payloads that are brought into memory together, or one that is too large for that."""
    if group.is_streamed:
        return np.array([sink.add_stream(group.stream())], np.int64)
    if int(group.sizes.mean()) > _COPIED_BYTES:
        return np.array([start for start, _ in sink.add_buffers(group.pieces())], np.int64)
    padded = -(-group.sizes // ALIGNMENT) * ALIGNMENT
    places = np.cumsum(padded) - padded
    out: Bytes = np.zeros(int(padded.sum()), np.uint8)
    for rows, data, starts in group.blocks():
        scatter(data, starts, group.sizes[rows], out, places[rows])
    ((first, _),) = sink.add_buffers([out])
    return places + first


def _check_stored(payloads: Payloads, sink: FileSink, name: str) -> None:
    """Refuse values that refer to stored objects where the caller has given none."""
    if not sink.sidecars.takes_stored and bool((payloads.objects != IN_MEMORY).any()):
        raise InvalidInputError(f"column {name!r}: a blob has a field 'object', which is not known")


def payloads_of(values: pa.StructArray, sink: FileSink, name: str) -> Payloads:
    """Look into blobs in their one form. Raises InvalidInputError."""
    payloads = Payloads.of(values, sink.sidecars.stored)
    _check_stored(payloads, sink, name)
    return payloads


def hidden_slots(entries: Entries, num_slots: int) -> Mask:
    """Mark the slots that are null, themselves or by a struct around them."""
    if entries.codes is None:
        return np.zeros(num_slots, bool)
    hidden: Mask = entries.codes != 0
    return hidden if entries.visible is None else hidden[entries.visible]


class BlobLeafWriter(LeafWriter):
    """A column of the first generation."""

    def __init__(self, plan: LeafPlan, sink: FileSink, page_bytes: int) -> None:
        super().__init__(plan, sink, page_bytes)
        self._places: list[tuple[Ints, Ints]] = []

    def add(self, leaf: StripedLeaf, num_rows: int) -> None:
        """Write the payloads; what waits for the page is where they are."""
        if any(leaf.entries.lists):
            raise NotSupportedError(
                f"column {self.plan.field.name!r}: lists of blobs need data_storage_version 2.2 "
                "(what pylance writes of them in 2.1, it cannot read)"
            )
        payloads = payloads_of(leaf.values, self.sink, self.plan.field.name)
        sizes = np.where(hidden_slots(leaf.entries, len(leaf.values)), 0, payloads.sizes)
        self._places.append((write_payloads(self.sink, payloads.with_sizes(sizes)), sizes))
        self.add_entries(leaf.entries, num_rows, 16 * num_rows)

    def encoded(self) -> list[EncodedPage]:
        """Encode the places that wait."""
        positions, sizes = (np.concatenate(parts) for parts in zip(*self._places, strict=True))
        self._places = []
        levels = page_levels(self.entries)
        version = self.plan.options.file_version
        return [encode_blob_page(positions, sizes, levels, version)]


class BlobV2LeafWriter(LeafWriter):
    """A column of the second generation: becomes descriptions of five fields."""

    def __init__(self, plan: LeafPlan, sink: FileSink, page_bytes: int) -> None:
        super().__init__(plan, sink, page_bytes)
        self._inline_bytes = blob_threshold(plan.field, "inline", _INLINE_BYTES)
        self._packed_bytes = blob_threshold(plan.field, "dedicated", _PACKED_BYTES)
        self._file_bytes = blob_threshold(plan.field, "pack-file", sink.sidecars.pack_bytes)

    def add(self, leaf: StripedLeaf, num_rows: int) -> None:
        """Write the payloads and describe them."""
        hidden = hidden_slots(leaf.entries, len(leaf.values))
        super().add(StripedLeaf(self._described(leaf.values, hidden), leaf.entries), num_rows)

    def _described(self, values: pa.StructArray, hidden: np.ndarray) -> pa.Array:
        name = self.plan.field.name
        payloads = payloads_of(values, self.sink, name)
        has_uri = np.asarray(values.field("uri").is_valid())
        has_data = np.asarray(values.field("data").is_valid()) | (payloads.objects != IN_MEMORY)
        check_one_form(has_data, has_uri, hidden, name)
        payloads = payloads.with_sizes(np.where(hidden, 0, payloads.sizes))
        outside = has_uri & ~hidden
        if self.sink.sidecars.ingests is not None:
            payloads = self._with_ingested(payloads, values, outside)
            outside[:] = False
        sizes = payloads.sizes
        kinds = np.zeros(sizes.size, np.uint8)
        kinds[sizes > self._inline_bytes] = _PACKED
        kinds[sizes > self._packed_bytes] = _OWN
        ids = np.zeros(sizes.size, np.uint32)
        inline = payloads.with_sizes(np.where(kinds == _INLINE, sizes, 0))
        positions = write_payloads(self.sink, inline)
        self._write_sidecars(payloads, (kinds, positions, ids))
        uris = _no_text(outside.size)
        if bool(outside.any()):
            uris = self._refer(values, outside, (kinds, positions, sizes, ids))
        parts = [kinds, positions.astype(np.uint64), sizes.astype(np.uint64), ids]
        arrays = [*map(pa.array, parts), uris]
        return pa.StructArray.from_arrays(arrays, fields=list(DESCRIPTION_V2))

    def _with_ingested(
        self, payloads: Payloads, values: pa.StructArray, outside: np.ndarray
    ) -> Payloads:
        """Locate what lies elsewhere and is to be stored here: it is copied like the others."""
        source, stored = self.sink.sidecars.ingests, self.sink.sidecars.stored
        if source is None or not outside.any():
            return payloads
        uris, starts, sizes = (values.field(name) for name in ("uri", "position", "size"))
        out = (payloads.starts.copy(), payloads.sizes.copy(), payloads.objects.copy())
        for row in np.flatnonzero(outside).tolist():
            uri = uris[row].as_py()
            try:
                located = source.locate(uri, starts[row].as_py() or 0, sizes[row].as_py())
            except LanceError as error:
                error.add_note(f"column {self.plan.field.name!r}: {uri!r}")
                raise
            number = stored.add(located.store, located.path)
            for target, value in zip(out, (located.start, located.size_bytes, number), strict=True):
                target[row] = value
        return Payloads(payloads.data, *out, stored)

    def _write_sidecars(self, payloads: Payloads, out: tuple[np.ndarray, Ints, np.ndarray]) -> None:
        kinds, positions, ids = out
        beside = np.flatnonzero(kinds != _INLINE)
        sidecars, sizes = self.sink.sidecars, payloads.sizes
        streams = payloads.chosen(beside).streams()
        for row, pieces in zip(beside.tolist(), streams, strict=True):
            if kinds[row] == _OWN:
                ids[row] = sidecars.add_own(pieces)
            else:
                place = sidecars.add_shared(pieces, int(sizes[row]), self._file_bytes)
                ids[row], positions[row] = place

    def _refer(
        self,
        values: pa.StructArray,
        outside: np.ndarray,
        out: tuple[np.ndarray, Ints, Ints, np.ndarray],
    ) -> pa.Array:
        """Describe what lies elsewhere; returns the URIs, or paths below base paths, of all rows.

        References that a stored row has already are taken over. Raises InvalidInputError for what
        lies below none, unless that is allowed.
        """
        sidecars = self.sink.sidecars
        accepted_uris = sidecars.accepted_uris
        kinds, positions, sizes, ids = out
        kinds[outside] = _EXTERNAL
        for target, name in ((positions, "position"), (sizes, "size")):
            target[outside] = np.asarray(values.field(name).fill_null(0)).astype(np.int64)[outside]
        texts = [""] * outside.size
        given_uris, bases = values.field("uri"), values.field("base")
        for row in np.flatnonzero(outside).tolist():
            texts[row] = given_uris[row].as_py()
            if sidecars.takes_stored and bases[row].is_valid:
                ids[row] = bases[row].as_py()
                continue
            below = sidecars.bases.place_of(texts[row])
            if below is not None:
                ids[row], texts[row] = below
            elif not sidecars.allows_external:
                raise InvalidInputError(
                    f"column {self.plan.field.name!r}: external blob {texts[row]!r} is outside of "
                    "the dataset and its base paths; allow_external_blob_outside_bases=True stores "
                    "such references"
                )
            elif accepted_uris is not None and len(accepted_uris) <= URIS_MAX:
                accepted_uris[texts[row]] = None
        return pa.array(texts, pa.string())


def _no_text(count: int) -> pa.Array:
    offsets = pa.py_buffer(np.zeros(count + 1, np.int32))
    return pa.Array.from_buffers(pa.string(), count, [None, offsets, pa.py_buffer(b"")])

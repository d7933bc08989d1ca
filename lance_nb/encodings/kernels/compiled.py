"""The one place that decides whether a loop runs compiled or in its numpy form.

``loops`` is the extension module ``_compiled``, or None where it was not built: an install without
a C compiler works and is slower; so does one that lacks a loop, because it was compiled from an
older source. Callers look at ``loops`` at each call and have a numpy form
beside, which gives the same values and errors.

Limits: decided once per process, when this module is imported.
"""

from __future__ import annotations

import sys
from types import ModuleType

_LOOPS = (
    "add_at", "copy_ranges", "count_lists", "decode_fsst", "encode_fsst", "find_substring",
    "fold_lists", "item_validity", "join_bytes", "join_strings", "measure_fsst", "measure_strings",
    "measure_words", "number_values", "pack_bits", "places_among", "repeat_runs", "scatter_ranges",
    "select_symbols", "table_sums", "unpack_bits", "unpack_level_chunks", "unpack_levels",
    "walk_entries",
)  # fmt: skip


def _load() -> ModuleType | None:
    if sys.byteorder != "little":
        return None  # words of the format are little-endian, and the loops read them as they are
    try:
        from lance_nb.encodings.kernels import _compiled
    except ImportError:
        return None
    return _compiled if all(hasattr(_compiled, name) for name in _LOOPS) else None


loops = _load()

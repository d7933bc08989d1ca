from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_Array: TypeAlias = npt.NDArray[Any]
_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Ints: TypeAlias = npt.NDArray[np.int64]

def unpack_bits(data: _Bytes, starts: _Ints, width: int, word_bytes: int, out: _Bytes) -> bool: ...
def measure_words(data: _Bytes, word_bytes: int, widths: _Ints) -> int: ...
def pack_bits(values: _Bytes, width: int, word_bytes: int, out: _Bytes) -> bool: ...
def measure_fsst(codes: _Bytes, lengths: _Bytes) -> int: ...
def decode_fsst(
    codes: _Bytes, offsets: _Array, words: _Array, lengths: _Bytes, ends: _Array, out: _Bytes
) -> int: ...
def encode_fsst(
    data: _Bytes,
    starts: _Ints,
    stops: _Ints,
    singles: _Array,
    pairs: _Array,
    hash_words: _Array,
    hash_masks: _Array,
    hash_entries: _Array,
    codes: _Array,
    ends: _Ints,
) -> int: ...
def select_symbols(
    codes: _Array,
    ends: _Ints,
    words: _Array,
    lengths: _Bytes,
    pair_counts: _Array,
    scratch: _Array,
    best_words: _Array,
    best_lengths: _Bytes,
) -> int: ...
def copy_ranges(data: _Bytes, starts: _Ints, sizes: _Ints, out: _Bytes) -> bool: ...
def scatter_ranges(
    data: _Bytes, starts: _Ints, sizes: _Ints, out: _Bytes, places: _Ints
) -> bool: ...
def walk_entries(
    data: _Bytes,
    starts: _Ints,
    stops: _Ints,
    control_bytes: int,
    definition_bits: int,
    visible_max: int,
    fixed_bytes: int,
    length_bytes: int,
    control: _Array,
    value_starts: _Ints,
    value_sizes: _Ints,
) -> tuple[int, int] | None: ...
def unpack_levels(data: _Bytes, starts: _Ints, width: int, out: _Bytes) -> bool: ...
def unpack_level_chunks(
    data: _Bytes, starts: _Ints, sizes: _Ints, counts: _Ints, width: int, out: _Bytes
) -> bool: ...
def count_lists(
    rep: _Bytes, rep_bytes: int, definition: _Bytes, definition_bytes: int, number: int, upper: int
) -> tuple[int, int] | None: ...
def fold_lists(
    rep: _Bytes,
    rep_bytes: int,
    definition: _Bytes,
    definition_bytes: int,
    number: int,
    visible_max: int,
    upper: int,
    base: int,
    empty: int,
    rep_out: _Bytes,
    definition_out: _Bytes,
    offsets: _Ints,
    validity: _Bytes,
) -> int: ...
def item_validity(
    definition: _Bytes, definition_bytes: int, visible_max: int, base: int, validity: _Bytes
) -> int: ...
def measure_strings(
    data: _Bytes,
    offsets_at: _Ints,
    origins: _Ints,
    limits: _Ints,
    first: _Ints,
    counts: _Ints,
    word: int,
) -> int: ...
def join_strings(
    data: _Bytes,
    offsets_at: _Ints,
    origins: _Ints,
    limits: _Ints,
    first: _Ints,
    counts: _Ints,
    word: int,
    offsets: _Array,
    out: _Bytes,
) -> bool: ...
def find_substring(data: _Bytes, offsets: _Array, piece: _Bytes, found: _Bytes) -> bool: ...
def repeat_runs(values: _Bytes, word_bytes: int, repeats: _Ints, out: _Bytes) -> bool: ...
def join_bytes(data: _Bytes, starts: _Ints, counts: _Ints, width: int, out: _Bytes) -> bool: ...
def number_values(
    data: _Bytes,
    offsets: _Array | None,
    fixed: int,
    starts: _Ints,
    run: int,
    table: _Array,
    numbers: _Array,
    firsts: _Ints,
) -> int: ...
def table_sums(table: _Array, codes: _Bytes, bits: int, sums: _Array) -> bool: ...
def places_among(wanted: _Array, numbers: _Array, places: _Ints) -> bool: ...
def add_at(sums: _Array, places: _Array, values: _Array) -> bool: ...

"""Finite-state maps: sorted byte strings to numbers, as the tokens of a text index are stored.

Layout (crate ``fst``, format 3; little endian)::

    u64 version (3), u64 type (0), nodes, u64 number of keys, u64 address of the root,
    u32 CRC-32C of everything before it, masked

A node is read backwards from its address, the place of its state byte; lower bytes come last:

===========  =====================================================================================
state        before it
===========  =====================================================================================
``11iiiiii``  one transition to the node that ends right before this one, without output
``10iiiiii``  one transition: [input], sizes, delta, output
``0fnnnnnn``  n transitions, f: a key ends here: [n], sizes, [index], inputs, deltas, outputs,
              [final output]; the first transition is the one nearest to the state
===========  =====================================================================================

``i`` is a number in ``COMMON_INPUTS`` plus 1; 0: the input is a byte of its own. n is 0 where it is
a byte of its own (1 stands for 256). ``sizes``: the bytes of a delta in the upper half, of an
output in the lower one. A delta is the distance from the lowest byte of the node to its target; 0
is the node at address 0: a key ends there, and nothing follows. More than 32 transitions have an
index of 256 bytes. The value of a key is the sum of the outputs on its path.

Limits: ``VISITS_MAX`` nodes for one question; a target lies below its node, so no path has a cycle.
Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lance_nb.errors import CorruptFileError, InvalidInputError, NotSupportedError

VERSION = 3
VISITS_MAX = 1 << 20
COMMON_INPUTS = (
    b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHGWUV,YKJZXQ;)(~[]$!'*@"
    + bytes(range(0x20))
    + b' "#<>\\^`{|}'
    + bytes(range(0x7F, 0x100))
)
_NUMBER_OF = {byte: number for number, byte in enumerate(COMMON_INPUTS, 1)}
_COMMON_MAX = 63
_COUNT_MAX = 63
_INDEXED = 32
_HEADER, _FOOTER, _CHECK = struct.Struct("<QQ"), struct.Struct("<QQ"), struct.Struct("<I")
_LEAST = _HEADER.size + _FOOTER.size + _CHECK.size
_BYTES_MAX = 8


class Transition(NamedTuple):
    """One input byte: what it adds to the value, and where it leads."""

    byte: int
    output: int
    target: int


class Node(NamedTuple):
    """One state. ``final`` is None where no key ends, else what the end adds to the value."""

    final: int | None
    transitions: list[Transition]


class Fst:
    """A map that has been read. Raises CorruptFileError for bytes that are no such map."""

    def __init__(self, data: bytes, path: str) -> None:
        self._data, self._path = data, path
        version = _HEADER.unpack_from(data)[0] if len(data) >= _LEAST else 0
        if len(data) < _LEAST or not 0 < version < 1 << 16:
            raise CorruptFileError(path, None, "a finite-state map", f"{len(data)} bytes")
        if version != VERSION:
            raise NotSupportedError(f"{path}: finite-state maps of version {version}")
        body = data[: -_CHECK.size]
        (stored,), computed = _CHECK.unpack_from(data, len(body)), _masked(crc32c(body))
        if stored != computed:
            raise self._corrupt(f"bytes with the checksum {stored:#x}", f"{computed:#x}")
        self._end = len(data) - _FOOTER.size - _CHECK.size
        self.num_keys, self._root = _FOOTER.unpack_from(data, self._end)
        if self._root >= self._end:
            raise self._corrupt("a root inside of the map", self._root)

    def get(self, key: bytes) -> int | None:
        """Return the value of a key."""
        address, value = self._root, 0
        for byte in key:
            for transition in self.node(address).transitions:
                if transition.byte == byte:
                    value += transition.output
                    address = transition.target
                    break
            else:
                return None
        final = self.node(address).final
        return None if final is None else value + final

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Yield all keys in order with their values."""
        waiting = [(self._root, b"", 0)]
        count = 0
        while waiting:
            address, key, value = waiting.pop()
            final, transitions = self.node(address)
            if final is not None:
                count += 1
                if count > self.num_keys:
                    raise self._corrupt(f"{self.num_keys} keys", f"at least {count}")
                yield key, value + final
            if len(key) > 1 << 12:
                raise self._corrupt("shorter keys", f"a key of {len(key)} bytes")
            for byte, output, target in reversed(transitions):
                waiting.append((target, key + bytes((byte,)), value + output))

    def within(
        self, word: str, distance: int, prefix_length: int, most: int
    ) -> list[tuple[str, int]]:
        """Return the first keys that are near to a word, and their values, in the order of keys.

        Near is at most ``distance`` characters inserted, deleted or replaced; the first
        ``prefix_length`` characters are as in the word. Raises NotSupportedError after
        ``VISITS_MAX`` nodes.
        """
        prefix, suffix = word[:prefix_length], word[prefix_length:]
        address, value = self._root, 0
        for byte in prefix.encode():
            step = next(
                (
                    transition
                    for transition in self.node(address).transitions
                    if transition.byte == byte
                ),
                None,
            )
            if step is None:
                return []
            address, value = step.target, value + step.output
        matches: list[tuple[str, int]] = []
        # A row of the edit distances between the characters so far and each beginning of the rest.
        waiting = [(address, value, prefix, tuple(range(len(suffix) + 1)), b"")]
        visits = 0
        while waiting and len(matches) < most:
            address, value, key, row, started = waiting.pop()
            visits += 1
            if visits > VISITS_MAX:
                raise NotSupportedError(
                    f"more than {VISITS_MAX:,} states of {self._path} for {word!r}: "
                    "lower fuzziness, or give a prefix_length"
                )
            final, transitions = self.node(address)
            if final is not None and not started and row[-1] <= distance:
                matches.append((key, value + final))
            for byte, output, target in reversed(transitions):
                character = started + bytes((byte,))
                if len(character) < _utf8_length(character[0]):
                    waiting.append((target, value + output, key, row, character))
                    continue
                letter = character.decode(errors="replace")
                after = _next_row(row, suffix, letter)
                if min(after) <= distance:
                    waiting.append((target, value + output, key + letter, after, b""))
        return matches

    def node(self, address: int) -> Node:
        """Read the state at an address."""
        if address == 0:
            return Node(0, [])
        data = self._data
        if not _HEADER.size <= address < self._end:
            raise self._corrupt("a node inside of the map", address)
        state = data[address]
        if state >= 0x80:
            number = state & _COMMON_MAX
            place = address if number else address - 1
            byte = COMMON_INPUTS[number - 1] if number else data[place]
            if state >= 0xC0:
                return Node(None, [Transition(byte, 0, self._below(place - 1, place))])
            sizes = data[place - 1]
            delta_at = place - 1 - (sizes >> 4)
            output_at = delta_at - (sizes & 15)
            self._check_sizes(sizes, output_at)
            delta = int.from_bytes(data[delta_at : place - 1], "little")
            output = int.from_bytes(data[output_at:delta_at], "little")
            return Node(None, [Transition(byte, output, self._target(output_at, delta))])
        return self._wide(address, state)

    def _wide(self, address: int, state: int) -> Node:
        """Read a state of any number of transitions."""
        data = self._data
        count, place = state & _COUNT_MAX, address
        if not count:
            place -= 1
            count = data[place]
            count = 256 if count == 1 else count
        sizes = data[place - 1]
        width, output_width = sizes >> 4, sizes & 15
        is_final = bool(state & 0x40)
        inputs_at = place - 1 - (256 if count > _INDEXED else 0)
        deltas_at = inputs_at - count
        outputs_at = deltas_at - count * width
        finals_at = outputs_at - count * output_width
        lowest = finals_at - (output_width if is_final else 0)
        self._check_sizes(sizes, lowest)
        transitions = []
        for number in range(count):
            offset = deltas_at - (number + 1) * width
            delta = int.from_bytes(data[offset : offset + width], "little")
            offset = outputs_at - (number + 1) * output_width
            output = int.from_bytes(data[offset : offset + output_width], "little")
            byte = data[inputs_at - number - 1]
            transitions.append(Transition(byte, output, self._target(lowest, delta)))
        final = int.from_bytes(data[lowest:finals_at], "little") if is_final else None
        return Node(final, transitions)

    def _check_sizes(self, sizes: int, lowest: int) -> None:
        if sizes >> 4 > _BYTES_MAX or sizes & 15 > _BYTES_MAX or lowest < _HEADER.size:
            raise self._corrupt("a node inside of the map", f"sizes {sizes}")

    def _target(self, lowest: int, delta: int) -> int:
        return 0 if not delta else self._below(lowest - delta, lowest)

    def _below(self, target: int, lowest: int) -> int:
        if not _HEADER.size <= target < lowest:
            raise self._corrupt("a target below its node", target)
        return target

    def _corrupt(self, expected: str, actual: object) -> CorruptFileError:
        return CorruptFileError(self._path, None, expected, str(actual))


def _utf8_length(first: int) -> int:
    if first < 0xC0:
        return 1
    return 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def _next_row(row: tuple[int, ...], word: str, letter: str) -> tuple[int, ...]:
    """Return the edit distances after one more letter."""
    after = [row[0] + 1]
    for place, character in enumerate(word):
        replaced = row[place] + (character != letter)
        after.append(min(replaced, row[place + 1] + 1, after[place] + 1))
    return tuple(after)


# --- writing --------------------------------------------------------------------------------------

_Frozen = tuple[int | None, tuple[Transition, ...]]


class _Building:
    """A state that may still get transitions: ``outputs`` and ``targets`` by byte, in order."""

    __slots__ = ("final", "last", "transitions")

    def __init__(self) -> None:
        self.final: int | None = None
        self.transitions: list[Transition] = []
        self.last: int | None = None  # the byte whose target is not written yet


_SHARED_MAX = 1 << 18  # states that are looked up to be shared


def write_fst(keys: Iterable[bytes]) -> bytes:
    """Write the map of each key to its place in the order of keys.

    ``keys`` are ascending and different. Equal ends of keys share their states, as long as
    ``_SHARED_MAX`` are remembered. Raises InvalidInputError for another order.
    """
    out = bytearray(_HEADER.pack(VERSION, 0))
    shared: dict[_Frozen, int] = {}
    path = [_Building()]
    outputs: list[int] = []  # of the transitions on the path that are not written
    previous, count = b"", 0
    for number, key in enumerate(keys):
        if number and key <= previous:
            raise InvalidInputError(f"keys must ascend: {key!r} after {previous!r}")
        common = _common(previous, key)
        while len(path) > common + 1:
            _freeze_last(path, outputs, out, shared)
        remainder = number - sum(outputs)
        for byte in key[common:]:
            path[-1].last = byte
            outputs.append(remainder)
            remainder = 0
            path.append(_Building())
        path[-1].final = remainder
        previous, count = key, number + 1
    while len(path) > 1:
        _freeze_last(path, outputs, out, shared)
    root = _freeze(path[0], out, shared)
    out += _FOOTER.pack(count, root)
    out += _CHECK.pack(_masked(crc32c(bytes(out))))
    return bytes(out)


def _common(key: bytes, other: bytes) -> int:
    shortest = min(len(key), len(other))
    if key[:shortest] == other[:shortest]:
        return shortest
    return next(place for place in range(shortest) if key[place] != other[place])


def _freeze_last(
    path: list[_Building], outputs: list[int], out: bytearray, shared: dict[_Frozen, int]
) -> None:
    """Write the last state of the path, and the transition of the one before that leads to it."""
    target = _freeze(path.pop(), out, shared)
    parent = path[-1]
    byte = parent.last
    if byte is not None:
        parent.transitions.append(Transition(byte, outputs.pop(), target))
        parent.last = None


def _freeze(state: _Building, out: bytearray, shared: dict[_Frozen, int]) -> int:
    """Write a state, unless an equal one is known; return its address."""
    if state.final == 0 and not state.transitions:
        return 0
    key = (state.final, tuple(state.transitions))
    existing = shared.get(key)
    if existing is not None:
        return existing
    address = _write_state(state.final, state.transitions, out)
    if len(shared) < _SHARED_MAX:
        shared[key] = address
    return address


def _write_state(final: int | None, transitions: list[Transition], out: bytearray) -> int:
    lowest = len(out)
    if len(transitions) == 1 and final is None:
        byte, output, target = transitions[0]
        number = _NUMBER_OF[byte]
        number = number if number <= _COMMON_MAX else 0
        is_next = not output and target and target == lowest - 1
        if not is_next:
            delta = lowest - target if target else 0
            width, output_width = _width(delta), _width(output) if output else 0
            out += output.to_bytes(output_width, "little") + delta.to_bytes(width, "little")
            out.append(width << 4 | output_width)
        if not number:
            out.append(byte)
        out.append((0xC0 if is_next else 0x80) | number)
        return len(out) - 1
    deltas = [lowest - transition.target if transition.target else 0 for transition in transitions]
    width = max(map(_width, deltas), default=0)
    largest = max([final or 0, *(transition.output for transition in transitions)])
    output_width = _width(largest) if largest else 0
    if final is not None:
        out += final.to_bytes(output_width, "little")
    for transition in reversed(transitions):
        out += transition.output.to_bytes(output_width, "little")
    for delta in reversed(deltas):
        out += delta.to_bytes(width, "little")
    out += bytes(transition.byte for transition in reversed(transitions))
    count = len(transitions)
    if count > _INDEXED:
        index = bytearray(b"\xff" * 256)
        for number, transition in enumerate(transitions):
            index[transition.byte] = number
        out += index
    out.append(width << 4 | output_width)
    if not 0 < count <= _COUNT_MAX:
        out.append(1 if count == 256 else count)
    out.append((0x40 if final is not None else 0) | (count if count <= _COUNT_MAX else 0))
    return len(out) - 1


def _width(value: int) -> int:
    return max((value.bit_length() + 7) // 8, 1)


# --- CRC-32C --------------------------------------------------------------------------------------

_POLYNOMIAL = 0x82F63B78
_LANES = 1 << 10
U32s = npt.NDArray[np.uint32]


def _crc_table() -> U32s:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        odd = (table & np.uint32(1)).astype(np.bool_)
        table = (table >> np.uint32(1)) ^ np.where(odd, np.uint32(_POLYNOMIAL), np.uint32(0))
    return table


def _masked(value: int) -> int:
    return (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes.

    The bytes are cut into ``_LANES`` equal pieces that are summed side by side; what a piece adds
    is then moved over the bytes behind it.
    """
    table = _crc_table()
    small = [int(number) for number in table]
    length = len(data) // _LANES
    value = 0xFFFFFFFF
    position = 0
    if length >= 64:
        position = length * _LANES
        lanes = np.frombuffer(data, np.uint8, position).reshape(_LANES, length)
        sums = np.zeros(_LANES, np.uint32)
        for column in np.ascontiguousarray(lanes.T):
            sums = table[(sums ^ column) & np.uint32(0xFF)] ^ (sums >> np.uint32(8))
        moved = _zeros_matrix(small, length)
        for crc in sums.tolist():
            value = _times(moved, value) ^ crc
    for byte in data[position:]:
        value = small[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def _zeros_matrix(table: list[int], count: int) -> list[int]:
    """Return what ``count`` zero bytes make of each bit of a sum."""
    power = [table[(1 << bit) & 0xFF] ^ ((1 << bit) >> 8) for bit in range(32)]
    result = [1 << bit for bit in range(32)]
    while count:
        if count & 1:
            result = [_times(power, element) for element in result]
        power = [_times(power, element) for element in power]
        count >>= 1
    return result


def _times(matrix: list[int], value: int) -> int:
    result = 0
    for column in matrix:
        if value & 1:
            result ^= column
        value >>= 1
        if not value:
            break
    return result

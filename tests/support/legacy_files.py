"""Data files of version 0.1 by hand, as the format describes them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from lance_nb._pb import file as pb
from lance_nb._pb import table as table_pb


def strings(start: int, values: Sequence[bytes]) -> tuple[bytes, int]:
    """Write values and then their positions in the file; return both and where the page begins."""
    body = b"".join(values)
    ends = [start]
    for value in values:
        ends.append(ends[-1] + len(value))
    return body + struct.pack(f"<{len(ends)}q", *ends), start + len(body)


def node(field_id: int, name: str, kind: str, parent: int = -1, **more: object) -> pb.Field:
    """Describe one field."""
    nullable = bool(more.pop("nullable", True))
    made = pb.Field(id=field_id, name=name, logical_type=kind, parent_id=parent, nullable=nullable)
    if "dictionary" in more:
        made.dictionary.offset, made.dictionary.length = more["dictionary"]  # type: ignore[misc]
    made.encoding = more.get("encoding", 0)  # type: ignore[assignment]
    return made


@dataclass
class LegacyFile:
    """A file that grows: ``add`` pages, then ``finish``."""

    fields: list[pb.Field]
    batch_offsets: list[int]
    body: bytearray = field(default_factory=lambda: bytearray(b"\xaa" * 3))
    pages: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    statistics: pb.Metadata.Statistics | None = None

    def add(self, field_id: int, batch: int, data: bytes, num_values: int) -> None:
        """Add a page of fixed-width values."""
        self.pages[field_id, batch] = (len(self.body), num_values)
        self.body += data

    def add_strings(self, field_id: int, batch: int, values: Sequence[bytes]) -> None:
        """Add a page of byte strings."""
        data, position = strings(len(self.body), values)
        self.pages[field_id, batch] = (position, len(values))
        self.body += data

    def finish(self) -> bytes:
        """Write tables, messages and footer."""
        out = bytearray(self.body)
        metadata = pb.Metadata(batch_offsets=self.batch_offsets, page_table_position=len(out))
        out += self.page_table(len(self.batch_offsets) - 1, [one.id for one in self.fields])
        if self.statistics is not None:
            metadata.statistics.CopyFrom(self.statistics)
        metadata.manifest_position = len(out)
        for message in (table_pb.Manifest(fields=self.fields), metadata):
            position = len(out)
            raw = message.SerializeToString()
            out += struct.pack("<I", len(raw)) + raw
        return bytes(out + struct.pack("<QHH4s", position, 0, 2, b"LANC"))

    def page_table(self, num_batches: int, ids: Sequence[int]) -> bytes:
        """Write positions and lengths for every id from the smallest to the largest."""
        return b"".join(
            struct.pack("<qq", *self.pages.get((field_id, batch), (0, 0)))
            for field_id in range(min(ids), max(ids) + 1)
            for batch in range(num_batches)
        )


def example() -> bytes:
    """Two batches (3 and 2 rows) of numbers, flags, text, lists, structs and a dictionary."""
    made = LegacyFile([], [0, 3, 5])
    data, position = strings(len(made.body), [b"red", b"", b"blue"])
    made.body += data
    made.fields += [
        node(2, "n", "int32"),
        node(3, "b", "bool"),
        node(4, "t", "string"),
        node(5, "l", "list"),
        node(6, "item", "string", 5),
        node(7, "s", "struct"),
        node(8, "x", "double", 7),
        node(9, "d", "dict:string:int8:false", dictionary=(position, 3)),
        node(10, "v", "fixed_size_list:int16:2"),
        node(11, "u", "string", nullable=False),
        node(12, "z", "null"),
    ]
    batches = [
        ([7, -1, 0], 0b101, [b"ab", b"", b"c"], [0, 2, 2, 3], [b"p", b"q", b"r"]),
        ([8, 9], 0b10, [b"", b"xyz"], [0, 0, 1], [b"s"]),
    ]
    for batch, (numbers, bits, texts, offsets, items) in enumerate(batches):
        count = len(numbers)
        made.add(2, batch, struct.pack(f"<{count}i", *numbers), count)
        made.add(3, batch, bytes([bits]), count)
        made.add_strings(4, batch, texts)
        made.add(5, batch, struct.pack(f"<{count + 1}i", *offsets), count + 1)
        made.add_strings(6, batch, items)
        made.add(8, batch, struct.pack(f"<{count}d", *(n / 2 for n in numbers)), count)
        made.add(9, batch, bytes(range(count)), count)
        made.add(10, batch, struct.pack(f"<{2 * count}h", *range(2 * count)), count)
        made.add_strings(11, batch, texts)
        made.add(12, batch, b"", count)
    return made.finish()


EXAMPLE_ROWS = {
    "n": [7, -1, 0, 8, 9],
    "b": [True, False, True, False, True],
    "t": ["ab", None, "c", None, "xyz"],
    "l": [["p", "q"], [], ["r"], [], ["s"]],
    "s": [{"x": 3.5}, {"x": -0.5}, {"x": 0.0}, {"x": 4.0}, {"x": 4.5}],
    "d": ["red", None, "blue", "red", None],
    "v": [[0, 1], [2, 3], [4, 5], [0, 1], [2, 3]],
    "u": ["ab", "", "c", "", "xyz"],
    "z": [None] * 5,
}

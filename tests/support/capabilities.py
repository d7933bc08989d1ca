"""The generated parts of the documentation, made by ``make capabilities``.

``--check`` fails instead of writing. Each part stands between two marker lines of a page: what can
be read and written, and the verbs of ``%lance``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from lance_nb.encodings import registry
from lance_nb.encodings.compress_base import BlockCompressor, ChunkCompressor, ValueCompressor
from lance_nb.encodings.page_encoder import COMPRESSORS, LAYOUT_ENCODERS
from lance_nb.encodings.v2_0.array_encodings import ARMS as ARRAY_ARMS
from lance_nb.file.reader import READABLE_VERSIONS
from lance_nb.file.v0_1_reader import LegacyReader
from lance_nb.file.versions import WRITABLE_VERSIONS
from lance_nb.format.feature_flags import FLAGS
from lance_nb.format.logical_types import SIMPLE_TYPES
from lance_nb.magic.registry import table_of_verbs
from lance_nb.storage.registry import STORES
from lance_nb.transactions.registry import OPERATIONS

REFERENCE = Path(__file__).resolve().parents[2] / "notebooks" / "reference"
BEGIN = "<!-- capabilities: made by `make capabilities`, do not edit -->"
END = "<!-- end of capabilities -->"
BEGIN_VERBS = "<!-- verbs: made by `make capabilities`, do not edit -->"
END_VERBS = "<!-- end of verbs -->"
YES, NO = "✓", "–"
NEVER_APPLIED = {"data_overlay"}
APART = {"blob_layout"}  # written with its payloads, by a module of its own
REFUSED = {"dictionary"}  # the arm exists, no release writes it, and decoding it is refused by name

PARAMETRIC_TYPES = {
    "timestamp:{s,ms,us,ns}:{zone}": "timestamp",
    "decimal:{128,256}:{precision}:{scale}": "decimal128, decimal256",
    "fixed_size_binary:{bytes}": "fixed-size binary",
    "fixed_size_list:{type}:{length}": "fixed-size list",
    "dict:{value}:{key}:{ordered}": "dictionary",
    "list, large_list": "list, large list",
    "struct": "struct, also packed and empty",
    "map": "map",
    "blob, lance.blob.v2": "blob descriptions; payloads as files by `take_blobs`",
}


def tables() -> str:
    """Return the Markdown between the markers."""
    parts = (_versions(), _encodings(), _types(), _operations(), _flags(), _stores())
    return "\n\n".join(parts)


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = list(head)
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _mark(value: object) -> str:
    return YES if value else NO


def _versions() -> str:
    known = sorted({LegacyReader.file_version, *READABLE_VERSIONS})
    rows = [(f"{v[0]}.{v[1]}", YES, _mark(v in WRITABLE_VERSIONS)) for v in known]
    rows.append(("2.3 and later", "refused by name", "refused by name"))
    return "**Data file versions**\n\n" + _table(("version", "read", "write"), rows)


def _read_write(arm: str, read: type, write: type) -> str:
    """Say whether an arm can be read and written in one of its roles."""
    can_read = isinstance(registry.codec_of(arm), read)
    can_write = isinstance(COMPRESSORS.get(arm), write)
    marks = ("read" * can_read, "write" * can_write)
    return ", ".join(mark for mark in marks if mark) or NO


def _encodings() -> str:
    rows = [
        (
            f"`{arm}`",
            _read_write(arm, registry.MiniBlockCodec, ChunkCompressor),
            _read_write(arm, registry.BlockCodec, BlockCompressor),
            _read_write(arm, registry.PerValueCodec, ValueCompressor),
            _mark(isinstance(registry.codec_of(arm), registry.GatherCodec)),
        )
        for arm in registry.CODECS
        if arm not in REFUSED
    ]
    head = ("encoding (2.1, 2.2)", "mini-block", "block", "full-zip", "single values are fetched")
    layouts = [
        (f"`{arm}`", "read, write" if arm in LAYOUT_ENCODERS or arm in APART else "read")
        for arm in registry.LAYOUTS
    ]
    arrays = ", ".join(f"`{arm}`" for arm in ARRAY_ARMS)
    refused = ", ".join(f"`{arm}`" for arm in sorted(REFUSED))
    return (
        "**Encodings**: in which roles they are read and written\n\n"
        + _table(head, rows)
        + f"\n\nRefused by name: {refused} (never written). "
        + f"Array encodings of 2.0: {arrays}.\n\n"
        + _table(("page layout (2.1, 2.2)", ""), layouts)
    )


def _types() -> str:
    simple = ", ".join(f"`{name}`" for name in SIMPLE_TYPES)
    rows = [(f"`{name}`", meaning) for name, meaning in PARAMETRIC_TYPES.items()]
    return f"**Types**: {simple}, and\n\n" + _table(("logical type", "Arrow"), rows)


def _operations() -> str:
    applied = ", ".join(f"`{name}`" for name in OPERATIONS if name not in NEVER_APPLIED)
    refused = ", ".join(f"`{name}`" for name in OPERATIONS if name in NEVER_APPLIED)
    return (
        f"**Operations** that are shown, committed and checked for conflicts: {applied}. {refused} "
        "is shown and never applied; others show as Unknown. How each pair gets along: "
        "`make conflict-grid`."
    )


def _flags() -> str:
    rows = [
        (flag.bit.bit_length() - 1, flag.name, _mark(flag.can_read), _mark(flag.can_write))
        for flag in FLAGS
    ]
    return "**Feature flags**: datasets that set them\n\n" + _table(
        ("bit", "flag", "can be read", "may be written"), rows
    )


def _pip_line(install: str) -> str:
    return f"pip install '{install}'" if "[" in install else f"pip install {install}"


def _stores() -> str:
    rows = [
        (f"`{scheme}://`", _pip_line(install) if install else "built in")
        for scheme, (_, _, install) in STORES.items()
    ]
    return "**Stores** for reading\n\n" + _table(("scheme", "needs"), rows)


def parts() -> dict[Path, tuple[str, str, str]]:
    """Return what is generated: the page, its marker lines, and what stands between them."""
    return {
        REFERENCE / "commands.md": (BEGIN_VERBS, END_VERBS, table_of_verbs()),
        REFERENCE / "capabilities.md": (BEGIN, END, tables()),
    }


def rendered(page: Path, text: str) -> str:
    """Return the text of a page with fresh tables. Raises ValueError without the markers."""
    begin, end, body = parts()[page]
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{page.name} has lost a marker line of its generated tables: {begin}")
    return f"{before}{begin}\n\n{body}\n\n{end}{after}"


def main() -> None:
    """Write the tables, or with ``--check`` compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for page in parts():
        old = page.read_text()
        new = rendered(page, old)
        if new == old:
            continue
        if options.check:
            sys.exit(f"the tables of {page.name} are stale: run make capabilities")
        page.write_text(new)


if __name__ == "__main__":
    main()

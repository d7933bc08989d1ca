"""The generated pages of notebooks/reference, written by ``make reference``.

``capabilities.md`` says what the registries of the package hold, ``commands.md`` lists the verbs of
``%lance``. A test fails while a page is stale.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable

from lance_nb.encodings import registry
from lance_nb.encodings.page_encoder import LAYOUT_ENCODERS
from lance_nb.encodings.v2_0.array_encodings import ARMS as ARRAY_ARMS
from lance_nb.file.reader import READABLE_VERSIONS
from lance_nb.file.v0_1_reader import LegacyReader
from lance_nb.file.versions import WRITABLE_VERSIONS
from lance_nb.format import index_metadata
from lance_nb.format.feature_flags import FLAGS
from lance_nb.format.logical_types import SIMPLE_TYPES
from lance_nb.indices import registry as indices
from lance_nb.magic.registry import GROUPS
from lance_nb.storage.registry import STORES
from lance_nb.transactions.external.registry import STORES as MANIFEST_STORES
from lance_nb.transactions.registry import OPERATIONS
from tests.house.source import ROOT

REFERENCE = ROOT / "notebooks" / "reference"
NOTE = "<!-- written by `make reference`, do not edit -->"
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


def capabilities() -> str:
    """Return the page that says what is supported."""
    return f"""\
# What is supported

{NOTE}

Unsupported features are refused with an error that names them. Python {_pythons()}; JupyterLab 4,
Notebook 7, Voila and marimo are tested, VS Code and Colab are not. The explorer needs a running
kernel; a saved notebook shows a static picture.

{_versions()}

{_indices()}

{_operations()}
Merges and reverts compare row by row: a change and a *compaction* of the same fragment on two sides
are a conflict.

{_stores()}

{_types()}

{_encodings()}

{_flags()}
"""


def commands() -> str:
    """Return the page of all verbs."""
    verbs = (
        (f"`{_escaped(verb.usage)}`", _escaped(verb.help))
        for group in GROUPS.values()
        for verb in group
    )
    return f"""\
# All verbs of `%lance` and `lance-nb`

{NOTE}

In a terminal the dataset comes first: `lance-nb log photos.lance -n 5`. `stage`, `status`,
`commit` and `discard` need a notebook. Words, variables and quotes: see the
[guide](../guides/command_line.md).

{_table(("command", "what it does"), verbs)}
"""


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _pythons() -> str:
    """Return the versions of Python that pyproject.toml names, as a range."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    minors = sorted(
        int(classifier.rpartition(".")[2])
        for classifier in project["classifiers"]
        if classifier.startswith("Programming Language :: Python :: 3.")
    )
    return f"3.{minors[0]} to 3.{minors[-1]}"


def _indices() -> str:
    built = indices.builders()
    in_filters = {_plain(kind) for kind in indices.KINDS}
    vectors = [
        f"IVF_{graph}{vector_codes}"
        for graph in ("", "HNSW_")
        for vector_codes in index_metadata._COMPRESSIONS.values()
    ]
    uses = {
        **{kind: "filters" for kind in built if _plain(kind) in in_filters},
        "INVERTED": "full-text search",
        **dict.fromkeys(vectors, "`nearest`"),
    }
    rows = [(f"`{kind}`", _mark(kind in built), use) for kind, use in uses.items()]
    return (
        "**Indices**: those of other kinds are shown and kept valid; fragments that an index does "
        "not cover are scanned\n\n" + _table(("kind", "can be built", "is used by"), rows)
    )


def _plain(kind: str) -> str:
    return kind.replace("_", "").upper()


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


def _read_write(arm: str, form: str) -> str:
    """Say whether values of one form can be read and written with an arm."""
    codec = registry.codec_of(arm)
    marks = ("read" * codec.has(f"decode_{form}"), "write" * codec.has(f"compress_{form}"))
    return ", ".join(mark for mark in marks if mark) or NO


def _encodings() -> str:
    rows = [
        (
            f"`{arm}`",
            *(_read_write(arm, form) for form in ("chunks", "blocks", "values")),
            _mark(registry.codec_of(arm).has("gather")),
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
        "`python -m tests.support.print_grid`."
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
    manifest_stores = ", ".join(f"`{scheme}://`" for scheme in MANIFEST_STORES)
    return (
        "**Stores**\n\n"
        + _table(("scheme", "needs"), rows)
        + "\n\nOther schemes are those of the fsspec packages that are installed. A store without "
        + f"an exclusive write can commit through a manifest store: {manifest_stores}."
    )


PAGES = {REFERENCE / "capabilities.md": capabilities, REFERENCE / "commands.md": commands}

if __name__ == "__main__":
    for page, text in PAGES.items():
        page.write_text(text(), "utf-8")

"""A new version on its way to storage: its manifest file in bytes, and what a reader will see.

Layout: format/manifest.py; the sections are the indices and the transaction, both whole.

Source: order of sections and of writes as pylance 14.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lance_nb.errors import LanceError
from lance_nb.format import layout
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.fragment_reuse import DETAILS_FILE, outside
from lance_nb.format.index_metadata import IndexMetadata, build_index_section
from lance_nb.format.layout import ManifestName
from lance_nb.format.manifest import Manifest, Section, section_size
from lance_nb.format.transaction_summary import MESSAGE_PROPERTY
from lance_nb.storage.base import Store, write_unsynced
from lance_nb.transactions.checksum_records import sum_of, write_record
from lance_nb.transactions.commit_options import Committed
from lance_nb.transactions.operation import Built
from lance_nb.transactions.transaction import Transaction


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version that can be written. ``committed`` is what it is when it has landed."""

    name: ManifestName
    data: bytes
    inline: bytes
    committed: Committed


def prepare(home: Store, built: Built, transaction: Transaction, name: ManifestName) -> NewVersion:
    """Serialize a version; writes at most what of its indices does not lie in the manifest."""
    inline = transaction.to_bytes()
    indices = tuple(_settled(home, one, built.manifest) for one in built.indices)
    index_section = build_index_section(indices) if indices else None
    data = built.manifest.to_bytes(index_section=index_section, transaction=inline)
    start = len(built.manifest.live_preamble)
    manifest = replace(
        built.manifest,
        index_section=None if index_section is None else Section(start, index_section),
        transaction_section=Section(start + section_size(index_section), inline),
        size_bytes=len(data),
        path=f"{home.uri}/{name.path}",
    )
    return NewVersion(name, data, inline, Committed(manifest, indices, transaction))


def _settled(home: Store, index: IndexMetadata, manifest: Manifest) -> IndexMetadata:
    """Write details that are too large for a manifest into a file, durably."""
    moved = outside(index)
    if moved is None:
        return index
    settled, content = moved
    path = f"{layout.index_folder(index.uuid)}/{DETAILS_FILE}"
    home.write(path, content)
    if wants_checksums(manifest.config):
        write_record(home, [sum_of(path, content)])
    return settled


def write_transaction_file(home: Store, version: NewVersion) -> str:
    """Write the ``.txn`` file that a version names; return its name, "" if it names none.

    The disk is not waited for: the durable copy is the one inside the manifest file.
    """
    file_name = version.committed.manifest.transaction_file
    if file_name:
        write_unsynced(home, layout.transaction_path(file_name), version.inline)
    return file_name


def write_hint(home: Store, version: int) -> None:
    """Tell other readers which version is the newest; if that fails, they list instead."""
    try:
        write_unsynced(home, layout.HINT_PATH, b'{"version":%d}' % version)
    except LanceError:
        return


def with_message(transaction: Transaction, message: str | None) -> Transaction:
    """Return the transaction with a commit message among its properties."""
    if message is None:
        return transaction
    return replace(
        transaction, transaction_properties={**transaction.properties, MESSAGE_PROPERTY: message}
    )

"""Where versions come from, written into the properties of their transactions when asked for.

A hook: the floors below the notebook know neither notebooks nor people. ``lance_nb.provenance``
installs a source; every commit of the façade asks it once.

=====================================  =============================================================
property                               value
=====================================  =============================================================
lance_nb.provenance.author             who, as the user said
lance_nb.provenance.notebook           path of the notebook, as its server names it
lance_nb.provenance.cell_id            id of the cell
lance_nb.provenance.execution_count    the number beside the cell
lance_nb.provenance.code_sha256        SHA-256 of the cell's source, as UTF-8, in hex
__lance_commit_message                 the message, where the commit has none of its own
=====================================  =============================================================

Limits: a value is cut at ``TEXT_CHARS_MAX`` characters; what is no Unicode text is replaced.
Properties that the caller gave stay as they are.
Source: field ``transaction_properties`` of Transaction; the names are our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lance_nb.format.transaction_summary import MESSAGE_PROPERTY

if TYPE_CHECKING:
    from lance_nb.transactions.transaction import Transaction

PREFIX = "lance_nb.provenance."
AUTHOR, NOTEBOOK, CELL_ID = f"{PREFIX}author", f"{PREFIX}notebook", f"{PREFIX}cell_id"
EXECUTION_COUNT, CODE_SHA256 = f"{PREFIX}execution_count", f"{PREFIX}code_sha256"
TEXT_CHARS_MAX = 1000

Source = Callable[[], Mapping[str, str]]

_sources: list[Source] = []


def set_source(source: Source | None) -> None:
    """Install the function that tells where a commit comes from; None removes it."""
    _sources.clear()
    if source is not None:
        _sources.append(source)


def properties() -> dict[str, str]:
    """Return the properties for a commit that is made now; none where no source is registered."""
    provided = _sources[0]() if _sources else {}
    return {name: clean(value) for name, value in provided.items() if value}


def clean(text: str) -> str:
    """Return a text that any reader can store and show."""
    return text[:TEXT_CHARS_MAX].encode("utf-8", "replace").decode("utf-8")


def stamped(transaction: Transaction, message: str | None = None) -> Transaction:
    """Return the transaction with where it comes from; ``message`` is what the commit will say."""
    provided = properties()
    if message is not None:
        provided.pop(MESSAGE_PROPERTY, None)
    if not provided:
        return transaction
    return replace(transaction, transaction_properties={**provided, **transaction.properties})

"""The arguments of ``write_dataset`` and ``write_fragments``: checked, and made one request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_nb.errors import InvalidInputError
from lance_nb.format.checksums import ALGORITHM, CONFIG_KEY
from lance_nb.session.base_paths import registered, remember_created
from lance_nb.session.opening import (
    NO_URI,
    Destination,
    check_lock,
    check_refused,
    destination,
    storage_version_of,
)
from lance_nb.session.session import Session
from lance_nb.table import retention
from lance_nb.table.snapshot import Snapshot
from lance_nb.writing import writing

_REFUSED = ("base_store_params", "namespace_client", "table_id")
_AS_THEY_ARE = (
    "max_rows_per_file", "max_bytes_per_file", "max_page_bytes", "enable_v2_manifest_paths",
    "enable_stable_row_ids", "commit_lock", "commit_message", "progress", "external_blob_mode",
    "allow_external_blob_outside_bases", "blob_pack_file_size_threshold", "target_bases",
    "target_all_bases",
)  # fmt: skip

Opened = tuple[Session, Snapshot | None, writing.WriteRequest, list[str]]


def opened_request(uri: Destination | None, mode: str, arguments: Mapping[str, Any]) -> Opened:
    """Return where to write, the version that is there (None: no dataset), and the request.

    Return also the places that the request names, which the session trusts. ``arguments`` are those
    of ``write_dataset`` by name; others are left alone. Raises as ``write_dataset``.
    """
    check_refused({name: arguments.get(name) for name in _REFUSED})
    if uri is None:
        raise InvalidInputError(NO_URI)
    lock = arguments.get("commit_lock")
    check_lock(lock)
    writing.check_mode(mode)
    session, current = destination(
        uri,
        arguments["storage_options"],
        arguments.get("allow_bases", ()),
        session=arguments["session"],
        commit_lock=lock,
    )
    cleanup = arguments.get("auto_cleanup_options")
    request = writing.WriteRequest(
        **{name: arguments[name] for name in _AS_THEY_ARE if name in arguments},
        data_storage_version=storage_version_of(
            arguments["data_storage_version"], arguments["use_legacy_format"]
        ),
        transaction_properties=arguments.get("transaction_properties") or {},
        initial_bases=registered(arguments["initial_bases"] or ()),
        config={
            **({} if cleanup is None else retention.auto_cleanup_config(cleanup)),
            **({CONFIG_KEY: ALGORITHM} if arguments.get("checksums") else {}),
        },
    )
    places = writing.named_places(current, request)
    return *writing.trusted(session, current, places), request, places


def write_rows(
    data: Any, uri: Destination | None, mode: str, arguments: Mapping[str, Any]
) -> tuple[Session, Snapshot]:
    """Write rows and commit them, as ``write_dataset`` does; return the new version."""
    session, current, request, places = opened_request(uri, mode, arguments)
    snapshot = writing.write(
        session, current, data, request, mode=mode, schema=arguments.get("schema")
    )
    remember_created(session.root.uri, places)
    return session, snapshot

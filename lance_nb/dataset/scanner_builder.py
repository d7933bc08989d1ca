"""ScannerBuilder: a scan put together option by option, as pylance's class of that name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from lance_nb.errors import InvalidInputError

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.dataset.fragment import LanceFragment
    from lance_nb.dataset.scanner import LanceScanner

# Options whose method has the name of the scanner's argument and takes its value.
_PLAIN = frozenset({
    "batch_readahead", "batch_size", "batch_size_bytes", "blob_handling", "columns", "fast_search",
    "filter", "fragment_readahead", "include_deleted_rows", "io_buffer_size",
    "late_materialization", "limit", "offset", "order_by", "prefilter", "scan_in_order",
    "scan_stats_callback", "strict_batch_size", "substrait_aggregate", "use_scalar_index",
    "use_stats", "with_row_address", "with_row_id",
})  # fmt: skip


class ScannerBuilder:
    """Collects options; ``to_scanner`` checks them. Every method returns the builder.

    Besides the methods below there is one for every argument of ``LanceDataset.scanner``:
    ``limit``, ``offset``, ``columns``, ``filter``, ``batch_size``, ``with_row_id`` and so on.
    """

    def __init__(self, ds: LanceDataset) -> None:
        self.ds = ds
        self._options: dict[str, Any] = {}

    def apply_defaults(self, default_opts: Mapping[str, Any]) -> Self:
        """Set several options by name. Raises InvalidInputError for an unknown one."""
        for name, value in default_opts.items():
            setter = getattr(self, name, None)
            if setter is None:
                raise InvalidInputError(f"Unknown option {name}")
            if isinstance(value, Mapping):
                setter(**value)
            else:
                setter(value)
        return self

    def nearest(self, column: str, q: Any, k: int | None = None, **options: Any) -> Self:
        """Search the vectors nearest to ``q``; options as in ``nearest`` of the scanner."""
        given = {"column": column, "q": q, "k": k, **options}
        return self._set("nearest", {name: one for name, one in given.items() if one is not None})

    def with_fragments(self, fragments: Iterable[LanceFragment] | None) -> Self:
        """Read some fragments only."""
        return self._set("fragments", fragments)

    def with_index_segments(self, index_segments: Sequence[Any] | None) -> Self:
        """Choose index segments: refused when the scan is made, as no index is used."""
        return self._set("index_segments", index_segments)

    def disable_scoring_autoprojection(self, disable: bool = True) -> Self:
        """Leave the distance out of a search's result unless it is asked for."""
        return self._set("disable_scoring_autoprojection", disable)

    def full_text_search(self, query: Any, columns: Sequence[str] | None = None) -> Self:
        """Search texts: refused when the scan is made, as no index is used."""
        return self._set("full_text_query", {"query": query, "columns": columns})

    def row_addr_prefilter(
        self, allowlist: bytes | None = None, blocklist: bytes | None = None
    ) -> Self:
        """Choose rows by address: refused when the scan is made; filter by ``_rowaddr``."""
        self._set("row_addr_allowlist", allowlist)
        return self._set("row_addr_blocklist", blocklist)

    def to_scanner(self) -> LanceScanner:
        """Make the scan; raises as ``LanceDataset.scanner``."""
        return self.ds.scanner(**self._options)

    def _set(self, name: str, value: Any) -> Self:
        self._options[name] = value
        return self

    def __getattr__(self, name: str) -> Any:
        if name not in _PLAIN:
            raise AttributeError(f"ScannerBuilder has no option {name!r}")

        default = _DEFAULTS.get(name)

        def setter(value: Any = default) -> ScannerBuilder:
            return self._set(name, value)

        return setter

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_PLAIN})


_DEFAULTS: dict[str, Any] = {
    "with_row_id": True,
    "with_row_address": True,
    "scan_in_order": True,
    "use_stats": True,
    "use_scalar_index": True,
    "strict_batch_size": False,
}

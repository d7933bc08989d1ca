"""ScannerBuilder: a scan that is put together option by option; every other scan uses it too.

Names, arguments and defaults are those of pylance's class, so that ``default_scan_options`` written
for pylance work. Arguments that tune how pylance reads, and cannot change what is read, are checked
and have no effect.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, Self

from lance_nb.dataset.scanner import BLOB_HANDLING, LanceScanner
from lance_nb.errors import ArgumentError, InvalidInputError, NotSupportedError
from lance_nb.table.scan_plan import ScanOptions

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.dataset.fragment import LanceFragment

DEFAULT_BATCH_SIZE = "LANCE_DEFAULT_BATCH_SIZE"

# Arguments that would change the result, and what to do instead.
_REFUSED = {
    "index_segments": "every segment that helps is searched; leave index_segments out",
    "row_addr_allowlist": "filter by _rowaddr instead: filter='_rowaddr IN (...)'",
    "row_addr_blocklist": "filter by _rowaddr instead: filter='_rowaddr NOT IN (...)'",
    "substrait_aggregate": "aggregate the table that the scan returns",
}


class ScannerBuilder:
    """Collects the options of a scan; ``to_scanner`` plans it. Every method returns the builder.

    An option that is set twice has the second value.

    Args:
        ds: the dataset to scan.

    Examples:
        >>> builder = lance_nb.ScannerBuilder(ds).columns(["id"]).filter("id > 2").limit(3)
        >>> builder.to_scanner().to_table()["id"].to_pylist()
        [3, 4, 5]
    """

    def __init__(self, ds: LanceDataset) -> None:
        self.ds = ds
        self._options: dict[str, Any] = {}

    def apply_defaults(self, default_opts: Mapping[str, Any]) -> Self:
        """Call the methods that a dict names; a dict as its value is passed as named arguments.

        Args:
            default_opts: method to argument.

        Raises InvalidInputError for a name that is no method.

        Examples:
            >>> options = {"columns": ["id"], "limit": 2}
            >>> builder = lance_nb.ScannerBuilder(ds).apply_defaults(options)
            >>> builder.to_scanner().to_table().to_pydict()
            {'id': [0, 1]}
        """
        for name, value in default_opts.items():
            setter = None if name.startswith("_") else getattr(self, name, None)
            if setter is None:
                raise InvalidInputError(f"Unknown option {name}")
            if isinstance(value, Mapping) and name not in ("columns", "filter"):
                setter(**value)
            else:
                setter(value)
        return self

    # --- which rows and columns -------------------------------------------------------------------

    def columns(self, cols: Sequence[str] | Mapping[str, str] | None = None) -> Self:
        """Choose columns by name, or compute them.

        Args:
            cols: names, or a dict of name to SQL expression; None returns every column.

        Raises ArgumentError (a TypeError) for a single text.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(ds).columns({"twice": "id * 2"})
            >>> builder.to_scanner().head(3).to_pydict()
            {'twice': [0, 2, 4]}
        """
        if isinstance(cols, str) or not isinstance(cols, Sequence | Mapping | None):
            raise ArgumentError(
                "columns must be a list or dict[name, expression], got "
                f"{type(cols)}: write columns=[{cols!r}] for one column"
            )
        return self._set("columns", cols)

    def filter(self, filter: Any) -> Self:
        """Return only the rows that pass a filter.

        Args:
            filter: SQL text or a pyarrow expression. A dict may hold it under "expr_filter", as in
                pylance; its "search_filter" is refused.

        Examples:
            >>> lance_nb.ScannerBuilder(ds).filter("id > 6").to_scanner().count_rows()
            3
        """
        if not isinstance(filter, Mapping):
            return self._set("filter", filter)
        if filter.get("search_filter") is not None:
            raise NotSupportedError(
                "a search cannot be used as a filter, because that needs an index; use nearest= "
                "with prefilter=True"
            )
        return self._set("filter", filter.get("expr_filter"))

    def limit(self, n: int | None = None) -> Self:
        """Return at most so many rows.

        Args:
            n: how many; None for all.

        Raises InvalidInputError for a negative number.

        Examples:
            >>> lance_nb.ScannerBuilder(ds).limit(3).to_scanner().to_table().num_rows
            3
        """
        if n is not None and int(n) < 0:
            raise InvalidInputError(f"Limit must be non-negative, got {n}")
        return self._set("limit", n)

    def offset(self, n: int | None = None) -> Self:
        """Skip rows of the result.

        Args:
            n: how many; None for none.

        Raises InvalidInputError for a negative number.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(ds).columns(["id"]).offset(8)
            >>> builder.to_scanner().to_table().to_pydict()
            {'id': [8, 9]}
        """
        if n is not None and int(n) < 0:
            raise InvalidInputError(f"Offset must be non-negative, got {n}")
        return self._set("offset", n)

    def with_fragments(self, fragments: Iterable[LanceFragment] | None) -> Self:
        """Read some fragments only.

        Args:
            fragments: which, in the order in which they are read; None for all.

        Raises ArgumentError (a TypeError) for other objects.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(ds).with_fragments(ds.get_fragments()[1:])
            >>> builder.to_scanner().count_rows()
            5
        """
        if fragments is None:
            return self._set("fragments", None)
        chosen = tuple(fragments)
        for fragment in chosen:
            if not hasattr(fragment, "metadata") or not hasattr(fragment, "fragment_id"):
                raise ArgumentError(
                    "fragments must be an iterable of LanceFragment. Got "
                    f"{type(fragment)} instead: ds.get_fragments() lists them"
                )
        return self._set("fragments", chosen)

    def include_deleted_rows(self, flag: bool) -> Self:
        """Return deleted rows too, with a null ``_rowid``; needs ``with_row_id``.

        Args:
            flag: whether to.

        Examples:
            >>> ds.delete("id = 5")["num_deleted_rows"]
            1
            >>> builder = lance_nb.ScannerBuilder(ds).with_row_id().include_deleted_rows(True)
            >>> builder.to_scanner().to_table().num_rows
            10
        """
        return self._set("include_deleted_rows", flag)

    def with_row_id(self, with_row_id: bool = True) -> Self:
        """Add the column ``_rowid``.

        Args:
            with_row_id: whether to.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(ds).columns(["id"]).with_row_id()
            >>> builder.to_scanner().head(1).to_pylist()
            [{'id': 0, '_rowid': 0}]
        """
        return self._set("with_row_id", with_row_id)

    def with_row_address(self, with_row_address: bool = True) -> Self:
        """Add the column ``_rowaddr``: ``fragment id << 32 | offset in the fragment``.

        Args:
            with_row_address: whether to.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(ds).columns(["id"]).with_row_address().offset(5)
            >>> builder.to_scanner().head(1).to_pylist()
            [{'id': 5, '_rowaddr': 4294967296}]
        """
        return self._set("with_row_address", with_row_address)

    def order_by(self, orderings: Iterable[Any] | None) -> Self:
        """Sort the rows.

        Args:
            orderings: names of columns, or ``ColumnOrdering`` values.

        Raises ColumnNotFoundError, NotSupportedError (when the scan is planned).

        Examples:
            >>> last = lance_nb.ColumnOrdering("id", ascending=False)
            >>> builder = lance_nb.ScannerBuilder(ds).columns(["id"]).order_by([last])
            >>> builder.to_scanner().head(2).to_pydict()
            {'id': [9, 8]}
        """
        return self._set("order_by", orderings)

    def blob_handling(self, blob_handling: str | None) -> Self:
        """Choose how blobs are returned.

        Args:
            blob_handling: "all_binary" for their bytes, else descriptions.

        Raises InvalidInputError for another word.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(photos).blob_handling("all_binary")
            >>> builder.to_scanner().to_table()["image"].to_pylist()
            [b'first photo', b'second photo']
        """
        if blob_handling not in (None, *BLOB_HANDLING):
            raise InvalidInputError(
                f"Invalid blob_handling: {blob_handling}. Expected one of: "
                + ", ".join(BLOB_HANDLING)
            )
        return self._set("blob_handling", blob_handling)

    def keep_dictionaries(self, keep: bool = True) -> Self:
        """Return top-level columns of strings and bytes as Arrow dictionaries. Not in pylance.

        Args:
            keep: whether to.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(ds).columns(["label"]).keep_dictionaries()
            >>> pa.types.is_dictionary(builder.to_scanner().to_table()["label"].type)
            True
        """
        return self._set("keep_dictionaries", keep)

    # --- searches ---------------------------------------------------------------------------------

    def nearest(
        self,
        column: str,
        q: Any,
        k: int | None = None,
        metric: str | None = None,
        nprobes: int | None = None,
        minimum_nprobes: int | None = None,
        maximum_nprobes: int | None = None,
        refine_factor: int | None = None,
        use_index: bool = True,
        ef: int | None = None,
        query_parallelism: int | None = None,
        approx_mode: Literal["fast", "normal", "accurate"] = "normal",
        distance_range: tuple[float | None, float | None] | None = None,
        search_effort: float | None = None,
    ) -> Self:
        """Return the rows whose vectors are nearest to a query.

        An index on the column is searched if its metric is the one that is asked for. Its distances
        may be estimates: ``refine_factor`` computes exact ones. Rows that the index does not cover
        are compared exactly.

        Args:
            column: the column of vectors.
            q: the query: numbers, as many as the vectors have; or a list of queries.
            k: how many rows; the limit of the scan by default, or 10 without one.
            metric: "l2", "cosine", "dot" or "hamming"; by default that of the index, or "l2".
            nprobes: how many partitions of the index to search; more find nearer rows, and take
                longer.
            minimum_nprobes: partitions to search at least; without ``nprobes`` the search goes on
                until it has k rows.
            maximum_nprobes: partitions to search at most.
            refine_factor: let the index find so many times k rows, and compare these exactly.
            use_index: False compares every row.
            distance_range: least distance, and one above the greatest.
            search_effort: how many partitions to begin with, from 0 to 1.
            ef, query_parallelism, approx_mode: checked, without effect: the codes of a partition
                are compared all, in this thread.

        What is wrong with the search is raised by ``to_scanner``.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(ds).columns(["id"]).nearest("vector", [6, 0], k=1)
            >>> builder.to_scanner().to_table().to_pydict()
            {'id': [6], '_distance': [0.0]}
        """
        query = {
            "column": column, "q": q, "k": k, "metric": metric, "nprobes": nprobes,
            "minimum_nprobes": minimum_nprobes, "maximum_nprobes": maximum_nprobes,
            "refine_factor": refine_factor, "use_index": use_index, "ef": ef,
            "query_parallelism": query_parallelism, "approx_mode": approx_mode,
            "distance_range": distance_range, "search_effort": search_effort,
        }  # fmt: skip
        return self.nearest_query({n: value for n, value in query.items() if value is not None})

    def nearest_query(self, query: Any) -> Self:
        """Search with the arguments of ``nearest`` as one dict. Not in pylance.

        Args:
            query: "column", "q", "k" and more.

        Examples:
            >>> search = {"column": "vector", "q": [6, 0], "k": 3}
            >>> lance_nb.ScannerBuilder(ds).nearest_query(search).to_scanner().to_table().num_rows
            3
        """
        return self._set("nearest", query)

    def prefilter(self, prefilter: bool) -> Self:
        """Search among the rows that pass the filter, instead of filtering what was found.

        Args:
            prefilter: whether to.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(ds).columns(["id"]).nearest("vector", [0, 0], k=1)
            >>> builder.filter("id > 6").prefilter(True).to_scanner().to_table()["id"].to_pylist()
            [7]
        """
        return self._set("prefilter", prefilter)

    def disable_scoring_autoprojection(self, disable: bool = True) -> Self:
        """Leave the distance out of a search's result unless it is asked for.

        Args:
            disable: whether to.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(ds).columns(["id"]).nearest("vector", [0, 0], k=1)
            >>> builder.disable_scoring_autoprojection().to_scanner().to_table().column_names
            ['id']
        """
        return self._set("disable_scoring_autoprojection", disable)

    def full_text_search(self, query: Any, columns: Sequence[str] | None = None) -> Self:
        """Search texts; the rows that match come best first, with a column ``_score`` (BM25).

        Args:
            query: a text, or a query such as ``MatchQuery``. Text between quotation marks is a
                phrase.
            columns: where a text is searched; None: in every column with an INVERTED index.

        Raises InvalidInputError.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(ds).full_text_search("label-3", ["label"])
            >>> builder.to_scanner().to_table().schema.names
            ['id', 'label', 'vector', '_score']
        """
        return self._set("full_text_query", {"query": query, "columns": columns})

    def fast_search(self, flag: bool) -> Self:
        """Search only rows that an index covers: none where there is no index.

        Args:
            flag: whether to.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(ds).nearest("vector", [6, 0], k=1)
            >>> builder.fast_search(True).to_scanner().to_table().num_rows
            0
        """
        return self._set("fast_search", flag)

    def with_index_segments(self, index_segments: Iterable[Any] | None) -> Self:
        """Choose index segments: ``to_scanner`` raises NotSupportedError; all are searched.

        Args:
            index_segments: which.
        """
        return self._set("index_segments", index_segments)

    def row_addr_prefilter(
        self, allowlist: bytes | None = None, blocklist: bytes | None = None
    ) -> Self:
        """Choose rows by address: ``to_scanner`` raises NotSupportedError; filter by _rowaddr.

        Args:
            allowlist, blocklist: the bytes of ``serialize_row_addrs``.
        """
        self._set("row_addr_allowlist", allowlist)
        return self._set("row_addr_blocklist", blocklist)

    def substrait_aggregate(self, aggregate: bytes) -> Self:
        """Aggregate: ``to_scanner`` raises NotSupportedError; aggregate the table instead.

        Args:
            aggregate: a Substrait message.
        """
        return self._set("substrait_aggregate", aggregate)

    # --- batches ----------------------------------------------------------------------------------

    def batch_size(self, batch_size: int) -> Self:
        """Limit the rows of a batch: 8,192, or the variable LANCE_DEFAULT_BATCH_SIZE.

        Args:
            batch_size: the most rows.

        Raises InvalidInputError for a number that is not positive.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(ds).batch_size(4)
            >>> [batch.num_rows for batch in builder.to_scanner().to_batches()]
            [4, 1, 4, 1]
        """
        return self._set("batch_size", batch_size)

    def strict_batch_size(self, strict_batch_size: bool = False) -> Self:
        """Fill every batch but the last to ``batch_size``.

        Args:
            strict_batch_size: whether to.

        Examples:
            >>> builder = lance_nb.ScannerBuilder(ds).batch_size(4).strict_batch_size(True)
            >>> [batch.num_rows for batch in builder.to_scanner().to_batches()]
            [4, 4, 2]
        """
        return self._set("strict_batch_size", strict_batch_size)

    # --- without effect ---------------------------------------------------------------------------

    def batch_size_bytes(self, batch_size_bytes: int) -> Self:
        """Do nothing: it tunes pylance's reads and cannot change the rows."""
        return self

    def io_buffer_size(self, io_buffer_size: int) -> Self:
        """Do nothing: it tunes pylance's reads and cannot change the rows."""
        return self

    def batch_readahead(self, nbatches: int | None = None) -> Self:
        """Do nothing but check the number, which is positive. Raises InvalidInputError."""
        if nbatches is not None and int(nbatches) <= 0:
            raise InvalidInputError(f"batch_readahead must be greater than 0, got {nbatches}")
        return self

    def fragment_readahead(self, nfragments: int | None = None) -> Self:
        """Do nothing but check the number, which is not negative. Raises InvalidInputError."""
        if nfragments is not None and int(nfragments) < 0:
            raise InvalidInputError(f"fragment_readahead must be non-negative, got {nfragments}")
        return self

    def scan_in_order(self, scan_in_order: bool = True) -> Self:
        """Do nothing: rows always come in the order of the dataset."""
        return self

    def late_materialization(self, late_materialization: bool | list[str]) -> Self:
        """Do nothing: which columns are decoded late is decided by cost."""
        return self

    def use_stats(self, use_stats: bool = True) -> Self:
        """Do nothing: statistics are used where they are stored."""
        return self

    def use_scalar_index(self, use_scalar_index: bool = True) -> Self:
        """Choose whether the filter may be answered by scalar indices, which is the default.

        Args:
            use_scalar_index: False reads every row.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> builder = lance_nb.ScannerBuilder(ds).filter("id = 7").use_scalar_index(False)
            >>> builder.to_scanner().count_rows()
            1
        """
        return self._set("use_scalar_index", use_scalar_index)

    def scan_stats_callback(self, callback: Callable[[Any], None]) -> Self:
        """Measure the scan.

        Args:
            callback: called with a ``ScanStatistics`` when the scan has been read to its end.

        Examples:
            >>> costs = []
            >>> builder = lance_nb.ScannerBuilder(ds).scan_stats_callback(costs.append)
            >>> builder.to_scanner().to_table().num_rows, len(costs)
            (10, 1)
        """
        return self._set("scan_stats_callback", callback)

    # --- the scan ---------------------------------------------------------------------------------

    def to_scanner(self) -> LanceScanner:
        """Plan the scan.

        Raises PredicateError, ColumnNotFoundError, InvalidInputError, NotSupportedError.

        Examples:
            >>> lance_nb.ScannerBuilder(ds).to_scanner().count_rows()
            10
        """
        options = self._options
        for name, reason in _REFUSED.items():
            if options.get(name):
                raise NotSupportedError(f"{name} is not supported: {reason}")
        batch_size = options.get("batch_size")
        fragments = options.get("fragments")
        scan_options = ScanOptions(
            columns=options.get("columns"),
            filter=options.get("filter"),
            limit=options.get("limit"),
            offset=options.get("offset"),
            nearest=options.get("nearest"),
            batch_size=_default_batch_size() if batch_size is None else batch_size,
            with_row_id=bool(options.get("with_row_id")),
            with_row_address=bool(options.get("with_row_address")),
            fragments=None if fragments is None else tuple(part.metadata for part in fragments),
            prefilter=bool(options.get("prefilter")),
            include_deleted_rows=bool(options.get("include_deleted_rows")),
            strict_batch_size=bool(options.get("strict_batch_size")),
            order_by=options.get("order_by"),
            add_scores=not options.get("disable_scoring_autoprojection"),
            blob_payloads=options.get("blob_handling") == "all_binary",
            keep_dictionaries=bool(options.get("keep_dictionaries")),
            use_scalar_index=options.get("use_scalar_index") is not False,
            full_text_query=options.get("full_text_query"),
            fast_search=bool(options.get("fast_search")),
        )
        # A copy: the handle may move to another version before the scan is read.
        return LanceScanner(copy(self.ds), scan_options, options.get("scan_stats_callback"))

    def _set(self, name: str, value: Any) -> Self:
        self._options[name] = value
        return self


# The arguments of ``LanceDataset.scanner``, which all scans of datasets and fragments take from.
SCAN_ARGUMENTS = (
    "columns", "filter", "limit", "offset", "nearest", "batch_size", "batch_size_bytes",
    "batch_readahead", "fragment_readahead", "scan_in_order", "fragments", "index_segments",
    "full_text_query", "prefilter", "with_row_id", "with_row_address", "use_stats", "fast_search",
    "io_buffer_size", "late_materialization", "blob_handling", "use_scalar_index",
    "include_deleted_rows", "scan_stats_callback", "strict_batch_size", "order_by",
    "disable_scoring_autoprojection", "row_addr_allowlist", "row_addr_blocklist",
    "keep_dictionaries",
)  # fmt: skip
# Those whose method has another name.
_METHODS = {
    "fragments": "with_fragments",
    "index_segments": "with_index_segments",
    "nearest": "nearest_query",
}


def scan(
    dataset: LanceDataset, arguments: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> LanceScanner:
    """Plan a scan from the arguments of ``LanceDataset.scanner``; None means not given.

    ``arguments`` may be all local names of a method that takes some of them.
    ``defaults`` are the dataset's ``default_scan_options``, named as the builder's methods are.
    """
    builder = ScannerBuilder(dataset)
    if defaults:
        builder.apply_defaults(defaults)
    for name in SCAN_ARGUMENTS:
        value = arguments.get(name)
        if value is None:
            continue
        if name == "full_text_query":
            builder._set(name, value)  # noqa: SLF001
        elif name == "row_addr_allowlist":
            builder.row_addr_prefilter(allowlist=value)
        elif name == "row_addr_blocklist":
            builder.row_addr_prefilter(arguments.get("row_addr_allowlist"), value)
        else:
            getattr(builder, _METHODS.get(name, name))(value)
    return builder.to_scanner()


def _default_batch_size() -> int | None:
    """Return the batch size of the environment, with a warning None if it is no number."""
    text = os.environ.get(DEFAULT_BATCH_SIZE)
    if text is None:
        return None
    if text.isdecimal() and int(text) > 0:
        return int(text)
    warnings.warn(
        f"the environment variable {DEFAULT_BATCH_SIZE} is {text!r}: expected a number of rows "
        "above 0; the default of 8192 rows is used",
        stacklevel=5,
    )
    return None

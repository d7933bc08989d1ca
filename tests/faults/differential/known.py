"""Differences between the two libraries that are accepted, each with its reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Place:
    """A dataset: its columns, whether it has an index, its file version."""

    schema: pa.Schema | None = None
    indexed: bool = False
    file_version: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """A difference that is accepted: where it occurs, what it says, and why it is none of ours."""

    code: str
    text: str
    reason: str
    blobs_2_0: bool = False
    packed: bool = False
    indexed: bool = False
    files_0_1: bool = False
    floats: bool = False

    def covers(self, code: str, text: str, place: Place) -> bool:
        """Tell whether a difference is of this kind."""
        if self.blobs_2_0 and not _has_old_blobs(place.schema):
            return False
        if self.packed and not _has_packed_structs(place.schema):
            return False
        if self.indexed and not place.indexed:
            return False
        if self.files_0_1 and place.file_version != "0.1":
            return False
        if self.floats and not _has_floats(place.schema):
            return False
        return bool(re.search(self.code, code) and re.search(self.text, text, re.DOTALL))


def _has_floats(schema: pa.Schema | None) -> bool:
    """Tell whether a column holds numbers that may be NaN."""
    fields = () if schema is None else schema
    return any(pa.types.is_floating(field.type) for field in fields)


def _has_old_blobs(schema: pa.Schema | None) -> bool:
    """Tell whether a column is marked as blob and not of the blob type, as up to file 2.1."""
    fields = () if schema is None else schema
    return any(b"lance-encoding:blob" in (field.metadata or {}) for field in fields)


def _has_packed_structs(schema: pa.Schema | None) -> bool:
    """Tell whether the fields of a struct are stored together."""
    fields = () if schema is None else schema
    return any(b"lance-encoding:packed" in (field.metadata or {}) for field in fields)


KNOWN = (
    # pylance fails where it should not
    Known("", "pylance alone refuses: .*(PanicException|panicked)", "pylance panics"),
    Known(
        "",
        "pylance alone refuses: .*(must be byte aligned, got|Per-value compression not yet|"
        "Variable packed struct encoding is not enabled|"
        "Packed struct per-value compression|even though the field is marked non-null)",
        "pylance cannot store these values in the encoding that was asked for",
    ),
    Known(
        "",
        "pylance alone refuses: .*(columns of differing lengths|invalid variable-width|"
        "Need at least [0-9]+ bytes in buffers)",
        "pylance cannot read fixed-size lists of structs beside other columns, nor the fields of "
        "packed structs but the first",
    ),
    Known(
        "",
        "pylance alone refuses: .*Incorrect number of nulls for StructArray",
        "pylance cannot read some empty structs inside lists, whoever has written them",
    ),
    Known(
        r"columns=\[.*\.",
        r"values of .* '[^']*\.",
        "pylance returns the first field of a packed struct for another of the same width",
        packed=True,
    ),
    Known(
        "filter=",
        "type of column .*fixed_size_list<item: struct",
        "pylance loses fields of structs in a fixed-size list when the list is in the filter",
    ),
    Known(
        "(update|delete).*IS (NOT )?NULL|(?=.*all_binary).*IS (NOT )?NULL",
        "(returns answer|rows:|answer |values of )",
        "pylance disagrees with itself whether blobs of 2.0 files can be null",
        blobs_2_0=True,
    ),
    Known(
        "",
        "pylance alone refuses: .*([Ii]nternal error|Task was aborted|report an issue)",
        "pylance fails by an internal error",
    ),
    Known(
        "",
        "pylance alone refuses: .*more fields in the schema than provided",
        "pylance cannot read blobs and another column one fragment at a time",
    ),
    Known(
        "",
        "pylance alone refuses: .*v1 dictionary field .* is missing dictionary values",
        "pylance loses the dictionaries of 0.1 files when it restores a version",
        files_0_1=True,
    ),
    Known(
        "order_by",
        "pylance alone refuses: .*Dictionary key bigger than the key type",
        "pylance cannot order rows whose dictionaries together are too large for their keys",
    ),
    Known(
        "",
        "ours alone refuses: NotSupportedError: a packed struct inside a packed struct needs",
        "pylance writes packed structs of structs to 2.0 files, and cannot read them",
    ),
    Known("", "pylance cannot read what pylance's wrote", "what pylance wrote is damaged"),
    Known(
        "",
        "pylance alone refuses: .*null_bit_buffer size too small",
        "pylance cannot store some slices of lists of structs",
    ),
    Known(
        "",
        "pylance alone refuses: .*non-nullable child of type .* contains nulls not present",
        "pylance cannot store fixed-size lists of required items when a list is null",
    ),
    Known("", "pylance alone refuses: .*-9223372036854775808", "pylance cannot read this number"),
    Known(
        r"all_binary|f\.take\(",
        "pylance alone refuses: .*Found unmasked nulls for non-nullable",
        "pylance cannot read blobs of 2.0 files that became required",
        blobs_2_0=True,
    ),
    Known(
        "",
        "leaves other schema: type of column .*large_binary.*, not .*BlobType",
        "pylance turns blobs of the first generation into the second when it writes rows",
    ),
    Known(
        "",
        "ours alone refuses: .*packed struct cannot hold booleans",
        "pylance writes packed structs of booleans, and cannot read them",
    ),
    Known(
        "include_deleted_rows=True.*filter=",
        "(rows|values of .*):",
        "pylance answers the filter from an index, which has lost the deleted rows or was made "
        "without them: some that pass are left out, and with NOT some that fail are returned",
        indexed=True,
    ),
    Known(
        "include_deleted_rows=True",
        "pylance alone refuses: .*Found unmasked nulls for non-nullable",
        "pylance lets a column become required although deleted rows hold nulls, and cannot read "
        "those rows any more",
    ),
    Known(
        "json_.*(AND|OR)|(AND|OR).*json_",
        "pylance alone refuses: .*(InvalidCast|to convert)",
        "we look at no value in a row that the operand before AND or OR decides; pylance only "
        "where that decides nearly all rows of a batch",
    ),
    Known(
        "json_.*limit=0",
        "pylance alone refuses: .*(InvalidCast|to convert)",
        "we do not look at any value for a limit of 0",
    ),
    Known(
        "file_reader",
        "pylance alone refuses: .*projection specified the column index",
        "pylance's LanceFileReader counts wrong columns of blobs and behind them",
    ),
    Known(
        "IS (NOT )?NULL|NOT IN|<>|!=|BETWEEN",
        "(returns answer|rows:|answer|values of) ",
        "0.1 files cannot tell empty text from null text, but their statistics can: what pylance "
        "answers depends on which of the two it looks at",
        files_0_1=True,
    ),
    Known(
        r"filter=.*(`c\d+` (=|IN) |BETWEEN)",
        "(returns answer|rows:|answer) ",
        "the statistics of 0.1 files pass over NaN: pylance takes a page whose least and greatest "
        "value are equal for one value and so returns its NaN for an equality",
        files_0_1=True,
        floats=True,
    ),
    Known(
        "file_reader",
        r"type of column .*large_binary.*, not .*struct<>",
        "pylance's LanceFileReader gives blobs as structs without fields",
    ),
    Known(
        "take_blobs",
        "pylance alone refuses: .*Not found: .*/tree/",
        "pylance looks for the blobs that a branch inherits in the folder of the branch",
    ),
    Known(
        r"json_.*(AND|OR).*IS (NOT )?NULL",
        "ours alone refuses: PredicateError: .*(the JSON value|is no text)",
        "pylance looks at no value where a column that is never null decides the whole filter",
    ),
    Known(
        "include_deleted_rows=True.*filter=",
        "(rows|values of .*):",
        "of 0.1 files pylance leaves out some deleted rows that pass the filter",
        files_0_1=True,
    ),
    Known(
        r"NOT .*IN .*OR .*NOT .*IN",
        "answer|rows:",
        "pylance joins two NOT IN of one column by OR to one that also lets nulls pass",
    ),
    Known(
        "count_rows",
        "pylance alone refuses: .*No data files found for schema: ,",
        "pylance cannot count rows of 0.1 files in a scan without columns",
    ),
    Known(
        "_row_(created|last_updated)_at_version",
        "pylance alone refuses: .*(No field named _row_|field _row_.* does not exist)",
        "we tell the versions of rows in 0.1 files too",
    ),
    # we take more
    Known(
        "pc\\.field",
        "pylance alone refuses: .*[Ss]ubstrait",
        "pylance hands Arrow expressions over as Substrait, which lacks most types",
    ),
    Known(
        "",
        "pylance alone refuses: .*(not supported SQL in lance|with_deleted_rows / only_ind|"
        "Cannot include deleted rows in a scalar indexed scan|"
        "Failed to coerce arguments|Received only dynamic expressions)",
        "we take more SQL than pylance, and a filter together with include_deleted_rows",
    ),
    Known(
        r"\.take\(.*_row(offset|_created|_last)|_row(offset|_created|_last).*\.take\(",
        "pylance alone refuses",
        "we take row columns in take as in a scan",
    ),
    Known(
        "(limit|offset)=.*count_rows",
        "pylance alone refuses: .*limit.* with aggregate",
        "we count the rows of a scan with a limit or an offset",
    ),
    Known(
        "by_row_id",
        "pylance alone refuses: .*Invalid read params",
        "row ids that do not exist are left out, also those behind the end of a fragment",
    ),
    Known(
        "update",
        "pylance alone refuses: .*blob v2 values are not supported",
        "we update blobs like other columns",
    ),
    # answers that differ on purpose, or only in form
    Known(
        r"\.take\(",
        "ours alone refuses: RowRangeError: row .* does not exist",
        "pylance silently returns fewer rows than were asked for",
    ),
    Known(
        r"\.take\(.*_rowoffset",
        "nullable .*_rowoffset",
        "pylance says in take alone that an offset is never null",
    ),
    Known(
        "compact_files",
        "leaves other indices: .*frag_reuse",
        "we keep an index valid by a fragment-reuse index, pylance rewrites it",
    ),
    Known(
        "add_columns",
        "type of column .*extension<.*, not",
        "pylance loses an extension type when it copies a column",
    ),
    Known("alter_columns", "metadata of column", "pylance loses the metadata of a column it casts"),
    Known(
        r"\bf\.take\(",
        "type of column .*large_binary.*, not .*BlobType",
        "pylance returns blobs of another type when a fragment without the column takes rows",
    ),
    Known(
        "",
        "ours alone refuses: NotSupportedError: .*(lists inside fixed-size lists of structs|"
        "fixed-size lists of structs inside other fields|2.0 cannot hold fixed_size_list:struct|"
        "which file version 2.0 cannot store)",
        "a documented limit of our writer",
    ),
    Known("columns=.*`", "name of column .*<`", "a quoted name comes without its quotes"),
    Known(
        "all_binary",
        "metadata of column .*ARROW:extension:metadata",
        "pylance leaves an empty rest of the extension behind",
    ),
    Known(
        "compact_files",
        "leaves other version",
        "pylance reserves fragment ids in a version of its own more often",
    ),
    Known(
        "order_by",
        "ours alone refuses: NotSupportedError: rows cannot be ordered by .* struct<",
        "a documented limit: no order by structs, which blobs are",
    ),
)


def accepted(code: str, text: str, place: Place) -> str | None:
    """Return the reason why a difference is accepted."""
    return next((one.reason for one in KNOWN if one.covers(code, text, place)), None)

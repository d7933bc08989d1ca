"""Differences between the two libraries that are accepted, each with its reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Known:
    """A difference that is accepted: where it occurs, what it says, and why it is none of ours."""

    code: str
    text: str
    reason: str

    def covers(self, code: str, text: str) -> bool:
        """Tell whether a difference is of this kind."""
        return bool(re.search(self.code, code) and re.search(self.text, text, re.DOTALL))


KNOWN = (
    Known("pc\\.field", "pylance alone refuses: .*(S|s)ubstrait",
          "pylance hands Arrow expressions over as Substrait, which lacks most types"),
    Known("", "pylance alone refuses: .*(Internal error|Task was aborted)",
          "pylance fails by an internal error, not by refusing"),
    Known(r"\.take\(.*_row(offset|_created|_last)|_row(offset|_created|_last).*\.take\(",
          "pylance alone refuses", "we take row columns in take as in a scan"),
    Known("limit=.*count_rows", "pylance alone refuses: .*Cannot use limit with aggregate",
          "we count the rows of a scan with a limit"),
    Known("", "pylance alone refuses: PanicException", "pylance fails by a panic, not by refusing"),
    Known("", "pylance alone refuses: .*(not supported SQL in lance|with_deleted_rows / only_ind)",
          "we take more SQL than pylance, and a filter together with include_deleted_rows"),
)


def accepted(code: str, text: str, schema: pa.Schema | None) -> str | None:
    """Return the reason why a difference is accepted."""
    return next((one.reason for one in KNOWN if one.covers(code, text)), None)

"""The progress mark of a stream: the number of its last batch, in the version that has its rows.

A stream, or a job that is run again after a crash, offers a batch a second time when it does not
know that the batch was committed. The version that holds a batch says so in its config, so that the
newest version is enough to decide, however many versions others have made or cleaned up since.
Later writers, pylance included, carry the config on.

Layout: config key ``lance_nb.stream.<id>``, a decimal number. The operation does not mention it:
of those that add rows only Overwrite could. It is set when the manifest is built.

Limits: Restore brings the mark of the restored version back, and with it the batches since may be
written again. Marks stay until their keys are deleted (``ds.delete_config_keys``).
Source: the action ``txn`` of Delta Lake's protocol (application id and version).
"""

from __future__ import annotations

from collections.abc import Mapping

from lance_nb.code_lines import Python
from lance_nb.errors import CommitConflictError, InvalidInputError
from lance_nb.format.layout import STREAM_MARK_PREFIX
from lance_nb.value_classes import dataclass

_ID_MAX_CHARS = 200
_DIGITS_MAX = 19


@dataclass(frozen=True, slots=True)
class StreamMark:
    """Batch ``batch`` of a stream, which has an id of its own. Batches are numbered upwards."""

    stream: str
    batch: int

    def __post_init__(self) -> None:
        if not self.stream or len(self.stream) > _ID_MAX_CHARS:
            raise InvalidInputError(
                f"the id of a stream has 1 to {_ID_MAX_CHARS} characters, not {len(self.stream)}"
            )
        if self.batch < 0 or len(str(self.batch)) > _DIGITS_MAX:
            raise InvalidInputError(f"the number of a batch must be at least 0, not {self.batch}")

    @property
    def key(self) -> str:
        """The key of the config."""
        return STREAM_MARK_PREFIX + self.stream

    def last_in(self, config: Mapping[str, str]) -> int | None:
        """Return the last batch of this stream that a version has; None if it does not say.

        Raises InvalidInputError for a value that is no number.
        """
        text = config.get(self.key)
        if text is None:
            return None
        if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX):
            forget = Python("ds.delete_config_keys").call([self.key])
            raise InvalidInputError(
                f"config key {self.key!r} is {text[:40]!r}, which is not the number of a batch. "
                f"Set it to the last batch that was written, or delete it: "
                f"{forget.code}"
            )
        return int(text)

    def set_in(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return the config with this batch as the last one.

        Raises CommitConflictError if it, or a later one, is in the version that is built on.
        """
        last = self.last_in(config)
        if last is not None and last >= self.batch:
            raise CommitConflictError(
                f"batch {last} of stream {self.stream!r} was committed meanwhile, so that batch "
                f"{self.batch} is not committed again. Two writers use one id: stop one of them"
            )
        return {**config, self.key: str(self.batch)}

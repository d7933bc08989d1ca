"""A random sample of the files of a dataset, for a verification that does not read all of it.

Files are drawn in random order until they have the wanted share of the bytes. So a large file
counts for what it costs to read, no file is too large to be chosen, and the bytes that are read
exceed the share by less than one file. The same seed and the same files give the same sample.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lance_nb.errors import InvalidInputError

_SEED_MAX = 2**32


@dataclass(frozen=True, slots=True)
class Sample:
    """The files of a sample by identity; their number and bytes, and those of all files."""

    chosen: frozenset[str]
    num_files: int
    num_files_in_all: int
    size_bytes: int
    size_bytes_in_all: int
    seed: int

    @property
    def share(self) -> float:
        """How much of the bytes of all files is read, up to 1.0."""
        return self.size_bytes / self.size_bytes_in_all if self.size_bytes_in_all else 1.0

    def __str__(self) -> str:
        return (
            f"a sample of {self.num_files:,} of {self.num_files_in_all:,} files, "
            f"{self.size_bytes:,} of {self.size_bytes_in_all:,} bytes ({self.share:.1%}), "
            f"seed {self.seed}"
        )


def choose_sample(sizes: Mapping[str, int], wanted: float, seed: int | None = None) -> Sample:
    """Choose files at random: a share of the bytes (a float up to 1.0), or a number of files.

    ``sizes`` are sizes in bytes by identity. Without ``seed`` a random one is used; the result
    has it. Raises InvalidInputError for another number.
    """
    is_share = isinstance(wanted, float)
    if isinstance(wanted, bool) or not (0 < wanted <= 1 if is_share else wanted >= 1):
        raise InvalidInputError(
            f"sample is a share of the bytes (above 0.0, up to 1.0) or a number of files "
            f"(1, 2, ...), not {wanted!r}"
        )
    seed = random.SystemRandom().randrange(_SEED_MAX) if seed is None else seed
    order = sorted(sizes)
    random.Random(seed).shuffle(order)  # noqa: S311 (no secret)
    total = sum(sizes.values())
    chosen = _until(order, sizes, wanted * total) if is_share else order[: int(wanted)]
    if wanted == 1 and is_share:
        chosen = order  # files of no bytes too
    read = sum(sizes[one] for one in chosen)
    return Sample(frozenset(chosen), len(chosen), len(order), read, total, seed)


def _until(order: Sequence[str], sizes: Mapping[str, int], size_bytes: float) -> list[str]:
    """Return the first files in the order that have so many bytes together, at least one."""
    chosen: list[str] = []
    read = 0
    for one in order:
        if chosen and read >= size_bytes:
            break
        chosen.append(one)
        read += sizes[one]
    return chosen

"""A sample of the files of a dataset, for a verification that does not read all of it.

Every file is as likely as any other. The same seed and the same files give the same sample.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from lance_nb.errors import InvalidInputError

_SEED_MAX = 2**32


@dataclass(frozen=True, slots=True)
class Sample:
    """Which files are read: their identities, how many of how many, and of how many bytes."""

    chosen: frozenset[str]
    num_files: int
    num_files_in_all: int
    size_bytes: int
    size_bytes_in_all: int
    seed: int

    def __str__(self) -> str:
        share = self.size_bytes / self.size_bytes_in_all if self.size_bytes_in_all else 1.0
        return (
            f"a sample of {self.num_files:,} of {self.num_files_in_all:,} files, "
            f"{share:.1%} of their bytes, seed {self.seed}"
        )


def choose_sample(sizes: Mapping[str, int], wanted: float, seed: int | None = None) -> Sample:
    """Choose files by chance: a number of them (an int), or a share (a float up to 1.0).

    ``sizes`` are sizes in bytes by identity. Without ``seed`` one is drawn, and told in the result.
    Raises InvalidInputError for another number.
    """
    is_share = isinstance(wanted, float)
    if isinstance(wanted, bool) or not (0 < wanted <= 1 if is_share else wanted >= 1):
        raise InvalidInputError(
            f"sample is a number of files (1, 2, ...) or a share of them (above 0.0, up to 1.0), "
            f"not {wanted!r}"
        )
    seed = random.SystemRandom().randrange(_SEED_MAX) if seed is None else seed
    names = sorted(sizes)
    count = min(math.ceil(wanted * len(names)) if is_share else int(wanted), len(names))
    chosen = frozenset(random.Random(seed).sample(names, count))  # noqa: S311 (no secret)
    read = sum(sizes[one] for one in chosen)
    return Sample(chosen, count, len(names), read, sum(sizes.values()), seed)

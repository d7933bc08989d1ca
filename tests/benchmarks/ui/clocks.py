"""What a measurement cost in processor time, which does not depend on who else works meanwhile.

Wall time says what a person waits for, and is true on a quiet machine alone. So every figure has
beside it what the page's main thread and the kernel computed for it, and which share of the time
the machine beneath took away from this one (``steal``, of all processors together): above a few
hundredths the wall time says nothing.

Source: ``Performance.getMetrics`` in thread ticks; ``/proc/PID/stat`` and ``/proc/stat`` of Linux.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Reading:
    """Milliseconds of the page's main thread and of the kernel; processor ticks stolen, and all."""

    page_ms: float
    kernel_ms: float
    stolen: float
    ticks: float


@dataclass(slots=True)
class Spent:
    """What was spent between two readings, in all; ``per`` of ``count`` actions."""

    page_ms: float = 0
    kernel_ms: float = 0
    steal: float = 0
    count: int = 1

    def __str__(self) -> str:
        count = max(1, self.count)
        parts = f"page {self.page_ms / count:,.0f} kernel {self.kernel_ms / count:,.0f}"
        return f"cpu {parts} steal {self.steal:.0%}"


class Clocks:
    """The clocks of one page and the kernel behind it."""

    def __init__(self, page: Page, kernel: int) -> None:
        self._kernel = kernel
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def read(self) -> Reading:
        """Read all clocks now."""
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        task_s = next(one["value"] for one in metrics if one["name"] == "TaskDuration")
        fields = Path(f"/proc/{self._kernel}/stat").read_text().rpartition(")")[2].split()
        ticks = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
        return Reading(
            page_ms=1000 * task_s,
            kernel_ms=_TICK_MS * (int(fields[11]) + int(fields[12])),
            stolen=float(ticks[7]),
            ticks=float(sum(map(int, ticks))),
        )

    @contextmanager
    def spent(self, count: int = 1) -> Iterator[Spent]:
        """Fill in what the block cost when it ends."""
        before, told = self.read(), Spent(count=count)
        try:
            yield told
        finally:
            now = self.read()
            told.page_ms = now.page_ms - before.page_ms
            told.kernel_ms = now.kernel_ms - before.kernel_ms
            told.steal = (now.stolen - before.stolen) / max(1.0, now.ticks - before.ticks)


@contextmanager
def spent_in(page: Page, server: int, count: int) -> Iterator[Spent]:
    """Fill in what each of ``count`` actions in a page cost it and the server's newest kernel.

    What was done in the pauses between them counts as well.
    """
    with Clocks(page, kernel_of(server)).spent(count) as spent:
        yield spent


def kernel_of(server: int) -> int:
    """Return the process id of the newest kernel of the server with this process id."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and "ipykernel" in (entry / "cmdline").read_text():
                found.append((entry.stat().st_ctime_ns, int(entry.name)))
        except OSError:
            continue
    return max(one for one in found if _parent_of(one[1]) == server)[1]


def _parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])

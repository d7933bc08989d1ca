from __future__ import annotations

from lance_nb.writing.progress import ProgressCounter


def test_rows_add_up():
    seen = []
    counter = ProgressCounter(10, lambda done, total: seen.append((done, total)))
    counter.add(3)
    counter.add(7)
    ProgressCounter(10, None).add(1)
    assert seen == [(3, 10), (10, 10)]

from __future__ import annotations

from lance_nb.dataset.verbs.telling import Told


def test_rows_add_up():
    seen = []
    told = Told(10, lambda done, total: seen.append((done, total)))
    told.add(3)
    told.add(7)
    Told(10, None).add(1)
    assert seen == [(3, 10), (10, 10)]

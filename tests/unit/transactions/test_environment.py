from __future__ import annotations

import time
import uuid

from lance_nb.transactions.environment import Environment
from tests.support.committing import environment


def test_the_real_one_gives_the_time_and_new_names():
    real = Environment()
    assert abs(real.clock() - time.time_ns()) < 60 * 10**9
    assert real.monotonic() <= real.monotonic()
    assert 0 <= real.random() < 1
    assert uuid.UUID(real.new_uuid()).version == 4
    assert real.new_uuid() != real.new_uuid()


def test_a_seed_gives_the_same_world_again():
    one, other = environment(5), environment(5)
    assert [one.new_uuid(), one.random(), one.clock()] == [
        other.new_uuid(),
        other.random(),
        other.clock(),
    ]
    assert environment(6).new_uuid() != environment(5).new_uuid()

"""Every compiled loop gives the values, or the error, of its numpy form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.encodings.kernels import compiled
from tests.property.encodings.loop_cases import CASES, outcome
from tests.support.compiled_forms import Form


@pytest.mark.skipif(compiled.loops is None, reason="the extension was not built")
@pytest.mark.parametrize("name", CASES)
@given(seed=st.integers(0, 2**32 - 1))
def test_both_forms_agree(name: str, seed: int) -> None:
    run = CASES[name](np.random.default_rng(seed))
    assert outcome(Form.COMPILED, run) == outcome(Form.NUMPY, run)

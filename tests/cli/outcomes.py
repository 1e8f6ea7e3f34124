"""The matrix that the tests of `match` read, and what a rejected call looks like."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

MATRIX = csr_array(np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]))  # rank 2, 3 by 4


def assert_rejected(outcome, *words):
    """Exit code 2, nothing on stdout, and one line on stderr (after usage) with these words."""
    code, out, err = outcome
    assert code == 2
    assert out == ""
    assert "Traceback" not in err
    message = err.strip().splitlines()[-1]
    assert message.startswith("gpumatch")
    assert ": error: " in message
    for word in words:
        assert word in message

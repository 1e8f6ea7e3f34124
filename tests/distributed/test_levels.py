"""Offers of several ranks that meet in a column: the least counts, then the least row."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gpumatch.distributed.levels import HostLevels

# Time, row and column of each, in the order of the ranks, whose rows follow each other.
OFFERS = [(7, 0, 2), (5, 1, 0), (-4, 9, 2), (5, 8, 0), (6, 9, 3), (-4, 8, 2)]
TAKEN = {0: (5, 1), 2: (-4, 8), 3: (6, 9)}


@pytest.mark.parametrize("number", [np.int64, np.float64])
def test_the_least_offer_is_taken(number):
    times, rows, cols = (np.array(part) for part in zip(*OFFERS))
    levels = SimpleNamespace(
        slack=np.full(5, 50, number), pred=np.full(5, -1), has_pred=np.zeros(5, bool)
    )
    sent = np.column_stack([times.astype(number).view(np.int64), rows << 32 | cols])
    HostLevels._take(levels, sent)
    found = {col: (levels.slack[col], levels.pred[col]) for col in np.flatnonzero(levels.has_pred)}
    assert found == TAKEN
    assert levels.slack[[1, 4]].tolist() == [50, 50]

"""Vertices are cut into blocks that hold neither too many edges nor too many vertices."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.cpu.matching import sides

BUDGET = 10


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [
        ([0] * 25, [(0, 10), (10, 20), (20, 25)]),
        ([5] * 5, [(0, 2), (2, 4), (4, 5)]),
        ([3, 40, 4, 4, 4], [(0, 1), (1, 2), (2, 4), (4, 5)]),
        ([], []),
    ],
    ids=["empty rows", "edges", "a row beyond the budget", "no rows"],
)
def test_blocks(monkeypatch, degrees, expected):
    monkeypatch.setattr(sides, "BUDGET", BUDGET)
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32)
    assert list(sides.blocks(indptr)) == expected

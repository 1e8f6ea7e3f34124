"""Vertices are cut into blocks that hold neither too many edges nor too many vertices."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.cpu.matching import sides
from tests.cpu.matching.cases import graph, unmatched

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


@pytest.mark.parametrize(
    ("shape", "near"), [((2, 3), "rows"), ((3, 2), "columns"), ((3, 3), "rows")]
)
def test_the_smaller_side_is_the_rows_on_a_tie(shape, near):
    it = graph(*shape, [(0, 1), (1, 0)])
    mates = unmatched(it)
    expected = ("rows", "columns") if near == "rows" else ("columns", "rows")
    for choose, side in zip((sides.smaller_side, sides.larger_side), expected):
        assert choose(it, *mates).mate is mates[0 if side == "rows" else 1]

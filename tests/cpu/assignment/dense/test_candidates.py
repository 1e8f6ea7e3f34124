"""The columns that rows of a dense matrix know."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumatch.cpu.assignment.dense import candidates
from gpumatch.cpu.assignment.dense.candidates import KNOWN


def make_scratch(ncols):
    return np.empty(ncols + 1), *np.empty((2, ncols + 1), np.int32)


def look(line, price, start=0, way=None):
    cols, known = np.full(KNOWN, -1, np.int32), np.full(KNOWN, -1.0)
    scratch = make_scratch(line.size)
    way = way or (np.empty(0), 0.0, 0.0)
    bound = candidates.look(line, price, way, start, scratch, cols, known)
    count = np.count_nonzero(np.isfinite(known))
    assert np.unique(cols[:count]).size == count
    assert np.array_equal(known[:count], line[cols[:count]])
    return set(cols[:count].tolist()), bound


@pytest.mark.parametrize("ncols", [1, 30, 41, 500, 5000])
@pytest.mark.parametrize("dtype", [np.float64, np.int32])
@pytest.mark.parametrize("top", [0, 1, 9, 10**5])
def test_the_cheapest_columns_are_known(ncols, dtype, top):
    rng = np.random.default_rng(ncols + top)
    line = (rng.random(ncols) * (top + 0.9)).astype(dtype)
    price = -rng.integers(0, top, ncols, endpoint=True).astype(float)
    cols, bound = look(line, price, start=ncols // 3)
    reduced = line.astype(float) - price
    rest = np.delete(reduced, [*cols])
    assert rest.size == 0 or bound <= rest.min()
    assert reduced[[*cols]].min() <= bound
    assert len(cols) >= min(ncols, KNOWN // 4)


def test_forbidden_columns_are_not_known():
    line = np.full(800, np.inf)
    assert look(line, np.zeros(800)) == (set(), math.inf)
    line[[5, 700]] = 1.0, 2.0
    cols, bound = look(line, np.zeros(800))
    assert 5 in cols
    assert cols == {5, 700} or bound <= 2


def test_rows_choose_different_ones_among_equals():
    line, price = np.zeros(1000), np.zeros(1000)
    one, other = (look(line, price, start)[0] for start in (100, 600))
    assert (one, other) == (set(range(100, 100 + KNOWN)), set(range(600, 600 + KNOWN)))
    assert look(line, price, 980)[0] == {*range(980, 1000), *range(KNOWN - 20)}


def test_a_search_finds_only_columns_that_it_does_not_reach_as_well():
    rng = np.random.default_rng(7)
    line, price = rng.random(2000), np.zeros(2000)
    dist = np.where(rng.random(2000) < 0.9, 0.4, np.inf)
    dist[line < 0.05] = np.inf
    cols, bound = look(line, price, way=(dist, 0.1, 0.3))
    offers = np.maximum(line + 0.1, 0.3) < dist
    assert offers[[*cols]].all()
    offers[[*cols]] = False
    assert bound <= line[offers].min()


@given(
    seed=st.integers(0, 2**32),
    size=st.integers(1, 120),
    top=st.sampled_from([0, 1, 4, 50, 10**6]),
    share=st.sampled_from([0, 0.3, 1]),
    most=st.integers(1, 60),
)
def test_levels_part_few_numbers_from_many(seed, size, top, share, most):
    """Whatever is tied or infinite; a level is below all only where the least are too many."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-top, top, size, endpoint=True).astype(float)
    numbers[rng.random(size) < share] = math.inf
    finite, fewest = np.sort(numbers[numbers < math.inf]), max(1, 4 * most // 5)
    low, high = candidates._levels(numbers, fewest, most)
    if finite.size <= most:
        assert (low, high) == (finite[-1] if finite.size else -math.inf, math.inf)
        return
    assert np.count_nonzero(finite <= low) <= most < np.count_nonzero(finite <= high)
    least = np.count_nonzero(finite == finite[0])
    assert (low == -math.inf) == (least > most)
    if least > most:
        assert high == finite[0]
    else:
        assert finite[0] <= low < high <= finite[-1]
        enough = np.count_nonzero(finite <= low) >= fewest
        between = (finite[-1] - finite[0]) / 2**candidates.PARTS
        assert enough or high - low <= between * (1 + 1e-9)

"""Sparse integers whose sums need more than 60 bits, solved in two stages on the device."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]
cp = pytest.importorskip("cupy")

from gpumatch.cuda.assignment.sparse import engine  # noqa: E402  it imports cupy


def wide(n, degree, low, high, seed):
    """Random columns of each row, and a permutation."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([np.repeat(np.arange(n), degree), np.arange(n)])
    cols = np.concatenate([rng.integers(0, n, n * degree), rng.permutation(n)])
    keys = np.unique(rows * n + cols)
    return csr_array((rng.integers(low, high, keys.size), (keys // n, keys % n)), shape=(n, n))


def on_device(matrix):
    parts = cp.asarray(matrix.indptr), cp.asarray(matrix.indices), cp.asarray(matrix.data)
    return (*parts, matrix.shape)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("signs", ["positive", "both"])
@pytest.mark.parametrize("n", [2, 30, 70])
def test_sums_of_up_to_62_bits(n, signs, maximize, monkeypatch):
    most = (2**62 - 1) // (n + 1) // (1 if signs == "positive" else 2)
    low, high = (most // 2, most) if signs == "positive" else (-most + 1, most)
    calls, run = [], engine.run
    monkeypatch.setattr(engine, "run", lambda task: calls.append(task.costs) or run(task))
    for seed in range(3):
        matrix = wide(n, 3, 0 if signs == "positive" else low, high, seed)
        matrix.data[:2] = [high - 1, low if signs == "both" else 0]
        calls.clear()
        a = gm.assign(on_device(matrix), maximize=maximize)
        best = gm.assign(matrix, maximize=maximize, backend="cpu")
        assert a.objective == best.objective
        assert (a.gap, a.proven) == (0, True)
        gm.verify(matrix, a)
        assert len(calls) == 2
        assert all(engine.fits(costs, None) for costs in calls)


def test_infeasible_ones_are_found_in_the_first_stage():
    matrix = wide(20, 2, 0, 2**57, 5)
    matrix = csr_array(matrix.toarray()[[*range(19), 18]] * (np.arange(20)[:, None] < 18))
    matrix.eliminate_zeros()
    matrix.data[:2] = [2**57, 0]
    with pytest.raises(gm.InfeasibleError):
        gm.assign(on_device(matrix))


def test_a_given_assignment_of_large_costs():
    matrix = wide(30, 3, 0, 2**57, 6)
    matrix.data[:2] = [2**57, 0]
    first = gm.assign(on_device(matrix))
    matrix.data[2:] -= 1
    again = gm.assign(on_device(matrix), initial=first)
    assert again.objective == gm.assign(matrix, backend="cpu").objective
    gm.verify(matrix, again)

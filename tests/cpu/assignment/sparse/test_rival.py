"""Paths that take turns with an auction: when they are due, what they leave, and that they win."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

import gpumatch as gm
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from tests.cpu.assignment.tuned import tune


def drawn(seed, shape=(60, 70)):
    """Costs with a full assignment of the rows."""
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random(shape) < 0.2, rng.integers(1, 10**9, shape), 0)
    dense[np.arange(shape[0]), rng.permutation(shape[1])[: shape[0]]] = rng.integers(1, 10**9)
    return csr_array(dense)


@pytest.mark.parametrize("wish", [{}, {"cardinality": "any", "cost_limit": 3 * 10**8}])
@pytest.mark.parametrize("shape", [(60, 60), (60, 70)])
def test_a_rival_that_is_always_due_wins(wish, shape, monkeypatch):
    """With no trial and a turn before the first bid, its result is the result."""
    untried = sparse_tuning.SHORT._replace(bids=0, unmatched=-1)
    tune(monkeypatch, sparse_tuning, small=0, trial=untried, trial_with_spare=untried)
    tune(monkeypatch, sparse_tuning, rival_reads=0, hopeless=10**9, few_paths=0, fewest=0)
    wins = 0
    for seed in range(8):
        C = drawn(seed, shape)
        a = gm.assign(C, algorithm="engine", backend="cpu", threads=1, **wish)
        gm.verify(C, a)
        if not wish:
            assert a.objective == C[min_weight_full_bipartite_matching(C)].sum()
        wins += any(phase["step"] == "rival" for phase in a.stats["trace"])
    assert wins >= 4


def test_a_rival_that_seems_hopeless_waits(monkeypatch):
    untried = sparse_tuning.SHORT._replace(bids=0, unmatched=-1)
    tune(monkeypatch, sparse_tuning, small=0, trial=untried, trial_with_spare=untried)
    tune(monkeypatch, sparse_tuning, rival_reads=0, hopeless=0, few_paths=0, fewest=0)
    for seed in range(4):
        C = drawn(seed, (60, 60))
        a = gm.assign(C, algorithm="engine", backend="cpu", threads=1)
        gm.verify(C, a)
        assert all(phase["found"] == 0 for phase in a.stats["trace"] if phase["step"] == "rival")

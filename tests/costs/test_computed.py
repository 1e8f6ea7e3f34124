"""A kind of costs that defines nothing but what it must goes through `assign` and `verify`."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm
import gpumatch.costs.base
from gpumatch.costs import Costs, DenseCosts


class Distances(Costs):
    """The distances of numbers on a line; those above `most` forbid the pair."""

    def __init__(self, rows, cols, most=np.inf):
        self.rows, self.cols, self.most = rows, cols, most
        costs = self.tile(slice(0, rows.size))[2]
        self.low, self.high = costs.min().item(), costs.max().item()
        self.largest = costs[costs < np.inf].max().item()

    @property
    def shape(self):
        return self.rows.size, self.cols.size

    @property
    def dtype(self):
        return self.rows.dtype

    @property
    def xp(self):
        return np

    def tile(self, rows):
        own, cols = np.arange(rows.start, rows.stop)[:, None], np.arange(self.cols.size)[None, :]
        return own, cols, self.at(own, cols)

    def at(self, rows, cols):
        wide = np.result_type(self.dtype, np.int64)  # small integers would wrap
        costs = abs(self.rows[rows].astype(wide) - self.cols[cols].astype(wide))
        return costs if self.most == np.inf else np.where(costs <= self.most, costs, np.inf)

    def stored(self):
        return DenseCosts(self.tile(slice(0, self.rows.size))[2], summed=False)


def distances(number, *, shape=(7, 9), most=np.inf):
    rng = np.random.default_rng(3)
    return Distances(*(rng.integers(0, 50, size).astype(number) for size in shape), most)


ALGORITHMS = ["engine", "shortest-augmenting-path", "hungarian-tree", "auction"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"maximize": True},
        {"cardinality": "any", "cost_limit": 4},
        {"cardinality": "maximum", "cost_limit": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(7, 9), (9, 7)], ids=str)
@pytest.mark.parametrize("number", [np.int64, np.float64])
def test_costs_that_are_computed(number, shape, wish, algorithm, monkeypatch):
    monkeypatch.setattr(gpumatch.costs.base, "HOST_TILE", 20)
    costs = distances(number, shape=shape)
    a = gm.assign(costs, algorithm=algorithm, backend="cpu", **wish)
    assert a.objective == gm.assign(costs.stored(), **wish).objective
    assert gm.verify(costs, a).objective == a.objective


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_pairs_that_are_computed_to_be_forbidden(algorithm):
    costs = distances(np.float64, most=9)
    a = gm.assign(costs, cardinality="maximum", algorithm=algorithm, backend="cpu")
    assert 0 < a.size < 7
    assert gm.verify(costs, a).size == a.size
    with pytest.raises(gm.InfeasibleError):
        gm.assign(costs, algorithm=algorithm, backend="cpu")


def test_integers_that_are_computed_become_floats():
    costs = distances(np.int64)
    floats = costs.as_float()
    assert (costs.is_integer, floats.is_integer) == (True, False)
    np.testing.assert_array_equal(floats.dense(), costs.dense())
    assert floats.dense().dtype.kind == "f"


def test_an_algorithm_gets_the_costs_themselves():
    costs = distances(np.int64)
    assert costs.problem(False, False) is costs
    assert repr(costs) == "Distances(7 rows, 9 columns, int64, host)"
    assert costs.to_host() is costs
    assert (costs.nnz, costs.nbytes) == (63, 0)


class Near(Distances):
    """Distances of pairs that are not far apart; a tile leaves out the others."""

    def tile(self, rows):
        own, cols, costs = super().tile(rows)
        near = costs < np.inf
        return (*(part[near] for part in np.broadcast_arrays(own, cols)), costs[near])


def test_pairs_that_a_tile_leaves_out_are_forbidden():
    whole = distances(np.float64, most=9)
    costs = Near(whole.rows, whole.cols, whole.most)
    assert np.isinf(whole.dense()).any()
    assert np.array_equal(costs.dense(), whole.dense())
    out = np.zeros(costs.shape)
    assert costs.dense(out=out) is out
    assert np.array_equal(out, whole.dense())


def test_small_integers_do_not_wrap():
    costs = Distances(np.array([-128, -128], np.int8), np.array([127, 0], np.int8))
    assert gm.assign(costs, backend="cpu").objective == 255 + 128


def test_a_list_of_costs_is_a_batch():
    problems = [distances(np.int64), DenseCosts(np.ones((2, 3)))]
    a = gm.assign(problems, backend="cpu")
    assert a.objective.tolist() == [gm.assign(c, backend="cpu").objective for c in problems]

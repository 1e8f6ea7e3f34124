"""Maximum matchings of small graphs in one compiled call."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse.csgraph
from scipy.sparse import csc_array, csr_array, random_array

import gpumatch.csgraph
from gpumatch.cpu.matching import small
from gpumatch.csgraph import maximum_bipartite_matching, structural_rank
from tests.cpu.matching.cases import MALFORMED


def refuse(*args, **kwargs):
    raise AssertionError("the general way was taken")


@pytest.mark.parametrize("perm_type", ["row", "column"])
@pytest.mark.parametrize("form", [csr_array, csc_array])
def test_small_graphs_are_matched_as_scipy_does(monkeypatch, form, perm_type):
    rng = np.random.default_rng(4)
    monkeypatch.setattr(gpumatch.csgraph, "maximum_matching", refuse)
    for shape in ((0, 3), (3, 0), (1, 1), (9, 9), (40, 60), (60, 40), (200, 200)):
        for degree in (0, 0.7, 2, 5):
            density = min(1, degree / max(shape[1], 1))
            graph = form(random_array(shape, density=density, rng=rng, format="csr"))
            expected = scipy.sparse.csgraph.maximum_bipartite_matching(graph, perm_type)
            found = maximum_bipartite_matching(graph, perm_type)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            assert found.flags.owndata
            assert (found >= 0).sum() == (expected >= 0).sum() == structural_rank(graph)
            own, mates = (found >= 0).nonzero()[0], found[found >= 0]
            pairs = (mates, own) if perm_type == "row" else (own, mates)
            assert np.unique(mates).size == mates.size
            assert (graph.toarray()[pairs] != 0).all()


def test_repeated_and_unsorted_indices_are_edges():
    graph = csr_array((np.ones(4), np.array([1, 0, 0, 0]), np.array([0, 3, 4])), shape=(2, 2))
    assert maximum_bipartite_matching(graph, "column").tolist() == [1, 0]


def test_the_engine_goes_on_from_what_was_found(monkeypatch):
    graph = random_array((400, 400), density=3 / 400, rng=np.random.default_rng(5), format="csr")
    expected = scipy.sparse.csgraph.structural_rank(graph)
    monkeypatch.setattr(small, "READINGS", 0)
    monkeypatch.setattr(small, "READ", 0)
    own, begun = gpumatch.csgraph.maximum_matching, []

    def go_on(graph, *, initial):
        begun.append((initial >= 0).sum())
        return own(graph, initial=initial)

    monkeypatch.setattr(gpumatch.csgraph, "maximum_matching", go_on)
    mates, done = small.solve(graph.indptr, graph.indices, 400, 400)
    assert not done
    found = maximum_bipartite_matching(graph)
    assert (found >= 0).sum() == expected
    assert begun == [(mates[:400] >= 0).sum()]
    assert 300 < begun[0] < expected


@pytest.mark.parametrize(("indptr", "indices"), MALFORMED.values(), ids=MALFORMED)
def test_arrays_of_no_graph_are_left_to_the_general_way(indptr, indices):
    assert small.solve(np.array(indptr, np.int32), np.array(indices), 2, 2) is None

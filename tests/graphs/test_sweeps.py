"""Sweep digraphs: their arcs, their components, and that a seed gives the same one again."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from graphs.sweeps import sweep


def components(graph):
    return np.bincount(connected_components(graph, connection="strong")[1])


def test_arcs_lead_to_neighbours():
    graph = sweep(5, 6, 7, bend=0.3, seed=1).tocoo()
    ends = np.array(np.unravel_index([graph.row, graph.col], (5, 6, 7)))
    assert (abs(ends[:, 0] - ends[:, 1]).sum(axis=0) == 1).all()


def test_each_face_has_an_arc():
    graph = sweep(8, 9, seed=2)
    assert (graph + graph.T).nnz == 2 * (7 * 9 + 8 * 8)


def test_flat_faces_leave_single_cells_and_bent_ones_make_cycles():
    assert components(sweep(20, 20, bend=0.0)).max() == 1
    assert components(sweep(30, 30, bend=0.2)).max() > 1


def test_a_swirl_is_one_component_a_layer():
    assert np.sort(components(sweep(12, 12, 3, bend=0.0, swirl=3.0)))[-3:].min() > 72


def test_the_seed_decides():
    again = [sweep(10, 10, 2, seed=seed) for seed in (0, 0, 1)]
    assert (again[0] != again[1]).nnz == 0 < (again[0] != again[2]).nnz

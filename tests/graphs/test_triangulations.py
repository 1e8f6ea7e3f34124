"""Delaunay triangulations in strips are those of the whole set."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial import ConvexHull, Delaunay

import graphs
from graphs import triangulations
from graphs.geometric import random_points
from graphs.triangulations import triangulation


def reference(points: np.ndarray) -> csr_array:
    """The adjacency matrix of SciPy's triangulation of all points at once."""
    indptr, indices = Delaunay(points).vertex_neighbor_vertices
    return csr_array((np.ones(indices.size, bool), indices, indptr), shape=2 * (len(points),))


def same(a: csr_array, b: csr_array) -> bool:
    return (a != b).nnz == 0


@pytest.mark.parametrize("k", [2, 5, 11])
def test_family_is_the_triangulation_of_its_points(k: int) -> None:
    assert same(graphs.delaunay(k, seed=3), reference(random_points(1 << k, seed=3)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n", "strip"), [(200, 30), (1500, 400), (6000, 1000)])
def test_strips_equal_the_whole(n: int, strip: int, seed: int) -> None:
    points = random_points(n, seed)
    assert same(triangulation(points, strip=strip, workers=2), reference(points))


def test_strips_suffice_without_growing(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = []
    stitch = triangulations._stitch

    def counted(points, regions, workers):
        rounds.append(len(regions))
        return stitch(points, regions, workers)

    monkeypatch.setattr(triangulations, "_stitch", counted)
    triangulation(random_points(20_000, seed=1), strip=4000)
    assert rounds == [6]  # five strips and the frame, once


def test_regions_grow_where_points_are_sparse() -> None:
    points = random_points(3000, seed=2) ** 4
    assert same(triangulation(points, strip=500), reference(points))


def test_edges_by_euler() -> None:
    points = random_points(5000, seed=8)
    hull = ConvexHull(points).vertices.size
    assert triangulation(points, strip=700).nnz == 2 * (3 * 5000 - 3 - hull)


def test_workers_do_not_change_the_graph() -> None:
    points = random_points(8000, seed=5)
    assert same(
        triangulation(points, strip=900, workers=1), triangulation(points, strip=900, workers=3)
    )


def test_a_circle_that_reaches_outside_is_not_certified() -> None:
    corners = np.array([[[0.2, 0.5], [0.4, 0.5], [0.3, 0.6]], [[0.6, 0.5], [0.8, 0.5], [0.7, 0.6]]])
    right = np.array([[[0.75, 0.0], [1.0, 1.0]]])
    region = triangulations._Region(np.arange(6), right, 0.0)
    assert triangulations._certified(corners, region).tolist() == [True, False]

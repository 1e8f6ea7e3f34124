"""What makes each family itself: degrees, counts, distances, hidden structure."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial.distance import pdist, squareform

import graphs
from graphs import kronecker
from graphs.geometric import random_points
from graphs.hard import rope_layers


def degrees(graph: csr_array, axis: int = 1) -> np.ndarray:
    return graph.count_nonzero(axis=axis)


def near(count: int, trials: int, p: float) -> bool:
    """Whether a binomial count is within five standard deviations of its mean."""
    return abs(count - trials * p) <= 5 * np.sqrt(trials * p * (1 - p))


def first_fit(graph: csr_array) -> np.ndarray:
    """Match rows in order, each to its first free column; return row_to_col."""
    row_to_col = np.full(graph.shape[0], -1)
    taken = set()
    for row in range(graph.shape[0]):
        for column in graph.indices[graph.indptr[row] : graph.indptr[row + 1]]:
            if column not in taken:
                taken.add(column)
                row_to_col[row] = column
                break
    return row_to_col


def augmenting_levels(graph: csr_array) -> int:
    """Rows on the shortest augmenting path after a first-fit start that leaves one row."""
    row_to_col = first_fit(graph)
    col_to_row = np.full(graph.shape[1], -1)
    matched = np.flatnonzero(row_to_col >= 0)
    col_to_row[row_to_col[matched]] = matched
    (root,) = np.flatnonzero(row_to_col < 0)
    level, frontier, seen = 0, {root}, {root}
    while frontier:
        level += 1
        mates = {
            col_to_row[column]
            for row in frontier
            for column in graph.indices[graph.indptr[row] : graph.indptr[row + 1]]
        }
        if -1 in mates:
            return level
        frontier = mates - seen
        seen |= frontier
    return 0


def forced_pairs(graph: csr_array) -> int:
    """Pairs that remain forced when rows with one column left are matched, one after another."""
    left = graph.toarray()
    pairs = 0
    while (single := np.flatnonzero(left.sum(axis=1) == 1)).size:
        column = left[single[0]].argmax()
        left[single[0]] = False
        left[:, column] = False
        pairs += 1
    return pairs


@pytest.mark.parametrize("n", [2, 10, 300])
def test_chain_is_a_path_that_a_greedy_start_gets_wrong(n: int) -> None:
    chain = graphs.chain(n)
    assert chain.nnz == 2 * n - 1
    assert max(degrees(chain, 0).max(), degrees(chain, 1).max()) == 2
    assert augmenting_levels(chain) == n


@pytest.mark.parametrize(("levels", "width"), [(1, 2), (10, 3), (2000, 2)])
def test_augmenting_path_climbs_the_whole_ladder(levels: int, width: int) -> None:
    assert augmenting_levels(graphs.ladder(levels, width)) == levels + 1


@pytest.mark.parametrize("levels", [1, 10, 300])
def test_only_the_chain_between_the_ladders_leads_out(levels: int) -> None:
    graph = graphs.dead_end_ladder(levels)
    assert augmenting_levels(graph) == levels + 1
    ladder_rows = np.r_[: 2 * levels, 3 * levels : 5 * levels]
    ladder_columns = np.unique(graph[ladder_rows].indices)
    np.testing.assert_array_equal(ladder_columns, ladder_rows)  # as many columns as rows
    root = graph[[5 * levels]].indices
    assert root.size == 5
    assert graph[ladder_rows].nnz == 2 * (2 * levels + 4 * (levels - 1))


def test_stars_share_nothing() -> None:
    stars = graphs.stars(7, 4)
    assert (degrees(stars) == 4).all()
    assert (degrees(stars, 0) == 1).all()


@pytest.mark.parametrize("k", [2, 9, 30])
def test_full_grid(k: int) -> None:
    grid = graphs.grid(k)
    assert grid.nnz == 4 * k * (k - 1)
    distances = shortest_path(grid, unweighted=True, indices=0).reshape(k, k)
    np.testing.assert_array_equal(distances, np.add.outer(np.arange(k), np.arange(k)))


def test_grid_keeps_each_edge_with_probability_p() -> None:
    k = 120
    grid = graphs.grid(k, 0.65, seed=5)
    assert near(grid.nnz // 2, 2 * k * (k - 1), 0.65)
    assert (grid > graphs.grid(k)).nnz == 0


@pytest.mark.parametrize("k", [3, 6, 9])
def test_rgg_joins_points_within_the_radius(k: int) -> None:
    n = 1 << k
    points = random_points(n, seed=4)
    close = squareform(pdist(points) <= 0.55 * np.sqrt(np.log(n) / n))
    np.testing.assert_array_equal(graphs.rgg(k, seed=4).toarray(), close)


def test_kron_descends_into_quadrants_with_the_given_probabilities() -> None:
    count = 200_000
    u, v = kronecker._rmat(1, count, np.random.default_rng(1))
    quadrants = np.bincount(2 * u + v, minlength=4)
    for drawn, p in zip(quadrants, (0.57, 0.19, 0.19, 0.05)):
        assert near(drawn, count, p)


def test_kron_is_skewed() -> None:
    k = 11
    kron = graphs.kron(k, seed=2)
    assert 48 * 2**k < kron.nnz < 2 * 48 * 2**k
    assert degrees(kron).max() > 10 * degrees(kron).mean()
    assert (degrees(kron) == 0).any()


def test_kron_has_the_edges_drawn_first_and_many_more() -> None:
    assert kronecker._BLOCK < 48 << 15  # more than one block
    u, v = kronecker._rmat(15, kronecker._BLOCK, np.random.default_rng(3))
    kron = graphs.kron(15, seed=3)
    proper = u != v
    assert kron[u[proper][:1000], v[proper][:1000]].all()


@pytest.mark.parametrize("degree", [1, 3, 8])
def test_uniform_degrees(degree: int) -> None:
    n = 5000
    graph = graphs.uniform(n, degree, seed=6)
    assert degrees(graph).max() == degree
    assert n * degree - graph.nnz < 20 * degree  # few columns are drawn twice for a row
    assert near((degrees(graph, 0) == 0).sum(), n, (1 - 1 / n) ** (n * degree))


def test_lopsided_contains_the_uniform_rectangle() -> None:
    graph = graphs.lopsided(900, 40, 3, seed=1)
    background = graphs.uniform(900, 3, 40, seed=1)
    assert (background > graph).nnz == 0
    assert 0 < graph.nnz - background.nnz <= 40


@pytest.mark.parametrize("k", [5, 40])
def test_road_of_single_segments_is_the_grid(k: int) -> None:
    road = graphs.road(k, 0.65, 1.0, seed=3)
    assert (road != graphs.grid(k, 0.65, seed=3)).nnz == 0


def test_road_without_streets() -> None:
    road = graphs.road(4, 0.0)
    assert road.shape == (16, 16)
    assert road.nnz == 0


def test_road_subdivides_streets() -> None:
    k = 60
    road = graphs.road(k, seed=3)
    streets = graphs.grid(k, 0.65, seed=3)
    inner = degrees(road)[k * k :]
    assert (inner == 2).all()
    np.testing.assert_array_equal(degrees(road)[: k * k], degrees(streets))
    assert road.nnz // 2 == streets.nnz // 2 + inner.size
    assert road.nnz / streets.nnz == pytest.approx(4.0, rel=0.05)
    assert connected_components(road)[0] == connected_components(streets)[0]


@pytest.mark.parametrize("k", [1, 8, 50])
def test_mesh_without_holes(k: int) -> None:
    mesh = graphs.bubbles(k, 0, seed=1)
    assert mesh.shape == (2 * k * k, 2 * k * k)
    assert mesh.nnz // 2 == k * k + 2 * k * (k - 1)
    assert degrees(mesh).max() <= 3
    assert (3 - degrees(mesh)).sum() == 4 * k  # one side of a triangle for each border side
    assert connected_components(mesh)[0] == 1


def test_bubbles_have_holes() -> None:
    k = 120
    mesh = graphs.bubbles(k, 20, seed=1)
    assert 2 * k * k * 0.67 < mesh.shape[0] < 2 * k * k * 0.95
    assert degrees(mesh).max() == 3
    assert degrees(mesh).mean() > 2.9


def test_trace_is_one_long_corridor() -> None:
    k, width = 60, 4
    mesh = graphs.trace(k, width, seed=1)
    assert degrees(mesh).max() == 3
    assert connected_components(mesh)[0] == 1
    corridors = -(-k // (width + 1))
    reach = shortest_path(mesh, unweighted=True, indices=0).max()
    assert reach > corridors * (k - 2 * width)


@pytest.mark.parametrize(("family", "groups"), [(graphs.fewg, 32), (graphs.manyg, 256)])
def test_groups_join_near_groups_only(family, groups: int) -> None:
    size = 12
    n = groups * size
    graph = family(n, seed=9)
    # Rows are numbered at random: what shows is that a row's columns span three groups.
    for row in range(n):
        group = np.unique(graph[[row]].indices // size)
        turned = (group - group[0] + groups // 2) % groups if group.size else group
        assert group.size == 0 or np.ptp(turned) <= 2
    assert n * 5 * 0.8 < graph.nnz < n * 5  # duplicates merge in small groups


def test_groups_must_divide_the_rows() -> None:
    with pytest.raises(ValueError, match="multiple of groups"):
        graphs.fewg(100)
    with pytest.raises(ValueError, match="at least 3"):
        graphs.fewg(100, 5, 2)


@pytest.mark.parametrize(("k", "pieces", "degree"), [(1, 1, 3), (6, 2, 3), (20, 4, 5)])
def test_hilo_has_one_perfect_matching(k: int, pieces: int, degree: int) -> None:
    graph = graphs.hilo(k, pieces, degree)
    in_piece = np.minimum(np.arange(1, k + 1), degree)
    expected = np.tile(2 * in_piece, pieces)
    expected[-k:] = in_piece
    np.testing.assert_array_equal(degrees(graph), expected)
    assert graph.diagonal().all()
    assert forced_pairs(graph) == k * pieces


@pytest.mark.parametrize("n", [40, 100, 400])
def test_rope_has_one_maximum_matching(n: int) -> None:
    rope = graphs.rope(n, 4.0, seed=2)
    layers, thickness = rope_layers(n, 4.0)
    assert rope.nnz == 4 * n
    assert forced_pairs(rope) == layers * thickness
    assert (degrees(rope) > 0).sum() == layers * thickness


def test_rope_is_long() -> None:
    rope = graphs.rope(2000, 6.0, seed=2)
    bipartite = block_array([[None, rope], [rope.T, None]]).tocsr()
    start = np.flatnonzero(degrees(bipartite) == 1)[0]
    distances = shortest_path(bipartite, unweighted=True, indices=start)
    assert distances[np.isfinite(distances)].max() == 2 * rope_layers(2000, 6.0)[0] - 1


@pytest.mark.parametrize("seed", range(8))
def test_one_hexagon(seed) -> None:
    """Of few vertices, they are drawn in each order."""
    hexagon = graphs.hexa(3, 2.0, seed=seed)
    assert hexagon.nnz == 6
    assert (degrees(hexagon) == 2).all()
    assert (degrees(hexagon, 0) == 2).all()


def test_hexa_is_spread_over_all_vertices() -> None:
    n = 20_000
    graph = graphs.hexa(n, 6.0, seed=5)
    assert 5.8 * n < graph.nnz < 6.3 * n
    assert near((degrees(graph) == 0).sum(), n, np.exp(-3.0))  # three hexagons a row, at random


def test_zipf_degrees_fall_with_the_rank() -> None:
    n = 5000
    graph = graphs.zipf(n, 6.0, seed=3)
    assert graph.nnz == 6 * n  # no entry was drawn twice
    by_row, by_column = (np.sort(degrees(graph, axis))[::-1] for axis in (1, 0))
    constant = 6 * n / np.log(n)
    np.testing.assert_allclose(by_row[:50], constant * np.log1p(1 / np.arange(1, 51)), atol=1.0)
    assert by_column[0] > 50 * by_column.mean()
    assert (by_column <= 2).sum() > n / 3

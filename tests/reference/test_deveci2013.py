"""The paper's algorithms as interleaved threads: whole runs, all of which end at a maximum."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpumatch.contracts import MatchingTask
from gpumatch.reference import deveci2013 as reference
from gpumatch.reference import interleaving
from gpumatch.reference.deveci2013 import ALGORITHMS
from tests.cpu.matching.cases import FreeRun, unmatched
from tests.cpu.matching.cases import graph as graph_of
from tests.cpu.matching.cases import random as uniform
from tests.reference.cases import (
    ALGORITHM,
    CASE,
    CASES,
    LAUNCH,
    LAUNCHES,
    Recorder,
    chain,
    chain_links,
    edges_of,
    konig_cover_size,
    matching_size,
    maximum_size,
    solve,
)

# -- whole runs ------------------------------------------------------------------------------------


@CASE
@ALGORITHM
@LAUNCH
def test_every_run_ends_with_a_maximum_matching(graph, algorithm, launch):
    best = maximum_size(graph)
    for seed in range(6):
        mates, _ = solve(graph, algorithm, launch, seed)
        assert matching_size(graph, *mates) == best
        assert konig_cover_size(graph, *mates) == best


@CASE
@ALGORITHM
def test_a_given_matching_is_extended(graph, algorithm):
    for seed in range(3):
        start = unmatched(graph)
        assert reference.cheap(MatchingTask(graph, *start, FreeRun(), seed=seed))
        mates, _ = solve(graph, algorithm, "ct", seed, start)
        assert matching_size(graph, *mates) == maximum_size(graph)
        solve(graph, algorithm, "mt", seed, mates)


@ALGORITHM
@LAUNCH
def test_many_threads_on_one_graph(algorithm, launch):
    graph = uniform(400, 400, 1000, seed=5)
    start = unmatched(graph)
    reference.cheap(MatchingTask(graph, *start, FreeRun(), seed=0))
    mates, _ = solve(graph, algorithm, launch, 0, start)
    assert konig_cover_size(graph, *mates) == maximum_size(graph)


@st.composite
def bipartite_graphs(draw):
    nrows, ncols = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    pairs = st.tuples(st.integers(0, nrows - 1), st.integers(0, ncols - 1))
    return graph_of(nrows, ncols, draw(st.lists(pairs, max_size=40)))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    bipartite_graphs(),
    st.sampled_from(sorted(ALGORITHMS)),
    st.sampled_from(LAUNCHES),
    st.integers(0, 1000),
)
def test_size_is_that_of_networkx(graph, algorithm, launch, seed):
    mates, _ = solve(graph, algorithm, launch, seed)
    peer = nx.Graph()
    peer.add_nodes_from(("row", r) for r in range(graph.nrows))
    peer.add_edges_from((("row", r), ("column", c)) for r, c in edges_of(graph))
    rows = [("row", r) for r in range(graph.nrows)]
    best = len(nx.bipartite.hopcroft_karp_matching(peer, rows)) // 2
    assert matching_size(graph, *mates) == konig_cover_size(graph, *mates) == best


@ALGORITHM
@LAUNCH
def test_a_seed_fixes_the_run_and_another_changes_it(algorithm, launch):
    graph = CASES["uniform dense"]
    matchings = set()
    for seed in range(5):
        once, phases = solve(graph, algorithm, launch, seed)
        again, same_phases = solve(graph, algorithm, launch, seed)
        assert phases == same_phases
        np.testing.assert_array_equal(once[0], again[0])
        matchings.add(tuple(once[0].tolist()))
    assert len(matchings) > 1


def chain_left_to_augment(length):
    """A chain matched along its links: one augmenting path, through every vertex."""
    mates = np.full(length, -1, np.int32), np.full(length, -1, np.int32)
    for row, column in chain_links(length):
        mates[0][row], mates[1][column] = column, row
    return mates


@ALGORITHM
@LAUNCH
def test_phases_of_a_chain(algorithm, launch):
    _, phases = solve(chain(20), algorithm, launch, 0, chain_left_to_augment(20))
    assert phases == [
        {"levels": 20, "launches": 23, "found": 1, "matched": 20},
        {"levels": 1, "launches": 4, "found": 0, "matched": 20},
    ]


@pytest.mark.parametrize(
    ("algorithm", "levels", "found"),
    [
        ("apsb-gpubfs", 2, 1),
        ("apsb-gpubfs-wr", 2, 1),
        ("apfb-gpubfs", 6, 2),
        ("apfb-gpubfs-wr", 5, 2),
    ],
)
def test_apsb_stops_at_the_shortest_paths_and_wr_at_the_first_of_a_root(algorithm, levels, found):
    """A tree with a path of two levels and a tail of six, and a chain of five levels."""
    tail = 6
    edges = [(i, i) for i in range(1, tail)] + [(i, i - 1) for i in range(1, tail)] + [(0, 1)]
    edges += [(tail + i, tail + j) for i, j in edges_of(chain(5))]
    mates = np.full(tail + 5, -1, np.int32), np.full(tail + 5, -1, np.int32)
    for i in range(1, tail):
        mates[0][i] = mates[1][i] = i
    for row, column in chain_links(5):
        mates[0][tail + row], mates[1][tail + column] = tail + column, tail + row
    graph = graph_of(tail + 5, tail + 5, edges)

    _, phases = solve(graph, algorithm, "mt", 0, mates)
    assert (phases[0]["levels"], phases[0]["found"]) == (levels, found)


# -- stopping --------------------------------------------------------------------------------------


@ALGORITHM
def test_control_can_stop_it_anywhere(algorithm, monkeypatch):
    monkeypatch.setattr(interleaving, "TURNS_PER_HEARTBEAT", 3)
    graph = CASES["uniform dense"]
    sizes = set()
    for tick in range(1, 400, 9):
        mates = unmatched(graph)
        recorder = Recorder(graph, mates, stop_at_tick=tick)
        finished = reference.run(MatchingTask(graph, *mates, recorder), algorithm=algorithm)
        assert finished == (recorder.ticks < tick)
        sizes.add(matching_size(graph, *mates))
        assert not finished or matching_size(graph, *mates) == maximum_size(graph)
    assert min(sizes) == 0
    assert len(sizes) > 2


@ALGORITHM
def test_an_interrupt_leaves_a_matching(algorithm):
    class Interrupting(Recorder):
        def tick(self, matched):
            if super().tick(matched):
                raise KeyboardInterrupt
            return False

    graph = CASES["uniform square"]
    mates = unmatched(graph)
    control = Interrupting(graph, mates, stop_at_tick=9)
    with pytest.raises(KeyboardInterrupt):
        reference.run(MatchingTask(graph, *mates, control), algorithm=algorithm)
    assert 0 < matching_size(graph, *mates) < maximum_size(graph)


# -- cheap matching --------------------------------------------------------------------------------


@CASE
def test_cheap_matching_leaves_no_edge_between_unmatched_vertices(graph):
    for seed in range(4):
        mates = unmatched(graph)
        assert reference.cheap(MatchingTask(graph, *mates, FreeRun(), seed=seed))
        size = matching_size(graph, *mates)
        assert all(mates[0][row] >= 0 or mates[1][column] >= 0 for row, column in edges_of(graph))
        again = mates[0].copy(), mates[1].copy()
        assert reference.cheap(MatchingTask(graph, *again, FreeRun(), seed=seed + 1))
        np.testing.assert_array_equal(again[0], mates[0])
        assert 2 * size >= maximum_size(graph)


def test_cheap_matching_depends_on_the_seed_alone():
    graph = CASES["uniform dense"]
    results = []
    for seed in [*range(5), *range(5)]:
        mates = unmatched(graph)
        reference.cheap(MatchingTask(graph, *mates, FreeRun(), seed=seed))
        results.append(tuple(mates[0].tolist()))
    assert results[:5] == results[5:]
    assert len(set(results)) > 1


def test_cheap_matching_can_be_stopped(monkeypatch):
    monkeypatch.setattr(interleaving, "TURNS_PER_HEARTBEAT", 5)
    monkeypatch.setattr(interleaving, "TURNS_PER_DRAW", 5)
    graph = CASES["uniform square"]
    mates = unmatched(graph)
    recorder = Recorder(graph, mates, stop_at_tick=4)
    assert not reference.cheap(MatchingTask(graph, *mates, recorder, seed=0))
    assert 0 < matching_size(graph, *mates) < maximum_size(graph)

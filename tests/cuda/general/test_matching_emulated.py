"""Maximum matchings of graphs on a device: the double cover's kernels on the CPU."""

from __future__ import annotations

import dataclasses

import networkx as nx
import numpy as np
import pytest

pytest.importorskip("cupy")

import itertools

from gpumatch.contracts import GeneralMatchingTask
from gpumatch.cpu.general import matching as on_host
from gpumatch.cpu.matching import engine as host_engine
from gpumatch.cuda import frontier
from gpumatch.cuda.general import double_cover, half_approximate, trees
from gpumatch.cuda.general import matching as module
from gpumatch.cuda.matching import chains, engine, min_degree, vertex_cover
from gpumatch.running.control import Control
from tests.cpu.general.greedy import Ending, random_graph, with_both_entries
from tests.cuda.emulator import COMPILER, ArraysOfDevice, Emulator, lead_drivers_here

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

BLOCK = 64
KINDS = {"Offset": {"int32": "int"}, "Weight": {"int32": "int"}}
SMALL = {"kBlock": BLOCK, "kAlone": 12, "kAloneLevels": 3, "kSampled": 2, "kTraceLength": 64}


@pytest.fixture(scope="module")
def emulators():
    sources = (
        (engine.SOURCE, SMALL),
        (min_degree.SOURCE, {}),
        (vertex_cover.SOURCE, {}),
        (double_cover.SOURCE, {}),
        (trees.SOURCE, {}),
        (half_approximate.SUITOR, {}),
        (half_approximate.DUALS, {}),
        (half_approximate.PARTS, {}),
    )
    return {
        source: Emulator(
            dataclasses.replace(source, types={name: KINDS[name] for name in source.types}),
            constants,
        )
        for source, constants in sources
    }


@pytest.fixture(autouse=True)
def device(emulators, monkeypatch):
    drivers = module, double_cover, trees, half_approximate
    drivers += engine, min_degree, vertex_cover, frontier
    lead_drivers_here(monkeypatch, emulators, *drivers, block=BLOCK)
    monkeypatch.setattr(module, "FEWEST", 0)
    monkeypatch.setattr(engine, "_TRACE", (64, 2))
    monkeypatch.setattr(chains, "FEWEST", 10**9)
    for emulator in emulators.values():
        emulator.vary(np.random.default_rng(1))


def solved(graph, control=None, mate=None):
    cp, n = ArraysOfDevice(), len(graph[0]) - 1
    gone_on = []

    def go_on(task):
        gone_on.append(int((task.mate >= 0).sum()) // 2)
        return on_host.search_rest(task)

    mate = np.full(n, -1, np.int32) if mate is None else mate
    task = GeneralMatchingTask(
        cp.asarray(graph[0].astype(np.int32)),
        cp.asarray(graph[1]),
        cp.asarray(mate),
        cp.asarray(np.zeros(n, np.int8)),
        host_engine.run,
        control or Control(),
        fallback=go_on,
    )
    return module.run(task), np.asarray(task.mate), np.asarray(task.part), gone_on


def as_networkx(graph):
    indptr, indices, _ = graph
    G = nx.empty_graph(len(indptr) - 1)
    G.add_edges_from(zip(np.repeat(np.arange(len(G)), np.diff(indptr)).tolist(), indices.tolist()))
    return G


def check(graph, mate, part):
    """The mates are a matching, and the parts prove it maximum (Tutte and Berge)."""
    G, matched = as_networkx(graph), np.flatnonzero(mate >= 0)
    assert all(G.has_edge(v, mate[v]) and mate[mate[v]] == v for v in matched.tolist())
    inner = np.flatnonzero(part == GeneralMatchingTask.INNER).tolist()
    G.remove_nodes_from(inner)
    odd = sum(len(c) % 2 for c in nx.connected_components(G))
    assert (mate < 0).sum() == odd - len(inner)


@pytest.mark.parametrize("kind", ["any", "bipartite", "cycles"])
def test_random_graphs(emulators, kind):
    rng = np.random.default_rng(len(kind))
    went = 0
    for _ in range(40):
        for emulator in emulators.values():
            emulator.vary(rng)
        graph = random_graph(rng, 40)
        if kind != "any":
            graph = bipartite(rng) if kind == "bipartite" else cycles(rng)
        finished, mate, part, gone_on = solved(graph)
        assert finished
        check(graph, mate, part)
        went += len(gone_on)
        if kind == "bipartite":
            assert not gone_on
    assert went > 0 or kind != "cycles"


def bipartite(rng):
    n = int(rng.integers(2, 40))
    side = rng.integers(0, 2, n)
    u, v = np.nonzero(np.triu(side[:, None] != side, 1) & (rng.random((n, n)) < 3 / n))
    return with_both_entries(n, u, v, np.ones(len(u), np.int64))


def cycles(rng):
    """Cycles and paths of random lengths, their vertices in any order."""
    ends, first = [], 0
    for _ in range(6):
        length = int(rng.integers(2, 12))
        along = np.arange(first, first + length)
        ends += [*itertools.pairwise(along)]
        if length > 2 and rng.random() < 0.6:
            ends.append((along[-1], along[0]))
        first += length
    order = rng.permutation(first)
    ends = np.sort(order[np.array(ends)], 1)
    return with_both_entries(first, *ends.T, np.ones(len(ends), np.int64))


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_cycles_and_paths_of_the_cover_are_numbered(count):
    """A permutation of cycles, and paths of an odd number of vertices."""
    rng, cp = np.random.default_rng(count), ArraysOfDevice()
    lengths = [*rng.integers(2, 70, count), *(2 * rng.integers(0, 30, count) + 1)]
    order, begin = rng.permutation(sum(lengths)), 0
    after = np.full(len(order), -1, np.int32)
    for number, length in enumerate(lengths):
        along = order[begin : begin + length]
        after[along[:-1]] = along[1:]
        if number < count:
            after[along[-1]] = along[0]
        begin += length
    before = np.full(len(order), -1, np.int32)
    before[after[after >= 0]] = np.flatnonzero(after >= 0)
    lonely = double_cover.DoubleCover(
        cp.asarray(np.zeros(len(order) + 1, np.int32)), cp.asarray(np.zeros(0, np.int32))
    )
    found = double_cover.rounded(lonely, cp.asarray(after), cp.asarray(before))
    mate, odd_cycles = np.asarray(found.mate), found.odd_cycles
    assert found.unmatched_cycles == odd_cycles
    assert odd_cycles == sum(length % 2 for length in lengths[:count])
    matched = np.flatnonzero(mate >= 0)
    assert (mate[mate[matched]] == matched).all()
    assert ((after[matched] == mate[matched]) | (before[matched] == mate[matched])).all()
    assert len(matched) == sum(length - length % 2 for length in lengths)


def test_neighbouring_odd_cycles_leave_no_vertex():
    """A chain of triangles and of cycles of five, each joined to the next by some edge."""
    rng, cp = np.random.default_rng(8), ArraysOfDevice()
    for count in (2, 3, 9):
        lengths, ends, after = rng.choice([3, 5], count), [], []
        begins = np.concatenate([[0], np.cumsum(lengths)])
        for begin, end in itertools.pairwise(begins.tolist()):
            along = [*range(begin, end)]
            after += [*along[1:], begin]
            ends += zip(along, [*along[1:], begin])
        for begin, middle, end in zip(begins[:-2], begins[1:-1], begins[2:]):
            ends.append((rng.integers(begin, middle), rng.integers(middle, end)))
        n = int(begins[-1])
        order = rng.permutation(n)
        ends = np.sort(order[np.array(ends)], 1)
        graph = with_both_entries(n, *ends.T, np.ones(len(ends), np.int64))
        of_cover = np.empty(n, np.int32)
        of_cover[order] = order[after]
        before = np.empty(n, np.int32)
        before[of_cover] = np.arange(n)
        double = double_cover.DoubleCover(
            cp.asarray(graph[0].astype(np.int32)), cp.asarray(graph[1])
        )
        found = double_cover.rounded(double, cp.asarray(of_cover), cp.asarray(before))
        mate = np.asarray(found.mate)
        assert found.odd_cycles == count
        assert count % 2 <= found.unmatched_cycles == (mate < 0).sum() < count
        matched, G = np.flatnonzero(mate >= 0), as_networkx(graph)
        assert all(G.has_edge(v, mate[v]) and mate[mate[v]] == v for v in matched.tolist())


def test_odd_cycles_that_all_want_each_other(emulators):
    """Triangles with edges from each to all others: who gets only one of two gives it back."""
    rng, cp = np.random.default_rng(9), ArraysOfDevice()
    for _ in range(25):
        emulators[double_cover.SOURCE].vary(rng)
        count = int(rng.integers(3, 9))
        n = 3 * count
        after = np.array([v + 1 if v % 3 < 2 else v - 2 for v in range(n)], np.int32)
        before = np.argsort(after).astype(np.int32)
        u, v = np.triu_indices(n, 1)
        indptr, indices, _ = with_both_entries(n, u, v, np.ones(len(u), np.int64))
        double = double_cover.DoubleCover(cp.asarray(indptr.astype(np.int32)), cp.asarray(indices))
        found = double_cover.rounded(double, cp.asarray(after), cp.asarray(before))
        mate = np.asarray(found.mate)
        matched = np.flatnonzero(mate >= 0)
        assert (mate[mate[matched]] == matched).all()
        assert n - len(matched) == found.unmatched_cycles


def test_it_goes_on_from_a_matching_and_stops_when_told():
    rng = np.random.default_rng(5)
    graph = random_graph(rng, 60)
    finished, full, _, _ = solved(graph)
    assert finished
    some = full.copy()
    v = np.flatnonzero(full >= 0)[0]
    some[[v, full[v]]] = -1
    assert not solved(graph, Ending(0), some.copy())[0]
    finished, mate, part, _ = solved(graph, Control(), some.copy())
    assert finished
    check(graph, mate, part)


def test_trees_match_what_they_meet(emulators):
    """From greedy matchings; vertices with a part keep their mates, and nobody meets them."""
    rng, cp, found = np.random.default_rng(6), ArraysOfDevice(), 0
    for _ in range(40):
        emulators[trees.SOURCE].vary(rng)
        graph = random_graph(rng, 40)
        indptr, indices, _ = graph
        n = len(indptr) - 1
        mate, part = np.full(n, -1, np.int32), (rng.random(n) < 0.2).astype(np.int8)
        for v in rng.permutation(n).tolist():
            others = indices[indptr[v] : indptr[v + 1]]
            others = others[mate[others] < 0]
            if mate[v] < 0 and others.size:
                mate[[v, others[0]]] = others[0], v
        task = GeneralMatchingTask(
            cp.asarray(indptr.astype(np.int32)),
            *(cp.asarray(array) for array in (indices, mate.copy(), part)),
            host_engine.run,
            Control(),
        )
        before = (mate >= 0).sum() // 2
        left = trees.search(task, before)
        after = np.asarray(task.mate)
        assert left == ((after < 0) & (part == 0)).sum()
        assert (after[part != 0] == mate[part != 0]).all()
        matched, G = np.flatnonzero(after >= 0), as_networkx(graph)
        assert all(G.has_edge(v, after[v]) and after[after[v]] == v for v in matched.tolist())
        paths = [step["found"] for step in task.control.trace]
        assert sum(paths) == len(matched) // 2 - before
        found += sum(paths)
    assert found > 10

"""The contraction of long chains with its kernels on the CPU, threads in any order."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

pytest.importorskip("cupy")

from gpumatch.bipartite import BipartiteGraph
from gpumatch.cuda import csr
from gpumatch.cuda.matching import chains, engine, min_degree
from gpumatch.cuda.matching.chains import Census
from tests.cpu.matching.cases import (
    FreeRun,
    StopAt,
    check_maximum,
    check_valid,
    graph,
    holding,
    unmatched,
)
from tests.cpu.matching.runs import extend, scattered
from tests.cuda.emulator import COMPILER, ArraysOfDevice, Emulator, lead_drivers_here

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

BLOCK = 64
OFFSETS = {"Offset": {"int32": "int"}}
SMALL = {"kBlock": BLOCK, "kAlone": 12, "kAloneLevels": 3, "kSampled": 2, "kTraceLength": 64}


@pytest.fixture(scope="module")
def emulators():
    sources = (chains.SOURCE, {}), (engine.SOURCE, SMALL), (min_degree.SOURCE, {})
    return {
        source: Emulator(dataclasses.replace(source, types=OFFSETS), constants)
        for source, constants in sources
    }


@pytest.fixture(autouse=True)
def device(emulators, monkeypatch):
    lead_drivers_here(monkeypatch, emulators, chains, engine, min_degree, csr, block=BLOCK)
    monkeypatch.setattr(engine, "_TRACE", (64, 2))
    monkeypatch.setattr(chains, "FEWEST", 1)
    monkeypatch.setattr(chains, "LONG", 0)
    for emulator in emulators.values():
        emulator.vary(np.random.default_rng(1))


def subdivided(rng, joints, paths, most, *, is_bare=False):
    """A bipartite graph of `paths` random paths between joints, with up to `most` vertices inside.

    Some joints have no neighbour, some paths end nowhere, some are cycles, and some are equal.
    """
    colours, edges = rng.integers(0, 2, joints).tolist(), []

    def walk(vertex, end, length):
        for _ in range(length):
            colours.append(1 - colours[vertex])
            edges.append((vertex, len(colours) - 1))
            vertex = len(colours) - 1
        if end is not None:
            edges.append((vertex, end))

    for _ in range(paths):
        begin, end = rng.integers(0, joints, 2).tolist()
        length = int(rng.integers(0, most))
        kind = rng.integers(0, 8)
        if kind == 0 or is_bare:
            colours.append(int(rng.integers(0, 2)))
            walk(len(colours) - 1, None, length)
        elif kind == 1:
            colours.append(0)
            first = len(colours) - 1
            walk(first, None, 2 * length + 3)
            edges.append((len(colours) - 1, first))
        elif kind == 2:
            walk(begin, None, length)
        else:
            walk(begin, end, length + (length + colours[begin] + colours[end] + 1) % 2)
    names, counts = rng.permutation(len(colours)), [0, 0]
    number = np.empty(len(colours), int)
    for v in names:
        number[v] = counts[colours[v]]
        counts[colours[v]] += 1
    pairs = [(v, w) if colours[v] == 0 else (w, v) for v, w in edges]
    return graph(max(counts[0], 1), max(counts[1], 1), [(number[v], number[w]) for v, w in pairs])


def largest(whole):
    ones = np.ones(len(whole.indices), np.int8)
    matrix = csr_array((ones, whole.indices, whole.indptr), shape=whole.shape)
    return int((maximum_bipartite_matching(matrix, perm_type="column") >= 0).sum())


SHAPES = [(1, 4, 7), (3, 9, 4), (9, 30, 6), (6, 9, 40)]


@pytest.mark.parametrize(("joints", "paths", "most"), SHAPES)
def test_contracted_graphs_have_as_many_pairs_less(emulators, joints, paths, most):
    rng = np.random.default_rng(joints)
    cp = ArraysOfDevice()
    for _ in range(12):
        for emulator in emulators.values():
            emulator.vary(rng)
        whole = subdivided(rng, joints, paths, most)
        contraction = chains.contract(whole)
        kept = contraction.graph
        inner = BipartiteGraph((kept.indptr, kept.indices, kept.shape))
        assert largest(inner) + contraction.pairs == largest(whole)
        for share in (0, 0.5, 1):  # any of its matchings stands for one of the whole graph
            mates = scattered(inner, share, 3)
            found = contraction.match(*map(cp.asarray, mates))
            check_valid(whole, *found)
            assert (found[0] >= 0).sum() == (mates[0] >= 0).sum() + contraction.pairs


@pytest.mark.parametrize("sides", ["both", "rows", "columns"])
def test_graphs_of_chains_get_maximum_matchings(emulators, sides):
    rng = np.random.default_rng(len(sides))
    for joints, paths, most in ((1, 5, 30), (4, 12, 9), (2, 6, 30)):
        whole = subdivided(rng, joints, paths, most)
        mates = scattered(whole, rng.choice([0, 0.4, 1]), 3)
        control = FreeRun()
        before = int((mates[0] >= 0).sum())
        finished, mates = extend(engine, holding(whole, sides), mates, control)
        assert finished
        size = check_maximum(whole, *mates)
        assert control.phases == [(size - before, size)] or before == size


def test_a_long_chain_takes_few_levels(monkeypatch):
    """A search takes a level for each row between two unmatched vertices."""
    monkeypatch.setattr(chains, "LONG", 256)
    whole = graph(3000, 3000, [(i, i) for i in range(3000)] + [(i, i + 1) for i in range(2999)])
    seen, control = [], FreeRun()
    control.phase = lambda *, levels, **_: seen.append(levels)
    mates = unmatched(whole)
    mates[0][:-1], mates[1][1:] = np.arange(1, 3000), np.arange(2999)
    assert extend(engine, whole, mates, control)[0]
    assert check_maximum(whole, *mates) == 3000
    assert sum(seen) < 3


def test_a_stopped_run_keeps_the_larger_matching(monkeypatch):
    monkeypatch.setattr(engine, "_STEPS_A_LAUNCH", 1)
    whole = subdivided(np.random.default_rng(5), 9, 40, 5)
    full = extend(engine, whole)[1]
    for mates in (unmatched(whole), [mate.copy() for mate in full]):
        if (mates[0] >= 0).any():  # all but one pair
            row = np.flatnonzero(mates[0] >= 0)[0]
            mates[1][mates[0][row]] = -1
            mates[0][row] = -1
        before = int((mates[0] >= 0).sum())
        assert not extend(engine, whole, mates, StopAt(1))[0]
        check_valid(whole, *mates)
        assert (mates[0] >= 0).sum() >= before


@pytest.mark.parametrize(
    ("census", "is_long"),
    [
        (Census(40, 2**21, 0), True),
        (Census(40, 2**21, 1000), True),
        (Census(40, 2**21, 6000), False),
        (Census(20_000, 2**21, 0), False),
        (Census(2, 2**13, 0), False),
        (Census(0, 0, 2**21), False),
    ],
)
def test_chains_are_contracted_if_they_are_long(monkeypatch, census, is_long):
    monkeypatch.undo()
    assert census.may_have_long_chains() is is_long


def test_the_degrees_of_the_other_side_are_counted_before_its_edges_are_made(monkeypatch):
    """Each row has two columns, but the columns have many rows."""
    monkeypatch.setattr(chains, "LONG", 256)
    rng = np.random.default_rng(6)
    rows = np.repeat(np.arange(600), 2)
    whole = graph(600, 60, zip(rows, rng.integers(0, 60, rows.size)))
    one = BipartiteGraph((whole.indptr, whole.indices, whole.shape))
    assert not chains.may_pay(one, Census(0, 600, 0))
    assert not one.has_cols
    assert chains.may_pay(one, Census(0, 600, 0)._replace(middles=10**6))


def test_graphs_with_edges_of_equal_hubs_are_not_contracted(monkeypatch):
    monkeypatch.setattr(chains, "LONG", 256)
    whole = subdivided(np.random.default_rng(7), 9, 30, 6)
    assert chains.contract(whole) is None

"""APsB, APFB, the cheap start and covers with their kernels on the CPU, threads in any order."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

pytest.importorskip("cupy")

from gpumatch.bipartite import BipartiteGraph
from gpumatch.contracts import MatchingTask
from gpumatch.cuda import frontier
from gpumatch.cuda.matching import apsb_apfb, cheap, vertex_cover
from gpumatch.numeric.arrays import count_matched
from gpumatch.reference.deveci2013 import Flags, gpubfs, init_bfs_array
from gpumatch.reference.interleaving import Grid
from tests.cpu.matching.cases import (
    CASES,
    FreeRun,
    StopAt,
    chains,
    check_maximum,
    check_valid,
    unmatched,
)
from tests.cpu.matching.cases import graph as graph_of
from tests.cpu.matching.cases import random as uniform
from tests.cpu.matching.runs import extend, scattered, shifted
from tests.cuda.emulator import COMPILER, Emulator, lead_drivers_here
from tests.reference.cases import chain, chain_links, edges_of, solve

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

BLOCK = 64  # two warps
OFFSETS = {"Offset": {"int32": "int"}}
SOURCES = apsb_apfb.SCANS, apsb_apfb.QUEUES, cheap.SOURCE, vertex_cover.SOURCE
FORMS = [
    (algorithm, launch, host_loop, how)
    for algorithm, launch, (how, host_loop) in itertools.product(
        sorted(apsb_apfb.VARIANTS), ("ct", "mt"), apsb_apfb.SEARCHES
    )
]


@pytest.fixture(scope="module")
def emulators():
    narrow = {source: dataclasses.replace(source, types=OFFSETS) for source in SOURCES}
    walks = {apsb_apfb.QUEUES: {"kLaneDegree": 3}, vertex_cover.SOURCE: {"kLaneDegree": 3}}
    return {source: Emulator(narrow[source], walks.get(source, {})) for source in SOURCES}


@pytest.fixture(autouse=True)
def device(emulators, monkeypatch):
    modules = apsb_apfb, cheap, frontier, vertex_cover
    lead_drivers_here(monkeypatch, emulators, *modules, block=BLOCK)
    for module in (apsb_apfb, cheap):
        monkeypatch.setattr(module, "blocks_for", lambda count: 1 + (count > BLOCK))
    monkeypatch.setattr(apsb_apfb, "_CT_BLOCKS", 3)
    vary(emulators, np.random.default_rng(1))


def vary(emulators, rng):
    for emulator in emulators.values():
        emulator.vary(rng)


def drawn(rng):
    """Any shape, and edges from few to many."""
    shape = rng.integers(1, 70, 2).tolist()
    return uniform(*shape, int(rng.integers(1, 4 * max(shape))), int(rng.integers(99)))


class Phases(FreeRun):
    """Keeps all that a phase tells."""

    def phase(self, **told):
        self.phases.append(told)


def run(graph, algorithm, launch, host_loop="batch", how="scan", *, mates=None, control=None):
    mates = unmatched(graph) if mates is None else mates
    task = MatchingTask(graph, *mates, control or FreeRun())
    options = {"algorithm": algorithm, "launch": launch, "host_loop": host_loop, "frontier": how}
    return apsb_apfb.run(task, **options), mates


# -- APsB and APFB ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS, ids="-".join)
def test_random_graphs_from_any_matching(emulators, form):
    rng = np.random.default_rng(FORMS.index(form))
    for _ in range(6):
        vary(emulators, rng)
        graph = drawn(rng)
        mates, control = scattered(graph, rng.choice([0, 0.5, 1]), 3), Phases()
        before = count_matched(mates[0])
        assert run(graph, *form, mates=mates, control=control)[0]
        size = check_maximum(graph, *mates)
        told = [phase["matched"] for phase in control.phases]
        assert told == sorted(told)
        assert told[0] >= before
        assert told[-1] == size
        assert control.phases[-1]["found"] == 0
        for phase, last in zip(control.phases, [before, *told]):
            assert phase["found"] >= phase["matched"] - last


@pytest.mark.parametrize("case", [name for name in CASES if name != "large"])
def test_known_graphs(case):
    graph, size = CASES[case]
    for form in (FORMS[0], FORMS[-1]):
        finished, mates = run(graph, *form)
        assert finished
        assert check_maximum(graph, *mates) == size or size is None


@pytest.mark.parametrize("length", [15, 16, 17, 40])
@pytest.mark.parametrize("algorithm", sorted(apsb_apfb.VARIANTS))
def test_levels_of_a_chain_are_those_of_the_reference(algorithm, length):
    """Less, as much and more than a batch has."""
    graph = chain(length)
    _, reference = solve(graph, algorithm, "mt", 0, shifted(graph))
    for how, host_loop in apsb_apfb.SEARCHES:
        control = Phases()
        mates = shifted(graph)
        assert run(graph, algorithm, "mt", host_loop, how, mates=mates, control=control)[0]
        assert control.phases[0]["levels"] == reference[0]["levels"]
        for ours, theirs in zip(control.phases, reference, strict=True):
            assert (ours["found"], ours["matched"]) == (theirs["found"], theirs["matched"])
        if (how, host_loop) == ("scan", "level"):
            assert control.phases[0] == reference[0]  # with its launches


@pytest.mark.parametrize("how", apsb_apfb.SEARCHES, ids="-".join)
@pytest.mark.parametrize("algorithm", ["apfb-gpubfs", "apsb-gpubfs"])
def test_a_search_without_roots_reaches_what_the_reference_does(emulators, algorithm, how):
    """Its levels and ends are the same in any order of threads; predecessors are a level below."""
    rng = np.random.default_rng(11)
    for _ in range(8):
        vary(emulators, rng)
        graph = drawn(rng)
        mates = scattered(graph, rng.choice([0, 0.5, 1]), 3)
        expected = tuple(mate.copy() for mate in mates)
        variant = apsb_apfb.VARIANTS[algorithm]
        search = apsb_apfb.SEARCHES[how](graph, *mates, variant, "mt")
        search.init_bfs_array()
        path_found = search.bfs(lambda: False)
        levels, flags, count = searched_by_reference(graph, *expected, shortest=variant.shortest)
        np.testing.assert_array_equal(search.levels, levels)
        np.testing.assert_array_equal(mates[0], expected[0])
        assert path_found == flags.augmenting_path_found
        assert max(search.levels_run, 1) == count
        rows, cols = graph.edges()
        edges = set(zip(rows.tolist(), cols.tolist()))
        for row, mate in enumerate(mates[0]):
            if mate == -2 or (mate >= 0 and levels[mate] > 0):
                before = int(search.predecessor[row])
                assert (row, before) in edges
                assert mate == -2 or levels[before] == levels[mate] - 1


def searched_by_reference(graph, row_to_col, col_to_row, *, shortest):
    """The inner loop of Algorithm 1 with GPUBFS: levels of columns, flags, and levels searched."""
    grid, flags, level = Grid("mt", 0, lambda: None), Flags(vertex_inserted=True), 0
    bfs_array, predecessor = np.empty(graph.ncols, np.int32), np.full(graph.nrows, -1, np.int32)
    init_bfs_array(bfs_array, col_to_row, 0, grid=grid)
    csr = graph.col_indptr, graph.col_indices, graph.ncols
    while flags.vertex_inserted and not (shortest and flags.augmenting_path_found):
        flags.vertex_inserted = False
        gpubfs(level, bfs_array, *csr, row_to_col, predecessor, flags, l0=0, grid=grid)
        level += 1
    return bfs_array, flags, level


@pytest.mark.parametrize("form", FORMS, ids="-".join)
def test_levels_and_paths_of_a_phase(form):
    """A tree with a path of two levels and a tail of six, and a chain of five levels."""
    tail = 6
    edges = [(i, i) for i in range(1, tail)] + [(i, i - 1) for i in range(1, tail)] + [(0, 1)]
    edges += [(tail + i, tail + j) for i, j in edges_of(chain(5))]
    graph = graph_of(tail + 5, tail + 5, edges)
    mates = unmatched(graph)
    for i in range(1, tail):
        mates[0][i] = mates[1][i] = i
    for row, column in chain_links(5):
        mates[0][tail + row], mates[1][tail + column] = tail + column, tail + row
    control = Phases()
    assert run(graph, *form, mates=mates, control=control)[0]
    variant = apsb_apfb.VARIANTS[form[0]]
    levels = 2 if variant.shortest else 5 if variant.roots else 6
    assert (control.phases[0]["levels"], control.phases[0]["found"]) == (
        levels,
        1 if variant.shortest else 2,
    )


@pytest.mark.parametrize("form", FORMS, ids="-".join)
def test_it_stops_between_levels_and_phases(form, monkeypatch):
    monkeypatch.setattr(apsb_apfb.QueuedPhases, "levels_a_launch", 2)
    graph, ends = chains([9, 1, 4]), []
    for tick in range(1, 40):
        mates = shifted(graph)
        finished, _ = run(graph, *form, mates=mates, control=StopAt(tick))
        mates[0][mates[0] < -1] = -1  # ends of paths that it had found
        ends.append(check_valid(graph, *mates))
        if finished:
            break
    assert finished
    assert ends[0] == 11
    assert ends[-1] == 14
    assert len(ends) > 2


# -- the cheap start -------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["both", "rows"])
def test_cheap_matching_takes_first_what_is_free(emulators, side):
    rng = np.random.default_rng(7)
    for _ in range(20):
        vary(emulators, rng)
        whole = drawn(rng)
        kept = (
            whole if side == "both" else BipartiteGraph((whole.indptr, whole.indices, whole.shape))
        )
        assert whole.col_indptr.size
        mates = scattered(whole, rng.choice([0, 0.4]), 3)
        before = tuple(mate.copy() for mate in mates)
        assert extend(cheap, kept, mates)[0]
        check_valid(whole, *mates)
        for mate, old in zip(mates, before):
            assert (mate[old >= 0] == old[old >= 0]).all()
        rows, cols = whole.edges()
        assert not ((mates[0][rows] < 0) & (mates[1][cols] < 0)).any()
        assert kept.has_cols == (side == "both")


# -- covers ----------------------------------------------------------------------------------------


def test_covers_of_maximum_matchings(emulators):
    rng = np.random.default_rng(8)
    for _ in range(25):
        vary(emulators, rng)
        graph = drawn(rng)
        mates = run(graph, "apfb-gpubfs-wr", "mt")[1]
        size = check_maximum(graph, *mates)
        in_rows, in_cols = vertex_cover.cover(graph, *mates)
        rows, cols = graph.edges()
        assert (in_rows[rows] | in_cols[cols]).all()
        assert in_rows.sum() + in_cols.sum() == size
        free = mates[0] < 0
        assert not in_rows[free].any()


def test_no_cover_of_a_matching_that_is_not_maximum(emulators, monkeypatch):
    monkeypatch.setattr(frontier, "LEVELS_A_LAUNCH", 2)
    for length in (1, 2, 7):
        graph = chain(length)
        mates = shifted(graph)
        with pytest.raises(ValueError, match=r"augmenting path reaches column 0$"):
            vertex_cover.cover(graph, *mates)

"""The matching engine and its start with their kernels on the CPU, threads in any order."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("cupy")

from gpumatch.cuda.matching import engine, min_degree
from tests.cpu.matching.cases import (
    CASES,
    FreeRun,
    StopAt,
    chains,
    check_maximum,
    check_valid,
    graph,
    holding,
    random,
    unmatched,
)
from tests.cpu.matching.runs import extend, scattered, shifted
from tests.cuda.emulator import COMPILER, Emulator, lead_drivers_here

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

BLOCK = 64  # two warps
OFFSETS = {"Offset": {"int32": "int"}}
SMALL = {
    **{"kBlock": BLOCK, "kAlone": 12, "kAloneLevels": 3, "kSampled": 2, "kTraceLength": 64},
    "kLaneDegree": 3,
}
LONG, HUB = 4, 12  # neighbours that a warp, and a block, look through together


@pytest.fixture(scope="module")
def emulators():
    lists = {"kLongList": LONG, "kHub": HUB, "kLooks": 2}
    return {
        source: Emulator(dataclasses.replace(source, types=OFFSETS), constants)
        for source, constants in ((engine.SOURCE, SMALL), (min_degree.SOURCE, lists))
    }


@pytest.fixture(autouse=True)
def device(emulators, monkeypatch):
    lead_drivers_here(monkeypatch, emulators, engine, min_degree, block=BLOCK)
    monkeypatch.setattr(engine, "_TRACE", (64, 2))
    monkeypatch.setattr(min_degree, "_HUB", HUB)
    vary(emulators, np.random.default_rng(1))


def vary(emulators, rng):
    for emulator in emulators.values():
        emulator.vary(rng)


def drawn(rng):
    """Any shape, and edges from few to many."""
    shape = rng.integers(1, 90, 2).tolist()
    return random(*shape, int(rng.integers(1, 4 * max(shape))), int(rng.integers(99)))


# -- the engine ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [name for name in CASES if name != "large"])
def test_known_graphs(case):
    whole, size = CASES[case]
    control = FreeRun()
    finished, mates = extend(engine, whole, control=control)
    assert finished
    found = check_maximum(whole, *mates)
    assert size in (found, None)
    assert found == sum(paths for paths, _ in control.phases)
    assert control.phases[-1] == (0, found)
    assert (
        np.cumsum([paths for paths, _ in control.phases]) == [m for _, m in control.phases]
    ).all()


@pytest.mark.parametrize("sides", ["both", "rows", "columns"])
def test_random_graphs_from_any_matching(emulators, sides):
    rng = np.random.default_rng(len(sides))
    for _ in range(25):
        vary(emulators, rng)
        whole = drawn(rng)
        mates = scattered(whole, rng.choice([0, 0.4, 1]), 3)
        kept = holding(whole, sides)
        assert extend(engine, kept, mates)[0]
        check_maximum(whole, *mates)


def test_the_side_with_fewer_free_vertices_grows_trees(monkeypatch):
    """Unless its edges would have to be made; those of a much smaller side are."""
    near = []
    begin = engine._Search.__init__

    def noted(self, kernels, side, free, matched):
        near.append((side.mate.size, free, matched))
        begin(self, kernels, side, free, matched)

    monkeypatch.setattr(engine._Search, "__init__", noted)
    whole = graph(6, 9, [(i, j) for i in range(1, 5) for j in range(2, 9)])
    mates = unmatched(whole)
    mates[0][1], mates[1][2] = 2, 1
    for kept in (whole, holding(whole, "rows"), holding(whole, "columns")):
        assert extend(engine, kept, tuple(side.copy() for side in mates))[0]
    assert near == [(6, 3, 1), (6, 3, 1), (9, 6, 1)]
    near.clear()
    square = graph(4, 4, [(i, i) for i in range(4)])
    assert extend(engine, square)[0]
    assert near == [(4, 4, 0)]
    near.clear()
    lopsided = graph(9, 2, [(i, i % 2) for i in range(9)])
    rows = holding(lopsided, "rows")
    assert extend(engine, rows)[0]
    assert near == [(2, 2, 0)]
    assert rows.has_cols
    slightly = holding(graph(8, 2, [(i, i % 2) for i in range(8)]), "rows")
    assert extend(engine, slightly)[0]
    assert not slightly.has_cols


class Told(FreeRun):
    """Keeps what a run tells: the matched pairs at each tick, and of each phase all that it has."""

    def __init__(self):
        super().__init__()
        self.ticks = []

    def tick(self, matched):
        self.ticks.append(matched)
        return False

    def phase(self, *, levels, found, matched, **more):
        self.phases.append((levels, found, matched))


def test_levels_and_paths_of_a_phase_are_told():
    """From all (i, i + 1), the path of a chain passes all its columns, one a level."""
    whole = chains([5])
    control = Told()
    assert extend(engine, whole, shifted(whole), control)[0]
    assert control.phases[0] == (5, 1, 5)
    assert control.phases[1:] in ([], [(0, 0, 5)])


def test_each_tick_tells_what_is_matched_by_then(monkeypatch):
    monkeypatch.setattr(engine, "_STEPS_A_LAUNCH", 1)
    whole, control = random(80, 80, 190, 4), Told()
    mates = scattered(whole, 0.3, 5)
    before = check_valid(whole, *mates)
    assert extend(engine, whole, mates, control)[0]
    assert control.ticks == sorted(control.ticks)
    assert set(control.ticks) == {before, *(matched for *_, matched in control.phases)}


@pytest.mark.parametrize(("others", "levels"), [(0, 3), (60, 23)])
def test_trees_go_on_if_they_hold_much(emulators, others, levels):
    """The long tree finds the end of its path taken by a short one, and needs three levels more.

    It begins at its root again if `others`, trees of one column each, hold most of the vertices.
    """
    length = 20
    short, inner, branch = range(length + 1, length + 4)
    columns = [*range(1, length + 1), inner, branch]  # those with mates
    row_of = {column: row for row, column in enumerate(columns)}
    taken, last, *free = range(len(columns), len(columns) + 2 + others)
    edges = [(row, column) for column, row in row_of.items()]
    edges += [(row_of[j], j - 1) for j in range(1, length + 1)] + [(taken, length)]
    edges += [(row_of[inner], short), (taken, inner), (row_of[branch], inner), (last, branch)]
    edges += [(row, branch + 1 + k) for k, row in enumerate(free)]
    whole = graph(len(columns) + 2 + others, branch + 1 + others, edges)
    for seed in range(4):
        vary(emulators, np.random.default_rng(seed))
        mates, control = unmatched(whole), Told()
        mates[0][: len(columns)], mates[1][columns] = columns, range(len(columns))
        assert extend(engine, holding(whole, "columns"), mates, control)[0]
        size = check_maximum(whole, *mates)
        assert control.phases[:2] == [(length + 1, others + 1, size - 1), (levels, 1, size)]


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_short_launches_change_nothing(emulators, monkeypatch, steps):
    monkeypatch.setattr(engine, "_STEPS_A_LAUNCH", steps)
    rng = np.random.default_rng(steps)
    for _ in range(12):
        vary(emulators, rng)
        whole = drawn(rng)
        finished, mates = extend(engine, whole)
        assert finished
        check_maximum(whole, *mates)


@pytest.mark.parametrize("side", ["rows", "columns"])
def test_wherever_it_stops_there_is_a_matching(monkeypatch, side):
    monkeypatch.setattr(engine, "_STEPS_A_LAUNCH", 1)
    whole = holding(random(80, 80, 190, 4), side)
    most = check_maximum(whole, *extend(engine, whole)[1])
    start, sizes = scattered(whole, 0.3, 5), []
    for tick in range(1, 60):
        mates = tuple(mate.copy() for mate in start)
        finished, _ = extend(engine, whole, mates, StopAt(tick))
        sizes.append(check_valid(whole, *mates))
        if finished:
            break
    assert finished
    assert sizes[-1] == most
    assert min(sizes) == sizes[0] == check_valid(whole, *start) < most
    assert len(sizes) > 8


def test_an_error_of_a_callback_leaves_a_matching(monkeypatch):
    monkeypatch.setattr(engine, "_STEPS_A_LAUNCH", 1)

    class Broken(StopAt):
        def tick(self, matched):
            if super().tick(matched):
                raise KeyboardInterrupt
            return False

    whole = random(80, 80, 190, 4)
    for tick in (1, 9, 17):
        mates = scattered(whole, 0.3, 5)
        before = check_valid(whole, *mates)
        with pytest.raises(KeyboardInterrupt):
            extend(engine, whole, mates, Broken(tick))
        assert check_valid(whole, *mates) >= before


# -- the start -------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["both", "rows", "columns"])
def test_no_edge_is_left_between_free_vertices(emulators, side):
    rng = np.random.default_rng(7)
    for _ in range(25):
        vary(emulators, rng)
        whole = drawn(rng)
        kept = holding(whole, side)
        mates = scattered(whole, rng.choice([0, 0.4]), 3)
        before = tuple(mate.copy() for mate in mates)
        assert extend(min_degree, kept, mates)[0]
        check_valid(whole, *mates)
        for mate, old in zip(mates, before):
            assert (mate[old >= 0] == old[old >= 0]).all()
        rows, cols = whole.edges()
        assert not ((mates[0][rows] < 0) & (mates[1][cols] < 0)).any()


@pytest.mark.parametrize("others", [3, LONG + 2, HUB + 40])
@pytest.mark.parametrize("side", ["both", "columns"])
def test_a_column_chooses_the_row_of_least_degree(emulators, others, side):
    """Column 0 meets all rows; the last one meets no other column, the others meet eight."""
    edges = [(i, 0) for i in range(others)]
    edges += [(i, j) for i in range(others - 1) for j in range(1, 9)]
    whole = graph(others, 9, edges)
    kept = holding(whole, side)
    for seed in range(8):
        vary(emulators, np.random.default_rng(seed))
        mates = unmatched(whole)
        taken = np.arange(1, min(others, 9))
        mates[1][taken], mates[0][taken - 1] = taken - 1, taken
        assert extend(min_degree, kept, mates)[0]
        assert mates[1][0] == others - 1

"""The scheduler: the vertices of each thread, what runs, and how turns interleave."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from contextlib import nullcontext
from itertools import permutations

import pytest

from gpumatch.reference.interleaving import TURNS_PER_HEARTBEAT, WARP, Grid

LAUNCH = pytest.mark.parametrize("launch", ["ct", "mt"])


@LAUNCH
@pytest.mark.parametrize("vertices", [0, 1, 15, 16, 17, 50])
def test_threads_share_the_vertices_as_getprocesscount_says(launch, vertices):
    grid = Grid(launch, seed=0)
    shares = []

    def thread(share):
        shares.append(list(share))
        yield

    grid.launch(thread, vertices)
    total = grid.thread_count(vertices)
    assert len(shares) == total == (vertices if launch == "mt" else min(vertices, 16))
    assert sorted(v for share in shares for v in share) == list(range(vertices))
    for share in shares:
        tid = share[0]
        assert share == [i * total + tid for i in range(len(share))]
        assert len(share) == vertices // total + (tid < vertices % total)


def shares_of(launch, vertices, active=None):
    """The vertices that each thread gets, by the thread that a launch of all gives the first."""
    grid, shares = Grid(launch, seed=0), {}

    def thread(share):
        shares[share[0] % grid.thread_count(vertices)] = list(share)
        yield

    grid.launch(thread, vertices, active)
    return shares


@LAUNCH
@pytest.mark.parametrize("active", [[], [0], [49], [1, 17, 18, 33, 40], [*range(50)]])
def test_active_vertices_go_to_the_threads_that_had_them(launch, active):
    kept = {
        tid: [vertex for vertex in share if vertex in active]
        for tid, share in shares_of(launch, 50).items()
    }
    assert shares_of(launch, 50, active) == {tid: share for tid, share in kept.items() if share}


def test_active_vertices_keep_their_warps():
    """Vertices 0 and 1 are of one warp, 4 of the next: only the first two can be in step."""
    in_step = Counter()
    for seed in range(60):
        turns = []

        def thread(share, turns=turns):
            for _ in range(20):
                turns.append(share[0])
                yield

        Grid("mt", seed).launch(thread, 8, [0, 1, 4])
        for others in ({0, 1}, {0, 4}, {1, 4}):
            seen = [vertex for vertex in turns if vertex in others]
            in_step[frozenset(others)] += all(
                set(seen[i : i + 2]) == others for i in range(0, 40, 2)
            )
    assert in_step[frozenset({0, 1})] > 10
    assert in_step[frozenset({0, 4})] == in_step[frozenset({1, 4})] == 0


@LAUNCH
def test_every_thread_runs_to_its_end(launch):
    grid, turns = Grid(launch, seed=1), Counter()

    def thread(share):
        for vertex in share:
            for _ in range(vertex):
                turns[vertex] += 1
                yield

    grid.launch(thread, 100)
    grid.launch(thread, 100, [7, 99])
    assert grid.launches == 2
    assert turns == {v: 2 * v if v in (7, 99) else v for v in range(1, 100)}


def test_lanes_come_in_all_orders():
    orders = defaultdict(set)
    for seed in range(20):
        turns = []

        def thread(share, turns=turns):
            for _ in range(30):
                turns.append(share[0])
                yield

        Grid("mt", seed).launch(thread, WARP)
        chunks = [tuple(turns[i : i + WARP]) for i in range(0, len(turns), WARP)]
        lock_step = all(len(set(chunk)) == WARP for chunk in chunks)
        orders[lock_step].update(chunks)
    assert orders[True] == set(permutations(range(WARP)))
    assert orders[False] - orders[True]


def test_scheduler_interleaves_in_many_ways():
    """Unprotected increments of 8 threads: all may count, or the warps' lanes overwrite."""

    def count(seed):
        counter = 0

        def thread(share):
            nonlocal counter
            yield
            seen = counter
            yield
            counter = seen + 1

        Grid("mt", seed).launch(thread, 2 * WARP)
        return counter

    totals = [count(seed) for seed in range(200)]
    assert totals == [count(seed) for seed in range(200)]
    assert {1, 2, 3, 4, 5, 6} <= set(totals) <= set(range(1, 9))


def test_some_threads_end_before_others_begin():
    def late_starts(seed):
        turns = []

        def thread(share):
            for _ in range(30):
                turns.append(share[0])
                yield

        Grid("mt", seed).launch(thread, 2 * WARP)
        first, last = turns[0], (turns[0] + WARP) % (2 * WARP)
        return last not in turns[: len(turns) - turns[::-1].index(first)]

    assert any(late_starts(seed) for seed in range(100))


def test_the_heart_beats_at_each_launch_and_while_threads_run():
    beats = []
    grid = Grid("ct", seed=0, heartbeat=lambda: beats.append(grid.launches))

    def thread(share):
        for _ in share:
            yield

    grid.begin_launch()
    grid.launch(thread, 10)
    assert beats == [1, 2]
    grid.launch(thread, 100_000)
    assert beats[:3] == [1, 2, 3]
    assert beats.count(3) > 100_000 // WARP // TURNS_PER_HEARTBEAT


def test_a_thread_alone_comes_to_its_end_and_the_heart_beats():
    beats, turns = [], []
    grid = Grid("ct", seed=0, heartbeat=lambda: beats.append(len(turns)))

    def thread(share):
        for turn in range(3 * TURNS_PER_HEARTBEAT):
            turns.append((*share, turn))
            yield

    grid.launch(thread, 10, [7])
    assert turns == [(7, turn) for turn in range(3 * TURNS_PER_HEARTBEAT)]
    assert beats == [0, *(k * TURNS_PER_HEARTBEAT for k in (1, 2, 3))]


@pytest.mark.parametrize("was_enabled", [True, False])
@pytest.mark.parametrize("fails", [False, True])
def test_garbage_is_collected_after_a_launch_if_it_was_before(was_enabled, fails):
    collects = []

    def thread(share):
        collects.append(gc.isenabled())
        yield
        assert not fails, "of a thread"

    (gc.enable if was_enabled else gc.disable)()
    try:
        with pytest.raises(AssertionError, match="of a thread") if fails else nullcontext():
            Grid("mt", seed=0).launch(thread, 3)
        assert gc.isenabled() is was_enabled
    finally:
        gc.enable()
    assert collects
    assert not any(collects)

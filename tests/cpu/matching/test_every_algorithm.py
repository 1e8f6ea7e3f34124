"""Every algorithm finds maximum matchings, from any start, interrupted or not, alone or in a crowd.

Every result is proven maximum by a vertex cover (`cases.check_maximum`), not by another algorithm.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpumatch.cpu.matching import hkdw
from gpumatch.running.control import Control
from tests.cpu.matching.cases import (
    CASES,
    FreeRun,
    StopAt,
    chain,
    check_maximum,
    check_valid,
    ladder,
    random,
    unmatched,
)
from tests.cpu.matching.cases import (
    graph as graph_of,
)
from tests.cpu.matching.runs import (
    BUDGET,
    CLASSIC,
    IN_STEPS,
    NAMES,
    PARALLEL,
    STARTS,
    matcher,
    rungs,
    scattered,
    shifted,
    start,
    with_small_budget,
)
from tests.pairwise import pairwise

in_steps = pytest.mark.parametrize("match", IN_STEPS, indirect=True)
parallel = pytest.mark.parametrize("match", PARALLEL, indirect=True)
FACTORS = ("name", "init", "case", "threads")
SAMPLE = pairwise(
    itertools.product(NAMES, STARTS, CASES, (1, 2)), lambda values: dict(zip(FACTORS, values))
)


@pytest.mark.parametrize(FACTORS, SAMPLE)
def test_the_matching_is_maximum(name, init, case, threads):
    graph, size = CASES[case]
    finished, mates = matcher(name)(graph, start(init, graph), threads=threads)
    assert finished is True
    assert check_maximum(graph, *mates) == (
        size if size is not None else check_valid(graph, *mates)
    )


@pytest.mark.parametrize("case", CASES)
@parallel
def test_many_threads_in_each_others_way_find_a_maximum(crowd, match, case):
    graph, _ = CASES[case]
    for mates in (unmatched(graph), scattered(graph, 0.8, seed=0), scattered(graph, 0.8, seed=1)):
        finished, mates = match(graph, mates, threads=4)
        assert finished
        check_maximum(graph, *mates)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(0, 150)),
    st.integers(0, 2**32 - 1),
    st.floats(0, 1),
)
def test_random_graphs_from_random_matchings(match, shape, seed, share):
    graph = random(*shape, seed)
    _, mates = match(graph, scattered(graph, share, seed))
    check_maximum(graph, *mates)


@pytest.mark.parametrize(
    ("tick", "threads"), [(1, 1), (1, 3), (2, 3), (3, 1), (5, 3), (8, 1), (13, 3), (30, 1), (30, 3)]
)
@in_steps
def test_a_stopped_run_leaves_a_valid_matching_to_go_on_from(crowd, match, tick, threads):
    graph, _ = CASES["large"]
    finished, mates = match(graph, control=StopAt(tick), threads=threads)
    assert finished is False
    check_valid(graph, *mates)
    finished, mates = match(graph, mates, threads=threads)
    assert finished
    check_maximum(graph, *mates)


def test_a_run_stopped_at_its_first_tick_leaves_all_as_it_was(match):
    graph, _ = CASES["sparse"]
    before = start("cheap", graph)
    finished, after = match(graph, tuple(side.copy() for side in before), StopAt(1))
    assert finished is False
    for mates_before, mates_after in zip(before, after):
        assert np.array_equal(mates_before, mates_after)


@pytest.mark.parametrize("tick", [1, 4, 9])
@in_steps
def test_an_exception_from_tick_leaves_a_valid_matching(crowd, match, tick):
    class Interrupt(StopAt):
        def tick(self, matched):
            if super().tick(matched):
                raise KeyboardInterrupt
            return False

    graph, _ = CASES["large"]
    mates = unmatched(graph)
    with pytest.raises(KeyboardInterrupt):
        match(graph, mates, Interrupt(tick), threads=3)
    check_valid(graph, *mates)
    match(graph, mates)
    check_maximum(graph, *mates)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("case", ["wide", "sparse", "chains"])
@in_steps
def test_ticks_see_consistent_matchings_of_the_size_they_are_told(crowd, match, case, threads):
    class Watch(FreeRun):
        def tick(self, matched):
            assert check_valid(graph, *mates) == matched
            return False

    graph, _ = CASES[case]
    mates = scattered(graph, 0.5, seed=0)
    match(graph, mates, Watch(), threads=threads)


@in_steps
def test_the_budget_does_not_change_the_matching(match, monkeypatch):
    graph, _ = CASES["large"]
    _, whole = match(graph)
    with_small_budget(monkeypatch)
    _, in_pieces = match(graph)
    assert np.array_equal(whole[0], in_pieces[0])


@pytest.mark.parametrize(
    ("match", "readings"), [("pfp", 2), ("p-pfp", 2), ("p-dbfs", 1)], indirect=["match"]
)
def test_searches_look_at_the_clock_whenever_they_have_read_the_budget(
    small_budget, match, readings
):
    """To see that there is no path, they read one of two blocks: to look ahead, and to go on."""
    many, few = 400, 10
    blocks = np.zeros((many + few, few + many), bool)
    blocks[:many, :few] = blocks[many:, few:] = True
    row_to_col, col_to_row = np.full((2, many + few), -1, np.int32)
    row_to_col[:few] = col_to_row[:few] = np.arange(few)
    row_to_col[many:] = np.arange(few, 2 * few)
    col_to_row[few : 2 * few] = np.arange(many, many + few)
    told = StopAt(1000)
    match(graph_of(*blocks.shape, np.argwhere(blocks)), (row_to_col, col_to_row), told)
    assert 1000 - told.left > readings * many * few / (BUDGET + readings * few + 1)


@pytest.mark.parametrize("match", CLASSIC, indirect=True)
def test_edges_that_a_search_passes_by_are_counted(small_budget, match):
    """Each row reads the columns that rows before it have taken."""
    n = 60
    told = StopAt(1000)
    match(graph_of(n, n, np.argwhere(np.ones((n, n)))), control=told)
    assert 1000 - told.left > n * n / 2 / (BUDGET + n)


def test_one_thread_gives_one_matching(match):
    graph, _ = CASES["large"]
    assert np.array_equal(match(graph)[1][0], match(graph)[1][0])


def test_matched_vertices_stay_matched(match):
    graph, _ = CASES["sparse"]
    before = start("cheap", graph)
    _, after = match(graph, tuple(side.copy() for side in before))
    for mates_before, mates_after in zip(before, after):
        assert np.all(mates_after[mates_before >= 0] >= 0)


@pytest.mark.parametrize("threads", [1, 3])
@in_steps
def test_phases_add_up_and_the_last_finds_nothing(crowd, match, threads):
    graph, _ = CASES["large"]
    control = FreeRun()
    _, mates = match(graph, control=control, threads=threads)
    found = [phase[0] for phase in control.phases]
    assert [phase[1] for phase in control.phases] == np.cumsum(found).tolist()
    assert found[-1] == 0
    assert control.phases[-1][1] == check_valid(graph, *mates)


def test_a_path_through_all_vertices_needs_no_recursion(match):
    graph = chain(100_000)
    control = FreeRun()
    _, mates = match(graph, shifted(graph), control)
    assert np.array_equal(mates[0], np.arange(100_000))
    assert [phase for phase in control.phases if phase[0]] == [(1, 100_000)]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_ladder_with_exponentially_many_walks(match, threads):
    """2,000 levels: a search that visits a vertex twice in a phase never ends."""
    graph = ladder(2000)
    control = FreeRun()
    _, mates = match(graph, rungs(graph), control, threads=threads)
    assert check_maximum(graph, *mates) == graph.nrows
    assert sum(found for found, _ in control.phases) == 1


@pytest.mark.parametrize(
    ("shortest", "others", "whole"), [(1, -1, -1), (3, -1, -1), (1, 0, 1), (2, 5, 7), (0, 9, 0)]
)
def test_a_phase_of_hkdw_that_is_stopped_in_its_second_part_says_so(shortest, others, whole):
    phases = object.__new__(hkdw._ShortestThenOthers)
    phases._shortest = SimpleNamespace(phase=lambda *_: shortest)
    phases._others = SimpleNamespace(phase=lambda *_: others)
    assert phases.phase(Control(), 0) == whole

"""The kernel for many small problems: its ranges, the memory that it works in, how threads end."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.costs import CostBatch
from gpumatch.cpu.assignment.small import batch as small_batch
from gpumatch.cpu.assignment.small import search as small_search
from gpumatch.cpu.assignment.small import with_duals
from gpumatch.problems.small_problems import assign_small


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("threads", [1, 2])
def test_ranges_of_problems_are_read_from_arrays_of_any_form(dtype, threads, monkeypatch):
    monkeypatch.setattr(small_batch, "RANGE", 100)
    monkeypatch.setattr(small_batch, "COPIED", 100)
    costs = np.random.default_rng(14).random((40, 9, 14)).astype(dtype)
    turned = np.asfortranarray(costs)
    padded = costs.copy()
    padded[:, 7:], padded[:, :, 8:] = math.nan, math.nan
    for given, told, used in (
        (costs, {}, costs),
        (turned, {}, costs),
        (costs[::-2], {}, costs[::-2]),
        (padded, {"sizes": (7, 8)}, costs[:, :7, :8]),
        ([*turned], {}, costs),
        ([costs[0].astype(int), *costs[1:].astype(">f4")], {}, [np.zeros((9, 14)), *costs[1:]]),
    ):
        batch = gm.assign(given, threads=threads, **told)
        best = [matrix[linear_sum_assignment(matrix)].sum(dtype=float) for matrix in used]
        assert np.allclose(batch.objective, best, rtol=1e-6)


def test_every_thread_gets_several_ranges_that_are_worth_a_call():
    even = CostBatch(np.zeros((256, 32, 32)))
    for threads, count in ((1, 8), (2, 16), (4, 32), (100, 32)):
        places, total = even.places()
        takes = np.ones(len(even), bool)
        takes[5] = False
        task = SimpleNamespace(
            places=places, takes=takes, total=total, threads=threads, in_place=True
        )
        ranges = small_batch._ranges(task)
        assert len(ranges) == count + 1  # no range has problem 5
        assert [k for part in ranges for k in range(*part)] == [*range(5), *range(6, 256)]


@pytest.mark.parametrize("is_list", [True, False])
def test_ranges_whose_costs_are_copied_are_shorter(is_list):
    costs = np.zeros((64, 256, 256), np.float32)
    problems = CostBatch([*costs] if is_list else costs)
    assert problems.in_place is not is_list
    places, total = problems.places()
    task = SimpleNamespace(
        places=places, takes=np.ones(64, bool), total=total, threads=1, in_place=problems.in_place
    )
    most = small_batch.COPIED if is_list else total // small_batch.SHARES
    assert {last - first for first, last in small_batch._ranges(task)} == {most // 256**2}


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
@pytest.mark.parametrize("size", [1, 3, 5000, 400_000])
def test_memory_to_work_in_begins_at_a_cache_line(size, dtype):
    memories = [small_batch._in_lines(size, np.dtype(dtype)) for _ in range(4)]
    assert all((part.size, part.dtype) == (size, dtype) for part in memories)
    assert not any(part.ctypes.data % small_batch.LINE for part in memories)


@pytest.mark.parametrize("size", [small_batch.LARGE // 8, small_batch.LARGE])
def test_large_memory_to_work_in_begins_with_a_huge_page(size):
    memory = small_batch._in_lines(size, np.dtype(np.float64))
    assert memory.size == size
    assert memory.ctypes.data % small_batch.HUGE == 0


def test_what_threads_work_in_is_kept_for_the_next_call(monkeypatch):
    costs = np.random.default_rng(8).random((60, 60, 60))
    monkeypatch.setattr(small_batch, "_idle", [])
    for _ in range(3):
        gm.assign(costs, threads=2)
        gm.assign(costs[0])
    kept = small_batch._idle
    assert 1 <= len(kept) <= 2
    assert len({id(each) for each in kept}) == len(kept)


class OneAfterTheOther:
    """Two workers on one thread, the last of which works whatever becomes of the first."""

    order = 0, 1
    threads = 2

    def __init__(self, threads, costs):
        assert (threads, costs) == (2, 50 * 30 * 30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, kernel, tasks):
        first, last = self.order
        try:
            done = kernel(first)
        finally:
            also_done = kernel(last)
        return done and also_done


@pytest.mark.parametrize("ending", [KeyboardInterrupt, True], ids=["interrupt", "stop"])
def test_no_thread_goes_on_when_one_is_halted(ending, monkeypatch):
    monkeypatch.setattr(small_batch, "Workers", OneAfterTheOther)
    costs = np.random.default_rng(3).random((50, 30, 30))

    def halt(progress):
        if ending is True:
            return True
        raise ending

    if ending is True:
        best = gm.assign(costs, threads=2, callback=halt)
    else:
        with pytest.raises(ending) as caught:
            gm.assign(costs, threads=2, callback=halt)
        best = caught.value.result
    assert not best.proven.any()


def test_the_caller_stops_when_another_thread_fails(monkeypatch):
    monkeypatch.setattr(small_batch, "Workers", OneAfterTheOther)
    monkeypatch.setattr(OneAfterTheOther, "order", (1, 0))
    solved = []

    def solve(*arguments):
        solved.append(arguments)
        raise ArithmeticError

    monkeypatch.setattr(small_batch, "solve_range", solve)
    with pytest.raises(ArithmeticError):
        gm.assign(np.random.default_rng(3).random((50, 30, 30)), threads=2)
    assert len(solved) == 1


@pytest.mark.parametrize("sides", [(1, 1), (1, 3000), (19, 20), (150, 150), (130, 700)], ids=str)
def test_there_is_memory_for_a_problem_and_its_second_one(sides):
    """What `solve_range` needs: of as many pairs as can be, a part is solved again."""
    short, longest = sides
    width, again = with_duals.width_for(longest), with_duals.width_for(short)
    of_vectors = (with_duals.VECTORS + with_duals.LINKS) * width + 2 * short
    tables, lists = short * (width + again), short + longest + with_duals.PAD
    kept = small_batch._Kept()
    room = kept.scratch_of(with_duals.scratch_size(*sides))
    assert room.dtype == np.float64
    assert room.size >= tables + of_vectors + lists
    assert kept.scratch_of(1) is room


def test_the_costs_of_the_next_problem_of_a_range_are_brought_near():
    """Those of enough costs, from where the range begins; and nothing beyond the range."""
    large = with_duals.AHEAD // 64
    places = np.array([[0, 70, 5, 64], [350, 70, large, 64], [350 + 70 * large, 64, 9, 64]])
    assert with_duals._costs_of(places, 0, 1, 3) == (350, 70 * large)
    assert with_duals._costs_of(places, 1, 1, 3) == (0, 70 * large)
    assert with_duals._costs_of(places, 0, 2, 3) == (350 + 70 * large, 0)
    assert with_duals._costs_of(places, 0, 1, 1) == (0, 0)
    assert with_duals._costs_of(places, 0, 3, 3) == (0, 0)


def test_a_search_brings_costs_near_line_by_line():
    costs = np.random.default_rng(21).random((40, 40))
    width = with_duals.width_for(40)
    table = np.full((40, width), np.inf)
    table[:, :40] = costs
    vectors = np.empty((with_duals.VECTORS, width))
    links, found = np.empty((with_duals.LINKS, width), np.int32), np.empty((2, 40), np.int64)
    place, ahead = np.zeros(1, np.int64), np.zeros(100_000, np.uint8)

    def match():
        small_search.price_columns(table, vectors, links, np.inf)
        ahead_of = ahead, place
        return small_search.match_rows(
            table, vectors, links, found, 40, True, False, np.inf, False, np.inf, ahead_of
        )

    assert match() == 0
    assert (
        costs[range(40), found[with_duals.COL]].sum() == costs[linear_sum_assignment(costs)].sum()
    )
    lines = place[0] // small_batch.LINE
    assert lines % small_search.FETCHED == 0
    assert 10 <= lines // small_search.FETCHED <= 40 * 40  # rows that were scanned
    place[0] = 99_990
    match()
    assert 100_000 <= place[0] < 100_000 + small_batch.LINE * small_search.FETCHED


def test_square_problems_without_a_full_assignment_take_one_call():
    """Their columns may stay unmatched, so none of these may begin with a price."""
    rng = np.random.default_rng(3)
    costs = rng.integers(1, 100, (40, 6, 6)).astype(np.float64)
    costs[rng.random(costs.shape) < 0.6] = math.inf
    found = [assign_small(matrix, False, "maximum", None) for matrix in costs]
    sizes = [a.size if a is not None else -1 for a in found]
    best = [gm.maximum_matching(csr_array(np.isfinite(matrix))).size for matrix in costs]
    assert sizes == best
    assert 0 < min(sizes) < max(sizes) == 6
    for matrix, a in zip(costs, found):
        gm.verify(matrix, a)

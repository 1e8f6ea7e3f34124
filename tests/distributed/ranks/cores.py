"""What a rank does on a GPU, in arrays of NumPy: sparse cores, and the paper's algorithms."""

from __future__ import annotations

from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import gpumatch
from gpumatch import distributed
from gpumatch.cpu.assignment.engine import run
from gpumatch.cpu.distributed import date2016 as paper_kernels
from gpumatch.cpu.distributed import rows as cpu_rows
from gpumatch.cuda.assignment.dense import rows as dense_rows
from gpumatch.cuda.assignment.dense import tuning
from gpumatch.distributed import core as rank_core
from gpumatch.distributed import searches
from gpumatch.distributed.communicator import even_starts
from gpumatch.distributed.matching import forest_kernels
from graphs import costs as families
from tests.cpu.assignment.tuned import tuned
from tests.distributed.ranks.assignments import largest, wishes_of_matrices
from tests.distributed.ranks.checks import check_assignment, share, worth
from tests.distributed.ranks.papers import PAPER_STEPS


def whole_arrays(comm):
    """The engine with what a rank has on a GPU, in arrays of NumPy."""
    with mock.patch.object(cpu_rows, "rows_of", dense_rows.rows_of):
        yield from wishes_of_matrices(comm)


def cores(comm):
    """Sparse cores in place of trees."""
    with (
        mock.patch.dict(searches.ALGORITHMS["engine"], cpu=engine),
        mock.patch.object(searches, "FEW_ROWS", 0),
        tuned(tuning, again=2, more=1),
    ):
        yield from wishes_of_matrices(comm)
        yield from cores_of_matrices(comm)
        yield from cores_of_lists(comm)
        yield from given_up(comm)
        yield from stopped(comm)
        yield from largest(comm)
    arrays = dict.fromkeys(("CompressedRows", "DenseRows"), dense_rows.rows_of)
    kernels = SimpleNamespace(**{**vars(paper_kernels), **arrays})
    with mock.patch.object(searches, "_papers", return_value=kernels):
        for algorithm in PAPER_STEPS:
            for shape in ((9, 9), (6, 9), (9, 6)):
                yield f"{algorithm} {shape}"
                costs = np.random.default_rng(2).integers(0, 30, shape)
                check_assignment(costs, comm, algorithm)


def engine(costs, rows, cols, goal, world):
    """As on a GPU."""
    costs, *sides = searches._with_fewer_rows(costs, rows, cols, goal, world)
    return searches._core(costs, sides, goal.limit, run, forest_kernels(), world)


def cores_of_matrices(comm, **how):
    """Costs on which cores are small, grow, or do not suffice."""
    for family in ("uniform_float", "low_rank", "machol_wien", "two_cost", "constant"):
        for shape in ((40, 40), (40, 50), (50, 40)):
            yield f"{family} {shape}"
            a = check_assignment(families.make(family, *shape, seed=4), comm, **how)
            assert how or a.stats["solved_by"] == "sparse core"
    yield "limits"
    costs = families.make("uniform_integer", 40, 40, seed=5)
    for wish in ({"cardinality": "any"}, {"cost_limit": 3}, {"cost_limit": int(costs.max())}):
        check_assignment(costs, comm, **wish, **how)
    yield "many rounds"
    low_rank = families.make("low_rank", 30, 30, seed=3) + 1
    for costs in (low_rank, csr_array(low_rank)):
        a = check_assignment(costs, comm, cost_limit=30, **how)
        assert any(phase.get("added") for phase in a.stats["trace"])
    yield "no full assignment"
    lonely = np.full((12, 12), np.inf)
    lonely[:, 0] = 1
    with pytest.raises(gpumatch.InfeasibleError):
        distributed.assign(share(lonely, comm), comm=comm, **how)
    yield "time"
    result = distributed.assign(share(costs, comm), comm=comm, time_limit=0, **how)
    assert not result.proven


def cores_of_lists(comm, **how):
    """The same of sparse costs."""
    rng = np.random.default_rng(6)
    for shape in ((40, 40), (40, 60), (60, 40), (40, 0)):
        for dtype in (np.int64, np.float32):
            yield f"sparse {shape} {np.dtype(dtype)}"
            costs = random_array(shape, density=0.4, rng=rng).toarray() * 100
            np.fill_diagonal(costs, 150)
            costs = csr_array(costs.astype(dtype))
            check_assignment(costs, comm, **how)
            check_assignment(costs, comm, cost_limit=20, **how)
            check_assignment(costs, comm, maximize=True, cardinality="any", **how)
    yield "rows with many equal costs"
    check_assignment(csr_array(np.ones((30, 30), int)), comm, **how)
    yield "rows of one rank have more pairs"
    starts = even_starts(24, comm.size)
    costs = np.where(np.arange(25) < 12, 100, 1) * np.ones((24, 1), int)
    costs[12:] = np.eye(24, 25, dtype=int)[12:]  # to which the others' cheapest pairs lead
    block = csr_array(costs[starts[comm.rank] : starts[comm.rank + 1]])
    a = distributed.assign(block, comm=comm, **how)
    assert a.objective == gpumatch.assign(csr_array(costs)).objective
    for shape in ((12, 14), (14, 12)):
        yield f"sparse, no full assignment, {shape}"
        lonely = csr_array(np.where(np.arange(14) % 13 < 1, 3, 0) * np.ones((12, 1), int))
        lonely = lonely if shape == lonely.shape else csr_array(lonely.T)
        with (
            pytest.raises(gpumatch.InfeasibleError) as caught,
            mock.patch.object(searches, "_trees", None),
        ):
            distributed.assign(share(lonely, comm), comm=comm, **how)
        sides = caught.value.rows, caught.value.cols
        many, few = sides if shape[0] < shape[1] else sides[::-1]
        pattern = lonely.toarray() if shape[0] < shape[1] else lonely.toarray().T
        assert len(many) > len(few)
        assert not np.delete(pattern[many], few, axis=1).any()
    yield "sparse, no time"
    block = share(families_of_lists(), comm)
    assert not distributed.assign(block, comm=comm, time_limit=0, **how).proven


def given_up(comm, **how):
    """What goes on without a core: one rank with all rows, or trees if it has no room for them."""
    for shape in ((30, 30), (30, 40), (40, 30)):
        costs = families.make("low_rank", *shape, seed=3) + 1
        holed = np.where(np.random.default_rng(1).random(shape) < 0.5, np.inf, costs)
        np.fill_diagonal(holed, 300)
        for given in (costs, costs.astype(np.float32), holed, csr_array(costs)):
            for has_room in (True, False)[: 1 + (shape[0] == shape[1])]:
                yield f"given up, {shape}, {type(given)}, {given.dtype}, {has_room}"
                with (
                    tuned(tuning, rounds=0),
                    mock.patch.object(rank_core.Whole, "_has_room", return_value=has_room),
                    mock.patch.object(searches, "Trees", None if has_room else searches.Trees),
                ):
                    for limit in (None, 30):
                        a = check_assignment(given, comm, cost_limit=limit, **how)
                        assert ("one rank" in a.stats["seconds"]) == has_room
                        on_device = "backend" in how and not isinstance(given, csr_array)
                        trees = "trees on GPUs" if on_device else "trees"
                        assert a.stats["solved_by"] == ("one rank" if has_room else trees)
    yield "given up, no time"
    with tuned(tuning, rounds=0):
        block = share(csr_array(costs), comm)
        a = distributed.assign(block, comm=comm, time_limit=0, **how)
    assert not a.proven
    yield "given up, short of memory"
    with (
        tuned(tuning, rounds=0),
        mock.patch.object(rank_core, "AssignmentTask", side_effect=MemoryError),
    ):
        a = check_assignment(costs, comm, **how)
    assert {"one rank", "initial reduction"} < set(a.stats["seconds"])


def stopped(comm, **how):
    """What is left to gain after a stop is within the gap; rows may go without a column."""
    costs, limit = families.make("low_rank", 30, 30, seed=3) + 1, 30
    best = worth(gpumatch.assign(costs, cost_limit=limit))
    for given in (costs, csr_array(costs)):
        block, own = share(given, comm), share(costs, comm)
        for last in (0, 1, 2, 4, 8, 16, 32):
            yield f"{type(given)}, a stop after {last} ticks"
            stop = iter([False] * last)
            a = distributed.assign(
                block, comm=comm, cost_limit=limit, callback=lambda _, s=stop: next(s, True), **how
            )
            assert worth(a) >= best >= worth(a) - a.gap
            assert a.proven == (a.gap == 0)
            least = (own - a.col_dual).min(axis=1, initial=limit)
            assert (a.row_dual <= least - limit).all()  # rounded down
            np.testing.assert_allclose(a.row_dual, least - limit, rtol=0, atol=1e-14 * limit)


def families_of_lists():
    """Costs of which two pairs of a row do not suffice."""
    return csr_array(families.make("low_rank", 30, 30, seed=3) + 1)


GROUPS = whole_arrays, cores, stopped

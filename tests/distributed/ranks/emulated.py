"""Trees on GPUs, their kernels on the CPU with threads in any order, a rank each."""

from __future__ import annotations

import contextlib
import itertools
from functools import partial
from unittest import mock

import numpy as np
import pytest
from mpi4py import MPI

import gpumatch
from gpumatch import distributed
from gpumatch.cpu.distributed import trees as kernels
from gpumatch.cuda.assignment.dense import rows as dense_rows
from gpumatch.cuda.distributed import trees
from gpumatch.cuda.distributed.trees import DeviceLevels
from gpumatch.distributed import searches
from gpumatch.distributed import trees as rank_trees
from gpumatch.distributed.communicator import Communicator
from gpumatch.distributed.levels import HostLevels
from gpumatch.distributed.problem import Problem
from gpumatch.distributed.trees import Trees
from graphs import costs as families
from tests.cuda.emulator import COMPILER, Emulator, lead_drivers_here
from tests.distributed.ranks.assignments import wishes_of_matrices
from tests.distributed.ranks.checks import check_assignment, raises_everywhere, share

BLOCK = 64  # two warps
SEARCHED = "levels", "updates", "rows"
COMPARED = [
    *(("low_rank", 14, 14), ("machol_wien", 14, 14), ("machol_wien", 6, 3 * BLOCK)),
    *(
        ("uniform_integer", 100, 100),
        ("uniform_integer", 70, 90),
        ("uniform_float", 150, 3 * BLOCK),
    ),
]


def engine(make, costs, rows, cols, goal, world):
    costs, rows, _ = searches._with_fewer_rows(costs, rows, cols, goal, world)
    problem = Problem(costs, rows, goal.limit, world, kernels, dense_rows.rows_of)
    return Trees(problem, make)


def solved_by(make):
    """Let assignments be solved by these levels."""
    return mock.patch.dict(searches.ALGORITHMS["engine"], cpu=partial(engine, make))


@contextlib.contextmanager
def emulation():
    """What the device's levels need; gives the emulator."""
    emulator = Emulator(trees.SOURCE, {"kBlock": BLOCK})
    with pytest.MonkeyPatch.context() as patch:
        lead_drivers_here(patch, {trees.SOURCE: emulator}, trees, block=BLOCK)
        yield emulator


def emulated(comm):
    """Every kind of costs, and searches that are those of the host, level by level."""
    if COMPILER is None:
        return
    with emulation() as emulator:
        with solved_by(DeviceLevels):
            for case in wishes_of_matrices(comm):
                emulator.blocks = emulator.blocks % 4 + 1
                emulator.odds = {2: 6, 6: 30}.get(emulator.odds, 2)
                yield f"{case}, {emulator.blocks} blocks, odds {emulator.odds}"
            rng = np.random.default_rng(4)
            for limit in (2, 6, 9.5):
                yield f"rows that go without, rather than pay {limit}"
                crowded = rng.integers(0, 12, (12, 7)) + np.repeat([0, 3], 6)[:, None]
                check_assignment(crowded, comm, cost_limit=limit)
                check_assignment(crowded.T.copy(), comm, cost_limit=limit)
            yield "no full assignment"
            lonely = np.full((6, 7), np.inf)
            lonely[:, 0] = lonely[0, 1] = 1
            with pytest.raises(gpumatch.InfeasibleError) as caught:
                distributed.assign(share(lonely, comm), comm=comm)
            assert caught.value.cols.tolist() == [0]
            assert len(caught.value.rows) == 5
            for shape in ((0, 4), (4, 0)):
                yield f"{shape}"
                check_assignment(np.zeros(shape), comm, cost_limit=3)
            with mock.patch.object(Communicator, "allreduce_into", without_words):
                yield from stops(comm)
        yield from as_on_the_host(comm, emulator)


def without_words(world, result, array, how):
    """As NCCL reduces."""
    world._given.Allreduce(array, result, getattr(MPI, how.upper()))


def stop_after(least):
    """A callback that says stop when it has been called so often."""
    calls = itertools.count()
    return lambda _: next(calls) >= least


def stops(comm):
    """What one rank's callback says between searches and in the middle of one stops all."""
    is_last = comm.rank == comm.size - 1
    block = share(families.make("machol_wien", 14, 14), comm)
    for least in (0, 20):
        yield f"a stop after {least} ticks"
        a = distributed.assign(block, comm=comm, callback=stop_after(least) if is_last else None)
        assert not a.proven
        assert a.size == sum(comm.allgather(int(np.count_nonzero(a.row_to_col >= 0)))) < 14
    yield "a callback that fails"

    def fail(progress):
        if is_last and progress.matched > 4:
            raise ZeroDivisionError("here")

    run = lambda: distributed.assign(block, comm=comm, callback=fail)  # noqa: E731
    raises_everywhere(comm, ZeroDivisionError, "here", run)
    yield "no room on one rank"
    error = MemoryError("too little") if is_last else None
    run = lambda: distributed.assign(block, comm=comm)  # noqa: E731
    with mock.patch.object(trees.memory, "require_memory", side_effect=error):
        raises_everywhere(comm, MemoryError, "too little", run)


def as_on_the_host(comm, emulator):
    """The first search has the levels, updates and rows of the host's: both begin alike."""
    emulator.blocks, emulator.stay = 3, 20
    for family, *shape in COMPARED:
        yield f"{family} {shape}, level by level"
        costs = families.make(family, *shape, seed=2)
        traces = []
        for make in (DeviceLevels, partial(HostLevels, kernels=kernels)):
            with solved_by(make):
                stats = check_assignment(costs, comm).stats
            trace = [[phase.get(name) for name in SEARCHED] for phase in stats["trace"]]
            traces.append(trace[:2])
            assert stats["solved_by"] == getattr(make, "func", make).name
        assert traces[0] == traces[1]
    stages = [trees.SOURCE.constant(f"k{name}") for name in ("Growing", "Found", "Stuck")]
    assert stages == [rank_trees.GROWING, rank_trees.FOUND, rank_trees.STUCK]


GROUPS = (emulated,)

"""What a run tells of itself: what goes between ranks, what each phase does, and names of results.

On problems so small that all of it is known, and the same on any number of ranks.
"""

from __future__ import annotations

from unittest import mock

import numpy as np
from scipy.sparse import csr_array

from gpumatch import distributed
from gpumatch.cpu.distributed import forests
from gpumatch.distributed.communicator import Communicator, even_starts
from tests.distributed.ranks.checks import share


def counted(comm):
    """Each collective counts its calls, the bytes that this rank gives, and both kinds of time."""
    numbers = np.arange(3, dtype=np.int64)
    rows = np.ones((2, 5), np.float32)
    flags = np.array([True, False])
    is_root, parts = comm.rank == 0, [np.arange(2, dtype=np.int32)] * comm.size
    with Communicator(comm) as world:
        for name, call, calls, nbytes in (
            ("allgather", lambda: world.allgather(rows), 1, 40),
            ("gather", lambda: world.gather(rows), 1, 40),
            ("allreduce", lambda: world.allreduce(numbers, "max"), 1, 24),
            ("total", lambda: world.total(7), 1, 8),
            ("broadcast", lambda: world.broadcast(numbers), 1, 24 * is_root),
            ("broadcast of flags", lambda: world.broadcast(flags), 1, 2 * is_root),
            ("exchange", lambda: world.exchange(parts), 1, 8 * comm.size),
            ("share", lambda: world.share("a word"), 1, 0),
            ("settle", lambda: world.settle(), 1, 0),
            ("nothing to gather", lambda: world.allgather(rows[:0]), 1, 0),
            ("counted before", lambda: world.allgather(rows, world.counts(2)), 1, 40),
            ("reduced as counted", lambda: world.allreduce(rows, "sum", world.counts(2)), 1, 40),
        ):
            yield name
            before = world.calls, world.volume, world.waiting, world.moving
            call()
            assert world.calls - before[0] == calls
            assert world.volume - before[1] == nbytes
            assert world.waiting > before[2]
            assert (world.moving > before[3]) == (name not in ("settle", "nothing to gather"))
        yield "statistics"
        assert world.statistics()["ranks"] == comm.size
        told = world.statistics()["communication"]
        assert (told["calls"], told["bytes"], told["by"]) == (world.calls, world.volume, "MPI")
        assert (told["waiting"], told["moving"]) == (world.waiting, world.moving)
        yield "numbers stay what they are"
        assert world.total(2.5, "max") == 2.5
        assert isinstance(world.total(7), int)
        assert [a.tolist() for a in world.allgather(flags)] == [[True, False]] * comm.size
        assert world.allreduce(rows, "sum").tolist() == [[comm.size] * 5] * 2
        yield "even shares"
        assert even_starts(7, 3).tolist() == [0, 2, 4, 7]
        assert even_starts(2, 4).tolist() == [0, 0, 1, 1, 2]


def told(phases, *names):
    return [tuple(phase[name] for name in names) for phase in phases]


def phases(comm):
    """A search from the one row that the start leaves, over all others."""
    yield "matching"
    chain = csr_array(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 0]]))
    m = distributed.maximum_matching(share(chain, comm), comm=comm)
    assert told(m.stats["trace"], "levels", "found", "matched", "edges") == [(3, 1, 3, 5)]
    assert (m.stats["start_size"], m.stats["phases"], m.stats["levels"]) == (2, 1, 3)
    rows = f"rows {m.rows.start} to {m.rows.stop}"
    assert repr(m) == f"DistributedMatching(size 3, maximum, {rows})"
    assert (m.stats["algorithm"], m.stats["init"]) == ("engine", "cheap")
    yield "matching, stopped"
    m = distributed.maximum_matching(share(chain, comm), comm=comm, time_limit=0)
    assert repr(m) == f"DistributedMatching(size {m.size}, not proven maximum, {rows})"
    assert m.cover is None
    for shape in ((2, 9), (9, 2)):
        yield f"marks of columns of a graph of {shape}"
        marks = set()

        def claim(*given, marks=marks, original=forests.claim_free):
            marks.add(given[3].size)
            original(*given)

        with mock.patch.object(forests, "claim_free", claim):
            distributed.maximum_matching(share(csr_array(np.ones(shape)), comm), comm=comm)
        assert marks == {shape[1]}
    yield "assignment"
    costs = np.array([[1, 5, 9], [1, 7, 9]])
    a = distributed.assign(share(costs, comm), comm=comm)
    names = "found", "matched", "levels", "updates", "rows"
    trace = [phase for phase in a.stats["trace"] if phase.get("levels")]
    assert told(trace, *names) == [(1, 2, 2, 1, 2)]
    assert told(trace, "whole") == [(1,)]  # the first offers are to all columns
    assert told(a.stats["trace"][:1], *names[:2], "updates") == [(1, 1, 0)]
    rows = f"rows {a.rows.start} to {a.rows.stop}"
    assert repr(a) == f"DistributedAssignment(2 pairs, objective 6, optimal, {rows})"
    assert a.stats["solved_by"] == "trees"
    yield "first pairs, of which all ranks want the same at first"
    count = comm.size + 1
    ties = np.ones((count, count), int)
    ties[:, 0] = 0
    np.fill_diagonal(ties, 0)
    a = distributed.assign(share(ties, comm), comm=comm)
    assert a.objective == 0
    assert told(a.stats["trace"][:1], "found", "matched") == [(count, count)]
    yield "assignment, stopped"
    a = distributed.assign(share(costs, comm), comm=comm, time_limit=0)
    assert "not proven optimal" in repr(a)
    yield "the papers"
    for algorithm, levels in (("hungarian-classical", 3), ("hungarian-tree", 2)):
        a = distributed.assign(share(costs, comm), comm=comm, algorithm=algorithm)
        assert (a.objective, a.stats["algorithm"]) == (6, algorithm)
        searches = told(a.stats["trace"], "found", "matched", "levels", "updates")
        assert searches == [(1, 1, 1, 0), (1, 2, levels, 1)]


GROUPS = counted, phases

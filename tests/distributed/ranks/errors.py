"""What is wrong on one rank, results that are wrong, and what stops a search: all ranks agree."""

from __future__ import annotations

import os
import signal
from unittest.mock import MagicMock, patch

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch
import graphs
from gpumatch import distributed
from graphs import costs as families
from tests.distributed.ranks.checks import raises_everywhere, share


def faults(comm, **how):
    """What is wrong on one rank is said by all."""
    last, is_last = comm.size - 1, comm.rank == comm.size - 1
    good = np.arange(12.0).reshape(3, 4)
    bad = good.copy()
    bad[1, 2] = np.nan

    yield "NaN on one rank"
    mine = bad if is_last else good
    where = "" if comm.size == 1 else f"rank {last}: "
    message = f"^{where}the costs hold NaN, first at row 1, column 2"
    raises_everywhere(comm, ValueError, message, lambda: distributed.assign(mine, comm=comm, **how))

    yield "no matrix on one rank"
    mine = "costs.txt" if is_last else good
    message = "a path must be that of a .npy or .mtx file"
    raises_everywhere(comm, ValueError, message, lambda: distributed.assign(mine, comm=comm, **how))

    yield "a function that fails on one rank"

    def rows(begin, end):
        if is_last:
            raise OSError("the disk is gone")
        return good[: end - begin]

    run = lambda: distributed.assign((rows, (3 * comm.size, 4)), comm=comm, **how)  # noqa: E731
    raises_everywhere(comm, OSError, "the disk is gone", run)

    yield "an argument that is wrong on one rank"
    limit = -1 if is_last else None
    run = lambda: distributed.assign(good, comm=comm, **how, time_limit=limit)  # noqa: E731
    raises_everywhere(comm, ValueError, "time_limit", run)

    if comm.size > 1:
        yield "columns that differ"
        mine = good[:, :3] if is_last else good
        message = f"rank {last} has 3 columns, but rank 0 has 4"
        raises_everywhere(
            comm, ValueError, message, lambda: distributed.assign(mine, comm=comm, **how)
        )
        yield "dense and sparse"
        mine = csr_array(good) if is_last else good
        message = "1 of . ranks have sparse costs"
        raises_everywhere(
            comm, ValueError, message, lambda: distributed.assign(mine, comm=comm, **how)
        )

    yield "integers too large for sums over the rows of all ranks"
    n = 3 * comm.size
    mine = np.full((3, n), 2**62 // (n + 1) + 1)
    message = f"too large for {n} rows or columns"
    raises_everywhere(comm, ValueError, message, lambda: distributed.assign(mine, comm=comm, **how))

    for shape, pairs in (((1, 60), comm.size), ((60, 1), 1)):
        yield f"integers of which only {pairs} are added, {shape}"
        most = 2**62 // (pairs + 1) - 1
        assert distributed.assign(np.full(shape, most), comm=comm, **how).objective == pairs * most

    for shape in ((2, 3 * comm.size), (5, 3)):
        yield f"no full assignment, {shape}"
        block = np.full(shape, np.inf)
        block[:, 0] = 1
        with pytest.raises(gpumatch.InfeasibleError) as caught:
            distributed.assign(block, comm=comm, **how)
        own, cols = caught.value.rows, caught.value.cols
        has_pair = np.zeros(shape[1], bool)
        has_pair[0] = True
        assert len(set(comm.allgather((*own, -1, *cols)))) == 1
        if own.size > cols.size:
            assert set(np.flatnonzero(has_pair)) <= set(cols)  # all that any row may have
        else:
            assert own.size < cols.size
            assert not has_pair[cols].any() or own.size == shape[0] * comm.size

    yield "a callback that fails on one rank"

    def fail(_):
        if is_last:
            raise ZeroDivisionError("here")

    costs = share(families.make("machol_wien", 12, 12), comm)
    run = lambda: distributed.assign(costs, comm=comm, **how, callback=fail)  # noqa: E731
    raises_everywhere(comm, ZeroDivisionError, "here", run)

    yield "too many rows"
    for run in (distributed.assign, distributed.maximum_matching):
        with pytest.raises(ValueError, match="2147483648 rows or columns are more than"):
            run((lambda begin, end: good, (2**31, 4)), comm=comm)

    yield "no result"
    with pytest.raises(TypeError, match="result must be what"):
        distributed.verify(good, None, comm=comm)

    yield "no communicator"
    run = lambda: distributed.assign(good, comm="world")  # noqa: E731
    raises_everywhere(comm, TypeError, "comm must be an intracommunicator", run)


def certificates(comm):
    """Results that are wrong on one rank are refused on all."""
    is_last = comm.rank == comm.size - 1
    costs = families.make("uniform_integer", 4 * comm.size, 20, seed=4)
    block = costs[4 * comm.rank : 4 * comm.rank + 4]

    def refuse(name, pattern, result, block):
        with pytest.raises(gpumatch.CertificateError, match=pattern):
            distributed.verify(block, result, comm=comm)

    for name, pattern in (
        ("row_dual", "costs less than its duals"),
        ("col_dual", "differ among ranks" if comm.size > 1 else "dual"),
        ("row_to_col", "is matched to"),
    ):
        yield f"assignment: {name}"
        a = distributed.assign(block, comm=comm)
        if is_last:
            values = getattr(a, name).copy()
            values[0] += 1 if name != "row_to_col" else 0
            if name == "row_to_col":
                values[0] = values[1]
            setattr(a, name, values)
        refuse(name, pattern, a, block)
    yield "assignment: a dual of floats beyond rounding"
    floats = block / 7
    a = distributed.assign(floats, comm=comm)
    distributed.verify(floats, a, comm=comm)
    if is_last:
        a.row_dual = a.row_dual + 1e-11
    refuse("row_dual", "costs less than its duals", a, floats)
    yield "assignment: duals of integers that are too great by half"
    a = distributed.assign(block, comm=comm)
    a.row_dual = a.row_dual + 0.5 * is_last
    refuse("row_dual", "costs less than its duals", a, block)
    yield "assignment: objective"
    a = distributed.assign(block, comm=comm)
    a.objective += 1
    refuse("objective", "but the objective is", a, block)
    yield "assignment: an objective that ranks do not agree on"
    if comm.size > 1:
        a = distributed.assign(block, comm=comm)
        a.objective += comm.rank
        refuse("objective", "what is claimed differs among ranks", a, block)
    yield "assignment: a bound of duals that are too low on one rank"
    a = distributed.assign(block, comm=comm)
    a.row_dual, a.gap = a.row_dual - 3 * is_last, 12
    refuse("row_dual", "the gap is 12", a, block)
    found = distributed.verify(block, a, comm=comm, optimal=False)
    assert (found.bound, found.gap) == (a.objective - 12, 12)
    yield "assignment: a bound of duals that are too high, moved into rows of one rank"
    a.row_dual, a.gap = a.row_dual + (2.0**60 + 3) * is_last, np.inf
    found = distributed.verify(block, a, comm=comm, optimal=False)
    assert 0 <= found.gap <= 2**20  # the amounts are rounded up
    yield "assignment: pairs of others, by their rows in the whole"
    a = distributed.assign(block, comm=comm)
    if is_last:
        a.row_to_col = a.row_to_col[[1, 0, 2, 3]]
    row = 4 * comm.size - 4
    refuse("pairs", rf"^(rank \d+: )?row {row} is matched to column \d+, which is", a, block)
    yield "assignment: a pair beyond the limit of the largest"
    wish = {"cardinality": "maximum", "cost_limit": int(costs.max())}
    a = distributed.assign(block, comm=comm, **wish)
    distributed.verify(block, a, comm=comm)
    a.cost_limit = int(max(comm.allgather(int(a.pair_costs.max())))) - 1
    refuse("limit", r"row \d+ is assigned to column \d+, which is forbidden", a, block)

    graph = csr_array(costs % 3 == 0)[4 * comm.rank : 4 * comm.rank + 4]
    for name in ("cover", "row_to_col", "col_to_row", "edge", "size"):
        yield f"matching: {name}"
        m = distributed.maximum_matching(graph, comm=comm)
        assert distributed.verify(graph, m, comm=comm).size == m.size
        pattern = "no proof|misses the edge"
        if name == "size":
            m.size += 1
        elif is_last and name == "cover":
            m.cover = (~m.cover[0], m.cover[1])
        elif is_last and name == "row_to_col":
            m.row_to_col = m.row_to_col[[1, 1, *range(2, 4)]]
        elif is_last and name == "col_to_row":
            m.col_to_row = m.col_to_row.copy()
            m.col_to_row[np.flatnonzero(m.col_to_row < 0)[0]] = 0
        if name == "col_to_row":
            pattern = "columns of this rank are matched"
        seen = graph
        if name == "edge" and is_last:
            seen = csr_array(graph.shape, dtype=bool)
        if name in ("row_to_col", "edge"):
            pattern = "is matched to|are matched to them"
        refuse(name, pattern, m, seen)
    yield "matching: a cover with marks for other vertices"
    for side in range(2):
        m = distributed.maximum_matching(graph, comm=comm)
        cover = list(m.cover)
        if is_last:
            cover[side] = np.append(cover[side], False)
        m.cover = tuple(cover)
        refuse("marks", "must have a mark for each of this rank's vertices", m, graph)
    yield "matching: of a graph with other columns"
    m = distributed.maximum_matching(graph, comm=comm)
    refuse("shape", "the result is for .* columns here", m, graph[:, :-1])


def limits(comm, **how):
    """Time limits, callbacks and Ctrl-C on one rank stop all, with what there is."""
    is_last = comm.rank == comm.size - 1
    costs = share(families.make("machol_wien", 16, 16), comm)
    graph = share(graphs.make("ladder", 25, seed=1), comm)  # no start matches all of it

    def interrupt(_):
        if is_last and not sent:
            sent.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    def stop(_):
        return is_last

    sent: list[bool] = []

    for algorithm in ("hungarian-classical", "hungarian-tree"):
        yield f"{algorithm}: time is up on one rank"
        result = distributed.assign(
            costs, comm=comm, **how, algorithm=algorithm, time_limit=0 if is_last else None
        )
        assert not result.proven
        assert result.size < 16

    for name, run, block in (
        ("assign", distributed.assign, costs),
        ("match", distributed.maximum_matching, graph),
    ):
        yield f"{name}: time is up on one rank"
        result = run(block, comm=comm, **how, time_limit=0 if is_last else None)
        assert not result.proven
        yield f"{name}: a callback"
        assert not run(block, comm=comm, **how, callback=stop).proven
        yield f"{name}: Ctrl-C"
        sent = []
        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt) as caught:
            run(block, comm=comm, **how, callback=interrupt)
        result = caught.value.result
        assert not result.proven
        assert len(result.row_to_col) == block.shape[0]
        assert signal.getsignal(signal.SIGINT) is before
        matched = comm.allreduce(int(np.count_nonzero(result.row_to_col >= 0)))
        assert matched == result.size
        yield f"{name}: and again"
        assert run(block, comm=comm, **how).proven
        yield f"{name}: a bar, on rank 0 alone"
        bar = MagicMock(n=0)
        bar.update.side_effect = lambda step, bar=bar: setattr(bar, "n", bar.n + step)
        with patch("tqdm.auto.tqdm", return_value=bar) as made:
            result = run(block, comm=comm, **how, progress=True)
        assert made.call_count == bar.close.call_count == (comm.rank == 0)
        if comm.rank == 0:
            assert bar.n == made.call_args.kwargs["total"] == result.size

    yield "match: a stop at the first tick of a start of several rounds"
    heard: list[int] = []

    def hear(progress):
        heard.append(progress.matched)
        return True

    crowded = share(csr_array(np.ones((30, 40), bool)), comm)  # all ranks want the same columns
    result = distributed.maximum_matching(crowded, comm=comm, **how, callback=hear)
    assert result.size == heard[0]


GROUPS = faults, certificates, limits

"""What the tests run on several ranks: `mpiexec -n 4 python -m tests.distributed.ranks GROUP ...`.

A group is a function of the communicator. It yields the name of each case before it runs it, and
fails by AssertionError. Rank 0 prints the number of cases as JSON. A rank that fails prints why,
and aborts all.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import signal
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from mpi4py import MPI
from scipy.io import mmwrite
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array, random_array

import gpumatch
import graphs
from gpumatch import cli, distributed
from gpumatch.cpu.distributed import date2016 as paper_kernels
from gpumatch.cpu.distributed import rows as cpu_rows
from gpumatch.cuda.assignment import core, divided_rows
from gpumatch.distributed import assignment as door
from gpumatch.distributed import nccl
from gpumatch.distributed.communicator import Communicator, even_starts
from gpumatch.distributed.problem import Problem
from graphs import costs as families
from tests import assignment_cases, cases, test_real_matrices
from tests.distributed.shares import FEW_ROWS, starts_of

LONG_PATHS = {
    "chain(5000)", "dead_end_ladder(2000)", "ladder(2000)", "rope(12000)", "luxembourg_osm",
}  # fmt: skip
"""On these a search has so many levels that ranks with no core to themselves take minutes."""
SMALL_GRAPH = 150  # vertices and edges


def share(matrix, comm, seed=0):
    """This rank's rows; how many differs from rank to rank, and may be none."""
    starts = starts_of(matrix.shape[0], comm.size, seed)
    return matrix[starts[comm.rank] : starts[comm.rank + 1]]


# -- results ---------------------------------------------------------------------------------------


def check_matching(graph, size, comm, backend="cpu", block=None):
    block = share(graph, comm) if block is None else block
    matching = distributed.maximum_matching(block, comm=comm, backend=backend)
    assert (matching.size, matching.proven) == (size, True)
    assert matching.stats["backend"] == backend
    certificate = distributed.verify(block, matching, comm=comm)
    assert (certificate.size, certificate.edges) == (size, graph.nnz)
    rows, cols = (
        np.concatenate(comm.allgather(part)) for part in (matching.row_ind, matching.col_ind)
    )
    assert rows.size == size == np.unique(rows).size == np.unique(cols).size
    assert matching.shape == graph.shape
    found = sum(phase["found"] for phase in matching.stats["trace"])
    assert matching.stats["start_size"] + found == size


def check_assignment(costs, comm, algorithm="auto", backend="cpu", **wish):
    block = share(costs, comm)
    given = gpumatch.assign(costs, **wish)
    a = distributed.assign(block, comm=comm, algorithm=algorithm, backend=backend, **wish)
    assert a.proven
    assert a.size == given.size
    assert type(a.objective) is type(given.objective)
    exact = isinstance(given.objective, int)
    assert a.objective == (given.objective if exact else pytest.approx(given.objective, rel=1e-9))
    certificate = distributed.verify(block, a, comm=comm)
    assert certificate.objective == a.objective
    whole = SimpleNamespace(
        row_to_col=np.concatenate(comm.allgather(a.row_to_col)),
        row_dual=np.concatenate(comm.allgather(a.row_dual)),
        **{name: getattr(a, name) for name in SHARED},
    )
    if a.cover is not None:
        rows = np.concatenate(comm.allgather(a.cover[0]))
        whole.vertex_cover = lambda: (np.flatnonzero(rows), np.flatnonzero(a.cover[1]))
    whole.row_ind = np.flatnonzero(whole.row_to_col >= 0)
    whole.col_ind = whole.row_to_col[whole.row_ind]
    assert gpumatch.verify(costs, whole).objective == a.objective  # the checker for one place
    assert sum(comm.allgather(a.pair_costs.sum())) == pytest.approx(float(a.objective))
    return a


SHARED = ("col_to_row", "col_dual", "objective", "gap", "maximize", "cardinality", "cost_limit")


def matching(comm):
    for case in cases.CASES:
        if sum(case.graph.shape) + case.graph.nnz <= SMALL_GRAPH:
            yield case.name
            check_matching(case.graph, case.size, comm)


def every_matching(comm):
    for case in cases.CASES:
        if case.name not in LONG_PATHS:
            yield case.name
            check_matching(case.graph, case.size, comm)


def assignment(comm):
    for case in assignment_cases.CASES:
        if max(case.shape) <= FEW_ROWS:
            yield str(case)
            check_assignment(case.costs, comm, maximize=case.maximize)


def every_assignment(comm):
    for case in assignment_cases.CASES:
        limit = {"easy": 500, "chained": 100, "hard": 40}[case.difficulty]
        if max(case.shape) <= limit:
            yield str(case)
            check_assignment(case.costs, comm, maximize=case.maximize)


def few(comm):
    """One of each kind, for many ranks on few cores."""
    yield "matching"
    check_matching(cases.matrix(7, 6, [(i, j) for i in range(7) for j in (0, i % 6)]), 6, comm)
    for shape in ((5, 5), (6, 3)):
        yield f"assignment {shape}"
        whole = families.make("uniform_integer", *shape, seed=3)
        check_assignment(whole, comm)
        check_assignment(csr_array(whole + 1), comm)


def papers(comm):
    """Both algorithms of Date and Nagi, and the steps of their Tables 4 and 5."""
    rng = np.random.default_rng(5)
    for algorithm, steps in PAPER_STEPS.items():
        for shape in ((1, 1), (8, 8), (6, 9), (9, 6), (0, 3)):
            yield f"{algorithm} {shape}"
            costs = rng.integers(0, 30, shape)
            a = check_assignment(costs, comm, algorithm)
            assert a.stats["algorithm"] == algorithm
            for seconds in (a.stats["seconds"], a.stats["communication"]["seconds"]):
                assert {"initial reduction", "optimality check"} <= set(seconds)
                assert not a.size or steps <= set(seconds)
            holed = np.where(rng.random(shape) < 0.3, np.inf, costs)
            np.fill_diagonal(holed, 7.5)
            check_assignment(holed, comm, algorithm)
        yield f"{algorithm}, costs to be maximised, and sparse"
        check_assignment(csr_array(rng.integers(1, 9, (7, 7))), comm, algorithm, maximize=True)
        for family, size in (("machol_wien", 9), ("low_rank", 8)):
            yield f"{algorithm} {family}"
            check_assignment(families.make(family, size, size, seed=1), comm, algorithm)
        yield f"{algorithm}, no full assignment"
        lonely = np.full((3, 4), np.inf)
        lonely[:, 0] = 1
        with pytest.raises(gpumatch.InfeasibleError):
            distributed.assign(share(lonely, comm), comm=comm, algorithm=algorithm)
        yield f"{algorithm} takes no limit"
        with pytest.raises(ValueError, match="matches the whole smaller side"):
            distributed.assign(lonely, comm=comm, algorithm=algorithm, cost_limit=3)
        yield f"{algorithm}, no time"
        costs = share(families.make("machol_wien", 9, 9), comm)
        assert not distributed.assign(costs, comm=comm, algorithm=algorithm, time_limit=0).proven


STEPS = {"forward pass", "reverse and augmentation", "dual update"}
PAPER_STEPS = {"hungarian-classical": {*STEPS, "matrix compression"}, "hungarian-tree": STEPS}


def every_paper(comm):
    for case in assignment_cases.CASES:
        limit = {"easy": 100, "chained": 17, "hard": 17}[case.difficulty]
        for algorithm in PAPER_STEPS:
            if max(case.shape) <= limit:
                yield f"{algorithm} {case}"
                check_assignment(case.costs, comm, algorithm, maximize=case.maximize)


def wishes(comm):
    """Sparse costs, either side longer, forbidden pairs, limits, dtypes, and every sign."""
    rng = np.random.default_rng(3)
    for shape in ((9, 9), (7, 12), (12, 7), (1, 5), (0, 4), (4, 0)):
        full = rng.integers(-20, 60, shape)
        holed = np.where(rng.random(shape) < 0.5, full.astype(float), np.inf)
        sparse = csr_array(np.where(np.isfinite(holed), full, 0))
        for maximize in (False, True):
            for wish in ({}, {"cardinality": "any"}, {"cost_limit": 15}, {"cost_limit": 15.5}):
                yield f"{shape} {maximize} {wish}"
                check_assignment(full, comm, maximize=maximize, **wish)
                if wish:
                    allowed = -holed if maximize else holed
                    check_assignment(allowed.astype(np.float32), comm, maximize=maximize, **wish)
                    check_assignment(sparse, comm, maximize=maximize, **wish)
    yield "sparse and full"
    costs = families.make("uniform_integer", 30, 40, seed=1)
    costs[rng.random(costs.shape) < 0.7] = 0
    costs[:, :30] += np.eye(30, dtype=costs.dtype)
    check_assignment(csr_array(costs), comm)
    check_assignment(csr_array(costs.T), comm)


def largest(comm):
    """The cheapest among the largest assignments, with rows, columns or both in the cover."""
    rng = np.random.default_rng(8)
    for shape in ((9, 9), (7, 12), (12, 7), (0, 4)):
        for density in (0.2, 1.0):
            full = rng.integers(-20, 60, shape)
            holed = np.where(rng.random(shape) < density, full.astype(float), np.inf)
            for maximize in (False, True):
                allowed = -holed if maximize else holed
                stored = np.where(np.isfinite(holed), full + 100, 0)
                for limit in (None, 20):
                    yield f"{shape} {density} {maximize} {limit}"
                    how = {"cardinality": "maximum", "maximize": maximize}
                    check_assignment(allowed, comm, cost_limit=limit, **how)
                    how["cost_limit"] = None if limit is None else 100 + limit
                    check_assignment(csr_array(stored), comm, **how)
    yield "no time"
    result = distributed.assign(share(holed, comm), comm=comm, cardinality="maximum", time_limit=0)
    assert result.size == comm.allreduce(int(np.count_nonzero(result.row_to_col >= 0)))
    yield "a cover that is wrong on one rank"
    costs = np.where(np.eye(8, 5) > 0, 2.0, np.inf)
    block = share(costs, comm)
    a = distributed.assign(block, comm=comm, cardinality="maximum")
    assert a.size == 5
    a.cover = ~a.cover[0], a.cover[1]
    with pytest.raises(gpumatch.CertificateError, match="cover"):
        distributed.verify(block, a, comm=comm)


def blocks(comm):
    """Blocks by a function and from a file, and of several dtypes."""
    whole = families.make("uniform_integer", 12, 15, seed=2)
    best = whole[linear_sum_assignment(whole)].sum()

    yield "a function"
    asked = []

    def rows(begin, end):
        asked.append((begin, end))
        return whole[begin:end]

    a = distributed.assign((rows, whole.shape), comm=comm)
    assert a.objective == best
    assert asked == [(a.rows.start, a.rows.stop)]
    assert distributed.verify((rows, whole.shape), a, comm=comm).objective == best
    m = distributed.maximum_matching((lambda b, e: csr_array(whole[b:e]), whole.shape), comm=comm)
    assert m.size == 12

    yield "a file"
    path = os.environ["GPUMATCH_TEST_FILE"]
    if comm.rank == 0:
        np.save(path, whole)
    comm.Barrier()
    assert distributed.assign(path, comm=comm).objective == best
    assert distributed.maximum_matching(path, comm=comm).size == 12

    yield "a Matrix Market file"
    path = str(Path(path).with_suffix(".mtx"))
    if comm.rank == 0:
        mmwrite(path, coo_array(whole + 1))
    comm.Barrier()
    a = distributed.assign(path, comm=comm)
    assert a.objective == best + 12
    assert distributed.verify(path, a, comm=comm).edges == whole.size
    assert distributed.maximum_matching(path, comm=comm).size == 12

    yield "dtypes that differ"
    block = share(whole, comm).astype((np.int16, np.float32, np.int64)[comm.rank % 3])
    assert distributed.assign(block, comm=comm).objective == best


def commands(comm):
    """The command line, of which rank 0 alone speaks."""
    folder = Path(os.environ["GPUMATCH_TEST_FILE"]).parent
    costs = families.make("uniform_integer", 9, 12, seed=6)
    npy, mtx, out = (str(folder / name) for name in ("c.npy", "c.mtx", "out.npz"))
    if comm.rank == 0:
        np.save(npy, costs)
        mmwrite(mtx, coo_array(costs + 1))
    comm.Barrier()
    best = gpumatch.assign(costs).objective

    def run(*arguments):
        said, warned = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(warned):
            code = cli.main([*arguments, "--distributed"])
        assert len(set(comm.allgather(code))) == 1
        assert comm.rank == 0 or not said.getvalue() + warned.getvalue()
        return code, *(comm.bcast(text.getvalue(), root=0) for text in (said, warned))

    for source, objective in ((npy, best), (mtx, best + 9)):
        yield f"assign {source[-3:]}"
        code, said, _ = run("assign", source, "--json", "--output", out)
        report = json.loads(said)
        assert (code, report["objective"], report["certificate"]["bound"]) == (0, *[objective] * 2)
        assert report["backend"] == f"cpu, {comm.size} ranks"
        assert (report["rows"], report["columns"], report["entries"]) == (9, 12, 108)
        with np.load(out) as written:
            rows = np.arange(9)
            assert costs[rows, written["row_to_col"]].sum() == best
            assert written["col_dual"].size == 12
        comm.Barrier()
    yield "assign, maximum"
    code, said, _ = run("assign", mtx, "--cardinality", "maximum", "--json")
    assert (code, json.loads(said)["objective"]) == (0, best + 9)
    yield "match"
    code, said, _ = run("match", "datasets/karate.mtx.gz")
    assert code == 0
    assert "27 edges, maximum" in said
    assert "a cover of 27 vertices, checked on 156 edges" in said
    yield "a pickle"
    if comm.rank == 0:
        with open(npy, "wb") as file:
            pickle.dump([[1, 2]], file)
    comm.Barrier()
    code, _, warned = run("assign", npy)
    assert (code, "allow_pickle" in warned) == (2, True)
    if comm.rank == 0:
        np.save(npy, costs)
    comm.Barrier()
    yield "no time"
    assert run("assign", npy, "--time-limit", "0")[0] == 3
    yield "refused"
    for arguments, error in (
        (["assign", npy, "--seed", "3"], "--seed is not for --distributed"),
        (["match", mtx, "--launch", "mt"], "--launch is not for --distributed"),
        (["match", mtx, "--algorithm", "pfp"], "no algorithm 'pfp' for matchings"),
        (["assign", npy, "--objective", "bottleneck"], "--objective is not for --distributed"),
        (["match", "-"], "standard input is not for --distributed"),
        (["match", str(folder / "none.mtx")], "none.mtx: No such file"),
    ):
        code, _, warned = run(*arguments)
        assert code == 2
        assert error in warned
        assert warned.count("gpumatch: error") == 1


def batches(comm):
    """Each rank has problems of its own."""
    rng = np.random.default_rng(comm.rank)
    costs = rng.integers(0, 50, (3 + comm.rank, 6, 7))
    for wish in ({}, {"maximize": True}, {"cost_limit": 9}):
        yield f"{wish}"
        a = distributed.assign(costs, comm=comm, **wish)
        assert a.objective.tolist() == gpumatch.assign(costs, **wish).objective.tolist()
        assert distributed.verify(costs, a, comm=comm).size == a.size.sum()
    yield "one problem is wrong"
    wrong = costs.astype(float)
    if comm.rank == comm.size - 1:
        wrong[2, 0, 0] = np.nan
    run = lambda: distributed.assign(wrong, comm=comm)  # noqa: E731
    raises_everywhere(comm, ValueError, "problem 2: the costs hold NaN", run)
    if comm.size > 1:
        yield "not all have a batch"
        block = costs if comm.rank else costs[0]
        run = lambda: distributed.assign(block, comm=comm)  # noqa: E731
        raises_everywhere(comm, ValueError, "ranks have a batch", run)


def whole_arrays(comm):
    """The engine with what a rank has on a GPU, in arrays of NumPy."""
    with mock.patch.object(cpu_rows, "rows_of", divided_rows.rows_of):
        yield from wishes_of_matrices(comm)


def cores(comm):
    """A sparse core in place of trees, with what a rank has on a GPU, in arrays of NumPy."""
    from gpumatch.cpu.assignment.engine import run
    from gpumatch.cpu.distributed import trees

    def engine(costs, rows, cols, goal, world):
        if goal.transposed:
            costs, rows = door._turned_dense(costs, rows, cols, world), cols
        problem = Problem(costs, rows, goal.limit, world, trees, divided_rows.rows_of)
        return door._core(problem, run, trees)

    arrays = SimpleNamespace(
        **{
            **vars(paper_kernels),
            "CompressedRows": divided_rows.rows_of,
            "DenseRows": divided_rows.rows_of,
        }
    )
    few = {"FIRST": 2, "MORE": 1}  # many rounds
    with (
        mock.patch.dict(door.ALGORITHMS["engine"], cpu=engine),
        mock.patch.multiple(core, **few),
        mock.patch.object(door, "FEW_ROWS", 0),
    ):
        yield from wishes_of_matrices(comm)
        yield from cores_of_matrices(comm)
    with mock.patch.object(door, "_papers", return_value=arrays):
        for algorithm in PAPER_STEPS:
            for shape in ((9, 9), (6, 9), (9, 6)):
                yield f"{algorithm} {shape}"
                costs = np.random.default_rng(2).integers(0, 30, shape)
                check_assignment(costs, comm, algorithm)


def cores_of_matrices(comm, **how):
    """Costs on which cores are small, grow, or do not suffice."""
    for family in ("uniform_float", "low_rank", "machol_wien", "two_cost", "constant"):
        for shape in ((40, 40), (40, 50), (50, 40)):
            yield f"{family} {shape}"
            check_assignment(families.make(family, *shape, seed=4), comm, **how)
    yield "limits"
    costs = families.make("uniform_integer", 40, 40, seed=5)
    for wish in ({"cardinality": "any"}, {"cost_limit": 3}, {"cost_limit": int(costs.max())}):
        check_assignment(costs, comm, **wish, **how)
    yield "no full assignment"
    lonely = np.full((12, 12), np.inf)
    lonely[:, 0] = 1
    with pytest.raises(gpumatch.InfeasibleError):
        distributed.assign(share(lonely, comm), comm=comm, **how)
    yield "time"
    result = distributed.assign(share(costs, comm), comm=comm, time_limit=0, **how)
    assert not result.proven


def devices(comm):
    """The engine with a GPU a rank; blocks come from the host and from the GPU."""
    import cupy

    yield "collectives"
    yield from device_collectives(comm, cupy)
    yield from wishes_of_matrices(comm, backend="cuda")
    with mock.patch.object(door, "FEW_ROWS", 0):
        yield from wishes_of_matrices(comm, backend="cuda")
        with mock.patch.multiple(core, FIRST=2, MORE=1):
            yield from cores_of_matrices(comm, backend="cuda")
    for algorithm in PAPER_STEPS:
        for dtype in (np.int32, np.float32):
            for shape in ((20, 20), (15, 20), (20, 15)):
                yield f"{algorithm} {dtype} {shape}"
                costs = np.random.default_rng(2).integers(0, 99, shape).astype(dtype)
                check_assignment(costs, comm, algorithm, backend="cuda")
    costs = families.make("uniform_float", 300, 400, seed=1).astype(np.float32)
    block = share(costs, comm)
    best = gpumatch.assign(costs, backend="cpu").objective
    for given in (block, cupy.asarray(block)):
        yield f"a block of {type(given)}"
        a = distributed.assign(given, comm=comm, backend="cuda")
        assert a.stats["backend"] == "cuda"
        assert a.objective == pytest.approx(best, rel=1e-6)
        assert distributed.verify(given, a, comm=comm).objective == a.objective


def graphs_on_devices(comm):
    """Matchings with a GPU a rank, of blocks on the host and there."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    for name, size in (
        ("ladder", 90),
        ("rope", 200),
        ("trace", 60),
        ("hexa", 300),
        ("delaunay", 9),
    ):
        yield f"matching of {name}"
        graph = csr_array(graphs.make(name, size, seed=2))
        size = gpumatch.maximum_matching(graph, backend="cpu").size
        check_matching(graph, size, comm, "cuda")
    for seed in range(12):
        yield f"matching of a random graph, {seed}"
        shape = np.random.default_rng(seed).integers(1, 400, 2).tolist()
        graph = csr_array(random_array(shape, density=1.5 / max(shape), rng=seed))
        size = gpumatch.maximum_matching(graph, backend="cpu").size
        check_matching(graph, size, comm, "cuda")
        own = csr_array(share(graph, comm)).astype(np.float32)
        arrays = [cupy.asarray(part) for part in (own.data, own.indices, own.indptr)]
        check_matching(graph, size, comm, "cuda", csr_matrix(tuple(arrays), shape=own.shape))
        with pytest.raises(ValueError, match="block: it is on a GPU: pass backend='cuda'"):
            distributed.maximum_matching(csr_matrix(tuple(arrays), shape=own.shape), comm=comm)
    yield "matching in no time"
    found = distributed.maximum_matching(
        share(graph, comm), comm=comm, backend="cuda", time_limit=0
    )
    assert not found.proven


def more_than_two_to_the_32(comm):
    """A graph of 4.4 billion edges, made where it is matched, and its proof."""
    import cupy

    degree, rows = 33, 2**27
    stride = rows // degree

    def made(begin, end):
        row = cupy.arange(begin, end, dtype=np.uint64)
        indices = cupy.empty((end - begin, degree), np.int32)
        for k in range(degree):
            mixed = (row * np.uint64(degree) + np.uint64(k)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
            mixed *= np.uint64(0xBF58476D1CE4E5B9)
            indices[:, k] = k * stride + ((mixed >> np.uint64(32)) % np.uint64(stride)).astype(
                np.int32
            )
        indptr = cupy.arange(end - begin + 1, dtype=np.int64) * degree
        return indptr, indices.ravel(), (end - begin, rows)

    yield "a matching"
    first, last = even_starts(rows, comm.size)[[comm.rank, comm.rank + 1]].tolist()
    cupy.cuda.Device(comm.rank % cupy.cuda.runtime.getDeviceCount()).use()
    block = made(first, last)
    m = distributed.maximum_matching(block, comm=comm, backend="cuda")
    certificate = distributed.verify(block, m, comm=comm)
    assert certificate.edges == rows * degree > 2**32
    assert certificate.size == m.size > 0.999 * rows
    if comm.rank == 0:
        print(m, m.stats["seconds"], m.stats["start_size"], len(m.stats["trace"]))


def wishes_of_matrices(comm, **how):
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        for shape in ((8, 8), (5, 9), (9, 5)):
            yield f"{np.dtype(dtype)} {shape}"
            costs = np.random.default_rng(7).integers(-20, 60, shape).astype(dtype)
            check_assignment(costs, comm, **how)
            check_assignment(costs, comm, cost_limit=10, maximize=True, **how)
    yield "forbidden pairs"
    costs = np.where(np.random.default_rng(1).random((9, 9)) < 0.5, np.inf, 3.0)
    np.fill_diagonal(costs, 5.5)
    check_assignment(costs, comm, **how)
    yield "many searches"
    check_assignment(families.make("low_rank", 12, 12, seed=1), comm, **how)


def real(comm):
    """The real matrices, but for those with long paths."""
    for name, rank in test_real_matrices.RANKS.items():
        if name not in LONG_PATHS:
            yield name
            check_matching(test_real_matrices.graph_of(name).to_csr(bool), rank, comm)


# -- what goes wrong -------------------------------------------------------------------------------


def raises_everywhere(comm, kind, pattern, run):
    """All ranks raise the same, and then work together again."""
    with pytest.raises(kind, match=pattern) as caught:
        run()
    texts = comm.allgather(str(caught.value))
    assert len(set(texts)) == 1, texts


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
        assert len(result.row_to_col) == block.shape[0]
        assert signal.getsignal(signal.SIGINT) is before
        matched = comm.allreduce(int(np.count_nonzero(result.row_to_col >= 0)))
        assert matched == result.size
        yield f"{name}: and again"
        assert run(block, comm=comm, **how).proven


def ends_on_devices(comm):
    """Both with a GPU a rank."""
    yield from faults(comm, backend="cuda")
    yield from limits(comm, backend="cuda")


def device_collectives(comm, cupy):
    """The communicator with arrays of CuPy, each on a GPU of its own if there are as many."""
    divided_rows.use_own_device(comm.rank)
    yield from collectives(comm, cupy)


def collectives(comm, xp=np):
    """The communicator alone."""
    rank, size = comm.rank, comm.size
    with Communicator(comm) as world:
        if xp is not np:
            world.link_devices()
            by = "MPI and NCCL" if xp.cuda.runtime.getDeviceCount() >= size else "MPI"
            assert world.statistics()["communication"]["by"] == by
        yield "allgather and gather"
        own = xp.arange(2 * rank, dtype=np.int32).reshape(rank, 2)
        every = world.allgather(own)
        assert [len(part) for part in every] == list(range(size))
        assert world.brought == sum(range(size))
        at_root = world.gather(own, root=size - 1)
        assert (at_root is None) == (rank != size - 1)
        if at_root is not None:
            assert all((a == b).all() for a, b in zip(at_root, every))
        yield "allreduce"
        numbers = xp.array([rank, -rank], np.int64)
        for how, want in (("min", [0, 1 - size]), ("max", [size - 1, 0])):
            assert world.allreduce(numbers, how).tolist() == want
        assert world.total(0.5) == 0.5 * size
        yield "broadcast"
        flags = world.broadcast(xp.array([True, False, True]) if rank == 0 else xp.empty(0, bool))
        assert flags.tolist() == [True, False, True]
        floats = world.broadcast(xp.array([[0.5, rank]]) if rank == 0 else xp.empty(0))
        assert floats.tolist() == [[0.5, 0]]
        yield "exchange"
        parts = [xp.full(other + 1, rank, np.int64) for other in range(size)]
        taken = world.exchange(parts)
        assert [part.tolist() for part in taken] == [[other] * (rank + 1) for other in range(size)]
        assert world.volume > 0
        assert world.calls >= 6


# -- what ends the program -------------------------------------------------------------------------


def killed(comm):
    """The last rank dies at once in the middle of a search."""
    costs = share(families.make("machol_wien", 16, 16), comm)

    def die(progress):
        if comm.rank == comm.size - 1 and progress.matched > 1:
            print("rank is dead", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    yield "killed"
    distributed.assign(costs, comm=comm, callback=die)
    print("survived")


def killed_on_devices(comm):
    """The same with a GPU a rank."""
    graph = share(csr_array(graphs.make("rope", 4000, seed=1)), comm)

    def die(progress):
        if comm.rank == comm.size - 1 and progress.phase > 1:
            print("rank is dead", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    yield "killed"
    distributed.maximum_matching(graph, comm=comm, backend="cuda", callback=die)
    print("survived")


def killed_in_nccl(comm):
    """The last rank dies before a collective of NCCL in which all others are by then."""
    costs = share(families.make("uniform_float", 400, 400, seed=1).astype(np.float32), comm)

    def die(*_):
        time.sleep(1)
        print("rank is dead", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    names = ("allreduce", "broadcast", "gather", "exchange") if comm.rank == comm.size - 1 else ()
    yield "killed"
    with (
        mock.patch.multiple(nccl.Links, **dict.fromkeys(names, die))
        if names
        else contextlib.nullcontext()
    ):
        distributed.assign(costs, comm=comm, backend="cuda")
    print("survived")


def endless_on_devices(comm):
    """The same with a GPU a rank."""
    yield from endless(comm, backend="cuda")


def endless(comm, **how):
    """A search that goes on for ever, once it has begun."""
    costs = share(families.make("machol_wien", 16, 16), comm)

    def wait(_):
        Path(os.environ["GPUMATCH_TEST_FILE"]).touch()
        time.sleep(0.1)

    yield "endless"
    while True:
        distributed.assign(costs, comm=comm, callback=wait, **how)


GROUPS = {
    group.__name__: group
    for group in (
        collectives, matching, every_matching, assignment, every_assignment, wishes, blocks,
        largest, papers, every_paper, commands, batches, real, whole_arrays, cores, devices,
        graphs_on_devices,
        faults, certificates, limits, few, killed, endless, killed_on_devices,
        killed_in_nccl, endless_on_devices, ends_on_devices,
        more_than_two_to_the_32,
    )
}  # fmt: skip


def main() -> None:
    comm = MPI.COMM_WORLD
    begun: list[str] = []
    try:
        for group in sys.argv[1:]:
            for case in GROUPS[group](comm):
                begun.append(case)  # its name is wanted when it fails
    except BaseException:
        print(f"rank {comm.rank}, case {begun[-1:]}:\n{traceback.format_exc()}", flush=True)
        comm.Abort(1)
    if comm.rank == 0:
        print(json.dumps({"cases": len(begun)}))


if __name__ == "__main__":
    main()

"""`gpumatch.distributed` on the ranks that there are, one if this is no MPI job.

``mpiexec -n 3 python -m tests.fuzz --door distributed --minutes 1`` has each rank draw the same
problems and hold its share of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gpumatch as gm
from tests.fuzz import oracles, problems
from tests.fuzz.judgement import check_cardinality, check_optimum, require
from tests.fuzz.problems import Problem
from tests.fuzz.transformations import source_of
from tests.fuzz.trials import Trial, Wrong


def distributed(trial: Trial) -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if trial.chance(0.3):
        _matching(trial, comm)
        return
    as_sparse = trial.chance(0.5)
    draw = problems.sparse_problem if as_sparse else problems.dense_problem
    problem = draw(trial, 2**16 + 2**9)
    if problem.given_limits.ndim:
        return
    block = _block(problem, comm, as_sparse=as_sparse)
    options = problem.options
    if trial.chance(0.3) and set(options) <= {"maximize"} and problem.rows.size <= 2**13:
        options["algorithm"] = trial.pick(("hungarian-classical", "hungarian-tree"))
    trial.note(block=block, ranks=comm.size, **options)
    best, is_infeasible = oracles.best(problem), oracles.is_infeasible(problem)
    try:
        result = gm.distributed.assign(block, comm=comm, **options)
    except gm.InfeasibleError:
        require(is_infeasible, "it is feasible")
        return
    require(not is_infeasible, "it is infeasible")
    mates = np.concatenate(comm.allgather(np.asarray(result.row_to_col)))
    rows = np.flatnonzero(mates >= 0)
    cols = mates[rows]
    require(np.unique(cols).size == cols.size, "a column is matched twice")
    require((problem.places(rows, cols) >= 0).all(), "a pair is forbidden")
    if result.proven:
        check_cardinality(problem, rows, cols)
        if best is not None:
            check_optimum(problem, (rows, cols), best, result.gap, True, _most_dual(result, comm))
        _verified(block, result, comm)
    else:
        require(not problem.is_exact, "integers are not proven")
        trial.unproven += 1


def _most_dual(result: Any, comm: Any) -> float:
    own = max(abs(dual).max(initial=0) for dual in (result.row_dual, result.col_dual))
    return float(max(comm.allgather(own)))


def _verified(block: Any, result: Any, comm: Any) -> None:
    try:
        gm.distributed.verify(block, result, comm=comm)
    except gm.CertificateError as exc:
        raise Wrong(f"verify refuses: {exc}") from exc


def _matching(trial: Trial, comm: Any) -> None:
    problem = problems.sparse_problem(trial, 2**17, plain=True)
    block = _block(problem, comm, as_sparse=True)
    trial.note(block=block, ranks=comm.size)
    result = gm.distributed.maximum_matching(block, comm=comm)
    mates = np.concatenate(comm.allgather(np.asarray(result.row_to_col)))
    rows = np.flatnonzero(mates >= 0)
    require((problem.places(rows, mates[rows]) >= 0).all(), "a pair is no edge")
    size = oracles.rank(problem)
    require(rows.size == size, f"{rows.size} pairs, but {size} exist")
    _verified(block, result, comm)


def _block(problem: Problem, comm: Any, *, as_sparse: bool) -> Any:
    """This rank's rows."""
    begin, end = (problem.shape[0] * k // comm.size for k in (comm.rank, comm.rank + 1))
    if as_sparse or not problem.is_complete:
        matrix = problem.csr()
        matrix.data = problem.values.astype(np.int64 if problem.is_integer else np.float64)
        return matrix[begin:end]
    return source_of(problem)[begin:end]

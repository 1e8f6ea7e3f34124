"""What must not change the optimum of an assignment, or must change it in a known way.

A transformation gives another problem, and what its net cost is if that of the given one is
`net`, with signs such that both are to be minimised. A way solves the same problem by another door
or in another form. Neither needs an oracle.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csgraph, csr_array

import gpumatch as gm
from tests.fuzz.containers import on_host
from tests.fuzz.problems import Problem
from tests.fuzz.trials import Trial, Wrong

Changed = tuple[Problem, Callable[[Any], Any]]


def _same(net: Any) -> Any:
    return net


def _of(
    problem: Problem, rows: Any, cols: Any, values: Any, shape: Any = None, **changes: Any
) -> Problem:
    """The problem with other pairs, in any order."""
    order = np.lexsort((cols, rows))
    return dataclasses.replace(
        problem, shape=problem.shape if shape is None else shape,
        rows=rows[order], cols=cols[order], values=values[order], **changes,
    )  # fmt: skip


def negated(trial: Trial, problem: Problem) -> Changed | None:
    if problem.values.dtype.kind in "ub" or problem.given_limits.dtype.kind in "ub":
        return None
    if problem.is_integer and problem.values.min(initial=0) == np.iinfo(problem.values.dtype).min:
        return None
    limit = None if problem.limit is None else -problem.limit
    other = dataclasses.replace(
        problem, values=-problem.values, maximize=not problem.maximize, limit=limit
    )
    return other, _same


def transposed(trial: Trial, problem: Problem) -> Changed | None:
    if problem.given_limits.ndim:
        return None
    return _of(problem, problem.cols, problem.rows, problem.values, problem.shape[::-1]), _same


def permuted(trial: Trial, problem: Problem) -> Changed:
    rows, cols = (trial.rng.permutation(size) for size in problem.shape)
    limit = problem.limit
    if problem.given_limits.ndim:
        limit = np.empty_like(problem.limit)
        limit[rows] = problem.limit
    other = _of(problem, rows[problem.rows], cols[problem.cols], problem.values, limit=limit)
    return other, _same


def shifted_rows(trial: Trial, problem: Problem) -> Changed | None:
    """Every row is matched, so a number for each is added to the total."""
    if problem.cardinality != "full" or problem.has_limit or problem.shape[0] > problem.shape[1]:
        return None
    if not _has_room(problem, 2.0**20):
        return None
    kind = np.int64 if problem.is_integer else np.float64
    by = trial.rng.integers(-1000, 1000, problem.shape[0]).astype(kind)
    added = (-1 if problem.maximize else 1) * int(by.sum())
    moved = problem.values.astype(kind) + by[problem.rows]
    return dataclasses.replace(problem, values=moved), lambda net: net + added


def shifted_with_limit(trial: Trial, problem: Problem) -> Changed | None:
    """Costs and their limit move together, so what is gained stays."""
    if not problem.is_free or not problem.has_limit or not _has_room(problem, 2.0**20):
        return None
    if not problem.is_exact or not np.isfinite(problem.given_limits.astype(float)).all():
        return None
    limit = np.asarray(problem.limit, np.int64) + 1000
    moved = dataclasses.replace(
        problem, values=problem.values.astype(np.int64) + 1000,
        limit=limit if limit.ndim else int(limit),
    )  # fmt: skip
    return moved, _same


def scaled(trial: Trial, problem: Problem) -> Changed | None:
    """Floats times a power of two, without rounding."""
    if problem.values.dtype != np.float64:
        return None
    power = trial.integer(-40, 40)
    sizes = abs(problem.values[problem.values != 0])
    if sizes.size and not (sizes.min() > 1e-250 and sizes.max() < 1e250):
        return None
    limit = problem.limit
    if limit is not None:
        limit = np.ldexp(np.asarray(limit, np.float64), power)
        limit = limit if limit.ndim else float(limit)
    other = dataclasses.replace(problem, values=np.ldexp(problem.values, power), limit=limit)
    return other, lambda net: math.ldexp(net, power)


def doubled(trial: Trial, problem: Problem) -> Changed | None:
    """Integers times a small number."""
    if not problem.is_exact or not _has_room(problem, 2.0**52 / (min(problem.shape) + 1)):
        return None
    limits = problem.given_limits.astype(float)
    if not (np.isfinite(limits) & (limits % 1 == 0)).all():
        return None
    by = trial.pick((2, 3, 1000))
    limit = problem.limit
    if limit is not None:
        limit = np.asarray(limit).astype(np.int64) * by
        limit = limit if limit.ndim else int(limit)
    other = dataclasses.replace(
        problem, values=problem.values.astype(np.int64) * by, limit=limit
    )  # fmt: skip
    return other, lambda net: net * by


def widened(trial: Trial, problem: Problem) -> Changed | None:
    """The same numbers in a wider dtype."""
    if problem.values.dtype.itemsize >= 8:
        return None
    kind = np.int64 if problem.is_integer else np.float64
    return dataclasses.replace(problem, values=problem.values.astype(kind)), _same


def as_floats(trial: Trial, problem: Problem) -> Changed | None:
    """Integers as floats that hold them exactly."""
    if not problem.is_exact or not _has_room(problem, 2.0**40):
        return None
    return dataclasses.replace(problem, values=problem.values.astype(np.float64)), _same


def limit_of_each_row(trial: Trial, problem: Problem) -> Changed | None:
    if not problem.has_limit or problem.given_limits.ndim:
        return None
    is_whole = float(problem.limit).is_integer() and abs(problem.limit) < 2**62
    kind = np.int64 if is_whole else np.float64
    return dataclasses.replace(problem, limit=np.full(problem.shape[0], problem.limit, kind)), _same


def any_as_limit(trial: Trial, problem: Problem) -> Changed | None:
    """Pairs are taken that pay; with a limit of 0 also some that do not, for nothing."""
    if problem.cardinality != "any" or problem.has_limit:
        return None
    return dataclasses.replace(problem, cardinality="full", limit=0), _same


def with_lonely_vertices(trial: Trial, problem: Problem) -> Changed | None:
    """Rows and columns with no allowed pair change nothing if they need none."""
    if problem.cardinality == "full" and not problem.has_limit:
        return None
    if problem.given_limits.ndim:
        return None
    shape = problem.shape[0] + trial.integer(0, 3), problem.shape[1] + trial.integer(0, 3)
    return dataclasses.replace(problem, shape=shape), _same


def with_spare_columns(trial: Trial, problem: Problem) -> Changed | None:
    """A column that costs more than all others together is taken only if it must be."""
    if problem.cardinality != "full" or problem.has_limit or problem.shape[0] > problem.shape[1]:
        return None
    if not _has_room(problem, min(2.0**30, 2.0**57 / (max(problem.shape) + 2) ** 2)):
        return None
    if not _can_match_all_rows(problem):  # the spare column could match the last one
        return None
    kind = np.int64 if problem.is_integer else np.float64
    most = 2.0 ** (3 + math.frexp(float(abs(problem.costs).max(initial=1)))[1])
    worst = (-1 if problem.maximize else 1) * (problem.shape[0] + 1) * most
    nrows, ncols = problem.shape
    return _of(
        problem, np.concatenate([problem.rows, np.arange(nrows)]),
        np.concatenate([problem.cols, np.full(nrows, ncols)]),
        np.concatenate([problem.values.astype(kind), np.full(nrows, worst, kind)]),
        (nrows, ncols + 1),
    ), lambda net: net  # fmt: skip


def side_by_side(trial: Trial, problem: Problem) -> Changed | None:
    """Two copies as the blocks of one problem."""
    (nrows, ncols), count = problem.shape, problem.rows.size
    if 2 * count > 2**18 or nrows > 2**16 or ncols > 2**16:
        return None
    if problem.is_integer and not _has_room(problem, 2.0**60 / (min(problem.shape) + 1)):
        return None
    if problem.cardinality == "full" and not problem.has_limit and nrows == 0:
        return None
    limit = problem.limit
    if problem.given_limits.ndim:
        limit = np.tile(limit, 2)
    return _of(
        problem, np.concatenate([problem.rows, problem.rows + nrows]),
        np.concatenate([problem.cols, problem.cols + ncols]), np.tile(problem.values, 2),
        (2 * nrows, 2 * ncols), limit=limit,
    ), lambda net: net + net  # fmt: skip


TRANSFORMATIONS = {
    function.__name__: function
    for function in (
        negated,
        transposed,
        permuted,
        shifted_rows,
        shifted_with_limit,
        scaled,
        doubled,
        widened,
        as_floats,
        limit_of_each_row,
        any_as_limit,
        with_lonely_vertices,
        with_spare_columns,
        side_by_side,
    )
}


def _can_match_all_rows(problem: Problem) -> bool:
    """Whether SciPy finds a full assignment of the rows."""
    pairs = np.ones(problem.rows.size), (problem.rows, problem.cols)
    matching = csgraph.maximum_bipartite_matching(csr_array(pairs, problem.shape), "column")
    return bool((matching >= 0).all())


def _has_room(problem: Problem, most: float) -> bool:
    """Whether no number is so large that a change of it may round or overflow."""
    numbers = problem.given_limits.astype(np.float64)
    largest = float(max(abs(problem.costs).max(initial=0), abs(numbers).max(initial=0)))
    return largest <= most


# -- other ways to the same answer -----------------------------------------------------------------

Pairs = tuple[np.ndarray, np.ndarray]


class Unproven(Exception):
    """A run to the end on floats says by itself that it has not reached the optimum."""


def pairs_of_result(result: Any) -> Pairs:
    if not result.proven:
        if isinstance(result.objective, int):
            raise Wrong(f"a run to the end on integers is not proven: gap {result.gap}")
        raise Unproven
    return on_host(result.row_ind), on_host(result.col_ind)


def source_of(problem: Problem) -> Any:
    """The plainest form: CSR if most pairs are forbidden, or integers must forbid some."""
    is_dense = 4 * problem.rows.size >= math.prod(problem.shape) and _can_be_dense(problem)
    return problem.matrix() if is_dense else _in_csr(problem)


def _can_be_dense(problem: Problem) -> bool:
    is_small = math.prod(problem.shape) <= 2**21 + 2**15
    return is_small and (problem.is_complete or not problem.is_integer)


def dense(trial: Trial, problem: Problem) -> Pairs | None:
    if not _can_be_dense(problem):
        return None
    return pairs_of_result(gm.assign(problem.matrix(), **problem.options))


def sparse(trial: Trial, problem: Problem) -> Pairs | None:
    return pairs_of_result(gm.assign(_in_csr(problem), **problem.options))


def batch(trial: Trial, problem: Problem) -> Pairs | None:
    if not _can_be_dense(problem) or problem.given_limits.ndim:
        return None
    return pairs_of_result(gm.assign(problem.matrix()[None], **problem.options)[0])


def padded_batch(trial: Trial, problem: Problem) -> Pairs | None:
    if not _can_be_dense(problem) or problem.given_limits.ndim:
        return None
    matrix = problem.matrix()
    nrows, ncols = matrix.shape
    padded = np.zeros((2, nrows + 2, ncols + 1), matrix.dtype)
    padded[:, :nrows, :ncols] = matrix
    sizes = np.array([[nrows, nrows]]), np.array([[ncols, ncols]])
    found = gm.assign(padded, sizes=(sizes[0][0], sizes[1][0]), **problem.options)
    return pairs_of_result(found[1])


def list_batch(trial: Trial, problem: Problem) -> Pairs | None:
    if not _can_be_dense(problem) or problem.given_limits.ndim:
        return None
    small = np.ones((2, 3), problem.values.dtype)
    return pairs_of_result(gm.assign([small, problem.matrix()], **problem.options)[1])


def in_fortran_order(trial: Trial, problem: Problem) -> Pairs | None:
    if not _can_be_dense(problem):
        return None
    return pairs_of_result(gm.assign(np.asfortranarray(problem.matrix()), **problem.options))


def by_paths(trial: Trial, problem: Problem) -> Pairs | None:
    return _by(problem, algorithm="shortest-augmenting-path")


def by_auction(trial: Trial, problem: Problem) -> Pairs | None:
    return _by(problem, algorithm="auction") if problem.rows.size <= 2**16 else None


def by_trees(trial: Trial, problem: Problem) -> Pairs | None:
    return _by(problem, algorithm="hungarian-tree") if problem.rows.size <= 2**16 else None


def by_classical(trial: Trial, problem: Problem) -> Pairs | None:
    return _by(problem, algorithm="hungarian-classical") if problem.rows.size <= 2**14 else None


def on_one_thread(trial: Trial, problem: Problem) -> Pairs | None:
    return _by(problem, threads=1)


def again(trial: Trial, problem: Problem) -> Pairs | None:
    """From its own result."""
    source = source_of(problem)
    first = gm.assign(source, **problem.options)
    return pairs_of_result(gm.assign(source, initial=first, **problem.options))


def by_scipys_name(trial: Trial, problem: Problem) -> Pairs | None:
    if set(problem.options) - {"maximize"} or not _can_be_dense(problem):
        return None
    if problem.values.dtype == np.longdouble:  # which SciPy refuses
        return None
    return gm.optimize.linear_sum_assignment(problem.matrix(), problem.maximize)


def by_csgraphs_name(trial: Trial, problem: Problem) -> Pairs | None:
    if set(problem.options) - {"maximize"} or not problem.values.all():
        return None
    return gm.csgraph.min_weight_full_bipartite_matching(_in_csr(problem), problem.maximize)


def _in_csr(problem: Problem) -> Any:
    matrix = problem.csr()
    matrix.data = problem.values.astype(np.int64 if problem.is_integer else np.float64)
    return matrix


def _by(problem: Problem, **arguments: Any) -> Pairs:
    return pairs_of_result(gm.assign(source_of(problem), **problem.options, **arguments))


WAYS = {
    function.__name__: function
    for function in (
        dense,
        sparse,
        batch,
        padded_batch,
        list_batch,
        in_fortran_order,
        by_paths,
        by_auction,
        by_trees,
        by_classical,
        on_one_thread,
        again,
        by_scipys_name,
        by_csgraphs_name,
    )
}

"""Batches of problems: those on the host, in compiled calls for many problems each."""

from __future__ import annotations

import numpy as np

from gpumatch.contracts.batch import INFEASIBLE, SOLVED, UNSOLVED, BatchTask, Wish
from gpumatch.costs import CostBatch
from gpumatch.dispatch.backends import check_algorithm, check_backend
from gpumatch.dispatch.registry import BATCHES, load
from gpumatch.problems.batch_limits import gates_of
from gpumatch.problems.device_batches import (
    fit_together,
    solve_on_device,
    solve_points_on_device,
)
from gpumatch.problems.one_by_one import Batch
from gpumatch.problems.request import Request, checked_limit, wish_for
from gpumatch.problems.small_problems import numbers_for
from gpumatch.results.assignment import BatchAssignment
from gpumatch.running.control import attach_result

__all__ = ["solve"]

MOST = 2**18
"""Costs of a problem up to which a compiled call ends soon enough for Ctrl-C."""


def solve(problems: CostBatch, request: Request) -> BatchAssignment:
    """The assignments of all problems, by kernels for batches if these serve, else one by one."""
    check_algorithm("assignment", request.algorithm)
    if request.backend != "auto":
        check_backend(request.backend)
    batch, control = Batch(problems, request), request.control
    control.total = int(problems.sizes.min(axis=1).sum())
    try:
        return _solve(batch)
    finally:
        if control.shows_bar:  # the number of pairs may be on a device
            control.close(0 if batch.size is None else int(batch.size.sum()))


def _solve(batch: Batch) -> BatchAssignment:
    problems, request = batch.problems, batch.request
    backend, on_device = request.backend, problems.on_device
    has_own = batch.limits is not None  # which no kernel of a device takes
    if request.algorithm == "auto" and not request.options and len(problems):
        if has_own and (on_device or backend == "cuda" or request.cardinality == "maximum"):
            return batch.solve_all()
        if backend == "cuda" or (backend == "auto" and on_device):
            dense = problems.on_one_device()
            if dense is not None:
                return solve_on_device(batch, *dense)
            if problems.are_made_on_device() and fit_together(problems):
                return solve_points_on_device(batch)
        elif backend in ("auto", "cpu") and not on_device:
            places = problems.places()
            if places is not None:
                return _solve_on_host(batch, *places)
    return batch.solve_all()


def _solve_on_host(batch: Batch, places: np.ndarray, total: int) -> BatchAssignment:
    """The assignments by compiled calls for many problems each."""
    request, problems, count = batch.request, batch.problems, len(batch.problems)
    is_integer, limit, gates = problems.is_integer, None, None
    if batch.limits is None:
        limit = checked_limit(request.cost_limit, is_integer, request.maximize)
        batch.cost_limit = limit
    else:
        gates = gates_of(batch.limits, problems.sizes, is_integer, request.maximize)
        if gates is None:
            return batch.solve_all()
        batch.cost_limit = gates.limits
        limit = 0 if gates.is_integer or not is_integer else 0.0  # that of its kind
    rows, cols = problems.sizes.T
    is_small = rows * cols <= MOST
    side = int(np.minimum(rows, cols)[is_small].max(initial=0))
    is_integer, largest = numbers_for(is_integer, request.cardinality, limit, side)
    if limit is not None and abs(limit) > largest:
        is_small[:] = False
    wish = wish_for(request.maximize, request.cardinality, limit)
    # The threads of the kernels clear these.
    batch.mates = np.empty((count, batch.both), np.int32)
    batch.numbers = np.empty((count, batch.both + batch.nrows))
    totals, ends = np.zeros((2, count)), np.zeros((2, count), np.int64)
    totals[1], ends[0] = np.inf, UNSOLVED
    task = BatchTask(
        problems.read,
        problems.in_place,
        places,
        total,
        is_small,
        wish,
        _gates(wish) if gates is None else gates.values,
        largest,
        (batch.mates, batch.numbers, totals, batch.marks, ends),
        request.control,
        request.threads,
    )

    def take() -> None:
        number = np.int64 if is_integer else np.float64
        batch.proven, batch.size = ends[0] == SOLVED, ends[1]
        if not batch.proven.all():
            infeasible = (ends[0] == INFEASIBLE).nonzero()[0].tolist()
            batch.marked = dict(zip(infeasible, batch.mates[infeasible]))
            batch.mates[infeasible] = -1
            unsolved = ends[0] == UNSOLVED
            batch.mates[unsolved], batch.numbers[unsolved] = -1, 0
        if request.maximize and not is_integer:
            totals[0] += 0  # no -0.0
        batch.numbers = batch.numbers.view(number)
        batch.objective, batch.gap = totals[0].view(number), totals[1]
        batch.add_roundings()

    try:
        with request.control.part("search"):
            ended = load(BATCHES["cpu"])(task)
    except KeyboardInterrupt as exc:
        take()
        attach_result(exc, batch.result())
        raise
    take()
    if ended and not batch.proven.all():
        batch.solve_these((~batch.proven).nonzero()[0].tolist())
    return batch.result()


def _gates(wish: Wish) -> np.ndarray | None:
    """The one limit of all rows; None if there is none."""
    return np.full((1, 1), wish.limit) if wish.takes_equal else None

"""Points of which many are copies: places with masses, which are solved as a transport problem.

Rows at one place cost the same for any column. In an assignment they outbid each other without end,
and all name the same few candidates. As one row with a supply they do neither. So if the places of
both sides have few pairs, their matrix is a transport problem (`gpumatch.cpu.transport`). Its flow
gives each copy a column, and its duals are those of all copies of a place.

Memory: 8 bytes for each pair of places, and 60 for each point.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import AssignmentTask
from gpumatch.contracts.transport import TransportTask
from gpumatch.cpu.assignment.either.fair_duals import write_fair_duals
from gpumatch.cpu.assignment.points.tuning import Tuning
from gpumatch.cpu.transport import engine as transport
from gpumatch.numeric.arrays import count_matched

__all__ = ["run"]


class _Places(NamedTuple):
    """`first`: a point of each place; `of`: the place of each point; `counts`: points of each."""

    first: np.ndarray
    of: np.ndarray
    counts: np.ndarray


def run(task: AssignmentTask, tuning: Tuning) -> bool | None:
    """Do as `gpumatch.contracts` states; None if there are not so many copies."""
    costs, points = task.costs, task.costs.points
    if points is None:
        return None
    rows = _places_of(points.rows, points.row_offset, task.seed)
    cols = _places_of(points.cols, points.col_offset, task.seed)
    if rows is None or cols is None:
        return None
    if rows.first.size * cols.first.size > min(tuning.places * costs.nnz, tuning.places_stored):
        return None
    with task.control.part("core"):
        return _ship(task, rows, cols)


def _ship(task: AssignmentTask, rows: _Places, cols: _Places) -> bool:
    """Solve the transport problem of the places, and write its solution for all points."""
    matrix = np.ascontiguousarray(task.costs.restricted(rows.first, cols.first).dense())
    limit = None if task.limit is None else np.full(rows.first.size, task.limit, matrix.dtype)
    shipped = transport.solve(
        TransportTask(
            rows.counts, cols.counts, task.control, matrix,
            row_limit=limit, threads=task.threads, seed=task.seed,
        )
    )  # fmt: skip
    row_dual = shipped.row_dual
    if not task.costs.is_integer:
        write_fair_duals(matrix, shipped.col_dual, row_dual, task.limit)
    solution = task.solution
    own = _units(shipped.rows, shipped.flow, rows)
    others = _units(shipped.cols, shipped.flow, cols)
    solution.has_duals = solution.are_fair = False
    solution.row_to_col.fill(-1)
    solution.col_to_row.fill(-1)
    solution.row_to_col[own], solution.col_to_row[others] = others, own
    solution.row_dual[:], solution.col_dual[:] = row_dual[rows.of], shipped.col_dual[cols.of]
    solution.has_duals = solution.are_fair = True
    matched = count_matched(solution.row_to_col)
    task.control.phase(
        found=matched, matched=matched, step="copies",
        places=[int(rows.first.size), int(cols.first.size)],
    )  # fmt: skip
    return bool(shipped.is_optimal)


def _units(places: np.ndarray, flow: np.ndarray, of: _Places) -> np.ndarray:
    """Return a point for each unit that a pair ships, in the order of the pairs; no point twice."""
    unit_places = np.repeat(places, flow)
    by_place = np.argsort(unit_places, kind="stable")
    taken = np.bincount(unit_places, minlength=of.counts.size)
    rank = np.arange(unit_places.size) - np.repeat(np.cumsum(taken) - taken, taken)
    members = np.argsort(of.of, kind="stable")
    begin = np.cumsum(of.counts) - of.counts
    found = np.empty(unit_places.size, np.int32)
    found[by_place] = members[begin[unit_places[by_place]] + rank]
    return found


def _places_of(points: Any, offset: Any, seed: int) -> _Places | None:
    """The places of points, and of their offsets; None if a projection does not tell them apart."""
    if offset is not None:
        points = np.column_stack((points, offset))
    largest = abs(points).max(initial=0)
    weights = np.random.default_rng(seed).random(points.shape[1]) / (largest or 1.0)
    projected = (points * weights).sum(axis=1)
    _, first, of, counts = np.unique(
        projected, return_index=True, return_inverse=True, return_counts=True
    )
    if first.size < of.size and (points != points[first[of]]).any():
        return None
    return _Places(first, of, counts)

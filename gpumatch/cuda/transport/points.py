"""Transport of points on the GPU, without their matrix: the host solves a core (`all_pairs`).

A search walks down boxes of points to the cheapest columns of each row at given prices
(`gpumatch.cuda.assignment.points.boxes`), so pricing looks at a small part of the pairs.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Points
from gpumatch.contracts.transport import TransportSolution, TransportTask
from gpumatch.cuda.assignment.points.boxes import MOST, WIDTH, Boxes, order_of
from gpumatch.cuda.assignment.points.distances import distances_at, fill_distances
from gpumatch.cuda.transport.all_pairs import DevicePairs
from gpumatch.cuda.transport.dense import Matrix
from gpumatch.cuda.transport.host import solve_on_host
from gpumatch.cuda.transport.pairs import Source
from gpumatch.numeric.points.clouds import turned

__all__ = ["STORED", "Cloud", "fair_rows", "solve", "takes"]

STORED = 2**22
"""Pairs up to which a matrix is made."""


def takes(points: Points) -> bool:
    """True if the points have so few coordinates that boxes find neighbours."""
    return points.rows.shape[1] <= WIDTH


def solve(task: TransportTask, points: Points) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.contracts.transport` states.

    Parameters
    ----------
    task : TransportTask
        Masses, limits, control and seed. Its costs are not read.
    points : Points
        The points whose distances are the costs to minimise, on the device.
    """
    return solve_on_host(task, DevicePairs(_pairs_of(points)))


def fair_rows(points: Points, col_dual: Any) -> Any:
    """The largest duals of the rows that no pair of these points undercuts, rounded down."""
    return Cloud(points).least_of_rows(col_dual)


def _pairs_of(points: Points) -> Source:
    size = points.rows.shape[0] * points.cols.shape[0]
    if size <= STORED:
        return Matrix(fill_distances(points, 0, points.rows.shape[0]))
    return Cloud(points)


class Cloud:
    """All pairs of points."""

    def __init__(self, points: Points) -> None:
        self.points = points
        self.shape = points.rows.shape[0], points.cols.shape[0]
        self.dtype = np.dtype(np.float64)

    @functools.cached_property
    def _orders(self) -> tuple[Any, Any]:
        return order_of(self.points.rows), order_of(self.points.cols)

    @functools.cached_property
    def _boxes(self) -> Boxes:
        return Boxes(self.points, *self._orders)

    @functools.cached_property
    def largest(self) -> float:
        """By the extent of all points in each coordinate."""
        p = self.points
        low = cp.minimum(p.rows.min(axis=0), p.cols.min(axis=0))
        extent = (cp.maximum(p.rows.max(axis=0), p.cols.max(axis=0)) - low).get()
        squares = float(np.square(extent).sum())
        greatest = {
            "sqeuclidean": squares,
            "euclidean": math.sqrt(squares),
            "cityblock": float(extent.sum()),
            "chebyshev": float(extent.max()),
        }[p.metric]
        offsets = 0.0
        if p.row_offset is not None:
            offsets = float(abs(p.row_offset).max()) + float(abs(p.col_offset).max())
        return greatest + offsets

    @property
    def extremes(self) -> tuple[float, float]:
        return -self.largest, self.largest

    def at(self, rows: Any, cols: Any) -> Any:
        return distances_at(self.points, rows, cols)

    def nearest(self, col_dual: Any, bound: Any, most: int) -> tuple[Any, Any]:
        self._boxes.set_prices(col_dual)
        found = self._boxes.least(min(most, MOST), bound)[0]
        rows, place = cp.nonzero(found >= 0)
        return rows.astype(np.int32), found[rows, place]

    def across(self) -> Cloud:
        """The same with rows in the place of columns."""
        found = Cloud(turned(self.points))
        found._orders = self._orders[::-1]
        return found

    def conjugate(self, rows: Any, row_dual: Any) -> Any:
        """The least cost of each column less the duals of some rows."""
        p = self.points
        of_some = None if p.row_offset is None else p.row_offset[rows]
        some = p._replace(rows=cp.ascontiguousarray(p.rows[rows]), row_offset=of_some)
        return Cloud(turned(some)).least_of_rows(row_dual)

    def matrix(self) -> None:
        """There is none."""

    def least_of_rows(self, col_dual: Any) -> Any:
        self._boxes.set_prices(col_dual)
        return self._boxes.least(1, cp.full(self.shape[0], math.inf))[1][:, 0]

    def part(self, rows: Any, cols: Any) -> Source:
        p = self.points
        return _pairs_of(
            p._replace(
                rows=cp.ascontiguousarray(p.rows[rows]),
                cols=cp.ascontiguousarray(p.cols[cols]),
                row_offset=None if p.row_offset is None else p.row_offset[rows],
                col_offset=None if p.col_offset is None else p.col_offset[cols],
            )
        )

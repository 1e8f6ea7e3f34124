"""All pairs of points that cost no more than a bound of their row, by boxes on the device."""

from __future__ import annotations

import math
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Points
from gpumatch.cuda.assignment.points.boxes import MOST, Boxes

__all__ = ["pairs_within"]


def pairs_within(points: Points, bound: Any, most: int) -> tuple[Any, ...]:
    """Rows, columns and costs of the pairs up to the bounds of their rows, in their order.

    A row has at most so many pairs: the cheapest.
    """
    boxes, ncols = Boxes(points), max(points.cols.shape[0], 1)
    above = cp.nextafter(cp.asarray(bound), math.inf)
    if most <= MOST:
        found, values = boxes.least(most, above)
        rows, place = cp.nonzero(found >= 0)
        cols, costs = found[rows, place], values[rows, place]
    else:
        rows, cols, costs = boxes.below(above)
    order = cp.argsort(rows.astype(np.int64) * ncols + cols)
    return rows[order].astype(np.int32), cols[order], costs[order]

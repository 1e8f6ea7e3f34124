"""Square costs that are Monge in some order: found by samples, solved by sorting, on the device.

The host finds the order, as on the CPU (`gpumatch.numeric.monge`), from a few rows and columns of
the matrix. One reading of the matrix on the device gives the rows their duals, which prove the
pairs. If a few costs are not as the others, the tight pairs and the prices are kept for the next
attempt.
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask
from gpumatch.cuda.assignment.dense.rows import ArrayRows
from gpumatch.numeric import monge

__all__ = ["LEAST", "run", "seems_sorted"]

LEAST = 512
"""Rows from which samples are looked at. On an H200, products of 256 rows take a team 5.9 ms and
this way 5.4, of 512 rows 11.4 and 5.0, of 1,000 rows 29 and 5.7.
"""
_ROUNDING = 2.0**-50  # of the largest cost: by how much sums of four costs may be wrong
# The same for an order of costs in float32, which lost digits before they came here. If their pairs
# are tight nevertheless, this finds them: on an H200, squares of differences of 3,000 points take 7
# ms instead of 173, and products 12 instead of 58. Distances on a line tie, and lose their order by
# that; they take 3 ms longer than before.
_ROUNDING_OF_FLOAT32 = 2.0**-22
_ULPS = 8  # units in the last place of a cost in use that the slacks may be, in the mean
_UNIT = 2.0**-52


class _OnDevice:
    """A matrix on the device, of which parts are read as arrays of NumPy."""

    def __init__(self, values: Any) -> None:
        self._values = values

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self._values.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._values.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, places: Any) -> np.ndarray:
        there = tuple(map(_there, places)) if isinstance(places, tuple) else _there(places)
        return self._values[there].get()


def _there(places: Any) -> Any:
    return cp.asarray(places) if isinstance(places, np.ndarray) else places


def seems_sorted(values: Any) -> bool:
    """True if a sample of a square matrix is Monge in some order."""
    n = len(values)
    if n < LEAST:
        return False
    step = n // monge.MANY
    sample = values[::step, ::step][: monge.MANY, : monge.MANY].get()
    if sample.dtype.kind == "i":
        return monge.seems_sorted(sample, 0.0)
    return bool(np.isfinite(sample).all()) and monge.seems_sorted(
        sample, _ROUNDING * float(abs(sample).max())
    )


def run(task: AssignmentTask) -> bool:
    """Match the rows by a Monge order; False if the costs have none, or do not agree with it.

    All rows and columns must be matched, and no pair may be forbidden.
    """
    costs, solution, control = task.costs, task.solution, task.control
    values, nrows = costs.dense(), costs.shape[0]
    if nrows < LEAST or control.tick(0):
        return False
    rounding = 0.0 if costs.is_integer else _ROUNDING * costs.largest
    lost = max(
        rounding, _ROUNDING_OF_FLOAT32 * costs.largest if values.dtype == np.float32 else 0.0
    )
    with control.part("order"):
        found = monge.sort(_OnDevice(values), lost)
    if found is None:
        return False
    cols, rows = cp.asarray(found.row_to_col), cp.arange(nrows, dtype=np.int32)
    solution.row_to_col[:], solution.col_to_row[cols] = cols, rows
    solution.col_dual[:] = cp.asarray(found.price)
    own = ArrayRows(values, costs.far, lambda: False)
    solution.row_dual[:] = own.least_of_rows(solution.col_dual)
    paid = values[rows, cols].astype(solution.row_dual.dtype)
    slack = (paid - solution.col_dual[cols]) - solution.row_dual
    if float(slack.sum()) <= (0 if costs.is_integer else _ULPS * _UNIT * nrows * abs(paid).max()):
        solution.has_duals = solution.are_fair = True
        control.phase(found=nrows, matched=nrows, step="sort")
        return True
    are_slack = slack > rounding
    left = int(are_slack.sum())
    control.phase(found=nrows - left, matched=nrows - left, step="sort")
    if left > monge.BAD * nrows:
        solution.clear()
    else:
        solution.col_to_row[cols[are_slack]] = -1
        solution.row_to_col[are_slack] = -1
        solution.row_dual[:] = 0
    return False

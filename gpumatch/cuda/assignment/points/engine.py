"""Our own engine for costs that are computed, on a GPU; `gpumatch.numeric.points` has its steps.

In few dimensions a search walks down boxes of points (`boxes`), which looks at a small part of the
pairs. In many, products of matrices tell squared distances (`products`). All other costs are
computed in tiles (`tiles`).

Device memory: the core's, which is some 20 to 60 pairs a row for the clouds that were tried, in 16
bytes a pair and 60 while pairs are added, and the searches'.
"""

from __future__ import annotations

from typing import Any

import cupy as cp

from gpumatch.contracts import AssignmentTask, Costs, Points
from gpumatch.cuda.assignment.points import tuning as tunings
from gpumatch.cuda.assignment.points.boxes import Boxes, order_of
from gpumatch.cuda.assignment.points.divided import Divided, devices_for
from gpumatch.cuda.assignment.points.products import lines_of
from gpumatch.cuda.assignment.points.tiles import Tiles
from gpumatch.cuda.assignment.points.tuning import Tuning
from gpumatch.cuda.assignment.sparse import reduced, stages
from gpumatch.cuda.matching import cheap
from gpumatch.cuda.matching import engine as matching_engine
from gpumatch.cuda.memory import unmatched
from gpumatch.numeric.arrays import any_true
from gpumatch.numeric.points import engine as steps
from gpumatch.numeric.points.clouds import frame_of, turned
from gpumatch.numeric.points.engine import PointsEngine, Run
from gpumatch.numeric.points.pairs import listed

__all__ = ["run", "takes"]


def takes(task: AssignmentTask, tuning: Tuning | None = None) -> bool:
    """True if the costs are computed, no pair is forbidden, and there are too many for a matrix."""
    return steps.takes(task, tuning or tunings.DEFAULT)


def run(
    task: AssignmentTask, solve: Run, tuning: Tuning | None = None, *, devices: str = "one"
) -> bool | None:
    """Do as `gpumatch.contracts` states; None if the matrix is to be solved instead.

    `solve` solves the smaller problems that come up: a sample, and the rows that are unmatched.
    With ``devices="all"``, searches that compute all pairs of points are divided among GPUs.
    """
    return steps.run(_Engine(task, solve, tuning or tunings.DEFAULT, devices))


class _Engine(PointsEngine):
    """The steps on the device."""

    fitted_at_once = 2**18

    def __init__(self, task: AssignmentTask, solve: Run, tuning: Tuning, devices: str) -> None:
        self.devices = devices_for(task.costs.shape[0]) if devices == "all" else []
        super().__init__(task, solve, tuning)

    def searches(self, costs: Costs) -> tuple[Any, Any]:
        points = costs.points
        if points is None:
            return lines_of(costs), None
        if not self.is_in_boxes(points):
            is_divided = len(self.devices) > 1
            return Divided(costs, points, self.devices) if is_divided else lines_of(costs), None
        orders = order_of(points.rows), order_of(points.cols)
        return Boxes(points, *orders), Boxes(turned(points), *orders[::-1])

    def name_nearest(self, costs: Costs, searches: tuple[Any, Any], count: int) -> list[Any]:
        rows, cols = searches
        cols = cols or self.searches(costs.transpose())[0]
        found, across = (
            search.nearest(count, self.no_bound(side)) for side, search in enumerate((rows, cols))
        )
        return [listed(found, cp), listed(across, cp, turned=True)]

    def in_order(self) -> tuple[Any, Any]:
        return self.rows.asked, self.rows.ids

    def unmatched_of(self, core: Costs) -> tuple[Any, Any] | None:
        mates = unmatched(core.shape[0]), unmatched(core.shape[1])
        matching = self.task.matching(core.pattern(), *mates)
        if not (cheap.run(matching) and matching_engine.run(matching)):
            return None
        return cp.flatnonzero(mates[0] < 0), cp.flatnonzero(mates[1] < 0)

    def solve_sparse(self, task: AssignmentTask) -> bool:
        if self.must_match_all and not any_true(task.solution.col_dual != 0):
            # At these prices, costs are those of clouds that are alike: their range is small.
            frame = None if self.costs.points is None else frame_of(self.costs.points)
            if frame is not None:
                task.solution.col_dual[:] = frame.of_cols
        if stages.takes(task.costs, task.limit):
            return stages.run(task)
        return reduced.run(task)

    def near_known(self, points: Any, known: Any, count: int) -> Any:
        boxes = Boxes(Points(points, known, "sqeuclidean", False, 1.0))
        return boxes.least(count, cp.full(points.shape[0], cp.inf))[0]

    @property
    def is_exact(self) -> bool:
        return not isinstance(self.rows, Tiles | Divided) or self.rows.is_exact

    def settle(self) -> None:
        """Lower the duals of floats where a search has rounded to nearest."""
        if not self.is_exact:
            own = self.own
            cp.minimum(own.row_dual, self.rows.least_of_rows(), out=own.row_dual)

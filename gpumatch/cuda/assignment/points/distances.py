"""The distances of points on the device, by the steps of `gpumatch.costs.points`: distances.cu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Points
from gpumatch.cuda.kernels import Kernels, Source, blocks_for, kernels_for

__all__ = [
    "METRICS",
    "distances_at",
    "distances_of_rows",
    "fill_clouds",
    "fill_distances",
    "metric_values",
    "offsets_of",
]

SOURCE = Source(
    "assignment/points/distances.cu",
    ("fill_distances", "fill_clouds", "distances_at"),
    structs=("Metric", "Clouds"),
)
METRICS = {"sqeuclidean": 0, "euclidean": 1, "cityblock": 2, "chebyshev": 3}
_BLOCK = SOURCE.constant("kBlock")


def metric_values(points: Points) -> dict[str, Any]:
    """The members of the struct `Metric` of metrics.cuh."""
    return {
        "kind": METRICS[points.metric],
        "has_offsets": int(points.row_offset is not None),
        "scale": 0.5 if points.is_half else 1.0,
        "sign": float(points.sign),
    }


def _metric(points: Points, kernels: Kernels) -> Any:
    return kernels.struct("Metric")(**metric_values(points))


def offsets_of(points: Points) -> tuple[Any, Any]:
    """The offsets of the rows and the columns: empty arrays without."""
    if points.row_offset is None:
        return cp.empty(0), cp.empty(0)
    return points.row_offset, points.col_offset


def distances_of_rows(points: Points, rows: Any, across: Any = None) -> Any:
    """The costs of all pairs of these rows, a line for each.

    `across` is the transposed array of the columns' points, if the caller has it already.
    """
    ncols, width = points.cols.shape
    values = cp.empty((rows.size, ncols))
    if not values.size:
        return values
    kernels = kernels_for(SOURCE)
    kernels["fill_distances"](
        (blocks_for(-(-rows.size // SOURCE.constant("kRows")) * ncols),),
        (_BLOCK,),
        (
            *(points.rows, cp.ascontiguousarray(rows, np.int32), np.int32(rows.size)),  # IN
            cp.ascontiguousarray(points.cols.T) if across is None else across,
            *(np.int32(ncols), np.int32(width), _metric(points, kernels)),
            *offsets_of(points),
            values,  # OUT
        ),
    )
    return values


def fill_distances(points: Points, first: int, last: int) -> Any:
    """The costs of all pairs of the rows from ``first`` to ``last``."""
    return distances_of_rows(points, cp.arange(first, last, dtype=np.int32))


def fill_clouds(clouds: Sequence[Points], values: Any) -> None:
    """Write the matrices of many clouds, one after the other, by one launch."""
    kernels, rows = kernels_for(SOURCE), SOURCE.constant("kRows")
    shapes = np.array([(p.rows.shape[0], p.cols.shape[0]) for p in clouds], np.int64).reshape(-1, 2)
    groups = -(-shapes[:, 0] // rows) * -(-shapes[:, 1] // _BLOCK)
    items, entries = groups.cumsum(), shapes.prod(axis=1).cumsum()
    if not items.size or items[-1] == 0:
        return
    places = np.zeros(len(clouds), kernels.struct("Clouds").dtype)
    for name in ("rows", "cols", "row_offset", "col_offset"):
        arrays = [getattr(p, name) for p in clouds]
        member = {"rows": "X", "cols": "Y"}.get(name, name)
        places[member] = [0 if array is None else array.data.ptr for array in arrays]
    places["values"] = values.data.ptr + 8 * (entries - shapes.prod(axis=1))
    places["first"] = items - groups  # one without groups begins where the next one does
    places["nrows"], places["ncols"] = shapes.T
    places["width"] = [p.rows.shape[1] for p in clouds]
    metrics = [metric_values(p) for p in clouds]
    for name in metrics[0]:
        places["metric"][name] = [metric[name] for metric in metrics]
    on_device = cp.asarray(places.view(np.uint8))
    kernels["fill_clouds"](
        (blocks_for(int(items[-1]) * _BLOCK),),
        (_BLOCK,),
        (on_device, np.int32(len(clouds)), np.int64(items[-1])),  # IN
    )


def distances_at(points: Points, rows: Any, cols: Any) -> Any:
    """The costs of pairs."""
    values = cp.empty(rows.size)
    if not rows.size:
        return values
    kernels = kernels_for(SOURCE)
    kernels["distances_at"](
        (blocks_for(rows.size),),
        (_BLOCK,),
        (
            *(points.rows, points.cols, np.int32(points.rows.shape[1])),  # IN
            *(cp.ascontiguousarray(side, np.int64) for side in (rows, cols)),
            *(np.int64(rows.size), _metric(points, kernels)),
            *offsets_of(points),
            values,  # OUT
        ),
    )
    return values

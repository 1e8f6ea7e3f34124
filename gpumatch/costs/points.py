"""Costs that are distances of points: no matrix, O(n) memory.

A cost is the exact real function of the coordinates, with the offsets added. `tile` and `at`
compute it in float64, coordinate after coordinate, so that both give the same number:

    sqeuclidean   s = 0, then for each coordinate k in turn s = fl(s + fl(t * t)), t = fl(x_k - y_k)
    euclidean     the square root of that; where it is at most 2**-450, or 2**500 at least, of
                  differences that are multiplied by 2**600, or 2**-600, so that no square loses
                  digits or overflows
    cityblock     s = fl(s + |t|)
    chebyshev     the largest |t|
    cosine        half of the squared distance of the points, both divided by their norms
    offsets       fl(s + fl(r_i + s_j))

Each step is monotone, and so is rounding. So boxes of points give bounds that hold for the computed
numbers, too. `PointCosts.rounding` says how far these are from the exact ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from gpumatch.contracts import Points, Rounding, Tile
from gpumatch.costs.base import Costs, Extent
from gpumatch.costs.clouds import costs_of_clouds
from gpumatch.costs.computed import ComputedCosts
from gpumatch.costs.point_bounds import (
    DEGREES,
    EXTREME,
    LARGEST_ROOT,
    LEAST_ROOT,
    SCALE,
    Magnitudes,
    added_by_offsets,
    extent_of_points,
    rounding_of,
)
from gpumatch.costs.point_input import checked_offsets, checked_points, directions
from gpumatch.costs.sparse import SparseCosts
from gpumatch.dispatch.by_device import (
    distances_at,
    fill_distances,
    pairs_within,
    require_device_memory,
)
from gpumatch.interop.tensors import is_tensor
from gpumatch.numeric.arrays import array_module, array_of

__all__ = ["Metric", "PointCosts"]

Metric = Literal["sqeuclidean", "euclidean", "cityblock", "chebyshev", "cosine"]
METRICS = get_args(Metric)
Function = Callable[[np.ndarray, np.ndarray], float]
"""Of the coordinates of two points."""
IN_BOXES = 6  # coordinates up to which a tree finds what is near in less time than all pairs take
MODERATE = 300  # magnitude of exponents of coordinates beyond which a problem is scaled
LEAST_POWER = -960  # smaller costs have too few digits for a result that is scaled back
FEW_LAUNCHES = 16  # coordinates up to which array operations on a device are few
FEW = 2**18  # coordinates of a tile that array operations compute before a kernel is worth it


class PointCosts(ComputedCosts):
    """The distances of n points from m others, with a number added for each row and each column.

    The cost of row i and column j is ``f(X[i], Y[j]) + row_offset[i] + col_offset[j]``, as an exact
    real number.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d)
        The points of the rows and of the columns, with 1 to 4,096 coordinates: NumPy, CuPy, torch,
        or anything that speaks their protocols; both on one device. float32 and float64 are taken
        as they are. Integers and float16 are converted, which changes no number.
    metric : {"sqeuclidean", "euclidean", "cityblock", "chebyshev", "cosine"}, or callable
        The function f, with SciPy's names. A `cost_limit` is in its units, so it is a squared
        distance for ``"sqeuclidean"``. A function of yours is called as SciPy's ``cdist`` calls it,
        with the coordinates of two points as arrays of float64, one pair after the other; see
        Notes.
    row_offset, col_offset : arrays of lengths n and m, optional
        What is added for each row and each column.

    Attributes
    ----------
    X, Y : float64 arrays
        The points, where the caller's are. For ``"cosine"`` they have length 1.
    metric : str or callable
    row_offset, col_offset : float64 arrays or None
    low, high, largest : float
        Bounds of the costs, from the boxes that hold the points. They need not be attained.
    rounding : Rounding
        How far a computed cost may be from the exact one. `gap` and `verify` add it.

    Raises
    ------
    TypeError
        If the coordinates are not real numbers.
    ValueError
        If X and Y have different numbers of coordinates, a coordinate is NaN, infinite or an
        integer beyond 2**53, the metric is not known, a point has length 0 for ``"cosine"``, or
        costs overflow. Squares of coordinates may overflow, unless they are the costs.

    Notes
    -----
    If tensors of torch ask for a gradient, the objective of `assign` is a tensor of float64 that
    has one. It is the gradient of the costs of the pairs that were found, because the optimal pairs
    stay the same while the points move a little. `gpumatch.results.gradients` says what it is where
    a distance is not smooth.

    If `metric` is callable, a cost is the float that it returns, so only offsets are rounded. It
    must be pure, and points must be on the host. inf (-inf to be maximised) forbids a pair. All
    costs are computed once to find the least and the greatest, and the matrix is kept for up to
    2**22 pairs; beyond, each look at a pair is another call. There is no gradient.

    No matrix is held, unless an algorithm asks for one. ``"engine"`` does so for up to 2**20 pairs
    on the CPU and 2**24 on a GPU, for limits of rows together with offsets, and if it finds that a
    large share of all pairs matters.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> X, Y = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[3.0, 5.0], [1.0, 0.0]])
    >>> a = gm.assign(gm.PointCosts(X, Y, metric="euclidean"))
    >>> a.row_to_col.tolist(), a.objective
    ([1, 0], 2.0)
    """

    _of_functions: ClassVar[Any] = None
    """The kind of these costs whose metric is callable; `gpumatch.costs.called` defines it."""

    def __init_subclass__(cls, *, takes_functions: bool = False) -> None:
        super().__init_subclass__()
        if takes_functions:
            PointCosts._of_functions = cls

    def __new__(cls, X: Any = None, Y: Any = None, metric: Any = None, **_: Any) -> PointCosts:
        kind = cls._of_functions if cls is PointCosts and callable(metric) else cls
        made: PointCosts = object.__new__(kind)
        return made

    tensors: tuple[Any, ...] = (None, None, None, None)
    """X, Y and both offsets, where they were tensors, so that results become tensors, too."""

    _given: tuple[Any, Any] | None = None
    """What the caller gave for X and Y, if these are its directions."""

    def __init__(
        self,
        X: Any,
        Y: Any,
        metric: Metric | Function = "sqeuclidean",
        *,
        row_offset: Any = None,
        col_offset: Any = None,
    ) -> None:
        if not (callable(metric) or metric in METRICS):
            raise ValueError(f"metric must be one of {METRICS}, or callable; got {metric!r}")
        rows, cols = checked_points(X, "X"), checked_points(Y, "Y")
        if array_module(rows) is not array_module(cols):
            raise ValueError("X and Y must be on one device; one is on the host, one on a GPU")
        if rows.shape[1] != cols.shape[1]:
            raise ValueError(
                "X and Y must have as many coordinates; "
                f"got {rows.shape[1]} and {cols.shape[1]} columns"
            )
        if callable(metric) and array_module(rows) is not np:
            raise ValueError("a callable metric needs points on the host")
        numbers = Magnitudes.of(rows, cols)
        if metric == "cosine":
            self._given = X, Y
            rows, cols = directions(rows, "X"), directions(cols, "Y")
        sums = [
            checked_offsets(row_offset, rows, "row_offset"),
            checked_offsets(col_offset, cols, "col_offset"),
        ]
        if sums[0] is not None or sums[1] is not None:
            sides = rows, cols
            xp = array_module(rows)
            sums = [xp.zeros(len(p)) if part is None else part for part, p in zip(sums, sides)]
        kernel: Any = "sqeuclidean" if metric == "cosine" else metric
        points = Points(rows, cols, kernel, metric == "cosine", 1.0, *sums)
        rounding = self._rounding_of(metric, points, numbers.step)
        self._hold(metric, points, self._extent_of(points), rounding, numbers)
        if not math.isfinite(self.largest):
            raise ValueError(f"costs of metric {metric!r} overflow float64 for these coordinates")
        given = X, Y, row_offset, col_offset
        self.tensors = tuple(part if is_tensor(part) else None for part in given)

    @staticmethod
    def batch(
        X: Any,
        Y: Any,
        metric: Metric | Function = "sqeuclidean",
        *,
        row_offset: Any = None,
        col_offset: Any = None,
    ) -> list[PointCosts]:
        """The costs of many pairs of clouds, which `assign` takes as a batch.

        All clouds are checked at once, so this takes less time than to make one after the other.

        Parameters
        ----------
        X, Y : arrays of shape (B, n, d) and (B, m, d)
            The points of B pairs of clouds. All else is as of `PointCosts`; a message of an error
            counts the points through all clouds.
        row_offset, col_offset : arrays of shape (B, n) and (B, m), optional

        Examples
        --------
        >>> import numpy as np, gpumatch as gm
        >>> X, Y = np.array([[[0.0], [5.0]], [[1.0], [2.0]]]), np.array([[[6.0], [1.0]]] * 2)
        >>> gm.assign(gm.PointCosts.batch(X, Y)).row_to_col.tolist()
        [[1, 0], [1, 0]]
        """
        return costs_of_clouds(PointCosts, X, Y, metric, row_offset, col_offset)

    def part(self, rows: slice, cols: slice) -> PointCosts:
        """The costs between ranges of rows and columns, with the bounds that all costs have."""
        p = self._points
        sums = (None, None) if p.row_offset is None else (p.row_offset[rows], p.col_offset[cols])
        points = p._replace(
            rows=p.rows[rows], cols=p.cols[cols], row_offset=sums[0], col_offset=sums[1]
        )
        costs = type(self).__new__(type(self))
        rounding = self.rounding._replace(added=added_by_offsets(points))
        costs._hold(self.metric, points, self.extent, rounding, self._numbers)
        if self._given is not None:
            costs._given = self._given[0][rows], self._given[1][cols]
        return costs

    def given_points(self) -> tuple[Any, Any]:
        """X and Y as the caller has them, in float64; directions are rounded, but these are not."""
        if self.metric != "cosine":
            return self.X, self.Y
        if self._given is None:
            raise TypeError("these costs of directions do not have the points that were given")
        return checked_points(self._given[0], "X"), checked_points(self._given[1], "Y")

    @property
    def tensor(self) -> Any:
        """The first tensor that the points were; None if they were arrays."""
        return next((part for part in self.tensors[:2] if part is not None), None)

    @property
    def shape(self) -> tuple[int, int]:
        return self._points.rows.shape[0], self._points.cols.shape[0]

    @property
    def dtype(self) -> Any:
        return np.dtype(np.float64)

    @property
    def xp(self) -> Any:
        return array_module(self._points.rows)

    @property
    def points(self) -> Points | None:
        """The points, unless they are so small or so large that their squares say nothing."""
        return self.points_if(self.on_device)

    def points_if(self, on_device: bool) -> Points | None:
        """The points as `points` would return them on a device, or on the host."""
        if self.metric == "cosine":
            return self._points
        is_extreme = abs(self._numbers.exponent) > EXTREME
        if on_device and self.metric == "euclidean":  # kernels there take roots as they are
            is_extreme |= self._numbers.may_lose_squares
        return None if is_extreme else self._points

    @property
    def X(self) -> Any:
        return self._points.rows

    @property
    def Y(self) -> Any:
        return self._points.cols

    @property
    def row_offset(self) -> Any:
        return self._points.row_offset

    @property
    def col_offset(self) -> Any:
        return self._points.col_offset

    @property
    def nbytes(self) -> int:
        parts = self._points
        held = [parts.rows, parts.cols, parts.row_offset, parts.col_offset]
        return sum(int(part.nbytes) for part in held if part is not None)

    def tile(self, rows: slice) -> Tile:
        xp, ncols = self.xp, self.shape[1]
        own, cols = xp.arange(rows.start, rows.stop)[:, None], xp.arange(ncols)[None, :]
        if self._has_no_kernel or (rows.stop - rows.start) * ncols * self.X.shape[1] <= FEW:
            return own, cols, self._at(own, cols)
        return own, cols, fill_distances(self._points, rows.start, rows.stop)

    def fill(self, out: Any) -> None:
        """Write the matrix into an array that is where the points are, by compiled code."""
        for tile in self.tiles():
            out[tile] = fill_distances(self._points, tile.start, tile.stop)

    def at(self, rows: Any, cols: Any) -> Any:
        rows, cols = array_of(self.xp, rows), array_of(self.xp, cols)
        is_list = rows.ndim == 1 and rows.shape == cols.shape
        width = self.X.shape[1]
        # A device has several launches for each coordinate then, and compiles for a second else.
        is_small = rows.size * width <= FEW and (width <= FEW_LAUNCHES or not self.on_device)
        if self._has_no_kernel or not is_list or is_small:
            return self._at(rows, cols)
        return distances_at(self._points, rows.astype(np.int64), cols.astype(np.int64))

    def _at(self, rows: Any, cols: Any) -> Any:
        """The costs of pairs, by operations on whole arrays, which broadcast."""
        X, Y, metric, is_half, sign, row_offset, col_offset = self._points
        xp = self.xp
        total = xp.zeros(np.broadcast_shapes(rows.shape, cols.shape))
        with np.errstate(over="ignore"):
            for k in range(X.shape[1]):
                step = X[rows, k] - Y[cols, k]
                if metric in ("sqeuclidean", "euclidean"):
                    step *= step
                    total += step
                elif metric == "cityblock":
                    total += abs(step)
                else:
                    xp.maximum(total, abs(step), out=total)
        if metric == "euclidean":
            xp.sqrt(total, out=total)
            if self._numbers.may_lose_squares:
                total = self._scaled_roots(rows, cols, total)
        if is_half:
            total *= 0.5
        if row_offset is not None:
            total += row_offset[rows] + col_offset[cols]
        if sign < 0:
            xp.negative(total, out=total)
        return total

    def _scaled_roots(self, rows: Any, cols: Any, roots: Any) -> Any:
        """The distances, from roots of squares as they are, some of which may be wrong."""
        X, Y, xp = self._points.rows, self._points.cols, self.xp
        for factor, are_wrong in ((SCALE, roots <= LEAST_ROOT), (1 / SCALE, roots >= LARGEST_ROOT)):
            total = xp.zeros(roots.shape)
            for k in range(X.shape[1]):
                step = xp.where(are_wrong, X[rows, k] - Y[cols, k], 0.0) * factor
                total += step * step
            near = xp.sqrt(total) / factor
            bound, end = (LEAST_ROOT, xp.minimum) if factor > 1 else (LARGEST_ROOT, xp.maximum)
            near = end(near, bound)
            roots = xp.where(are_wrong, near, roots)
        return roots

    def to_host(self) -> PointCosts:
        return self._moved(np) if self.on_device else self

    def to_device(self) -> PointCosts:
        if self.on_device:
            return self
        import cupy

        require_device_memory(self.nbytes, "a copy of the points")
        return self._moved(cupy)

    def of_points(self, points: Points) -> PointCosts:
        return self._with(points)

    def transpose(self) -> PointCosts:
        return self._turned(False, True)

    def as_float(self) -> PointCosts:
        return self

    def restricted(self, rows: Any, cols: Any) -> PointCosts:
        rows, cols = array_of(self.xp, rows), array_of(self.xp, cols)
        p = self._points
        sums = (None, None) if p.row_offset is None else (p.row_offset[rows], p.col_offset[cols])
        return self._with(p._replace(
            rows=p.rows[rows], cols=p.cols[cols], row_offset=sums[0], col_offset=sums[1]
        ))  # fmt: skip

    def below(self, limits: Any) -> Any:
        """By how much each pair costs more than the limit of its row.

        With offsets, the result is a matrix: a sum of three would be rounded otherwise.
        So a cost less its limit is above 0 exactly if the cost is above the limit.
        """
        p, xp = self._points, self.xp
        if p.row_offset is not None:
            return self.stored().below(limits)
        row_offset = array_of(xp, limits).astype(np.float64) * -p.sign
        return self._with(p._replace(row_offset=row_offset, col_offset=xp.zeros(self.shape[1])))

    def up_to(self, limit: float) -> Any:
        if limit >= self.high or not self._is_in_boxes:
            return super().up_to(limit)
        return self._within_boxes(self.xp.full(self.shape[0], float(limit)))

    def within(self, limits: Any, maximize: bool) -> Any:
        if not self._is_in_boxes:
            return super().within(limits, maximize)
        bound = array_of(self.xp, limits).astype(np.float64)
        if not maximize:
            return self._within_boxes(bound)
        kept = self._turned(True, False)._within_boxes(-bound).problem(True, False)
        kept.rounding = self.rounding
        return kept

    def _within_boxes(self, bound: Any) -> Any:
        """The pairs up to a bound for each row, found by a tree."""
        (nrows, ncols), xp = self.shape, self.xp
        rows, cols, costs = pairs_within(self._points, bound, ncols)
        indptr = xp.zeros(nrows + 1, np.int64)
        indptr[1:] = xp.cumsum(xp.bincount(rows, minlength=nrows))
        kept = SparseCosts.of_csr(self.shape, indptr, cols, costs)
        kept.rounding = self.rounding
        return kept

    def near(self, limit: float, rows: Any, cols: Any) -> tuple[Any, Any] | None:
        if not self._is_in_boxes:
            return None
        part = self.restricted(rows, cols)._points
        own, other, _ = pairs_within(part, self.xp.full(rows.size, float(limit)), 1)
        return rows[own], cols[other]

    @property
    def _has_no_kernel(self) -> bool:
        """True if only array operations compute the costs: the GPU's kernels do not scale roots."""
        return self.on_device and self.points is None

    @property
    def _is_in_boxes(self) -> bool:
        """True if a tree of boxes finds what is near."""
        return self.points is not None and self.X.shape[1] <= IN_BOXES and self.nnz > FEW

    @property
    def power(self) -> int:
        exponent = self._numbers.exponent
        degree = DEGREES.get(self.metric, 0)
        power = degree * exponent
        if abs(exponent) <= MODERATE or power < LEAST_POWER or not degree:
            return 0
        return power if self._are_divided_exactly(power) else 0

    def _are_divided_exactly(self, power: int) -> bool:
        """True if coordinates and offsets lose no digit if costs are divided by 2**power."""
        p = self._points
        exponent = power // DEGREES[self.metric]
        sides = [(p.rows, exponent), (p.cols, exponent)]
        if p.row_offset is not None:
            sides += [(p.row_offset, power), (p.col_offset, power)]
        return all(
            bool((self.xp.ldexp(self.xp.ldexp(part, -by), by) == part).all()) for part, by in sides
        )

    def divided(self, power: int) -> Costs:
        """The costs divided by a power of 2; made of points if these are divided exactly."""
        degree = DEGREES.get(self.metric, 0)
        if not degree or power % degree or not self._are_divided_exactly(power):
            return super().divided(power)
        p, exponent, xp = self._points, power // degree, self.xp
        sums = (p.row_offset, p.col_offset)
        if p.row_offset is not None:
            sums = xp.ldexp(p.row_offset, -power), xp.ldexp(p.col_offset, -power)
        rows, cols = xp.ldexp(p.rows, -exponent), xp.ldexp(p.cols, -exponent)
        points = p._replace(rows=rows, cols=cols, row_offset=sums[0], col_offset=sums[1])
        numbers = self._numbers.divided(exponent)
        costs = type(self).__new__(type(self))
        rounding = rounding_of(self.metric, points, numbers.step)
        costs._hold(self.metric, points, extent_of_points(points), rounding, numbers)
        return costs

    def of_pairs(self, indptr: Any, indices: Any, weights: Any) -> Any:
        return SparseCosts.of_csr(self.shape, indptr, indices, weights)

    def _what_is_held(self) -> str:
        return f"{self.X.shape[1]} coordinates, {self.metric}"

    # -- inside ----------------------------------------------------------------------------------

    def _hold(
        self, metric: Any, points: Points, extent: Extent, rounding: Rounding, numbers: Magnitudes
    ) -> None:
        self.metric, self._points, self.rounding = metric, points, rounding
        self.low, self.high, self.largest = extent
        self._numbers = numbers

    def _with(self, points: Points) -> PointCosts:
        """Costs of the same metric for other points or offsets, which have passed the checks."""
        costs = type(self).__new__(type(self))
        added = Rounding(self.rounding.share, self.rounding.pair, added_by_offsets(points))
        costs._hold(self.metric, points, self._extent_of(points), added, self._numbers)
        return costs

    def _turned(self, maximize: bool, transposed: bool) -> PointCosts:
        """The costs with another sign, or with rows and columns changed."""
        p = self._points
        if maximize:
            p = p._replace(sign=-p.sign)
        if transposed:
            p = p._replace(
                rows=p.cols, cols=p.rows, row_offset=p.col_offset, col_offset=p.row_offset
            )
        return self._with(p) if maximize or transposed else self

    def _moved(self, xp: Any) -> PointCosts:
        p = self._points
        sides = (p.rows, p.cols, p.row_offset, p.col_offset)
        rows, cols, *sums = (None if part is None else array_of(xp, part) for part in sides)
        points = p._replace(rows=rows, cols=cols, row_offset=sums[0], col_offset=sums[1])
        costs = type(self).__new__(type(self))
        costs._hold(self.metric, points, self.extent, self.rounding, self._numbers)
        return costs

    def _extent_of(self, points: Points) -> Extent:
        """Bounds of the costs of these points."""
        return extent_of_points(points)

    def _rounding_of(self, metric: Any, points: Points, step: float) -> Rounding:
        """How far the costs of these points may be from the exact ones."""
        return rounding_of(metric, points, step)

    def _room_for_matrix(self, what: str) -> Any:
        return super()._room_for_matrix("the matrix of the distances (backend='cpu' needs none)")

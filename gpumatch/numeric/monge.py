"""Square costs that are Monge in some order: found by samples, solved by sorting.

In such an order of rows and columns, c[i, j] + c[k, l] <= c[i, l] + c[k, j] for all i < k, j < l.
Examples are distances on a line, any convex function of x - y, and products u v, minimised or
maximised. The diagonal is then optimal (Hoffman 1963).

*Order*. In a Monge order, c[i, j] - c[k, j] never falls with j, for i < k, and c[i, j] - c[i, l]
never falls with i, for j < l. So two rows order the columns, and two columns order the rows. Two
rows between which many columns tie tell nothing of these. So the search goes to the outermost rows
and columns: if the outermost two columns cannot tell two rows apart, these differ by a constant,
and any order of the two will do.

*Duals*. Let c be ordered, and v any prices with

    c[i+1, i+1] - c[i+1, i]  <=  v[i+1] - v[i]  <=  c[i, i+1] - c[i, i].

By the Monge property such prices exist, and each pair of the diagonal has the least reduced cost of
its row. They are added up in extended precision, because an error of one step is in all that
follow.

Nothing here proves that the costs are Monge: the caller must compare the diagonal with all reduced
costs.

The matrix may be on a device. Then `values` is a `Reader` of it, which copies what is asked for.

References
----------
Hoffman, *On simple linear programming problems*, 1963.
Burkard, Klinz, Rudolf, *Perspectives of Monge properties in optimization*, Discrete Applied
Mathematics 70, 1996.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

__all__ = ["BAD", "MANY", "Reader", "Sorted", "seems_sorted", "sort"]

FEW = 6
"""Rows of the first sample, of three columns: 20 microseconds reject nearly all other costs."""
MANY = 16
"""Rows and columns of the second sample."""
STEPS = 12
"""Times that outermost rows and columns are looked for, at most."""
BAD = 1 / 16
"""Times the rows that neighbours may contradict the order: more are not worth a proof."""


class Reader(Protocol):
    """A matrix, of which parts are read as arrays of NumPy, by NumPy's indices."""

    @property
    def dtype(self) -> np.dtype: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, places: Any) -> np.ndarray: ...


class Sorted(NamedTuple):
    """The diagonal of an order, and its prices.

    Attributes
    ----------
    row_to_col : numpy.ndarray
        The column of each row.
    price : numpy.ndarray
        Of each column, at most 0: int64 for integers, else float64.
    wrong : int
        What contradicts the order: neighbours on the diagonal, and those in some rows.
    """

    row_to_col: np.ndarray
    price: np.ndarray
    wrong: int


def seems_sorted(sample: np.ndarray, rounding: float) -> bool:
    """True if a sample of MANY rows and columns is Monge in some order."""
    wide = _wide(sample)
    few = wide[_spread(MANY, FEW)[:, None], _spread(MANY, 3)]
    return _orders_alike(few, rounding) and any(
        _is_monge(wide, _order(wide, rounding, sign), rounding) for sign in (1, -1)
    )


def sort(values: Reader, rounding: float) -> Sorted | None:
    """Order a square matrix of finite costs; None if samples show that it is not Monge.

    Parameters
    ----------
    values : Reader or numpy.ndarray
    rounding : float
        By how much four costs may miss the inequality.
    """
    best = None
    if _orders_alike(_sample(values, FEW, 3), rounding):
        sample = _sample(values, MANY, MANY)
        for sign in (1, -1) if sample.min() < sample.max() else ():
            if _is_monge(sample, _order(sample, rounding, sign), rounding):
                found = _diagonal(values, _order(values, rounding, sign), rounding)
                if best is None or found.wrong < best.wrong:
                    best = found
                if best.wrong == 0:
                    break
    return best if best is not None and best.wrong <= BAD * len(values) else None


def _diagonal(values: Reader, order: tuple[np.ndarray, np.ndarray], rounding: float) -> Sorted:
    """The diagonal of an order with its prices."""
    rows, cols = order
    is_integer = values.dtype.kind in "iu"
    wide = np.int64 if is_integer else np.longdouble
    own = values[rows, cols].astype(wide)
    low = own[1:] - values[rows[1:], cols[:-1]]
    high = values[rows[:-1], cols[1:]] - own[:-1]
    n = rows.size
    ends = np.arange(min(MANY // 2, n))
    places = np.unique(np.concatenate([_spread(n, MANY), ends, n - 1 - ends]))
    lines = _wide(values[rows[places]][:, cols])
    wrong = np.count_nonzero(low > high + rounding)
    wrong += np.count_nonzero(np.diff(lines[:-1] - lines[1:], axis=1) < -rounding)
    rise = low + (high - low) // 2 if is_integer else (low + high) / 2
    ordered = np.concatenate([np.zeros(1, wide), np.cumsum(rise)])
    ordered -= ordered.max()
    row_to_col = np.empty(rows.size, np.int32)
    row_to_col[rows] = cols
    price = np.empty(cols.size, np.int64 if is_integer else np.float64)
    price[cols] = ordered
    return Sorted(row_to_col, price, int(wrong))


def _orders_alike(sample: np.ndarray, rounding: float) -> bool:
    """True if three columns order a few rows in one way, or in opposite ones."""
    left, right = sample[:, 0] - sample[:, 1], sample[:, 1] - sample[:, 2]
    rise, other = left[:, None] - left, right[:, None] - right
    is_up = rise > rounding
    return not ((is_up & (other > rounding)).any() and (is_up & (other < -rounding)).any())


def _is_monge(values: np.ndarray, order: tuple[np.ndarray, np.ndarray], rounding: float) -> bool:
    """True if a sample is Monge in its order, and not just a sum of rows and columns."""
    rows, cols = order
    ordered = values[rows[:, None], cols]
    excess = np.diff(ordered[:-1] - ordered[1:], axis=1)
    return bool(excess.min() >= -rounding and excess.max() > rounding)


def _sample(values: Reader, nrows: int, ncols: int) -> np.ndarray:
    """Evenly spaced rows and columns of the matrix, in numbers that differences fit in."""
    n = len(values)
    return _wide(values[_spread(n, nrows)[:, None], _spread(n, ncols)])


def _spread(n: int, count: int) -> np.ndarray:
    """Evenly spaced places of n."""
    return np.arange(count) * n // count


def _wide(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.int64 if numbers.dtype.kind in "iu" else np.float64)


def _order(values: Reader, rounding: float, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Orders of rows and columns in which the matrix is Monge, if it is so in any.

    Among equals, the outermost are the dearest if the sign is 1, else the cheapest.
    """
    first, last = 0, values.shape[1] - 1
    for _ in range(STEPS):
        left, right = _wide(values[:, first]), _wide(values[:, last])
        by_row = left - right
        top, bottom = _outermost(by_row, sign * left, sign * right, rounding)
        upper, lower = _wide(values[top]), _wide(values[bottom])
        by_col = upper - lower
        ends = _outermost(by_col, sign * upper, sign * lower, rounding)
        if ends == (first, last):
            break
        first, last = ends
    else:
        by_row = _wide(values[:, first]) - _wide(values[:, last])
    return by_row.argsort(kind="stable"), by_col.argsort(kind="stable")


def _outermost(
    differences: np.ndarray, ones: np.ndarray, others: np.ndarray, rounding: float
) -> tuple[int, int]:
    """Where differences of two lines are least and greatest; of equals, the outermost."""
    least, greatest = differences.min() + rounding, differences.max() - rounding
    if greatest <= least:  # the two lines are on one side of all
        return int(ones.argmin()), int(ones.argmax())
    return (
        int(np.where(differences <= least, ones, -np.inf).argmax()),
        int(np.where(differences >= greatest, others, -np.inf).argmax()),
    )

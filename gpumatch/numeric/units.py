"""Units of pairs, sorted and added up, on the host and on a device in one way."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.numeric.arrays import array_module

__all__ = ["merged", "order_of", "units_at"]


def order_of(rows: Any, cols: Any) -> Any:
    """The order of pairs by row and then by column; a slice of all pairs if they are in order."""
    xp = array_module(rows)
    if xp is not np:
        return xp.lexsort(xp.stack((cols, rows)))
    steps = np.diff(rows)
    if bool(((steps > 0) | ((steps == 0) & (np.diff(cols) > 0))).all()):
        return slice(None)
    return np.lexsort((cols, rows))


def merged(rows: Any, cols: Any, flow: Any) -> tuple[Any, Any, Any]:
    """Pairs in the order of rows and columns, each once, with the sum of its units."""
    xp = array_module(rows)
    order = order_of(rows, cols)
    rows, cols, flow = rows[order], cols[order], flow[order]
    is_first = xp.ones(rows.size, bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (cols[1:] != cols[:-1])
    if rows.size:
        firsts = is_first.nonzero()[0]
        before = xp.zeros(rows.size + 1, np.int64)
        xp.cumsum(flow, out=before[1:])
        ends = xp.append(firsts[1:], xp.asarray([rows.size]))
        flow = before[ends] - before[firsts]
    return rows[is_first].astype(np.int64), cols[is_first].astype(np.int64), flow


def units_at(ends: Any, units: Any, length: int) -> Any:
    """The sum of the units at each vertex of a side."""
    xp = array_module(ends)
    sums = xp.zeros(length, np.uint64)  # CuPy adds no signed integers
    xp.add.at(sums, ends, units.view(np.uint64))
    return sums.view(np.int64)

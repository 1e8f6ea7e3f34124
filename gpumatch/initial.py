"""What a call begins from: the pairs that the caller gives as `initial`, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.arrays import array_of, first_true, index_array

__all__ = ["initial_pairs"]


def initial_pairs(initial: Any, shape: tuple[int, int], xp: Any) -> tuple[Any, Any]:
    """Rows and columns of the pairs, as arrays of `xp`.

    Parameters
    ----------
    initial : Matching, Assignment, or integer array of length nrows
        The column of each row, -1 for none.
    shape : (int, int)
        Numbers of rows and columns.

    Raises
    ------
    TypeError, ValueError
        If it is no such array, or names a column twice.
    """
    nrows, ncols = shape
    mates = index_array(getattr(initial, "row_to_col", initial), "initial")
    if mates.size != nrows:
        raise ValueError(
            f"initial: the mates of the rows must be {nrows} integers; "
            f"got {mates.dtype} of shape {mates.shape}"
        )
    mates = array_of(xp, mates)
    stray = first_true((mates < -1) | (mates >= ncols))
    if stray is not None:
        raise ValueError(
            f"initial: row {stray} is matched to column {int(mates[stray])}, outside [-1, {ncols})"
        )
    rows = (mates >= 0).nonzero()[0]
    cols = mates[rows].astype(np.int64)
    holder = xp.empty(ncols, np.int64)
    holder[cols] = rows
    second = first_true(holder[cols] != rows)
    if second is not None:
        row, col = int(rows[second]), int(cols[second])
        raise ValueError(
            f"initial: row {row} is matched to column {col}, "
            f"which is matched to row {int(holder[col])}"
        )
    return rows, cols

"""The limits of rows: the prices at which they may go without a column."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpumatch.certificates.base import CertificateError, python_number
from gpumatch.certificates.slacks import most
from gpumatch.costs import Costs
from gpumatch.numeric.arrays import any_true, array_module, array_of

__all__ = ["bars_of", "left_out", "limits_in_use", "limits_of"]

LARGE = 2**62  # no integer cost or limit is beyond, so that int64 holds their difference


def limits_of(cost_limit: Any, costs: Costs, sign: int) -> Any:
    """The limit of each row, turned, as an array where the costs are; None without a limit.

    For integer costs it is int64 if it can be, so that nothing is rounded when costs are compared
    with it.
    """
    if cost_limit is None:
        return None
    xp, nrows = costs.xp, costs.shape[0]
    if getattr(cost_limit, "shape", ()) == () and not isinstance(cost_limit, (list, tuple)):
        given = cost_limit[()] if hasattr(cost_limit, "shape") else cost_limit
        given = given.item() if hasattr(given, "get") else given  # of a device
        cost_limit = xp.full(nrows, python_number("the limit", given))
    limits = array_of(xp, cost_limit)
    if limits.shape != (nrows,) or limits.dtype.kind not in "biuf":
        raise CertificateError(
            f"the limits of the rows must be {nrows} numbers; "
            f"got {limits.dtype} of shape {limits.shape}"
        )
    if limits.dtype.kind == "f":
        limits = limits.astype(np.float64, copy=False)
        if any_true(limits != limits):
            raise CertificateError("the limits of the rows must be numbers; one is NaN")
        is_integral = (limits == xp.rint(limits)) & (abs(limits) < LARGE)
        if not costs.is_integer or any_true(~is_integral):
            return limits * sign
    elif most(limits) > LARGE:
        raise CertificateError(f"the limits of the rows must be at most 2**62; got {most(limits)}")
    return limits.astype(np.int64) * sign


def bars_of(limits: Any, is_integer: bool) -> Any:
    """The greatest costs, int64 or float64, that are not above the limits; None without."""
    if limits is None:
        return None
    xp = array_module(limits)
    if is_integer and limits.dtype.kind == "f":
        return xp.clip(xp.floor(limits), -LARGE, LARGE).astype(np.int64)
    if not is_integer and limits.dtype.kind != "f":
        rounded = limits.astype(np.float64)
        return xp.where(
            rounded.astype(np.int64) > limits, xp.nextafter(rounded, -math.inf), rounded
        )
    return limits


def limits_in_use(base: Any, row_to_col: Any, row_price: Any, lowered: list[Any]) -> Any:
    """The limits of rows that are matched, or have a price, which is theirs less a cost."""
    is_used = (row_to_col >= 0) | (row_price != 0)
    return base[is_used | (array_of(array_module(base), lowered[0]) > 0)]


def left_out(row: int, col: int) -> str:
    """What is wrong if this pair is not made."""
    return (
        f"row {row} and column {col} are unmatched, but their pair is within the limit: pairs that "
        "cost more are left out, no others"
    )

"""Prices of few columns that are nearly right, by Newton's method on samples of the rows.

prices.cu describes a round of the method. It begins with a small sample of the rows and their share
of the demand, goes on with larger ones, and ends with all rows. So few rounds read all costs.

Device memory: 60 bytes a row, and 8 bytes for each two columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Control, Stopped
from gpumatch.cuda.kernels import Source, blocks_for, kernels_for
from gpumatch.cuda.launches import Board

__all__ = ["NUMBERS", "PRICES", "lanes_for", "nearly_right"]

NUMBERS = {"int64": "long long", "float64": "double"}
PRICES = Source(
    "transport/prices.cu",
    ("look<{Cost}>", "judge<{Cost}>", "survey<{Cost}>", "step<{Cost}>"),
    {"Cost": NUMBERS},
    structs=("Matrix<{Cost}>", "Looks<{Cost}>", "Search"),
)
_BLOCK = PRICES.constant("kBlock")

ALL_SHARES = 2.0**50
"""The sum of the shares of all rows."""
MOST_SHARES = 2.0**200
"""The demand of the column of the limit."""
RATIO = 8
"""How many times as many rows the next sample has."""
LEAST_ROWS = 2**10
"""Rows of a problem that is not worth the search, and of the smallest sample."""
ROWS_A_COLUMN = 16
"""Rows of the smallest sample for each column."""
ENOUGH = 1.0, 0.5
"""The rows a column that may be too many at the end, with a sample and with all rows. Paths ship a
row in less time than a round takes."""
ROUNDS = 40, 16
"""The most rounds with the smallest sample, and with each other one."""
AT_ONCE = 4
"""Rounds that are launched before the host looks."""
WIDER = 16.0
"""How many times as large delta is for the next sample as it was at the end of the last one."""
_SCRAMBLE = 0x9E3779B97F4A7C15


def lanes_for(count: int) -> int:
    """The lanes of a warp that read a row of so many columns together: about 8 columns each."""
    return min(32, 1 << max(0, (count - 1).bit_length() - 3))


def nearly_right(
    matrix: dict[str, Any],
    supply: cp.ndarray,
    least: np.ndarray,
    most: np.ndarray,
    price: np.ndarray | None,
    control: Control,
    seed: int,
    finest: float,
) -> tuple[np.ndarray, int]:
    """Prices of the columns as float64, and the rounds.

    Parameters
    ----------
    matrix : dict
        The members of the struct `Matrix`.
    supply : int64 array
        Units of the rows, some > 0.
    least, most : float64 arrays on the host
        Units that each column takes at least and at most, infinity for that of the limit.
    price : float64 array on the host, optional
        Prices to begin from. Then only all rows are looked at.
    finest : float
        The search is over when delta is below this.

    Raises
    ------
    Stopped
        If the control stops the run. The prices so far are lost.
    """
    nrows, count, kind = matrix["nrows"], matrix["count"], matrix["values"].dtype
    kernels = kernels_for(PRICES, Cost=kind)
    total = float(supply.sum())
    share = (supply.astype(np.float64) * (ALL_SHARES / total)).astype(np.int64)
    has_spare = bool(most.sum() > total)
    now = cp.asarray(np.zeros(count) if price is None else price)
    arrays = {
        "price": cp.zeros(count, np.float64),
        "trial": now,
        "load": cp.zeros(count, np.uint64),
        "held": cp.zeros(count, np.uint64),
        "shift": cp.zeros(count, np.uint64),
        "near": cp.zeros(count * count, np.uint64),
    }
    board, rounds, delta = Board(kernels.struct("Search")), 0, 0.0
    sizes = [nrows] if price is not None else list(_sizes(nrows, count))
    width = lanes_for(count)
    for level, size in enumerate(sizes):
        rows = None if size == nrows else _sample(nrows, size, seed)
        looked_at = float((share if rows is None else share[rows]).sum())
        blocks = blocks_for(size * width // 2)
        part = looked_at / total
        held = {
            "most": cp.asarray(np.minimum(most * part, MOST_SHARES)),
            "least": cp.asarray(least * part),
            "best": cp.empty(2 * size, np.int32),
            "second": cp.empty(2 * size, np.int32),
            "gap": cp.empty(2 * size, np.float64),
            "first_price": cp.empty(count, np.float64),
            "first_best": cp.empty(size, np.int32),
            "first_least": cp.empty(size, np.float64),
            "first_gap": cp.empty(size, np.float64),
            "sums": cp.zeros(2 * blocks, np.float64),
        }
        looks = kernels.struct("Looks")(
            matrix=matrix,
            rows=rows,
            share=share,
            **arrays,
            **held,
            search=board.state,
            size=size,
            width=width,
            blocks=blocks,
            has_spare=has_spare,
            total=looked_at,
            finest=finest,
            enough=count * ENOUGH[size == nrows],
        )
        board.seen["has_value"] = board.seen["is_over"] = False
        board.seen["delta"] = delta
        board.tell()
        for _ in range(0, ROUNDS[level > 0], AT_ONCE):
            for _ in range(AT_ONCE):
                _launch_round(kernels, looks, arrays["near"], blocks, size)
            board.look()
            if control.tick(0):
                raise Stopped
            if board.seen["is_over"]:
                break
        rounds, delta = int(board.seen["rounds"]), float(board.seen["delta"]) * WIDER
        if not (0 < delta < math.inf):
            delta = 0.0
        arrays["trial"][:] = arrays["price"]
    return cp.asnumpy(arrays["price"]), rounds


def _launch_round(kernels: Any, looks: Any, near: cp.ndarray, blocks: int, size: int) -> None:
    kernels["look<{Cost}>"]((blocks,), (_BLOCK,), (looks,))
    kernels["judge<{Cost}>"]((1,), (_BLOCK,), (looks,))
    near.data.memset_async(0, near.nbytes)
    kernels["survey<{Cost}>"]((blocks_for(size // 2),), (_BLOCK,), (looks,))
    kernels["step<{Cost}>"]((1,), (_BLOCK,), (looks,))


def _sizes(nrows: int, count: int) -> Iterator[int]:
    """The sizes of the samples, the last of which is all rows."""
    size, least = nrows, max(LEAST_ROWS, ROWS_A_COLUMN * count)
    sizes = [size]
    while size // RATIO >= least:
        size //= RATIO
        sizes.append(size)
    return reversed(sizes)


def _sample(nrows: int, size: int, seed: int) -> cp.ndarray:
    """Rows of a sample, in order: one of each range of rows, which are about equally long."""
    number = cp.arange(size + 1, dtype=np.int64)
    begin = number * nrows // size
    drawn = (number[:-1].astype(np.uint64) + np.uint64(seed % 2**32 + 1)) * np.uint64(_SCRAMBLE)
    drawn = (drawn >> np.uint64(33)).astype(np.int64)
    return (begin[:-1] + drawn % (begin[1:] - begin[:-1])).astype(np.int32)

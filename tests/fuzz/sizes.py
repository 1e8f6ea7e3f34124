"""Sizes around the thresholds at which the code changes its way.

`COSTS` are those of dense matrices, `ENTRIES` those of sparse ones, and `ROWS` those of rows or
columns: of a compiled call, of paths in the whole matrix, of a batch, of vectors on the stack.
"""

from __future__ import annotations

import math

from tests.fuzz.trials import Trial

COSTS = (2**12, 2**14, 2**16, 2**17, 2**18, 2**20, 2**21)
ENTRIES = (2**12, 2**14, 2**16, 2**17, 2**18, 2**20)
ROWS = (16, 32, 64, 100, 128, 200, 256, 363, 512, 1024, 1040)
_KINDS = ("tiny", "small", "rows", "costs", "slender", "empty")


def dense_shape(trial: Trial, most: int = 2**21 + 2**15) -> tuple[int, int]:
    """Rows and columns of a dense matrix with at most `most` costs."""
    kind = trial.pick(_KINDS, (30, 20, 22, 20, 6, 2))
    if kind == "tiny":
        shape = trial.integer(1, 9), trial.integer(1, 9)
    elif kind == "small":
        shape = trial.integer(5, 70), trial.integer(5, 70)
    elif kind == "rows":
        shape = _around_rows(trial)
    elif kind == "costs":
        shape = _around_costs(trial, trial.pick([c for c in COSTS if c <= most] or [most]))
    elif kind == "slender":
        shape = _turned(trial, trial.integer(1, 3), trial.integer(1, 5000))
    else:
        shape = _turned(trial, 0, trial.integer(0, 5))
    nrows, ncols = (trial.scaled(size) for size in shape)
    while nrows * ncols > most:
        nrows, ncols = (nrows // 2, ncols) if nrows > ncols else (nrows, ncols // 2)
    return nrows, ncols


def square(trial: Trial, most: int) -> int:
    """The side of a square matrix with at most `most` rows."""
    kind = trial.pick(("tiny", "small", "rows", "any"), (40, 30, 20, 10))
    if kind == "tiny":
        size = trial.integer(1, 9)
    elif kind == "small":
        size = trial.integer(5, 70)
    elif kind == "rows":
        size = trial.pick(ROWS) + trial.integer(-2, 2)
    else:
        size = trial.integer(1, most)
    return trial.scaled(min(size, most))


def sparse_shape(trial: Trial, most: int = 2**20 + 2**12) -> tuple[int, int, int]:
    """Rows, columns and about how many entries of a sparse matrix."""
    kind = trial.pick(("tiny", "small", "rows", "entries", "empty"), (30, 25, 15, 27, 3))
    if kind == "tiny":
        nrows, ncols = trial.integer(1, 9), trial.integer(1, 9)
        entries = trial.integer(0, nrows * ncols)
    elif kind == "small":
        nrows, ncols = trial.integer(5, 120), trial.integer(5, 120)
        entries = trial.integer(0, min(nrows * ncols, 12 * max(nrows, ncols)))
    elif kind == "rows":
        nrows, ncols = _around_rows(trial)
        entries = trial.integer(0, min(nrows * ncols, 30 * max(nrows, ncols)))
    elif kind == "entries":
        entries = trial.pick([e for e in ENTRIES if e <= most] or [most]) + trial.integer(-3, 3)
        nrows = max(entries // trial.pick((2, 3, 5, 10, 50)), math.isqrt(entries) + 1)
        ncols = nrows + trial.pick((0, 0, 1, nrows // 3))
        nrows, ncols = _turned(trial, nrows, ncols)
    else:
        nrows, ncols = _turned(trial, 0, trial.integer(0, 5))
        entries = 0
    nrows, ncols = trial.scaled(nrows), trial.scaled(ncols)
    return nrows, ncols, min(trial.scaled(entries), nrows * ncols)


def _around_rows(trial: Trial) -> tuple[int, int]:
    size = trial.pick(ROWS, (2, 2, 3, 4, 3, 3, 3, 4, 4, 1, 1)) + trial.integer(-2, 2)
    other = size + trial.pick((0, 0, 0, 1, -1, 7, size))
    return _turned(trial, size, max(1, other if trial.chance(0.8) else trial.integer(1, size)))


def _around_costs(trial: Trial, costs: int) -> tuple[int, int]:
    nrows = max(1, int(math.sqrt(costs / trial.pick((1, 1, 1, 1.1, 2, 10)))))
    ncols = costs // nrows + trial.pick((-1, 0, 0, 1, 1, 2))
    return _turned(trial, nrows, ncols)


def _turned(trial: Trial, nrows: int, ncols: int) -> tuple[int, int]:
    return (nrows, ncols) if trial.chance(0.6) else (ncols, nrows)

"""A queue of rows, or columns, that wait to bid, in a ring."""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.assignment.search.state import HEAD, SPOTS, WAITING

__all__ = ["Queue"]


class Queue:
    """A ring of rows, or columns, that wait to bid, and its state, as `bidding` explains them."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = np.zeros(1 << int(rows.size).bit_length(), np.int32)
        self.rows[: rows.size] = rows
        self.state = np.zeros(SPOTS, np.int64)
        self.state[WAITING] = rows.size

    @property
    def waiting(self) -> np.ndarray:
        """The rows, or columns, that wait now, in their order."""
        places = self.state[HEAD] + np.arange(self.state[WAITING])
        return self.rows[places & (self.rows.size - 1)]

    @property
    def ring(self) -> tuple[np.ndarray, np.ndarray]:
        """The arrays of the queue, as kernels take them."""
        return self.rows, self.state

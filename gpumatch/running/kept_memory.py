"""Memory for large arrays that is kept for the next call.

The system clears what a process gets anew. For the weights of a matrix that takes about as long as
their logarithms. So an array from here gives its memory back when nothing refers to it any more,
and a later one of about the same size gets it as it is. At most `MOST` bytes are kept in all, those
that were used last.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike

__all__ = ["kept_empty", "kept_full"]

LEAST = 2**18
"""Bytes of an array for which it is worth it."""
MOST = 2**28
STEPS = 8
"""Lengths from a power of two to the next: at most an eighth of a piece is not used."""

_kept: dict[int, np.ndarray] = {}
"""Pieces by their addresses, the oldest first.

Several threads may use it at once. So each change is a single call, and what is looked through is a
copy.
"""


class _Loan:
    """A piece in use. It goes back when no array refers to it any more."""

    def __init__(self, address: int, piece: np.ndarray) -> None:
        self.address, self.piece = address, piece
        self.__array_interface__ = piece.__array_interface__

    def __del__(self) -> None:
        _kept[self.address] = self.piece
        rest = sum(piece.size for piece in [*_kept.values()]) - MOST
        for address in [*_kept]:
            if rest <= 0:
                break
            oldest = _kept.pop(address, None)
            rest -= 0 if oldest is None else oldest.size


def kept_empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """An array with anything in it, as of `numpy.empty`."""
    number = np.dtype(dtype)
    size = (math.prod(shape) if isinstance(shape, tuple) else shape) * number.itemsize
    if size < LEAST:
        return np.empty(shape, number)
    return np.asarray(_loan(size))[:size].view(number).reshape(shape)


def kept_full(shape: int | tuple[int, ...], value: float, dtype: DTypeLike) -> np.ndarray:
    """The same, filled with a value."""
    array = kept_empty(shape, dtype)
    array.fill(value)
    return array


def _loan(size: int) -> _Loan:
    """A piece for this size: the one that was used last, if there is such."""
    step = (1 << (size - 1).bit_length()) // (2 * STEPS)
    length = -(-size // step) * step
    for address in reversed([*_kept]):
        piece = _kept.get(address)
        if piece is not None and piece.size == length and _kept.pop(address, None) is not None:
            return _Loan(address, piece)
    piece = np.empty(length, np.uint8)
    return _Loan(piece.ctypes.data, piece)

"""Memory of large arrays that is kept for the next call.

The system clears new memory. For the weights of a matrix, clearing takes about as long as computing
their logarithms. So the memory of an array from this module returns here when nothing refers to the
array, and a later array of about the same size gets it without clearing. At most `MOST` bytes are
kept. The memory used last is kept longest.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike

__all__ = ["kept_empty", "kept_full"]

LEAST = 2**18
"""The bytes of an array from which its memory is kept."""
MOST = 2**28
"""The most bytes kept in all."""
STEPS = 8
"""The number of lengths from a power of two to the next. An eighth of a piece at most is unused."""

_kept: dict[int, np.ndarray] = {}
"""The pieces of memory by address, the oldest first.

Several threads may use it at once. So each change is a single call, and loops run over copies.
"""


class _Loan:
    """A piece in use. It returns to `_kept` when no array refers to it."""

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
    """An array with arbitrary values, as of `numpy.empty`."""
    number = np.dtype(dtype)
    size = (math.prod(shape) if isinstance(shape, tuple) else shape) * number.itemsize
    if size < LEAST:
        return np.empty(shape, number)
    return np.asarray(_loan(size))[:size].view(number).reshape(shape)


def kept_full(shape: int | tuple[int, ...], value: float, dtype: DTypeLike) -> np.ndarray:
    """An array filled with a value, as of `numpy.full`."""
    array = kept_empty(shape, dtype)
    array.fill(value)
    return array


def _loan(size: int) -> _Loan:
    """A piece for this size: the kept one that was used last, or a new one."""
    step = (1 << (size - 1).bit_length()) // (2 * STEPS)
    length = -(-size // step) * step
    for address in reversed([*_kept]):
        piece = _kept.get(address)
        if piece is not None and piece.size == length and _kept.pop(address, None) is not None:
            return _Loan(address, piece)
    piece = np.empty(length, np.uint8)
    return _Loan(piece.ctypes.data, piece)

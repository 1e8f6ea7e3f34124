"""Floats that are integers in some unit: sums of a few of them are exact.

A float32 has 24 bits, and the float64 of a table has 53. So costs of float32 are mostly multiples
of a unit, a power of two, of which the largest cost has so few that no sum in a search rounds
(`gpumatch.contracts.batch` states how few). The same holds for floats without fractions. What is
true of integers is then true of them: a pair leaves exactly the dual of its row, and no row needs
another look.

The unit of float32 is that of the least magnitude. If this does not suffice, or if costs have more
bits, the unit is guessed by the costs that come first. A cost is a multiple of it if adding and
subtracting a number whose last bit is the unit leaves the cost as it is. Of most floats of 53 bits,
the first one shows that they are no multiples.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts.batch import LARGEST_INTEGER, LARGEST_PATH
from gpumatch.cpu.numba_tools.compiled import inlined, vector_kernel
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.numba_tools.views import view

__all__ = ["are_whole"]

FIRST = 4
"""Costs that are looked at first."""
ROOM = 256.0
"""The largest cost may be from 128 times to so many times the largest of the first ones."""
SHORT = LARGEST_INTEGER * 2.0**-24
"""How many times the least magnitude costs of 24 bits may be, and be whole."""
_SPLITTER = 2.0**8 + 1  # what has at most 45 bits is left as it is when it is split (Veltkamp)
_ONE_BIT, _BELOW_ONE = 2.0**52 + 1, 1 - 2.0**-53


@vector_kernel
def are_whole(values, start, across, rows, cols, near, far, limits):
    """Return if all costs are multiples of a unit; infinite ones may be among them.

    The costs are ``cols`` of each row in ``values`` from ``start`` on, with ``across`` from one row
    to the next. Their magnitudes are from ``near`` to ``far``. ``limits``, if there are any, must
    be such multiples, too.
    """
    if limits is None and values.itemsize == 4 and near > 0 and far <= SHORT * near:
        return True
    if rows * cols == 0:
        return True
    first = np.float64(values[start])
    wide = _SPLITTER * first
    if abs(first) < np.inf and wide - (wide - first) != first:
        return False
    lines, length = (1, rows * cols) if across == cols else (rows, cols)
    most = 0.0
    if limits is not None:
        for k in range(limits.size):
            most = greater(most, abs(limits[k]))
    for k in range(lesser(length, FIRST)):
        size = abs(np.float64(values[start + k]))
        most = greater(most, size if size < np.inf else 0.0)
    if not 2.0**-900 <= most <= 2.0**900:
        return False
    top = ROOM * _power_below(most)
    if far == np.inf:
        top *= _power_below(np.float64(lesser(rows, cols)))
    last_bit = 1.5 * 2.0**52 * (top / LARGEST_INTEGER)
    if limits is not None and _farthest(limits, last_bit) == np.inf:
        return False
    largest = most
    for line in range(lines):
        if largest < np.inf:
            part = view(values, start + line * across, length)
            largest = greater(largest, _farthest(part, last_bit))
    paths = 1.0 if far < np.inf else LARGEST_PATH / LARGEST_INTEGER / lesser(rows, cols)
    return largest <= top * paths


@vector_kernel
def _farthest(numbers, last_bit):
    """Return the largest finite magnitude; infinity if one is no multiple of the last bit's."""
    most = wrong = 0.0
    for k in range(numbers.size):
        given = np.float64(numbers[k])
        number = given if abs(given) < np.inf else 0.0
        most = greater(most, abs(number))
        wrong = greater(wrong, abs(((number + last_bit) - last_bit) - number))
    return most if wrong == 0 else np.inf


@inlined
def _power_below(number):
    """Return the greatest power of two that is not above a number (Rump)."""
    high = _ONE_BIT * number
    return abs(high - _BELOW_ONE * high)

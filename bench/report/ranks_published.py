"""What Date and Nagi (Parallel Computing 57, 2016) print in Tables 4 and 5: several GPUs.

Seconds on nodes with a K20X each, costs from [0, 10n]. "AP search" is the augmenting path search:
the forward pass, the reverse pass and the augmentation pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["COMPRESSION", "OVERALL", "SEARCH", "TABLE4", "TABLE5", "Printed"]

COMPRESSION, SEARCH, OVERALL = "matrix comp.", "AP search", "overall"
_COLUMNS = {  # in the order of a line below: seconds of each, then efficiencies of each
    "hungarian-classical": (COMPRESSION, SEARCH, OVERALL),
    "hungarian-tree": (SEARCH, OVERALL),
}
_TABLE4 = """
10000  1   3.66  4.97 10.42  1.00 1.00 1.00   15.26 16.28  1.00 1.00
14142  2   3.80  6.70 12.48  0.96 0.74 0.83   18.70 20.26  0.82 0.80
20000  4   4.09  8.42 15.03  0.90 0.59 0.69   24.50 26.51  0.62 0.61
28284  8   4.36 11.43 18.58  0.84 0.43 0.56   34.00 37.03  0.45 0.44
40000 16   4.64 14.91 23.59  0.79 0.33 0.44   52.17 58.32  0.29 0.28
"""
_TABLE5 = """
10000  1   3.66 4.93 11.07  1.00 1.00 1.00   15.20 16.52  1.00 1.00
10000  2   1.89 4.97  8.15  0.97 0.50 0.68   14.14 15.12  0.54 0.55
10000  4   1.01 5.01  7.84  0.91 0.25 0.35   14.35 15.78  0.26 0.26
10000  8   0.58 5.01  7.39  0.78 0.12 0.19   14.93 16.61  0.13 0.12
10000 16   0.38 4.97  7.17  0.60 0.06 0.10   16.15 18.30  0.06 0.06
14142  1   8.24 6.57 18.25  1.00 1.00 1.00   22.44 24.19  1.00 1.00
14142  2   4.21 6.68 12.94  0.98 0.49 0.71   19.10 20.65  0.59 0.59
14142  4   2.18 6.74 11.03  0.94 0.24 0.41   18.91 20.55  0.30 0.29
14142  8   1.18 6.75  9.98  0.87 0.12 0.23   19.60 21.59  0.14 0.14
14142 16   0.69 6.76  9.50  0.75 0.06 0.12   20.88 23.50  0.07 0.06
20000  1  15.49 8.26 28.50  1.00 1.00 1.00   35.73 38.30  1.00 1.00
20000  2   7.88 8.38 19.47  0.98 0.49 0.73   27.14 29.21  0.66 0.66
20000  4   4.04 8.49 15.07  0.96 0.24 0.47   24.18 26.22  0.37 0.37
20000  8   2.13 8.50 13.00  0.91 0.12 0.27   24.96 27.47  0.18 0.17
20000 16   1.20 8.48 12.03  0.80 0.06 0.15   26.89 30.21  0.08 0.08
"""


class Printed(NamedTuple):
    """A time of a table, and the efficiency that is printed for it."""

    seconds: float
    efficiency: float


Table = dict[str, dict[tuple[int, int], dict[str, Printed]]]


def _parsed(text: str) -> Table:
    """By algorithm, by rows and GPUs, by column."""
    table: Table = {name: {} for name in _COLUMNS}
    for line in text.strip().splitlines():
        n, gpus, *numbers = line.split()
        left = iter(map(float, numbers))
        for name, columns in _COLUMNS.items():
            table[name][int(n), int(gpus)] = dict(zip(columns, _printed(left, len(columns))))
    return table


def _printed(numbers: Iterator[float], count: int) -> list[Printed]:
    seconds = [next(numbers) for _ in range(count)]
    return [Printed(taken, next(numbers)) for taken in seconds]


TABLE4, TABLE5 = _parsed(_TABLE4), _parsed(_TABLE5)
"""Weak and strong scaling."""

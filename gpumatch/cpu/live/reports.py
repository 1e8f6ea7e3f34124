"""What an assignment is whose pairs and duals a table keeps: mates, numbers and gap.

A matrix has a kernel for this (`changes.report`). The other tables keep marks and numbers in the
same places, and differ in where the duals of rows and the costs of pairs come from.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gpumatch.cpu.assignment.small.proof import add_up
from gpumatch.cpu.live.changes import BY_COVER
from gpumatch.cpu.live.state import DUAL, MATE, USED
from gpumatch.cpu.live.tables import Report
from gpumatch.numeric.fair_duals import difference_below

__all__ = ["KeptPairs", "report_of", "slots_in_use"]


class KeptPairs(Protocol):
    """What is read of a table: see `gpumatch.cpu.live.state`."""

    sign: float
    mode: int
    is_exact: bool
    marks: list[np.ndarray]
    numbers: list[np.ndarray]

    @property
    def shape(self) -> tuple[int, int]: ...


def slots_in_use(table: KeptPairs) -> tuple[np.ndarray, np.ndarray]:
    """The slots of the rows, and of the columns, that there are now."""
    rows, cols = (marks[USED].nonzero()[0] for marks in table.marks)
    return rows, cols


def report_of(table: KeptPairs, row_dual: np.ndarray, paid: np.ndarray, top: float) -> Report:
    """The report of a table in which nothing waits.

    Parameters
    ----------
    table : KeptPairs
    row_dual : array
        The duals of the rows in use, which no pair undercuts.
    paid : array
        What the pairs of the matched rows cost, with the caller's sign.
    top : float
        What an unmatched row costs.
    """
    (rows, cols), used = table.shape, slots_in_use(table)
    place = np.zeros(table.marks[1].shape[1], np.int32)
    place[used[1]] = np.arange(cols, dtype=np.int32)
    mates, numbers = np.full(rows + cols, -1, np.int32), np.zeros(2 * rows + cols)
    found = table.marks[0][MATE, used[0]]
    (is_matched,) = (found >= 0).nonzero()
    mates[is_matched] = place[found[is_matched]]
    mates[rows + mates[is_matched]] = is_matched
    limit = np.inf if table.mode == BY_COVER else top
    base = 0.0 if table.mode == BY_COVER else top
    numbers[:rows] = difference_below(row_dual, base)
    numbers[rows : rows + cols] = table.numbers[1][DUAL, used[1]]
    numbers[rows + cols + is_matched] = paid
    size, total, rest, gap, proven = add_up(
        table.sign, limit, mates, numbers, numbers[rows + cols :], rows, rows, cols, table.is_exact
    )
    numbers[: rows + cols] *= table.sign
    if table.is_exact:
        return Report(
            mates, numbers.astype(np.int64), int(size), int(total) + int(rest), int(gap),
            bool(proven),
        )  # fmt: skip
    return Report(mates, numbers, int(size), total + rest, gap, bool(proven))

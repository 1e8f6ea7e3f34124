"""Switching until no exchange gains anything: evaluate all vertices, make exchanges, and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.contracts import Control, Costs
from gpumatch.cpu.assignment.dgs.entries import BUDGET
from gpumatch.cpu.assignment.dgs.exchanges import Side, evaluate, switch
from gpumatch.cpu.assignment.either.entries import count_entries
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.arrays import count_matched

__all__ = ["Differences", "Evaluation", "switch_until_none"]


class Differences:
    """Both sides of a problem, and the best exchange last found for each vertex of either.

    Attributes
    ----------
    rows, cols : Side
        What agents and jobs may take and what they have. Their mates are the caller's arrays.
    row_gain, row_choice, col_gain, col_choice : arrays
        The gain of each, 0 for nothing, and what it takes.
    """

    def __init__(
        self,
        costs: Costs,
        row_to_col: np.ndarray,
        col_to_row: np.ndarray,
        number: Any,
        limit: float | None,
    ) -> None:
        far = number(costs.far)
        row_idle = far if limit is None else number(limit)
        rows = np.flatnonzero(row_to_col >= 0)
        cols = row_to_col[rows]
        row_paid = np.full(row_to_col.size, row_idle)
        col_paid = np.zeros(col_to_row.size, number)
        row_paid[rows] = col_paid[cols] = costs.at(rows, cols)
        self.rows = Side(costs.entries(), row_to_col, row_paid, row_idle, far)
        self.cols = Side(costs.transpose().entries(), col_to_row, col_paid, number(0), far)
        self.row_gain, self.row_choice = _nothing(row_paid)
        self.col_gain, self.col_choice = _nothing(col_paid)

    @property
    def matched(self) -> int:
        return count_matched(self.rows.mate)


def switch_until_none(
    differences: Differences, evaluate_all: Callable[[], bool], control: Control
) -> bool:
    """Algorithm 1; False when stopped.

    Parameters
    ----------
    evaluate_all : callable
        Looks up the best exchanges of all vertices; False when stopped.
    """
    exchanges = 1
    while exchanges:
        with control.part("difference evaluation"):
            if not evaluate_all():
                return False
        with control.part("switching"):
            exchanges, ended = _switch(differences, control)
        control.phase(found=0, matched=differences.matched, exchanges=exchanges)
        if not ended:
            return False
    return True


def _switch(differences: Differences, control: Control) -> tuple[int, bool]:
    """Make exchanges while the control allows; return how many, and if no more can be made."""
    d, exchanges, ended = differences, 0, False
    while not ended:
        more, ended = switch(
            d.rows, d.cols,  # OUT: mate, paid
            d.row_gain, d.row_choice, d.col_gain, d.col_choice,  # OUT
            BUDGET,  # IN
        )  # fmt: skip
        exchanges += more
        if control.tick(d.matched):
            return exchanges, False
    return exchanges, True


class Evaluation:
    """Looks up the best exchanges on the workers' threads (ADE and JDE for all)."""

    def __init__(self, differences: Differences, workers: Workers, control: Control) -> None:
        self.differences, self.workers, self.control = differences, workers, control

    def __call__(self) -> bool:
        d = self.differences
        agents = d.rows, d.cols, d.row_gain, d.row_choice
        jobs = d.cols, d.rows, d.col_gain, d.col_choice
        return all(self._evaluate(*whose) for whose in (agents, jobs))

    def _evaluate(self, own: Side, other: Side, gain: np.ndarray, choice: np.ndarray) -> bool:
        """Look up the best exchanges of one side; False when stopped."""
        size, threads = own.mate.size, self.workers.threads
        length = max(1, count_entries(own.entries) // max(size, 1))
        step = max(1, BUDGET // length)
        for begin in range(0, size, step * threads):

            def evaluate_share(worker: int, begin: int = begin) -> bool:
                first = min(begin + worker * step, size)
                evaluate(
                    own, other,  # IN
                    gain, choice,  # OUT
                    first, min(first + step, size),  # IN
                )  # fmt: skip
                return True

            self.workers.run(evaluate_share, threads)
            if self.control.tick(self.differences.matched):
                return False
        return True


def _nothing(paid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros_like(paid), np.full(paid.size, -1, np.int32)

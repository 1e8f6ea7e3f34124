"""Sparse costs as the kernels read them, and the problem that the steps of the engine share."""

from __future__ import annotations

import contextlib
import functools
import math
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Costs, Solution
from gpumatch.cuda import memory
from gpumatch.cuda.assignment.sparse import tuning as tunings
from gpumatch.cuda.assignment.sparse.full import FullProblem
from gpumatch.cuda.assignment.sparse.tuning import Tuning
from gpumatch.cuda.kernels import BLOCK, Source, blocks_for, kernels_for
from gpumatch.cuda.memory import set_unmatched
from gpumatch.cuda.surveys import count_matched

__all__ = ["COSTS", "Problem", "Rows", "write_fair_rows"]

COSTS = {"int64": "long long", "float64": "double"}  # of problems
PRICES = Source(
    "assignment/sparse/prices.cu",
    (
        "free_columns",
        "take_offers",
        "list_unmatched",
        "offer_levels",
        *(
            f"{kernel}<{{Cost}}>"
            for kernel in (
                "hold_auction",
                "find_leads",
                "find_levels",
                "count_entries",
                "turn",
                "offer_pairs",
                "write_prices",
                "reduce_columns",
                "reduce_rows",
                "write_fair_rows",
                "take_tight_pairs",
                "match_tight",
                "write_back",
            )
        ),
    ),
    {"Cost": COSTS},
    structs=("Rows<{Cost}>", "Terms"),
)

_BYTES_AN_ENTRY = 12  # of transposed costs, at most


class Rows:
    """The costs as the kernels read them, and the launches that read them by rows."""

    def __init__(self, full: FullProblem) -> None:
        self.full, weights, (nrows, ncols) = full, full.weights, full.shape  # kept for the struct
        a_row = max(1, min(weights.size // max(nrows, 1), 32))
        self.lanes = 1 << (a_row.bit_length() - 1)
        self.kernels = kernels_for(PRICES, Cost=weights.dtype)
        self.struct = self.kernels.struct("Rows")(
            indptr=full.indptr,
            indices=full.indices,
            weights=weights,
            nrows=nrows,
            ncols=ncols,
            lanes=self.lanes,
        )
        self.nrows, self.blocks = nrows, blocks_for(self.lanes * nrows)

    def launch(self, kernel: str, *arguments: Any) -> None:
        """Launch a kernel with a group of lanes for each row."""
        self.kernels[kernel]((self.blocks,), (BLOCK,), arguments)


class Problem:
    """A problem whose rows must all be matched, with its pairs and its duals.

    Attributes
    ----------
    row_dual, col_dual : arrays
        The duals. `row_dual` is undefined before `reduce_rows`.
    top : number
        The upper bound of column duals before auctions.
    reach : float
        The range of the costs, or the given bound of paths. Steps of bounds follow from it.
    span : float
        The same, or the range of most costs once `narrow_span` has run. Epsilons and the least
        bound of trees follow from it.
    mates : pair of arrays
        The mates. They are undefined before `take_tight_pairs`.
    tuning : Tuning
        What the steps decide by.
    """

    def __init__(
        self,
        full: FullProblem,
        mates: tuple[cp.ndarray, cp.ndarray] | None = None,
        span: float = math.inf,
        tuning: Tuning | None = None,
    ) -> None:
        self.full, self.rows, self.tuning = full, Rows(full), tuning or tunings.DEFAULT
        nrows, ncols = full.shape
        number = np.dtype(np.int64 if full.weights.dtype.kind == "i" else np.float64)
        self.row_dual, self.col_dual = cp.empty(nrows, number), cp.zeros(ncols, number)
        self.top = number.type(0)
        self.reach = self.span = min(float(full.high) - float(full.low), span)
        self.mates = mates or (cp.empty(nrows, np.int32), cp.empty(ncols, np.int32))
        self._unmatched: int | None = nrows  # None: to be counted

    @property
    def is_square(self) -> bool:
        return self.full.shape[0] == self.full.shape[1]

    def has_surplus(self, share: float) -> bool:
        """True if there are more columns than rows, by more than this share of the rows.

        It is False with a limit, for which it was not measured.
        """
        nrows, ncols = self.full.shape
        return self.full.given == ncols and ncols - nrows > share * nrows

    @functools.cached_property
    def transposed(self) -> Rows | None:
        """The transposed costs; None if there is no memory for them."""
        (nrows, ncols), weights = self.full.shape, self.full.weights
        with contextlib.suppress(MemoryError):
            memory.require_memory(_BYTES_AN_ENTRY * weights.size + 24 * ncols, "transposed costs")
            counts = cp.zeros(ncols + 1, np.uint64)
            self.rows.launch("count_entries<{Cost}>", self.rows.struct, counts[1:])
            indptr = cp.cumsum(counts.astype(np.int64))
            indices, transposed = cp.empty(weights.size, np.int32), cp.empty_like(weights)
            self.rows.launch(
                "turn<{Cost}>",
                *(self.rows.struct, indptr.astype(np.uint64)),  # IN
                *(indices, transposed),  # OUT
            )
            return Rows(
                self.full._replace(
                    indptr=indptr, indices=indices, weights=transposed, shape=(ncols, nrows)
                )
            )
        return None

    def forget_transposed(self) -> None:
        """Give back the memory of the transposed costs."""
        self.__dict__.pop("transposed", None)

    def reduce_columns(self) -> None:
        """Set the dual of each column to its least cost, if no column may stay unmatched."""
        if self.is_square and not self.full.is_reduced:
            self.col_dual[:] = self.full.high
            self.top = self.col_dual.dtype.type(self.full.high)
            self.rows.launch("reduce_columns<{Cost}>", self.rows.struct, self.col_dual)

    def reduce_rows(self) -> None:
        """Set the dual of each row to its least reduced cost."""
        self.rows.launch(
            "reduce_rows<{Cost}>",
            *(self.rows.struct, self.col_dual),  # IN
            self.row_dual,  # OUT
        )

    def narrow_span(self) -> None:
        """Let the span be that of most costs, if the greatest are above these by far."""
        step = -(-self.full.shape[0] // self.tuning.sample)
        leads = cp.empty(-(-self.full.shape[0] // step), np.float64)
        self.rows.launch("find_leads<{Cost}>", self.rows.struct, np.int32(step), leads)
        known = leads.get()
        known = known[np.isfinite(known) & (known > 0)]
        if known.size:
            self.span = min(self.span, self.tuning.widest * float(np.median(known)))

    def count_unmatched(self) -> int:
        """Return the number of unmatched rows.

        It is counted once, because that waits for the device.
        """
        if self._unmatched is None:
            self._unmatched = self.full.shape[0] - count_matched(self.mates[0])
        return self._unmatched

    def note_unmatched(self, unmatched: int) -> None:
        """Note the number of unmatched rows."""
        self._unmatched = unmatched

    def take_tight_pairs(self, given: cp.ndarray | None) -> None:
        """Set the rows' duals, and match rows to tight columns: first those of the given pairs."""
        rows, (row_to_col, col_to_row) = self.rows, self.mates
        self.reduce_rows()
        set_unmatched(col_to_row)
        if given is None:
            set_unmatched(row_to_col)
        else:
            rows.launch(
                "take_tight_pairs<{Cost}>",
                *(rows.struct, self.row_dual, self.col_dual, given),  # IN
                *(row_to_col, col_to_row),  # OUT
            )
        rows.launch(
            "match_tight<{Cost}>",
            *(rows.struct, self.row_dual, self.col_dual),  # IN
            *(row_to_col, col_to_row),  # IN, OUT
        )
        self._unmatched = None

    def write_back(self, solution: Solution) -> None:
        """Write the pairs with given columns, and the duals of these columns, to the solution.

        No dual is above 0. If all rows are matched, the unmatched columns have equal duals up to
        rounding. These duals become 0.
        """
        (nrows, ncols), given = self.full.shape, self.full.given
        top = self.col_dual.max().item() if ncols else 0
        self.rows.kernels["write_back<{Cost}>"](
            (blocks_for(max(nrows, given)),),
            (BLOCK,),
            (
                *(*self.mates, self.col_dual, np.int32(nrows), np.int32(given)),  # IN
                *(self.col_dual.dtype.type(top), np.int32(count_matched(self.mates[0]) == nrows)),
                *(*solution.mates, solution.col_dual),  # OUT
            ),
        )


def write_fair_rows(costs: Costs, solution: Solution) -> None:
    """Set the dual of each row to its least cost less a column's dual, rounded down."""
    full = FullProblem.of(costs, None)  # its arrays must live until the launch
    rows = Rows(full)
    rows.launch("write_fair_rows<{Cost}>", rows.struct, solution.col_dual, solution.row_dual)

"""The GPU's engine for sparse costs: prices by auctions, then alternating trees, all in CSR.

It has three steps, each wholly on the device:

1. `prices.cu` makes the least cost of each column its dual. If that matches nearly all rows, no
   auction is held. Otherwise auctions with falling epsilon find the duals. Each ends when all but a
   few rows are matched, because these few would take most of the time. Only the prices are kept.
   They are nearly optimal for nearly all rows.
2. Each row's dual becomes its least reduced cost, and rows are matched to tight columns. From this
   step on all is exact: integers are int64, and other costs are rounded only as float64 is.
3. `trees.cu` grows alternating trees from all unmatched rows. If there are more columns than rows,
   it then grows trees from spare rows, which take the columns that stay unmatched.

If there are many more columns than rows, rows first bid without an epsilon, which leaves the price
0 to columns that nobody wants. If that is given up, unmatched columns bid for rows after each
auction.

If there is a limit, `full.py` gives each row a column of its own, to which it is matched if it
stays unmatched. If duals are given, no auctions are held.

Device memory in addition to the costs: at most 130 bytes a row and 180 a column. With a limit, it
is 64 bytes a row and 48 an entry more, and there is one more column for each row. Columns bid only
if there is memory for the transposed costs, of 12 bytes an entry.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Costs, Solution
from gpumatch.cuda import memory
from gpumatch.cuda.assignment.sparse.full import FullProblem
from gpumatch.cuda.assignment.sparse.offers import Units, free_rows, owners
from gpumatch.cuda.kernels import BLOCK, Source, blocks_for, kernels_for
from gpumatch.cuda.launches import Board, Cooperative, record_seconds
from gpumatch.cuda.memory import set_unmatched, unmatched
from gpumatch.cuda.surveys import count_matched
from gpumatch.numeric.arrays import any_true
from gpumatch.numeric.auction_schedule import close_gaps

__all__ = [
    "LONG",
    "Problem",
    "Rows",
    "bytes_needed",
    "fits",
    "run",
    "solve_anew",
    "takes",
    "write_fair_rows",
]

_COSTS = {"int64": "long long", "float64": "double"}  # of problems
PRICES = Source(
    "assignment/sparse/prices.cu",
    (
        "free_columns",
        "take_offers",
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
            )
        ),
    ),
    {"Cost": _COSTS},
    structs=("Rows<{Cost}>", "Terms"),
)
TREES = Source(
    "assignment/sparse/trees.cu",
    ("grow_trees<{Cost}>", "plant<{Cost}>"),
    {"Cost": _COSTS},
    structs=("Rows<{Cost}>", "State", "Trees<Number<{Cost}>>"),
    cooperative=True,
)

_MOST_SUM = 2**60  # of the ranges of all rows, if costs are integers
_KEPT = 4  # the bids of columns end with one unmatched column in so many of those at first
_LONGEST_CHAIN_BACK = 1024  # the most bids of a group that begins with a column
_LOOKS_A_LAUNCH = 4096  # rows a warp scans; then the host checks progress, time limit and Ctrl-C
_BLOCK = TREES.constant("kBlock")
_NEVER = np.int64(TREES.constant("kNever"))
_DONE = TREES.constant("kDone")
_HELD = TREES.constant("kHeld")
_TRACE = TREES.constant("kTraceLength"), TREES.constant("kTraceWidth")

_PARTS = "collection", "growth", "augmentation"

# A step of bounds is this number times the range of the costs, divided by the lanes of a row and by
# the square root of the number of rows. For a million points in the plane, which take 3.3 s, a step
# is a 64th of the range. With a 128th they take 4.0 s, and with a 43rd 3.2 s.
_WIDTH_OF_A_STEP = 256
_FINEST = 24  # bits: the last epsilon is the span of the costs divided by 2**24
# The span of costs is at most this many times the lead of a typical row, which is the difference
# between its two least costs. If their range is wider, some costs exceed all others, or costs
# differ by orders of magnitude. An epsilon that follows from the range is then too coarse: 1,500
# rows with costs exp(7 normal) have 36 rounds of trees instead of 7, and four to twelve times the
# looks. The nearest columns of a million points in the plane have a range of a few thousand leads.
_WIDEST = 2**14
_SAMPLE = 1024  # the most rows whose leads are looked at
_LONGEST_CHAIN = 4096  # the most bids of a group before it leaves its row unmatched
_BYTES_A_ROW, _BYTES_A_COLUMN = 130, 180  # if trees begin from all rows
_BYTES_AN_ENTRY = 12  # of transposed costs, at most
_LEFT = 32, 1024  # bounds of the unmatched rows at which an auction ends, which are one in 1024
_LEFT_BY_FIRST = 4096  # the first auction ends at this number divided by the lanes of a row
_ROWS_A_LAUNCH = 8192  # it has a launch for each so many rows, because its last chains are long


class Trial(NamedTuple):
    """The limits of a trial, which tries to solve a problem without auctions that have an epsilon.

    Attributes
    ----------
    bids : int
        The most bids without an epsilon of a group of lanes before it leaves its row unmatched.
    left : float
        The largest share of unmatched rows from which trees grow.
    looks : int
        The rows that a warp scans in these trees before their progress is checked.
    rest : float
        The largest share of unmatched rows at that check.
    finest : int
        Bits: the first bound of the trees is the span of the costs divided by ``2**finest``.
    """

    bids: int
    left: float
    looks: int
    rest: float
    finest: int = _FINEST


SHORT = Trial(0, 0.15, 1024, 1 / 1000)
LONG = Trial(32, 1 / 8, 1024, 1 / 1000, 8)
"""The trial for costs that differ by orders of magnitude.

`gpumatch.cpu.assignment.sparse.engine` has such a trial too. In a KKT matrix of 200,000 rows, 4,000
are unmatched after exact bids. If costs have one magnitude, a trial that is given up takes a fifth
of the whole time.
"""


WIDE = Trial(32, 1 / 8, 4096, 1 / 200, 16)
"""The trial if columns are so many more than rows that most rows find one nearby.

Exact bids leave the price 0 to columns that nobody wants, as they must have it. Auctions with an
epsilon do not: with 90,000 of 100,000 points and their 24 nearest, all 10,000 unmatched columns got
a price, and the trees of spare rows that took it back were 0.69 of 0.71 seconds on an H200.
"""
_SURPLUS = 1 / 16
"""The share of the rows by which columns must be more for that."""
_SURPLUS_TO_BID = 1 / 50
"""The share of the rows by which columns must be more for them to bid after each auction.

On an H200, 28,500 and 29,100 rows of 30,000 points with 16 nearest take 42 ms instead of 99 and
109, and 88 and 125 with WIDE. 27,000 rows take 34 instead of 102, and 18.5 with WIDE. But 29,550
rows would take 130 instead of 105.
"""


def takes(costs: Costs, limit: float | None) -> bool:
    """True if the costs are sparse, and sums of integer costs fit into 64 bits."""
    return costs.is_sparse and fits(costs, limit)


def fits(costs: Costs, limit: float | None) -> bool:
    """True unless sums of integer costs may exceed 64 bits.

    Let S be the rows times the range of the costs, and let prices fall by at most 2**58
    (`offers.SAFE`). A path has a cost and takes back one for each row, so its distance is within S
    + 2**59. Duals of columns are within that and 2**58, and so are those of rows without their
    least cost. The distance of a label has three such terms. For S below 2**60 it fits.
    """
    if not costs.is_integer:
        return True
    ends = [costs.low, costs.high] + ([] if limit is None else [limit])
    return (costs.shape[0] + 1) * (math.floor(max(ends)) - math.floor(min(ends)) + 1) < _MOST_SUM


def run(task: AssignmentTask, span: float = math.inf) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped.

    `span` bounds the distances of paths, if the caller knows. Epsilons and bounds of trees begin
    there then.

    The order in which the device runs its threads decides which of several optimal assignments is
    found. `task.seed` and `task.threads` do not influence it.
    """
    costs = task.costs
    task.solution.has_duals = False
    if costs.shape[0] == 0:
        task.solution.col_dual[:] = 0
        task.solution.has_duals = task.solution.are_fair = True
        return True
    memory.require_memory(bytes_needed(costs, task.limit), "the engine for sparse costs")
    problem = Problem(FullProblem.of(costs, task.limit), span=span)
    try:
        return _solve(problem, task)
    finally:
        _write(problem, task)


def _solve(problem: Problem, task: AssignmentTask) -> bool:
    """Match the rows of the problem, from the task's pairs and duals; True unless stopped."""
    solution, control = task.solution, task.control
    given = solution.row_to_col
    if not any_true(solution.col_dual != 0):
        return solve_anew(problem, given, SHORT, control)
    problem.col_dual[:] = problem.full.duals_of(solution.col_dual)
    with control.part("first pairs"):
        problem.take_tight_pairs(given)
    return _end_by_trees(problem, control)


def solve_anew(problem: Problem, given: cp.ndarray | None, trial: Trial, control: Control) -> bool:
    """Match the rows without given duals; True unless stopped.

    `given` may have pairs, as the column of each row.
    """
    has_grown = _try(problem, given, trial, control)
    if control.stopped:
        return False
    if has_grown:
        return _end_by_spares(problem, control)
    with control.part("auctions"):
        _hold_auctions(problem, control)
    with control.part("first pairs"):
        problem.take_tight_pairs(given)
    return not control.stopped and _end_by_trees(problem, control)


def _try(problem: Problem, given: cp.ndarray | None, trial: Trial, control: Control) -> bool:
    """Match the rows without auctions that have an epsilon; False if the trial was given up."""
    with control.part("first pairs"):
        problem.reduce_columns()
        problem.take_tight_pairs(given)
    nrows = problem.full.shape[0]
    if problem.has_surplus(_SURPLUS) and problem.count_free_rows() > trial.left * nrows:
        trial = WIDE
        problem.narrow_span()
    if trial.bids and problem.count_free_rows():
        with control.part("auctions"):
            held = _bid_exactly(problem, trial.bids)
        with control.part("first pairs"):
            problem.take_tight_pairs(held)
    left = problem.count_free_rows()
    if left > trial.left * nrows:
        return False
    with control.part("trees"):
        return left == 0 or _grow(_Trees.of_rows(problem, trial.finest), control, trial)


def _end_by_trees(problem: Problem, control: Control) -> bool:
    """Match the unmatched rows by trees, then move the unmatched columns to the highest duals."""
    with control.part("trees"):
        has_grown = _grow(_Trees.of_rows(problem), control)
    return has_grown and _end_by_spares(problem, control)


def _end_by_spares(problem: Problem, control: Control) -> bool:
    """Move the unmatched columns to the highest duals, by spare rows, if all rows are matched."""
    nrows, ncols = problem.full.shape
    if nrows == ncols or problem.count_free_rows():
        return True
    with control.part("trees"):
        return _grow(_Trees.of_spares(problem), control)


def _grow(trees: _Trees, control: Control, trial: Trial | None = None) -> bool:
    try:
        return trees.grow(control, trial)
    finally:
        trees.write_back()


def bytes_needed(costs: Costs, limit: float | None) -> int:
    """A bound of the device memory in addition to the costs."""
    nrows, ncols = costs.shape
    if limit is not None:
        ncols += nrows
    vertices = _BYTES_A_ROW * nrows + _BYTES_A_COLUMN * ncols
    return FullProblem.bytes_needed(costs, limit) + vertices


def _write(problem: Problem, task: AssignmentTask) -> None:
    """Write pairs and duals to the task's solution.

    The duals of the rows are computed from those of the columns and rounded down, so that no slack
    is negative.
    """
    costs, solution = task.costs, task.solution
    problem.full.write_back(solution, problem.mates, problem.col_dual)
    largest = max(costs.largest, 0 if task.limit is None else abs(task.limit))
    farthest = 2 * (costs.shape[0] + 1) * largest
    if costs.shape[1] and -solution.col_dual.min() > farthest:
        solution.col_dual[:] = close_gaps(solution.col_dual, 2 * largest)
    write_fair_rows(costs, solution)
    if task.limit is not None:
        solution.row_dual[cp.diff(costs.entries()[0]) == 0] = task.limit
        cp.minimum(solution.row_dual, task.limit, out=solution.row_dual, casting="unsafe")
    solution.has_duals = solution.are_fair = True


def write_fair_rows(costs: Costs, solution: Solution) -> None:
    """Set the dual of each row to its least cost less a column's dual, rounded down."""
    full = FullProblem.of(costs, None)  # its arrays must live until the launch
    rows = Rows(full)
    rows.launch("write_fair_rows<{Cost}>", rows.struct, solution.col_dual, solution.row_dual)


# -- the problem on the device ---------------------------------------------------------------------


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
    """

    def __init__(
        self,
        full: FullProblem,
        mates: tuple[cp.ndarray, cp.ndarray] | None = None,
        span: float = math.inf,
    ) -> None:
        self.full, self.rows = full, Rows(full)
        nrows, ncols = full.shape
        number = np.dtype(np.int64 if full.weights.dtype.kind == "i" else np.float64)
        self.row_dual, self.col_dual = cp.empty(nrows, number), cp.zeros(ncols, number)
        self.top = number.type(0)
        self.reach = self.span = min(float(full.high) - float(full.low), span)
        self.mates = mates or (cp.empty(nrows, np.int32), cp.empty(ncols, np.int32))
        self._free_rows: int | None = nrows  # None: to be counted

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
    def turned(self) -> Rows | None:
        """The transposed costs; None if there is no memory for them."""
        (nrows, ncols), weights = self.full.shape, self.full.weights
        with contextlib.suppress(MemoryError):
            memory.require_memory(_BYTES_AN_ENTRY * weights.size + 24 * ncols, "transposed costs")
            counts = cp.zeros(ncols + 1, np.uint64)
            self.rows.launch("count_entries<{Cost}>", self.rows.struct, counts[1:])
            indptr = cp.cumsum(counts.astype(np.int64))
            indices, turned = cp.empty(weights.size, np.int32), cp.empty_like(weights)
            self.rows.launch(
                "turn<{Cost}>",
                *(self.rows.struct, indptr.astype(np.uint64)),  # IN
                *(indices, turned),  # OUT
            )
            return Rows(
                self.full._replace(
                    indptr=indptr, indices=indices, weights=turned, shape=(ncols, nrows)
                )
            )
        return None

    def forget_turned(self) -> None:
        """Give back the memory of the transposed costs."""
        self.__dict__.pop("turned", None)

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
        step = -(-self.full.shape[0] // _SAMPLE)
        leads = cp.empty(-(-self.full.shape[0] // step), np.float64)
        self.rows.launch("find_leads<{Cost}>", self.rows.struct, np.int32(step), leads)
        known = leads.get()
        known = known[np.isfinite(known) & (known > 0)]
        if known.size:
            self.span = min(self.span, _WIDEST * float(np.median(known)))

    def count_free_rows(self) -> int:
        """The number of unmatched rows. It is counted once, because that waits for the device."""
        if self._free_rows is None:
            self._free_rows = self.full.shape[0] - count_matched(self.mates[0])
        return self._free_rows

    def has_left(self, free_rows: int) -> None:
        """Note the number of unmatched rows."""
        self._free_rows = free_rows

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
        self._free_rows = None


# -- prices ----------------------------------------------------------------------------------------


def _hold_auctions(problem: Problem, control: Control) -> None:
    """Find the duals of the columns by auctions with falling epsilon."""
    nrows, ncols = problem.full.shape
    problem.narrow_span()
    units = _units_of(problem)
    if units.of_one == 0:
        return  # all costs are equal, or so close that the unit would underflow
    auctions = _Auctions(problem, units, cp.zeros(ncols, np.uint64))
    for epsilon, end in zip(units.epsilons(), _ends(nrows, problem.rows.lanes)):
        auctions.hold(epsilon, end, control)
        control.phase(found=0, matched=0, step="auction", epsilon=epsilon / units.of_one)
        cp.cuda.get_current_stream().synchronize()
        if control.tick(0):
            break
    problem.forget_turned()
    auctions.write_prices()


class _End(NamedTuple):
    """The limits of an auction.

    Attributes
    ----------
    left : int
        The number of unmatched rows at which it ends.
    longest : int
        The most bids of a group before it leaves its row unmatched.
    launches : int
        The most launches. In each, the unmatched rows bid again.
    """

    left: int
    longest: int
    launches: int = 1


def _ends(nrows: int, lanes: int) -> Iterator[_End]:
    """The limits of all auctions, in order.

    The first auction moves rows far, because its epsilon is large: from regions of too many rows to
    regions of too many columns. The paths of the rows that it leaves unmatched are long, and trees
    scan all rows between. So the first auction ends with fewer unmatched rows than the others if
    rows are long.
    """
    left = min(max(nrows >> 10, _LEFT[0]), _LEFT[1], nrows // 4)
    left_by_first = min(left, _LEFT_BY_FIRST // lanes)
    yield _End(left_by_first, _LONGEST_CHAIN, max(nrows // _ROWS_A_LAUNCH, 1))
    yield from itertools.repeat(_End(left, _LONGEST_CHAIN))


def _bid_exactly(problem: Problem, bids: int) -> cp.ndarray:
    """Lower the duals of the columns by bids without an epsilon, so that pairs stay tight.

    Unmatched rows bid, and so do rows that lose their columns. Returns the column of each row at
    the end.
    """
    units = _units_of(problem)
    if units.of_one == 0:
        return problem.mates[0]
    auctions = _Auctions(problem, units, cp.empty(problem.full.shape[1], np.uint64))
    auctions.bid_exactly(bids)
    auctions.write_prices()
    return auctions.columns_of_rows()


def _units_of(problem: Problem) -> Units:
    full = problem.full
    is_integer = full.weights.dtype.kind == "i"
    return Units(problem.span, full.shape[0], finest=_FINEST, is_integer=is_integer)


class _Side(NamedTuple):
    """The side of a problem that bids: the rows, or the columns as rows of the transposed costs.

    Attributes
    ----------
    rows : Rows
    offers : uint64 array
        The offers for the vertices of the other side.
    bits : int
        The bits of the number of a bidder in an offer.
    """

    rows: Rows
    offers: cp.ndarray
    bits: int


class _Auctions:
    """Auctions for the columns of a problem, from given offers."""

    def __init__(self, problem: Problem, units: Units, offers: cp.ndarray) -> None:
        self.problem, self.units, self.offers = problem, units, offers
        self.by_column = (blocks_for(offers.size),), (BLOCK,)
        self.goes_on = True  # False once levels have no room in offers, or there is no memory

    @functools.cached_property
    def all_rows(self) -> cp.ndarray:
        return cp.arange(self.problem.full.shape[0], dtype=np.int32)

    def hold(self, epsilon: int, end: _End, control: Control) -> None:
        """Hold an auction from the current prices."""
        row_bits = self.units.row_bits
        self.problem.rows.kernels["free_columns"](
            *self.by_column,
            (
                self.offers,  # IN, OUT
                *(np.int32(self.offers.size), np.int32(row_bits)),  # IN
            ),
        )
        self._bid(self._side, self.all_rows, epsilon, end)
        for _ in range(1, end.launches):
            bidders = free_rows(self.offers, row_bits, self.all_rows.size)
            if bidders.size <= end.left or control.tick(0):
                break
            self._bid(self._side, bidders, epsilon, end)
        if self.goes_on and self.problem.has_surplus(_SURPLUS_TO_BID):
            self.goes_on = self._bid_back(epsilon)

    def _bid_back(self, epsilon: int) -> bool:
        """Let unmatched columns bid for rows, and set the prices anew; False if that is impossible.

        Columns whose prices have not fallen do not bid.
        """
        problem, units = self.problem, self.units
        ncols, turned = problem.full.shape[1], problem.turned
        if turned is None:
            return False
        is_free = owners(self.offers, units.row_bits) < 0
        bidders = cp.flatnonzero(is_free & (self.offers > 0)).astype(np.int32)
        if bidders.size <= _LEFT[0] // _KEPT:
            return True
        levels, col_bits = self._levels(self._side), ncols.bit_length()
        top = float(cp.where(levels < math.inf, levels, -math.inf).max())
        if not top - float(levels.min()) < 2.0 ** (62 - col_bits):
            return False
        offers = self._offers_at(levels, top, col_bits, self.columns_of_rows())
        columns = _Side(turned, offers, col_bits)
        end = _End(int(bidders.size) // _KEPT, _LONGEST_CHAIN_BACK)
        self._bid(columns, bidders, epsilon, end, top)
        levels = self._levels(columns)
        if not top - float(levels.min()) < units.most / 2:
            return False
        self.offers = self._offers_at(levels, top, units.row_bits, unmatched(ncols))
        return True

    @property
    def _side(self) -> _Side:
        """The rows as bidders."""
        return _Side(self.problem.rows, self.offers, self.units.row_bits)

    def _levels(self, side: _Side) -> cp.ndarray:
        """The least reduced cost of each vertex of a side, in units."""
        levels = cp.empty(side.rows.nrows, np.float64)
        side.rows.launch(
            "find_levels<{Cost}>",
            *(side.rows.struct, self._terms(side, 0, _End(0, 0), 0), side.offers),  # IN
            levels,  # OUT
        )
        return levels

    def _offers_at(
        self, levels: cp.ndarray, top: float, row_bits: int, holders: cp.ndarray
    ) -> cp.ndarray:
        offers = cp.empty(levels.size, np.uint64)
        self.problem.rows.kernels["offer_levels"](
            (blocks_for(levels.size),),
            (BLOCK,),
            (
                *(levels, np.int32(levels.size), np.float64(top), np.int32(row_bits), holders),
                offers,  # OUT
            ),
        )
        return offers

    def bid_exactly(self, bids: int) -> None:
        """Hold an auction without an epsilon, from the current duals and pairs."""
        problem, units = self.problem, self.units
        bidders = cp.empty(problem.count_free_rows(), np.int32)
        problem.rows.kernels["offer_pairs<{Cost}>"](
            (blocks_for(max(problem.full.shape)),),
            (BLOCK,),
            (
                *(problem.rows.struct, problem.col_dual, problem.top),  # IN
                *(np.float64(units.of_one), np.int32(units.row_bits), *problem.mates),
                *(self.offers, bidders, cp.zeros(1, np.int32)),  # OUT
            ),
        )
        self._bid(self._side, bidders, 0, _End(0, bids))

    def _bid(
        self,
        side: _Side,
        bidders: cp.ndarray,
        epsilon: int,
        end: _End,
        outside: float = math.inf,
    ) -> None:
        """Let these vertices of a side bid until all but a few are served."""
        served = cp.zeros(1, np.int32)
        side.rows.kernels["hold_auction<{Cost}>"](
            (blocks_for(side.rows.lanes * bidders.size),),
            (BLOCK,),
            (
                *(side.rows.struct, self._terms(side, epsilon, end, bidders.size)),  # IN
                *(np.float64(outside), bidders, np.int32(bidders.size)),  # IN
                *(side.offers, served),  # IN, OUT
            ),
        )

    def _terms(self, side: _Side, epsilon: int, end: _End, size: int) -> np.ndarray:
        """The terms of an auction with `size` bidders of a side."""
        units = self.units
        return side.rows.kernels.struct("Terms")(
            low=self.problem.full.low,
            scale=units.of_one,
            epsilon=epsilon,
            jump=units.spread,
            most=units.most if side.bits == units.row_bits else 2 ** (64 - side.bits) - 1,
            row_bits=side.bits,
            goal=size - end.left,
            longest=end.longest,
        )

    def write_prices(self) -> None:
        """Set the duals of the columns to the prices."""
        self.problem.rows.kernels["write_prices<{Cost}>"](
            *self.by_column,
            (
                *(self.offers, np.int32(self.offers.size), np.int32(self.units.row_bits)),  # IN
                np.float64(1 / self.units.of_one),
                self.problem.col_dual,  # OUT
            ),
        )

    def columns_of_rows(self) -> cp.ndarray:
        """The column of each row by the offers; -1 means unmatched."""
        held = unmatched(self.problem.full.shape[0])
        self.problem.rows.kernels["take_offers"](
            *self.by_column,
            (
                *(self.offers, np.int32(self.offers.size), np.int32(self.units.row_bits)),  # IN
                held,  # IN, OUT
            ),
        )
        return held


# -- trees -----------------------------------------------------------------------------------------


class _Trees:
    """Alternating trees, and the launches that grow them.

    Parameters
    ----------
    problem : Problem
    wanted : int
        The number of paths to find.
    spare : number of the duals, optional
        The dual of the spare rows, which reach all columns. Without it, trees grow from the
        unmatched rows.
    finest : int
        Bits: the first bound is the span of the costs divided by ``2**finest``.
    """

    def __init__(
        self, problem: Problem, wanted: int, spare: Any = None, finest: int = _FINEST
    ) -> None:
        self.problem, self.wanted = problem, wanted
        nrows, ncols = problem.full.shape
        self.nrows, self.has_spares = nrows, spare is not None
        nroots = 0 if self.has_spares else wanted
        number = problem.col_dual.dtype
        self.kernels = kernels_for(TREES, Cost=number)
        self._grow = Cooperative(self.kernels, "grow_trees<{Cost}>", block=_BLOCK)
        self.board = Board(self.kernels.struct("State"), _TRACE)
        self.columns = cp.empty((ncols, 4), np.int64)
        nplaces = ncols + self._grow.blocks * _BLOCK // 32  # one more for each warp's kStop
        self.arrays = {
            "waiting": cp.empty(ncols, np.int32),
            "frontier": cp.empty((2, ncols + nroots), np.uint64),
            "queue": cp.empty(nplaces, np.uint64),
            "roots": cp.empty((2, nroots), np.int32),
            "nearest": cp.empty(ncols, np.int64),
            "leaf": cp.empty(ncols, np.int32),
        }
        self._struct = self.kernels.struct("Trees")(
            row_dual=problem.row_dual,  # IN, OUT
            row_to_col=problem.mates[0],
            col_to_row=problem.mates[1],
            columns=self.columns,
            nplaces=nplaces,
            **self.arrays,
            state=self.board.state,
            trace=self.board.trace,  # OUT
            barrier=self.board.barrier,
        )
        least = math.ldexp(problem.span, -finest)
        is_integer = number.kind == "i"
        self.least_bound = np.int64(1) if is_integer else np.float64(least).view(np.int64)
        dual = number.type(0 if spare is None else spare)
        seen = self.board.seen
        seen["wanted"][0] = wanted
        seen["bound"], seen["below"] = self.least_bound, -1
        steps = max(problem.rows.lanes * math.sqrt(nrows) / _WIDTH_OF_A_STEP, 1)
        step = max(problem.reach / steps, 1 if is_integer else least)
        seen["step"] = number.type(step).view(np.int64)
        seen["seen_beyond"] = seen["beyond"][:] = _NEVER
        seen["has_spares"] = self.has_spares
        seen["spare_dual"] = dual.view(np.int64)
        seen["stage"] = TREES.constant("kCollect") if wanted else _DONE
        self.board.tell()
        self.kernels["plant<{Cost}>"](
            (blocks_for(ncols),),
            (BLOCK,),
            (
                self._struct,  # IN, OUT
                *(problem.col_dual, np.int32(nrows), np.int32(ncols)),  # IN
                *(np.int32(self.has_spares), dual),
            ),
        )

    @classmethod
    def of_rows(cls, problem: Problem, finest: int = _FINEST) -> _Trees:
        """Trees that grow from the unmatched rows."""
        return cls(problem, problem.count_free_rows(), finest=finest)

    @classmethod
    def of_spares(cls, problem: Problem) -> _Trees:
        """Trees of spare rows, which take the columns that stay unmatched. All rows are matched."""
        col_to_row, col_dual = problem.mates[1], problem.col_dual
        dearest = col_dual.max()
        is_free = col_to_row < 0
        col_to_row[is_free & (col_dual == dearest)] = _HELD
        wanted = int(cp.count_nonzero(is_free & (col_dual < dearest)))
        return cls(problem, wanted, -dearest.get()[()])

    def grow(self, control: Control, trial: Trial | None) -> bool:
        """Grow and augment while unmatched columns are reached; False if stopped or given up."""
        a_launch = _LOOKS_A_LAUNCH if trial is None else trial.looks
        most = math.inf if trial is None else trial.rest * self.nrows
        while not self._is_done():
            self._grow(
                self.problem.rows.struct,  # IN
                self._struct,  # IN, OUT
                *(self.least_bound, np.int32(a_launch)),  # IN
            )
            self.board.look()
            left = self._left()
            if (control.tick(self.matched(left)) or left > most) and not self._is_done():
                break
            a_launch = _LOOKS_A_LAUNCH
        record_seconds(control, _PARTS, self.board.seen["nanoseconds"])
        left = self.wanted
        for looks, found in self.board.records(int(self.board.seen["round"])):
            left -= found
            control.phase(found=found, matched=self.matched(left), levels=looks, step="trees")
        return self._is_done()

    def _is_done(self) -> bool:
        return bool(self.board.seen["stage"] == _DONE)

    def matched(self, left: int) -> int:
        """The number of matched rows if this many paths are still to find."""
        return self.nrows if self.has_spares else self.nrows - left

    def _left(self) -> int:
        return int(self.board.seen["wanted"][self.board.seen["round"] & 1])

    def write_back(self) -> None:
        """Write the duals of the columns to the problem, and remove the spare rows."""
        if not self.has_spares:
            self.problem.has_left(self._left())
        else:
            cp.maximum(self.problem.mates[1], -1, out=self.problem.mates[1])
        self.problem.col_dual[:] = self.columns[:, 0].view(self.problem.col_dual.dtype)

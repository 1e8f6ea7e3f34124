"""Deep Greedy Switching on the GPU: the host code of dgs.cu, which describes the kernels.

Roverso, Naiem, El-Beltagy, El-Ansary, Haridi, "A GPU-enabled solver for time-constrained linear sum
assignment problems", INFOS 2010. The module of the CPU describes the algorithm, its start and its
bound. Here the device makes all exchanges that do not conflict in one round, and the host reads
counters only (section V.C). The paper's mixed form makes its exchanges on the CPU:
`gpumatch.dispatch.mixed_dgs` passes a function for that to `solve`. There are two evaluations of
the paper, and one of ours. The paper's evaluate both agents and jobs (ADE and JDE):

``evaluation="global"``
    A thread evaluates a vertex, in blocks of 256 (section V.A).
``evaluation="shared"``
    A thread evaluates an exchange, in blocks of 16 × 16, and stores the difference in a matrix.
    Then a thread for each row of the matrix finds the best (section V.B).
``evaluation="block"`` (the default)
    A block evaluates a vertex. If all columns are matched, only rows are evaluated, because a row's
    best exchange is also that of its column.

Sparse costs become dense. Device memory in addition to the costs: the transposed costs, some 100
bytes for each row and each column, and for ``evaluation="shared"`` 8 bytes for each pair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Costs
from gpumatch.cuda import memory
from gpumatch.cuda.kernels import BLOCK, COSTS, Source, kernels_for
from gpumatch.cuda.launches import Board, Cooperative
from gpumatch.cuda.matching import engine as matching_engine
from gpumatch.cuda.surveys import count_matched
from gpumatch.numeric.arrays import any_true
from gpumatch.numeric.dgs_start import any_pairs, turns

__all__ = ["FORMS", "Evaluator", "Form", "Problem", "run", "solve"]

SOURCE = Source(
    "assignment/dgs/dgs.cu",
    (
        "transpose<{Cost}>",
        "pay<{Cost}>",
        "take_cheapest<{Cost}>",
        # evaluation by a thread a vertex, a thread an exchange, a block a vertex
        *(f"evaluate<{{Cost}}, {form}>" for form in range(3)),
        *(f"switch_in_parallel<{{Cost}}, {form}>" for form in range(3)),
        "sweep_prices<{Cost}>",
    ),
    {"Cost": COSTS},
    structs=(
        *("Side<{Cost}>", "Evaluation<{Cost}>", "Queuing", "Conflicts", "Prices<{Cost}>"),
        *("Switching", "Sweeps"),
    ),
    cooperative=True,
)

# Between launches the host checks progress, time limit and Ctrl-C. These bounds are not measured.
# They make a launch long beside such a check, and short beside half a second.
ROUNDS_A_LAUNCH = 32
WINDOWS_A_LAUNCH = 16
SWEEPS_A_LAUNCH = 10
SWEEPS = 20  # the most sweeps of the relaxation, as on the CPU
_TILE = SOURCE.constant("kTile")
_NONE = SOURCE.constant("kNone")
_BYTES_A_VERTEX = 100
_SWEEPING_BLOCK = 512  # threads
_STATIC_BYTES = 2048  # of shared memory for the static arrays of the kernels


class Form(NamedTuple):
    """A form of the evaluation of differences."""

    number: int  # the kernels' number of the form
    block: int  # threads of a block
    blocks_a_multiprocessor: int  # the most blocks, if they wait for each other
    stores_differences: bool = False  # stores those of all exchanges in a matrix
    copies_costs: bool = False  # copies the costs of a vertex into shared memory
    serves_mates: bool = False  # need not evaluate columns if all are matched


FORMS = {
    "global": Form(SOURCE.constant("kByThread"), 256, 2),
    "shared": Form(SOURCE.constant("kByTile"), _TILE * _TILE, 4, stores_differences=True),
    "block": Form(SOURCE.constant("kByBlock"), 512, 2, copies_costs=True, serves_mates=True),
}
FORMS["auto"] = FORMS["block"]


def run(task: AssignmentTask, *, start: str = "random", evaluation: str = "auto") -> bool:
    """Assign the rows by exchanges of pairs, and find a bound of the optimum.

    Parameters
    ----------
    start : {"random", "greedy"}
        ``"random"`` matches unmatched rows to random unmatched columns. ``"greedy"`` matches each,
        in random order, to its cheapest unmatched column.
    evaluation : {"auto", "block", "global", "shared"}
        The evaluation of differences; see the module.
    """

    def switch(problem: Problem, form: Form) -> bool:
        try:
            return _switch_on_device(problem, form, task, start)
        finally:
            task.solution.row_to_col[:] = problem.rows.mate
            task.solution.col_to_row[:] = problem.cols.mate

    return solve(task, evaluation, switch)


def solve(task: AssignmentTask, evaluation: str, switch: Callable[[Problem, Form], bool]) -> bool:
    """Assign the rows by `switch`, and find a bound of the optimum; False if stopped.

    Parameters
    ----------
    switch : callable
        It makes exchanges until none has a gain, and leaves the mates in `task` and in the problem.
        It returns False if the control has stopped it.
    """
    costs, limit, control = task.costs, task.limit, task.control
    (row_to_col, _), (row_dual, col_dual) = task.mates, task.duals
    price = cp.minimum(col_dual, 0)
    row_dual[:] = -costs.largest if limit is None else min(-costs.largest, limit)
    col_dual[:] = 0
    task.solution.has_duals = True
    if row_to_col.size == 0:
        return True
    with control.part("transposition"):
        problem = Problem(costs, limit)
        _wait()
    ended = switch(problem, FORMS[evaluation])
    if not ended or (limit is None and any_true(row_to_col < 0)):
        return ended
    with control.part("bound"):
        return _find_bound(problem, costs.largest, price, row_dual, col_dual, control)


def _wait() -> None:
    """Wait for the launches, so that their time counts in the right part."""
    cp.cuda.get_current_stream().synchronize()


class _Side(NamedTuple):
    """The arrays of a Side<Cost> in differences.cuh."""

    costs: cp.ndarray
    mate: cp.ndarray
    paid: cp.ndarray
    gain: cp.ndarray
    choice: cp.ndarray
    idle: np.generic

    @classmethod
    def of(cls, costs: cp.ndarray, idle: np.generic) -> _Side:
        size = costs.shape[0]
        mate, choice = cp.full((2, size), -1, np.int32)
        paid, gain = cp.zeros((2, size), idle.dtype)
        return cls(costs, mate, paid, gain, choice, idle)


class Problem:
    """Both sides on the device, and the launches of kernels that need no more."""

    def __init__(self, costs: Costs, limit: float | None) -> None:
        values, self.is_complete = costs.dense(), costs.is_complete
        self.nrows, self.ncols = values.shape
        number = np.int64 if costs.is_integer else np.float64
        far = np.iinfo(np.int64).max if costs.is_integer else np.inf
        vertices = self.nrows + self.ncols
        memory.require_memory(
            values.nbytes + _BYTES_A_VERTEX * vertices, "the transposed matrix of costs"
        )
        self.kernels = kernels_for(SOURCE, Cost=values.dtype)
        self.barrier = cp.zeros(1, np.uint32)
        self.far, self.must_match = number(far), limit is None
        self.rows = _Side.of(values, number(far if limit is None else limit))
        self.cols = _Side.of(self._transposed(values), number(0))
        self.sides = self._struct(self.rows), self._struct(self.cols)

    def _struct(self, side: _Side) -> np.ndarray:
        size, others = side.costs.shape
        return self.kernels.struct("Side")(
            costs=side.costs,  # IN
            size=size,
            others=others,
            idle=side.idle,
            mate=side.mate,  # IN, OUT
            paid=side.paid,
            gain=side.gain,
            choice=side.choice,
        )

    def launch(self, name: str, *arguments: Any, block: int = BLOCK) -> None:
        """Launch a kernel that loops over all vertices, with as many blocks as are resident."""
        Cooperative(self.kernels, name, block=block)(*arguments)

    def pay(self) -> None:
        """Write the cost of each vertex's pair."""
        self.launch("pay<{Cost}>", *self.sides)  # IN, OUT

    def count_matched(self) -> int:
        return count_matched(self.rows.mate)

    def _transposed(self, values: cp.ndarray) -> cp.ndarray:
        out = cp.empty((self.ncols, self.nrows), values.dtype)
        self.launch(
            "transpose<{Cost}>",
            *(values, np.int32(self.nrows), np.int32(self.ncols)),  # IN
            out,  # OUT
        )
        return out


class Evaluator:
    """Finds best exchanges by one of the forms.

    Parameters
    ----------
    serves_mates : bool
        True if columns need not be evaluated if all are matched and the form allows it. Then they
        get the exchanges of their rows.
    """

    def __init__(self, problem: Problem, form: Form, *, serves_mates: bool) -> None:
        self.problem, self.form = problem, form
        is_square = problem.must_match and problem.nrows == problem.ncols
        self.serves_mates = serves_mates and form.serves_mates and is_square
        costs = problem.rows.costs
        self.room = self._room_for(max(costs.shape), costs.itemsize)
        self._shared = self.room * costs.itemsize
        names = [self.name_of(kernel) for kernel in ("evaluate", "switch_in_parallel")]
        for name in names:
            problem.kernels[name].max_dynamic_shared_size_bytes = max(self._shared, 48 * 1024)
        self._evaluate = self.cooperative("evaluate")
        self._every = tuple(cp.arange(n, dtype=np.int32) for n in costs.shape)
        self._differences = self._room_for_differences()
        self.struct = problem.kernels.struct("Evaluation")(
            differences=self._differences,  # OUT, then IN
            room=self.room,  # IN
            serves_mates=self.serves_mates,
            barrier=problem.barrier,
        )

    def all(self) -> None:
        """Evaluate all agents by ADE and all jobs by JDE."""
        self.rows(self._every[0])
        if not self.serves_mates:
            self.cols(self._every[1])

    def rows(self, rows: cp.ndarray) -> None:
        """Evaluate these agents by ADE."""
        own, other = self.problem.sides
        self._evaluate(
            *(own, other),  # IN, OUT
            *self._listed(rows),  # IN
            self.struct,
        )

    def cols(self, cols: cp.ndarray) -> None:
        """Evaluate these jobs by JDE."""
        other, own = self.problem.sides
        self._evaluate(
            *(own, other),  # IN, OUT
            *self._listed(cols),  # IN
            self.struct,
        )

    def cooperative(self, kernel: str, most: int | None = None) -> Cooperative:
        """Return a cooperative kernel of this form, of at most `most` blocks."""
        name, block = self.name_of(kernel), self.form.block
        kernels = self.problem.kernels
        return Cooperative(kernels, name, block=block, shared=self._shared, most=most)

    def name_of(self, kernel: str) -> str:
        return f"{kernel}<{{Cost}}, {self.form.number}>"

    @staticmethod
    def _listed(vertices: cp.ndarray) -> tuple[cp.ndarray, np.int32]:
        return vertices, np.int32(vertices.size)

    def _room_for(self, length: int, itemsize: int) -> int:
        """Return how many costs a vertex has if they fit into a block's shared memory, else 0."""
        if not self.form.copies_costs:
            return 0
        most = cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
        return length if length * itemsize + _STATIC_BYTES <= most else 0

    def _room_for_differences(self) -> cp.ndarray:
        """Return the matrix of the gains of all exchanges; empty if the form stores none."""
        number = self.problem.far.dtype
        if not self.form.stores_differences:
            return cp.empty(0, number)
        pairs = self.problem.rows.costs.size
        memory.require_memory(pairs * number.itemsize, "the matrix of differences")
        return cp.empty(pairs, number)


# -- the start -------------------------------------------------------------------------------------


def _start(problem: Problem, task: AssignmentTask, start: str) -> bool:
    """Match the unmatched rows, all if they must be matched and can be; False if stopped."""
    problem.rows.mate[:], problem.cols.mate[:] = task.mates
    row_to_col, col_to_row = (mates.get() for mates in task.mates)
    if start == "greedy":
        ended = _take_cheapest(problem, turns(row_to_col, task.seed), task.control)
    else:
        ended = _take_any(problem, *any_pairs(row_to_col, col_to_row, task.seed))
    if not ended or problem.is_complete or not problem.must_match:
        return ended
    if not any_true(problem.rows.mate < 0):
        return True
    mates = problem.rows.mate, problem.cols.mate
    return matching_engine.run(task.matching(task.costs.pattern(), *mates))


def _take_any(problem: Problem, rows: np.ndarray, cols: np.ndarray) -> bool:
    """Match each row to its column if the pair is allowed."""
    pairs = cp.asarray(rows), cp.asarray(cols)
    if not problem.is_complete:
        is_allowed = problem.rows.costs[pairs] < problem.far
        pairs = pairs[0][is_allowed], pairs[1][is_allowed]
    problem.rows.mate[pairs[0]] = pairs[1]
    problem.cols.mate[pairs[1]] = pairs[0]
    return True


def _take_cheapest(problem: Problem, rows: np.ndarray, control: Control) -> bool:
    """Match the rows, in order, to their cheapest unmatched columns; False if stopped."""
    order = cp.asarray(rows, np.int32)
    holder = cp.where(problem.cols.mate < 0, np.int32(_NONE), np.int32(-1))
    losses = cp.zeros(3, np.int32)
    queuing = problem.kernels.struct("Queuing")(
        order=order,  # IN
        count=rows.size,
        holder=holder,  # IN, OUT
        losses=losses,
        barrier=problem.barrier,
    )
    take = Cooperative(problem.kernels, "take_cheapest<{Cost}>", most=rows.size)
    for first in range(0, rows.size, take.blocks * WINDOWS_A_LAUNCH):
        losses.fill(0)
        take(
            *(*problem.sides, queuing),  # IN, OUT
            *(np.int32(first), np.int32(WINDOWS_A_LAUNCH)),  # IN
        )
        if control.tick(problem.count_matched()):
            return False
    return True


# -- switching -------------------------------------------------------------------------------------


def _switch_on_device(problem: Problem, form: Form, task: AssignmentTask, start: str) -> bool:
    """Algorithm 3: evaluate all and switch, until nothing changes; False if stopped."""
    control = task.control
    with control.part("start"):
        if not _start(problem, task, start):
            return False
        matched = problem.count_matched()
    if problem.must_match and matched < problem.nrows:
        return True
    problem.pay()
    evaluator = Evaluator(problem, form, serves_mates=True)
    switching = _Switching(problem, evaluator)
    while True:
        with control.part("difference evaluation"):
            evaluator.all()
            _wait()
        with control.part("switching"):
            ended = switching.finish(control, matched)
        matched = matched if problem.must_match else problem.count_matched()
        exchanges, steps = switching.made, switching.rounds
        control.phase(found=0, matched=matched, exchanges=exchanges, steps=steps)
        if not ended or exchanges == 0:
            return ended


class _Switching:
    """The launches that make exchanges until none has a gain."""

    def __init__(self, problem: Problem, evaluator: Evaluator) -> None:
        vertices = problem.nrows + problem.ncols
        multiprocessors = cp.cuda.Device().attributes["MultiProcessorCount"]
        few = evaluator.form.blocks_a_multiprocessor * multiprocessors
        self._switch = evaluator.cooperative("switch_in_parallel", most=few)
        self._keys, self._claims = cp.zeros((2, vertices), np.uint64)
        self._changed = cp.empty(problem.nrows, np.int32), cp.empty(problem.ncols, np.int32)
        self._board = Board(problem.kernels.struct("Switching"))
        conflicts = problem.kernels.struct("Conflicts")(
            key=self._keys,  # OUT, then IN
            claim=self._claims,
            changed_rows=self._changed[0],
            changed_cols=self._changed[1],
            state=self._board.state,  # IN, OUT
        )
        self._arguments = *problem.sides, conflicts, evaluator.struct

    @property
    def made(self) -> int:
        """The number of exchanges since the last evaluation of all vertices."""
        return int(self._board.seen["exchanges"])

    @property
    def rounds(self) -> int:
        return int(self._board.seen["round"])

    def finish(self, control: Control, matched: int) -> bool:
        """Make rounds until no exchange has a gain; False if stopped."""
        self._board.clear()
        while True:
            self._switch(
                *self._arguments,  # IN, OUT
                np.int32(ROUNDS_A_LAUNCH),  # IN
            )
            self._board.look()
            if control.tick(matched):
                return False
            if self._board.seen["has_ended"]:
                return True


# -- the bound -------------------------------------------------------------------------------------


def _find_bound(
    problem: Problem,
    largest: float,
    price: cp.ndarray,
    row_dual: cp.ndarray,
    col_dual: cp.ndarray,
    control: Control,
) -> bool:
    """Write the best duals of some sweeps to row_dual and col_dual; False if stopped."""
    number = price.dtype.type
    lowered = cp.empty_like(price)
    held, minima = cp.empty((2, problem.nrows), number)
    board = Board(problem.kernels.struct("Sweeps"))
    board.seen["gap"] = np.inf
    board.tell()
    prices = problem.kernels.struct("Prices")(
        price=(price, lowered),  # IN, OUT
        held=held,  # OUT, then IN
        minima=minima,
        row_dual=row_dual,  # OUT
        col_dual=col_dual,
        lowest=number(-(problem.nrows + 1) * largest),  # IN
        state=board.state,  # IN, OUT
        barrier=problem.barrier,
    )
    sweep = Cooperative(problem.kernels, "sweep_prices<{Cost}>", block=_SWEEPING_BLOCK)
    matched = problem.count_matched()
    is_stopped = False
    while not (is_stopped or board.seen["has_ended"] or board.seen["sweep"] == SWEEPS):
        sweep(
            *problem.sides,  # IN
            prices,  # IN, OUT
            np.int32(min(SWEEPS_A_LAUNCH, SWEEPS - board.seen["sweep"])),  # IN
        )
        board.look()
        is_stopped = control.tick(matched)
    return not is_stopped

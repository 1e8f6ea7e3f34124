"""The arguments of `gpumatch.assign`, checked, and what becomes of them.

- `Request`: all arguments of a call but the costs. It is checked once, when it is made.
- `Goal`: the request for one problem. The shape of its costs says whether rows and columns change
  places, and their type says whether the limit is an integer.
- `wish_for`: the goal as numbers. Kernels for batches and small problems get these.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from gpumatch.contracts import Solution
from gpumatch.contracts.batch import Wish
from gpumatch.costs import TOO_LARGE, CostBatch, Costs, as_costs, check_sums, is_batch
from gpumatch.dispatch.arguments import (
    check_one_of,
    checked_flag,
    checked_seed,
    checked_threads,
)
from gpumatch.numeric.arrays import has_length
from gpumatch.running.control import Callback, Control

__all__ = [
    "BOTTLENECK_METHODS",
    "CARDINALITIES",
    "ON_ERROR",
    "Cardinality",
    "Goal",
    "Request",
    "are_plain",
    "checked_limit",
    "wish_for",
]

Cardinality = Literal["full", "maximum", "any"]
CARDINALITIES = get_args(Cardinality)
OBJECTIVES = ("sum", "bottleneck", "lexicographic")
ON_ERROR = ("raise", "mark")
BOTTLENECK_METHODS = ("auto", "thresholds", "paths")


def are_plain(objective: str, algorithm: str, backend: str, options: Mapping[str, Any]) -> bool:
    """True if these arguments leave it to the library how to find the least sum.

    A small problem is then solved in one compiled call, if nothing watches the run either.
    """
    return objective == "sum" and algorithm == "auto" and backend in ("auto", "cpu") and not options


class Request(NamedTuple):
    """The arguments of `gpumatch.assign`, all but the costs.

    `of` makes one from the caller's arguments and checks them. Only the values of `cost_limit` and
    `initial` are checked later, because they must fit the costs. ``_replace`` changes fields, and
    does not check them.

    Attributes
    ----------
    control : Control
        It watches the run. It has the caller's time limit, progress bar and callback.
    objective, maximize, cardinality, cost_limit
        What to find, as in `gpumatch.assign`.
    initial
        What to begin from.
    algorithm, backend, options, seed, threads
        How to find it. `threads` is the number of them.
    weight, row_nodes, sizes
        How to read the costs of a networkx graph, or of a batch in one array.
    on_error : {"raise", "mark"}
        What becomes of the errors of a batch's problems.
    is_hard : bool
        True if a team of threads on the device has given the problem up.
    """

    control: Control
    objective: str = "sum"
    maximize: bool = False
    cardinality: str = "full"
    cost_limit: Any = None
    initial: Any = None
    algorithm: str = "auto"
    backend: str = "auto"
    options: Mapping[str, Any] = MappingProxyType({})
    seed: int = 0
    threads: int = 1
    weight: Hashable | None = "weight"
    row_nodes: Iterable[Hashable] | None = None
    sizes: Any = None
    on_error: str = "raise"
    is_hard: bool = False

    @classmethod
    def of(
        cls,
        control: Control,
        *,
        maximize: bool = False,
        seed: int = 0,
        threads: int | None = None,
        **arguments: Any,
    ) -> Request:
        """Return the request of a caller.

        Raises
        ------
        TypeError, ValueError
            If an argument is wrong. The message names it.
        """
        request = cls(
            control,
            maximize=checked_flag(maximize, "maximize"),
            threads=checked_threads(threads),
            seed=checked_seed(seed),
            **arguments,
        )
        check_one_of("objective", request.objective, OBJECTIVES)
        check_one_of("cardinality", request.cardinality, CARDINALITIES)
        check_one_of("on_error", request.on_error, ON_ERROR)
        if request.objective != "sum":
            request._check_for_bottleneck()
        return request

    def _check_for_bottleneck(self) -> None:
        if self.cardinality == "any":
            raise ValueError("cardinality 'any' has no bottleneck: no pair at all would be best")
        if self.objective == "lexicographic" and self.cardinality != "full":
            raise ValueError("the objective 'lexicographic' takes the cardinality 'full' only")
        if self.cost_limit is not None:
            raise ValueError(
                f"the objective {self.objective!r} takes no cost_limit: pass a limit's pairs as "
                "forbidden"
            )
        if self.algorithm not in BOTTLENECK_METHODS or self.options:
            names = " or ".join(map(repr, BOTTLENECK_METHODS))
            raise ValueError(
                f"the objective {self.objective!r} is found by matchings: algorithm must be {names}"
            )

    def _check_for_batch(self) -> None:
        if self.row_nodes is not None or self.weight != "weight":
            raise TypeError("row_nodes and weight are for a networkx graph only")
        if self.initial is not None:
            raise ValueError("a batch takes no initial")
        if self.objective != "sum":
            raise ValueError(f"a batch takes the objective 'sum' only; got {self.objective!r}")

    # -- what to find ------------------------------------------------------------------------------

    @property
    def is_plain(self) -> bool:
        """True if the library may solve a small problem in one compiled call."""
        return (
            are_plain(self.objective, self.algorithm, self.backend, self.options)
            and not self.control.is_watched
            and self.sizes is None
            and self.row_nodes is None
            and self.weight == "weight"
        )

    @property
    def has_row_limits(self) -> bool:
        """True if `cost_limit` has a number for each row."""
        return has_length(self.cost_limit) and not isinstance(self.cost_limit, str)

    def goal(self, costs: Costs) -> Goal:
        """Return what to reach for these costs. The limit must be one number."""
        return Goal.of(self.maximize, self.cardinality, self.cost_limit, costs)

    # -- how to read the costs ---------------------------------------------------------------------

    def batch_of(self, source: Any) -> CostBatch | None:
        """Return the problems of a batch; None if the source is one problem.

        Raises
        ------
        TypeError, ValueError
            If a batch does not take an argument, or the sizes do not fit it.
        """
        if self.sizes is None and not is_batch(source):
            return None
        self._check_for_batch()
        return source if isinstance(source, CostBatch) else CostBatch(source, self.sizes)

    def costs_of(self, source: Any) -> Costs:
        """Return the costs of one problem. Without limits of rows, sums of them may overflow."""
        with self.control.part("costs"):
            return as_costs(source, self.weight, self.row_nodes, summed=self.has_row_limits)

    # -- requests made from it ---------------------------------------------------------------------

    def for_problem(self, callback: Callback | None = None) -> Request:
        """Return the request for one problem of a batch, whose run `callback` watches."""
        return self._replace(sizes=None, control=Control(callback=callback))


class Goal(NamedTuple):
    """What to reach for one problem.

    Attributes
    ----------
    maximize, cardinality
        As in a `Request`.
    cost_limit : int or float, optional
        For integer costs it is an int if it is integral. None if there is no limit.
    transposed : bool
        True if rows and columns change places, so that there are no more rows than columns.
    """

    maximize: bool
    cardinality: str
    cost_limit: float | None
    transposed: bool

    @classmethod
    def of(cls, maximize: bool, cardinality: str, cost_limit: Any, costs: Costs) -> Goal:
        nrows, ncols = costs.shape
        limit = checked_limit(cost_limit, costs.is_integer, maximize)
        return cls(maximize, cardinality, limit, nrows > ncols)

    @property
    def limit(self) -> float | None:
        """What a row of the problem costs if it is unmatched; None if it must be matched."""
        if self.cardinality == "maximum":
            return None
        if self.cost_limit is None:
            return 0 if self.cardinality == "any" else None
        return -self.cost_limit if self.maximize else self.cost_limit

    def least_pairs(self, solution: Solution) -> float:
        """Return how many pairs a solution must have for its duals to bound their cost."""
        if self.is_full:
            return len(solution.row_to_col)
        if self.cardinality != "maximum":
            return 0
        return math.inf if solution.cover is None else sum(map(len, solution.cover))

    @property
    def is_full(self) -> bool:
        """True if every row of the problem must be matched."""
        return self.cardinality == "full" and self.cost_limit is None

    def problem(self, costs: Costs) -> Costs:
        """Return the problem that an algorithm gets for these costs."""
        problem = costs.problem(self.maximize, self.transposed)
        if self.cost_limit is None:
            return problem
        limit = -self.cost_limit if self.maximize else self.cost_limit
        if self.cardinality == "maximum":
            return problem.up_to(limit)
        if problem.is_integer and isinstance(limit, float):
            problem = problem.as_float()
        check_sums(max(problem.largest, abs(limit)), min(problem.shape))
        return problem


def wish_for(maximize: bool, cardinality: str, cost_limit: float | None) -> Wish:
    """Return the goal as numbers, for kernels of batches and small problems."""
    sign = -1.0 if maximize else 1.0
    if cardinality == "maximum":
        most = math.inf if cost_limit is None else sign * cost_limit
        return Wish(sign, math.inf, False, most, True)
    if cost_limit is not None:
        return Wish(sign, sign * cost_limit, True, math.inf, False)
    return Wish(sign, 0.0 if cardinality == "any" else math.inf, False, math.inf, False)


def checked_limit(cost_limit: Any, is_integer: bool, maximize: bool) -> float | None:
    """One limit for all rows; None if it leaves no pair out.

    For integer costs it is an int if it is integral, else a float.
    """
    if cost_limit is None:
        return None
    if type(cost_limit) is float and not is_integer and math.isfinite(cost_limit):
        return cost_limit  # the usual case, first: a tracker calls this thousands of times a second
    if getattr(cost_limit, "ndim", None) == 0:
        cost_limit = cost_limit.item()
    if isinstance(cost_limit, bool) or not isinstance(cost_limit, Real):
        raise TypeError(
            f"cost_limit must be None, a number, or one for each row; got {cost_limit!r}"
        )
    if cost_limit == (-math.inf if maximize else math.inf):
        return None
    if is_integer and isinstance(cost_limit, Integral):
        return int(cost_limit)
    try:
        value = float(cost_limit)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"cost_limit must be None or finite; got {cost_limit!r}")
    if is_integer and value.is_integer() and abs(value) < TOO_LARGE:
        return int(value)
    return value

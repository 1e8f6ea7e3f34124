"""One general weighted matching: the caller's weights as integers, its level, and its proof.

The algorithm maximises integers (`gpumatch.contracts.general_weights`). So weights to be minimised
are negated, and floats are counted.

Cardinality. An unmatched vertex of ``"any"`` has the dual 0 or more, so the level is 0. For
``"maximum"`` and ``"perfect"`` the level is below -n W, for n vertices and weights of magnitude W.
Theorem: a matching that is optimal for such a level has as many edges as possible. Proof. By the
duals, a matching of k + 1 edges has a doubled weight of at most that of ours with k edges, plus
twice the level. That is less than 2 k W - 2 n W, which is at most -2 (k + 1) W for k + 1 <= n / 2;
but k + 1 edges do not weigh less than that. ∎ So the matching is the best among the largest, and
perfect if there is a perfect one.

Floats. Each weight is rounded up to a multiple of a power of two, of which the largest weight has
2**52 to 2**53, or of the largest one that leaves no weight rounded. So duals that are feasible for
the integers are feasible for the floats, and the rounding shows in the gap. A level that does not
fit is replaced by one that fits; if that is reached, the multiple becomes larger. Negative weights
that are far below those in use are lifted, which changes nothing if they are not used. For
``"any"`` this is done at once: only the signs count if no weight is above 0. For the others it is
done if the result is not proven otherwise. Duals near a low level have more bits than a float, so
the last attempt counts in multiples so large that they have no more.

The bound of the doubled weights is sum u_v + sum z_B (|B| - 1) / 2, less the level for each
unmatched vertex of ``"maximum"``.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from gpumatch.contracts import Costs, GeneralMatchingTask
from gpumatch.contracts.general_weights import (
    DeviceHelp,
    GeneralWeightSolution,
    GeneralWeightSolver,
    GeneralWeightStart,
    GeneralWeightTask,
    OddSets,
)
from gpumatch.costs import SparseCosts
from gpumatch.dispatch.arguments import check_one_of
from gpumatch.general.graph import Graph
from gpumatch.numeric.arrays import array_module, array_of
from gpumatch.numeric.exact_products import product_terms
from gpumatch.numeric.exact_sums import magnitude, summands, times
from gpumatch.numeric.gaps import Proof, proof_of
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.problems.cardinality import solve as reach
from gpumatch.problems.deficient_start import deficient_start, largest_matching
from gpumatch.problems.dense_start import dense_start
from gpumatch.problems.equal_weights import equal_solution
from gpumatch.problems.request import Goal
from gpumatch.running.control import Control

__all__ = [
    "CARDINALITIES",
    "GeneralCardinality",
    "ImperfectError",
    "Outcome",
    "WeightRequest",
    "imperfect",
    "solve",
]

GeneralCardinality = Literal["any", "maximum", "perfect"]
CARDINALITIES = get_args(GeneralCardinality)

LARGEST = 2**58
"""Integer weights of ``"any"`` are below this."""
FULLEST = 2**59
"""For the other cardinalities, so are n + 1 times the weights. Then no sum of duals overflows."""
BITS = 53
"""The largest float has this many bits as an integer."""
FAR_BELOW = 16.0
"""Weights that are lower than those in use by this factor are lifted, then by its square, ..."""


class ImperfectError(InfeasibleError):
    """No perfect matching exists.

    Attributes
    ----------
    tutte_set : int64 array, or list of nodes for a networkx graph
        Vertices without which the graph has more components with an odd number of vertices than
        there are vertices in this set. Each such component needs one of its own.
    components : int
        The number of these components.
    """

    def __init__(self, tutte_set: Any, components: int) -> None:
        ValueError.__init__(
            self,
            f"no perfect matching exists: without {len(tutte_set)} vertices (tutte_set), there are "
            f"{components} components with an odd number of vertices",
        )
        self.tutte_set, self.components = tutte_set, components

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tutte_set, self.components)


class WeightRequest(NamedTuple):
    """What a caller asks for."""

    cardinality: str
    maximize: bool
    threads: int
    seed: int
    control: Control

    def check(self) -> None:
        """Raise ValueError if there is no such cardinality."""
        check_one_of("cardinality", self.cardinality, CARDINALITIES)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A matching of the caller's weights, and what it proves.

    The duals are those of the caller's weights: of twice these for integers, and with all signs
    turned if they are minimised.
    """

    mate: np.ndarray
    vertex_dual: np.ndarray
    odd_sets: OddSets
    objective: float
    proof: Proof
    stats: dict[str, Any]


def solve(
    graph: Graph,
    solver: GeneralWeightSolver,
    request: WeightRequest,
    fallback: GeneralWeightSolver | None = None,
) -> Outcome:
    """Find the best matching of a graph with weights.

    A solver of a device has a `fallback`. Then the graph may be there.

    Raises
    ------
    ValueError
        If integer weights are too large to be exact.
    """
    assert graph.weights is not None
    weights = graph.weights if request.maximize else -graph.weights
    problem = _Problem(graph, weights, solver, request, fallback)
    if weights.dtype.kind == "f":
        return problem.solved_floats()
    _check_range(graph.weights, graph.order, request.cardinality)
    level = 0
    if request.cardinality != "any":
        level = -(graph.order * int(magnitude_of(weights)) + 2)
    return problem.outcome_of(problem.solution_for(weights, level), level)


def imperfect(graph: Graph, largest: GeneralMatchingTask) -> ImperfectError:
    """The error of a graph whose largest matching leaves vertices."""
    inner = np.flatnonzero(largest.part == GeneralMatchingTask.INNER)
    components = inner.size + int(np.count_nonzero(largest.mate < 0))
    names = inner if graph.nodes is None else [graph.nodes[v] for v in inner.tolist()]
    return ImperfectError(names, components)


def magnitude_of(weights: np.ndarray) -> Any:
    """The largest magnitude, as a Python number; that of integers is exact."""
    return max(abs(weights.max().item()), abs(weights.min().item())) if weights.size else 0


def _check_range(weights: np.ndarray, n: int, cardinality: str) -> None:
    largest = magnitude_of(weights)
    if cardinality == "any" and largest >= LARGEST:
        raise ValueError(f"weights: {largest} is too large; integers must be below 2**58")
    if cardinality != "any" and (n + 1) * largest >= FULLEST:
        raise ValueError(
            f"weights: {largest} is too large; (number of vertices + 1) times the largest integer "
            f"must be below 2**59 for cardinality {cardinality!r}"
        )


@dataclasses.dataclass(frozen=True)
class _Problem:
    """A graph with weights to be maximised, int64 or float64."""

    graph: Graph
    weights: np.ndarray
    solver: GeneralWeightSolver
    request: WeightRequest
    fallback: GeneralWeightSolver | None

    def solution_for(self, whole: np.ndarray, level: int) -> GeneralWeightSolution:
        """The algorithm's solution for integer weights, unless these are all equal."""
        if self.fallback is not None:
            return self.solver(self._device_task(whole, level))
        if whole.size and level < whole[0] and (whole == whole[0]).all():
            largest = self._largest
            if largest is not None:
                return equal_solution(largest, int(whole[0]), level)
        return self.solver(self._host_task(whole, level, None))

    def _host_task(
        self, whole: np.ndarray, level: int, start: GeneralWeightStart | None
    ) -> GeneralWeightTask:
        """What the algorithm of the host gets, with a start of its own if there is none."""
        request, whole = self.request, array_of(np, whole)
        indptr, indices = (array_of(np, part) for part in (self.graph.indptr, self.graph.indices))
        return GeneralWeightTask(
            *(indptr.astype(np.int64, copy=False), indices, whole, level),
            *(request.control, request.threads, request.seed),
            start=start or self._start_for(whole, level),
        )

    def _device_task(self, whole: np.ndarray, level: int) -> GeneralWeightTask:
        """What the algorithm of a device gets."""
        import cupy

        indptr, indices, weights = (
            array_of(cupy, part) for part in (self.graph.indptr, self.graph.indices, whole)
        )
        request, shape = self.request, (self.graph.order,) * 2
        goal = Goal(False, "any" if level == 0 else "maximum", None, False)

        def cover_costs(number: Any) -> Costs:
            return SparseCosts.of_csr(shape, indptr, indices, (-weights).astype(number))

        def fallback(start: GeneralWeightStart | None) -> GeneralWeightSolution:
            assert self.fallback is not None
            with request.control.part("transfer"):
                task = self._host_task(weights, level, start)
            return self.fallback(task)

        return GeneralWeightTask(
            *(indptr, indices, weights, level),
            *(request.control, request.threads, request.seed),
            device=DeviceHelp(
                cover_costs,
                functools.partial(reach, goal=goal),
                self.weights.dtype.kind == "f",
                fallback,
            ),
        )

    def _start_for(self, whole: np.ndarray, level: int) -> GeneralWeightStart | None:
        """Where the host begins, if anywhere."""
        request, control = self.request, self.request.control
        with control.part("start"):
            start = dense_start(self.graph, whole, level, control, request.threads, request.seed)
            if start is None and request.cardinality != "any" and self._part is not None:
                start = deficient_start(self.graph, whole, level, self._part)
        return start

    @functools.cached_property
    def _part(self) -> np.ndarray | None:
        """The Gallai–Edmonds parts of the vertices; None if all can be matched, or if stopped."""
        largest = self._largest
        return None if largest is None or (largest.mate >= 0).all() else largest.part

    @functools.cached_property
    def _largest(self) -> GeneralMatchingTask | None:
        """A matching of the most edges; None if the run was stopped.

        Raises
        ------
        ImperfectError
            If not all vertices can be matched, but must be.
        """
        request, graph = self.request, self.graph
        largest = largest_matching(graph, request.control, request.threads, request.seed)
        if request.cardinality == "perfect" and largest is not None and (largest.mate < 0).any():
            raise imperfect(graph, largest)
        return largest

    # -- floats ------------------------------------------------------------------------------------

    def solved_floats(self) -> Outcome:
        """The outcome for floats: of a first attempt, or the best of some if that is not proven."""
        weights, xp = self.weights, array_module(self.weights)
        highest = max(float(weights.max()), 0.0) if weights.size else 0.0
        if self.request.cardinality == "any":
            lifted = xp.maximum(weights, -highest) if highest > 0 else xp.sign(weights)
            return self._attempted(lifted, BITS)
        best = self._attempted(weights, BITS)
        coarse = BITS - 2 - (self.graph.order + 1).bit_length()
        factor = 1.0
        while not (best.proof.proven or self.request.control.stopped):
            factor *= FAR_BELOW
            floor = -factor * max(magnitude(self._paid_of(best.mate)), highest)
            is_last = not floor or magnitude(weights) <= -floor
            further = (
                self._attempted(weights, coarse)
                if is_last
                else self._attempted(xp.maximum(weights, floor), BITS)
            )
            best = min(best, further, key=lambda outcome: outcome.proof.gap)
            if is_last:
                break
        return best

    def _attempted(self, weights: np.ndarray, bits: int) -> Outcome:
        """The outcome by floats that are counted in a power of two."""
        places = min(bits - math.frexp(magnitude(weights))[1], _places_of(weights))
        whole = _counted(weights, places)
        if self.request.cardinality == "any":
            return self._settled(self.solution_for(whole, 0), whole, 0, places)
        level, fitting = self._level_for(whole), -FULLEST // 2
        solution = self.solution_for(whole, max(level, fitting))
        if level < fitting and (solution.mate < 0).any() and solution.is_optimal:
            places -= (level // fitting).bit_length()
            whole = _counted(weights, places)
            level = self._level_for(whole)
            solution = self.solution_for(whole, level)
        return self._settled(solution, whole, max(level, fitting), places)

    def _settled(
        self, solution: GeneralWeightSolution, whole: Any, level: int, places: int
    ) -> Outcome:
        """The outcome of floats. What the rounding of a device leaves unproven, the host ends."""
        outcome = self.outcome_of(solution, level, places)
        if self.fallback is None or solution.entries is None or outcome.proof.proven:
            return outcome
        start = GeneralWeightStart(solution.mate, solution.vertex_dual)
        solution = self.fallback(self._host_task(whole, level, start))
        return self.outcome_of(solution, level, places)

    def _level_for(self, whole: np.ndarray) -> int:
        return -(self.graph.order * (int(magnitude_of(whole)) + 1) + 2)

    # -- what is proven ----------------------------------------------------------------------------

    def _paid_of(self, mate: np.ndarray, entries: Any = None) -> np.ndarray:
        """The weights of the matched edges, whose places in the graph's arrays may be given."""
        if entries is not None:
            return array_of(np, self.weights[array_of(array_module(self.weights), entries)])
        parts = self.graph.indptr, self.graph.indices, self.weights
        indptr, indices, weights = (array_of(np, part) for part in parts)
        owners = np.repeat(np.arange(mate.size, dtype=np.int32), np.diff(indptr))
        return weights[(mate[owners] == indices) & (owners < indices)]

    def outcome_of(
        self, solution: GeneralWeightSolution, level: int, places: int | None = None
    ) -> Outcome:
        """The outcome of a solution whose duals are integers, of floats if `places` is given."""
        paid = self._paid_of(solution.mate, solution.entries)
        vertex_dual, sets = solution.vertex_dual, solution.odd_sets
        common: Any = level
        if places is not None:
            vertex_dual, set_dual = (_as_floats(a, places) for a in (vertex_dual, sets.dual))
            sets = sets._replace(dual=set_dual)
            common = float(_as_floats(np.array([level]), places)[0])
            if not (math.isfinite(common) and np.isfinite(vertex_dual).all()):
                raise ValueError(
                    f"weights up to {magnitude(self.weights)} of a graph of {self.graph.order} "
                    "vertices have duals beyond float64: scale them"
                )
        total = summands(paid)
        is_integer = places is None
        objective = sum(total) if is_integer else _float_sum(total)
        proof = self._proof(solution, vertex_dual, sets, common, paid, objective)
        sign = 1 if self.request.maximize else -1
        return Outcome(
            solution.mate,
            sign * vertex_dual,
            sets._replace(dual=sign * sets.dual),
            0 + sign * objective,  # no -0.0
            proof,
            solution.stats,
        )

    def _proof(
        self,
        solution: GeneralWeightSolution,
        vertex_dual: np.ndarray,
        sets: OddSets,
        common: Any,
        paid: np.ndarray,
        objective: float,
    ) -> Proof:
        """The gap between the objective and what the duals allow."""
        is_integer, mate = vertex_dual.dtype.kind != "f", solution.mate
        missing = int(np.count_nonzero(mate < 0))
        has_size = missing == 0 or (self.request.cardinality == "maximum" and solution.is_optimal)
        if not (has_size or self.request.cardinality == "any"):
            return Proof(math.inf, False)
        try:
            terms = summands(vertex_dual) + product_terms(sets.dual, (sets.end - sets.begin) // 2)
            terms += [-term for term in times(common, missing)]
        except OverflowError:  # the sum is beyond float64
            return Proof(math.inf, False)
        terms += [-term for term in summands(paid)] * (2 if is_integer else 1)
        if is_integer:
            terms = [sum(terms) // 2]
        return proof_of(
            terms,
            paid.size,
            has_ended=solution.is_optimal,
            is_integer=is_integer,
            largest=lambda: magnitude(paid),
            largest_dual=lambda: magnitude(vertex_dual[mate >= 0]),
            objective=objective,
        )


def _float_sum(terms: list[float]) -> float:
    try:
        return math.fsum(terms)
    except OverflowError:
        largest = max(map(abs, terms))
        raise ValueError(f"weights up to {largest} have sums beyond float64: scale them") from None


def _counted(weights: Any, places: int) -> Any:
    """The floats times 2**places, rounded up to integers."""
    xp = array_module(weights)
    with np.errstate(under="ignore"):
        whole = xp.ceil(xp.ldexp(weights, places))
    whole[(whole <= 0) & (weights > 0)] = 1  # what has become 0 on the way
    return whole.astype(np.int64)


def _places_of(weights: Any) -> int:
    """The least number of places after which no binary digit of a weight is left."""
    xp = array_module(weights)
    mantissas, exponents = xp.frexp(weights[weights != 0])
    whole = xp.ldexp(mantissas, BITS).astype(np.int64)
    last = xp.frexp((whole & -whole).astype(np.float64))[1]  # 1 for the last digit of a mantissa
    first = int((exponents + last).min()) if whole.size else BITS
    return BITS + 1 - min(first, BITS)


def _as_floats(duals: np.ndarray, places: int) -> np.ndarray:
    """Doubled duals of integers as duals of the floats, rounded up."""
    numbers = duals.astype(np.float64)
    below = numbers.astype(np.int64) < duals
    numbers[below] = np.nextafter(numbers[below], math.inf)
    with np.errstate(under="ignore", over="ignore"):
        floats = np.ldexp(numbers, -places - 1)
        below = np.ldexp(floats, places + 1) < numbers  # of those near the least float
    floats[below] = np.nextafter(floats[below], math.inf)
    return floats

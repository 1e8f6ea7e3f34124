"""False claims for `gpumatch.verify`: true results of small problems, with a lie in each.

A forgery takes a problem and a claim, which is a copy of a true result, and changes the claim.
Three kinds of lie are told apart:

`BROKEN`    the claim is no claim at all, or says something of its pairs that is not so;
`WORSE`     other pairs, or another question: the pairs are not the best for what is asked;
`UNPROVEN`  the pairs are the best, but the duals do not show it.

What is false of the last two is found by enumeration, and in fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.fuzz.oracles import enumerated
from tests.fuzz.problems import Problem

FIELDS = (
    *("row_to_col", "col_to_row", "row_ind", "col_ind", "row_dual", "col_dual"),
    *("objective", "gap", "maximize", "cardinality", "cost_limit", "pair_costs", "size", "proven"),
)
Forgery = Callable[[np.random.Generator, Problem, SimpleNamespace], bool]
"""It changes the claim; False if there is nothing to change."""


def claim_of(result: Any) -> SimpleNamespace:
    """A copy of a result that can be changed."""
    claim = SimpleNamespace(**{name: getattr(result, name) for name in FIELDS})
    for name in ("row_to_col", "col_to_row", "row_ind", "col_ind", "row_dual", "col_dual"):
        setattr(claim, name, getattr(claim, name).copy())
    claim.cover = result.cover_ind() if result.cardinality == "maximum" else None

    def cover() -> Any:
        if claim.cover is None:
            raise ValueError("there is no cover")
        return claim.cover

    claim.cover_ind = claim.vertex_cover = cover
    return claim


class OneRank:
    """What a checker of divided results needs of the communicator of one rank."""

    rank, size = 0, 1

    def allgather(self, array: Any) -> list[Any]:
        return [array]

    def allreduce(self, array: Any, how: str) -> Any:
        return array

    def exchange(self, parts: Any) -> Any:
        return parts

    def total(self, number: Any, how: str = "sum") -> Any:
        return number


def share_of(problem: Problem, claim: SimpleNamespace) -> SimpleNamespace | None:
    """The claim as the share of the only rank; None if such a share cannot say it."""
    nrows, ncols = problem.shape
    share = SimpleNamespace(**vars(claim))
    share.rows, share.cols, share.shape = range(nrows), range(ncols), problem.shape
    if np.ndim(claim.cost_limit):
        return None
    if claim.cover is not None:
        marks = [np.zeros(size, bool) for size in problem.shape]
        for own, members in zip(marks, claim.cover):
            if members.dtype.kind != "i" or members.ndim != 1:
                return None
            if ((members < 0) | (members >= own.size)).any():
                return None
            own[members] = True
        share.cover = tuple(marks)
    return share


# -- truth -----------------------------------------------------------------------------------------


def asked(problem: Problem, claim: SimpleNamespace) -> Problem:
    """The problem with what the claim says was asked for."""
    return Problem(
        problem.shape, problem.rows, problem.cols, problem.values,
        bool(claim.maximize), claim.cardinality, claim.cost_limit,
    )  # fmt: skip


def excess(problem: Problem, claim: SimpleNamespace) -> float:
    """By how much the pairs of a claim are worse than the best for what it says was asked for."""
    question = asked(problem, claim)
    best = enumerated(question)
    allowed = question.within() if question.cardinality == "maximum" else question
    if best is None or (allowed.places(claim.row_ind, claim.col_ind) < 0).any():
        return math.inf
    size, least = best
    if not question.is_free and claim.row_ind.size != size:
        return math.inf
    return float(net(question, claim) - least)


def net(problem: Problem, claim: SimpleNamespace) -> Fraction:
    """The sum of c - L over the pairs of a claim."""
    paid = problem.costs[problem.places(claim.row_ind, claim.col_ind)].tolist()
    base = problem.limits[claim.row_ind].tolist() if problem.is_free else [0] * len(paid)
    return sum((Fraction(cost) - Fraction(own) for cost, own in zip(paid, base)), Fraction(0))


def proven_gap(problem: Problem, claim: SimpleNamespace) -> Fraction:
    """How far the duals leave the pairs from the best, in fractions, without any repair of them.

    Duals that are not feasible prove nothing, so they are lowered where they must be.
    """
    nrows, ncols = problem.shape
    sign = -1 if problem.maximize else 1
    u, v = (
        [Fraction(d) * sign for d in dual.tolist()] for dual in (claim.row_dual, claim.col_dual)
    )
    in_rows, in_cols = set(), set()
    if problem.cardinality == "maximum":
        in_rows, in_cols = (set(part.tolist()) for part in claim.cover)
    elif not problem.is_free:
        in_rows, in_cols = (
            (set(range(nrows)), set()) if nrows <= ncols else (set(), set(range(ncols)))
        )
    u = [d if row in in_rows else min(d, Fraction(0)) for row, d in enumerate(u)]
    v = [d if col in in_cols else min(d, Fraction(0)) for col, d in enumerate(v)]
    allowed = problem.within() if problem.cardinality == "maximum" else problem
    base = (
        [Fraction(x) for x in problem.limits.tolist()] if problem.is_free else [Fraction(0)] * nrows
    )
    down = [Fraction(0)] * nrows
    for row, col, cost in zip(allowed.rows.tolist(), allowed.cols.tolist(), allowed.costs.tolist()):
        if not (row in in_rows and col in in_cols):
            down[row] = max(down[row], u[row] + v[col] + base[row] - Fraction(cost))
    bound = sum(u, Fraction(0)) + sum(v, Fraction(0)) - sum(down, Fraction(0))
    return net(problem, claim) - bound


# -- broken ----------------------------------------------------------------------------------------


def _set(claim: SimpleNamespace, **changes: Any) -> bool:
    claim.__dict__.update(changes)
    return True


def _entry(rng: np.random.Generator, array: np.ndarray, value: Any) -> np.ndarray | None:
    """The array with another entry somewhere; None if it has none."""
    if not array.size:
        return None
    changed = array.copy()
    changed[rng.integers(array.size)] = value
    return changed


def _entry_of(name: str, *values: Any, kind: Any = None) -> Forgery:
    def forge(rng: np.random.Generator, problem: Problem, claim: SimpleNamespace) -> bool:
        array = getattr(claim, name)
        changed = _entry(rng, array if kind is None else array.astype(kind), rng.choice(values))
        return changed is not None and _set(claim, **{name: changed})

    return forge


def _value_of(name: str, *values: Any) -> Forgery:
    def forge(rng: np.random.Generator, problem: Problem, claim: SimpleNamespace) -> bool:
        return _set(claim, **{name: values[rng.integers(len(values))]})

    return forge


def _other_form(*names: str) -> Forgery:
    """Arrays of another length, shape or dtype."""
    forms: tuple[Callable[[np.ndarray], Any], ...] = (
        lambda array: array[:-1] if array.size else np.zeros(1, array.dtype),
        lambda array: np.append(array, array[:1] if array.size else 0),
        lambda array: array[None],
        lambda array: array.astype(complex),
        lambda array: array.astype(str),
        lambda array: array.astype(bool).astype("M8[s]"),
        lambda array: 0,
        lambda array: None,
    )

    def forge(rng: np.random.Generator, problem: Problem, claim: SimpleNamespace) -> bool:
        name = names[rng.integers(len(names))]
        return _set(claim, **{name: forms[rng.integers(len(forms))](getattr(claim, name))})

    return forge


def objective_off_by_one(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    largest = max(1, float(abs(problem.costs).max(initial=0)))
    step = 1 if problem.is_exact else largest * 2.0**-30
    return _set(claim, objective=claim.objective + step * rng.choice([-1, 1]).item())


def objective_that_has_wrapped(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    return problem.is_exact and _set(
        claim, objective=claim.objective + int(rng.choice([-1, 1])) * 2**64
    )


def two_rows_with_one_column(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    if claim.row_ind.size < 2:
        return False
    first, second = rng.permutation(claim.row_ind)[:2]
    claim.row_to_col[first] = claim.row_to_col[second]
    claim.col_ind = claim.row_to_col[claim.row_ind]
    return True


def mates_that_disagree(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    rolled = np.roll(claim.col_to_row, 1)
    return not np.array_equal(rolled, claim.col_to_row) and _set(claim, col_to_row=rolled)


def pairs_that_disagree(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    name = rng.choice(["row_ind", "col_ind"])
    rolled = np.roll(getattr(claim, name), 1)
    return not np.array_equal(rolled, getattr(claim, name)) and _set(claim, **{name: rolled})


def cover_that_lies(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    """One vertex less, one more, one out of range, or no numbers."""
    if claim.cover is None:
        return False
    side = int(rng.integers(2))
    own, length = claim.cover[side], problem.shape[side]
    others = np.setdiff1d(np.arange(length), own)
    lies = [np.append(own, length), np.append(own, -1), own.astype(float) + 0.5, own[None]]
    if own.size:
        lies.append(own[1:])
    else:
        del lies[2]  # of no vertices nothing is said
    if others.size:
        lies.append(np.append(own, others[:1]))
    lie = lies[rng.integers(len(lies))]
    if lie.ndim == 2 and not lie.size:
        return False
    return _set(claim, cover=(lie, claim.cover[1]) if side == 0 else (claim.cover[0], lie))


def no_cover(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    return claim.cover is not None and _set(claim, cover=None)


def costs_of_pairs_that_lie(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    if not claim.row_ind.size:
        return False
    costs = claim.pair_costs.astype(float) + 1 + abs(claim.pair_costs).max()
    return _set(claim, pair_costs=costs)


BROKEN: dict[str, Forgery] = {
    "objective off by one": objective_off_by_one,
    "objective wrapped": objective_that_has_wrapped,
    "objective no number": _value_of("objective", math.nan, math.inf, -math.inf, None, "1", 1j),
    "gap lies": _value_of("gap", math.nan, -1, -math.inf, math.inf, 10**9, 1e300, None),
    "mates out of range": _entry_of("row_to_col", -2, 99, 2**31 - 1),
    "mates of columns out of range": _entry_of("col_to_row", -2, 99, 2**31 - 1),
    "mates no integers": _entry_of("row_to_col", 0.5, math.nan, kind=float),
    "mates of another form": _other_form("row_to_col", "col_to_row"),
    "one column twice": two_rows_with_one_column,
    "mates disagree": mates_that_disagree,
    "pairs disagree": pairs_that_disagree,
    "duals not finite": _entry_of("row_dual", math.nan, math.inf, -math.inf, kind=float),
    "duals of columns not finite": _entry_of("col_dual", math.nan, math.inf, -math.inf, kind=float),
    "duals of another form": _other_form("row_dual", "col_dual"),
    "cover lies": cover_that_lies,
    "no cover": no_cover,
    "cardinality unknown": _value_of("cardinality", "least", "", None, 1),
    "limit no number": _value_of("cost_limit", math.nan, "1", np.array([1.0, math.nan]), 1j),
    "costs of pairs lie": costs_of_pairs_that_lie,
    "sizes lie": lambda rng, problem, claim: _set(claim, size=claim.size + 1),
}


# -- worse -----------------------------------------------------------------------------------------


def pairs(claim: SimpleNamespace, problem: Problem, row_to_col: np.ndarray) -> None:
    """Claim these pairs, with all that follows from them."""
    claim.row_to_col = row_to_col.astype(np.int32)
    claim.row_ind = np.flatnonzero(row_to_col >= 0)
    claim.col_ind = row_to_col[claim.row_ind].astype(np.int64)
    claim.col_to_row = np.full(problem.shape[1], -1, np.int32)
    claim.col_to_row[claim.col_ind] = claim.row_ind
    places = problem.places(claim.row_ind, claim.col_ind)
    if (places >= 0).all():
        sign = -1 if problem.maximize else 1
        paid = problem.costs[places] * sign
        claim.pair_costs = paid
        add = sum if problem.is_exact else math.fsum
        claim.objective = add(paid.tolist())
    claim.size = claim.row_ind.size


def mates_swapped(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    if problem.shape[0] < 2:
        return False
    first, second = rng.permutation(problem.shape[0])[:2]
    mates = claim.row_to_col.copy()
    mates[[first, second]] = mates[[second, first]]
    pairs(claim, problem, mates)
    return True


def other_column(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    free = np.flatnonzero(claim.col_to_row < 0)
    if not claim.row_ind.size or not free.size:
        return False
    mates = claim.row_to_col.copy()
    mates[rng.choice(claim.row_ind)] = rng.choice(free)
    pairs(claim, problem, mates)
    return True


def one_pair_less(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    if not claim.row_ind.size:
        return False
    mates = claim.row_to_col.copy()
    mates[rng.choice(claim.row_ind)] = -1
    pairs(claim, problem, mates)
    return True


def no_pairs(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    pairs(claim, problem, np.full(problem.shape[0], -1))
    return True


def _with_duals(change: Callable[[Any, Problem, SimpleNamespace], None]) -> Forgery:
    """Swapped mates, with duals that are to hide it."""

    def forge(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
        told = mates_swapped(rng, problem, claim) or other_column(rng, problem, claim)
        if not told:
            return False
        claim.gap = 0
        change(rng, problem, claim)
        return True

    return forge


def _huge(rng: Any, problem: Problem, claim: SimpleNamespace) -> None:
    """Duals that cancel, so large that any tolerance of their size covers all costs."""
    by = rng.choice([1e13, 1e18, 1e200, -1e13, -1e18])
    claim.row_dual, claim.col_dual = claim.row_dual + by, claim.col_dual - by


def _tight(rng: Any, problem: Problem, claim: SimpleNamespace) -> None:
    """Duals that add up to the objective, and are equal to the costs of all pairs."""
    claim.row_dual[:] = claim.col_dual[:] = 0
    claim.row_dual[claim.row_ind] = problem.values[problem.places(claim.row_ind, claim.col_ind)]


def _wrapped(rng: Any, problem: Problem, claim: SimpleNamespace) -> None:
    """int64 duals whose sums wrap around."""
    claim.row_dual = np.full(problem.shape[0], 2**63 - 1)
    claim.col_dual = np.full(problem.shape[1], -(2**63) + int(rng.integers(3)))


def _unsigned(rng: Any, problem: Problem, claim: SimpleNamespace) -> None:
    claim.row_dual = np.full(problem.shape[0], 2**64 - 1, np.uint64)
    claim.col_dual = np.full(problem.shape[1], 1, np.uint64)


def _short(rng: Any, problem: Problem, claim: SimpleNamespace) -> None:
    claim.row_dual = np.full(problem.shape[0], 127, np.int8)
    claim.col_dual = np.full(problem.shape[1], 127, np.int8)


def _shifted(rng: Any, problem: Problem, claim: SimpleNamespace) -> None:
    """The objective's excess put into one dual."""
    duals = math.fsum(claim.row_dual.tolist()) + math.fsum(claim.col_dual.tolist())
    claim.row_dual = claim.row_dual.astype(float)
    claim.row_dual[rng.integers(problem.shape[0])] += float(claim.objective) - duals


def _flag(name: str, *values: Any) -> Forgery:
    def forge(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
        value = values[rng.integers(len(values))]
        is_same = np.array_equal(getattr(claim, name), value)
        return not is_same and _set(claim, **{name: value})

    return forge


def other_limits(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    lie = rng.choice(problem.values, problem.shape[0]) if problem.values.size else np.zeros(0)
    lie = lie.astype(np.int64 if problem.is_integer else np.float64)
    return lie.size > 0 and _set(claim, cost_limit=lie if rng.random() < 0.5 else lie[0].item())


WORSE: dict[str, Forgery] = {
    "mates swapped": mates_swapped,
    "another column": other_column,
    "one pair less": one_pair_less,
    "no pairs": no_pairs,
    "huge duals": _with_duals(_huge),
    "tight duals": _with_duals(_tight),
    "wrapped duals": _with_duals(_wrapped),
    "unsigned duals": _with_duals(_unsigned),
    "short duals": _with_duals(_short),
    "shifted duals": _with_duals(_shifted),
    "maximised": _flag("maximize", True, False),
    "another cardinality": _flag("cardinality", "full", "maximum", "any"),
    "another limit": other_limits,
    "no limit": _flag("cost_limit", None),
}


# -- unproven --------------------------------------------------------------------------------------


def duals_lowered(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    name = rng.choice(["row_dual", "col_dual"])
    most = max(1, abs(problem.costs.astype(float)).max(initial=0))
    by = 1 if problem.is_exact else most * 2.0**-20
    changed = getattr(claim, name).copy()
    if not changed.size:
        return False
    changed[rng.integers(changed.size)] -= by * (-1 if problem.maximize else 1)
    return _set(claim, **{name: changed})


def duals_raised(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    return duals_lowered(rng, problem, _mirrored(claim)) and _copy_back(claim)


def _mirrored(claim: SimpleNamespace) -> SimpleNamespace:
    claim.row_dual, claim.col_dual = -claim.row_dual, -claim.col_dual
    return claim


def _copy_back(claim: SimpleNamespace) -> bool:
    _mirrored(claim)
    return True


def duals_zero(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    return _set(
        claim, row_dual=np.zeros_like(claim.row_dual), col_dual=np.zeros_like(claim.col_dual)
    )


def duals_exchanged(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    return _set(claim, row_dual=rng.permutation(claim.row_dual))


def duals_of_the_other_sign(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    return _set(claim, row_dual=-claim.row_dual, col_dual=-claim.col_dual)


def duals_far_away(rng: Any, problem: Problem, claim: SimpleNamespace) -> bool:
    by = float(rng.choice([1e15, -1e15, 1e300]))
    return _set(claim, row_dual=claim.row_dual + by, col_dual=claim.col_dual - by)


UNPROVEN: dict[str, Forgery] = {
    "duals lowered": duals_lowered,
    "duals raised": duals_raised,
    "duals zero": duals_zero,
    "duals exchanged": duals_exchanged,
    "duals of the other sign": duals_of_the_other_sign,
    "duals far away": duals_far_away,
}

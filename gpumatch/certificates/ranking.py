"""Check the k cheapest assignments, by code that algorithms do not share.

With the signs turned for costs to be maximised, and a limit for each payer that may stay unmatched
(`gpumatch.results.ranking` states what a payer, an option and a node are), these are checked:

1. each assignment matches all payers that have no limit, by pairs that are allowed and cost no more
   than their payer's limit, and no vertex twice; it costs what its objective says,
2. no two are the same; they are in order, and of equal costs in lexicographic order,
3. the tree divides all assignments: node 0 has them all. A divided node has its assignment, an
   order that begins with the fixed payers, and exactly one child for each place of the others,
4. in each node that is not divided, every assignment costs at least as much as the last one, by
   the theorem; or there is none in it.

Theorem. In a node, let F be what its fixed options cost, and u, v any prices of the other payers
and of the vertices that fixed payers don't have. If a vertex of the other side may stay unmatched,
put min(v_j, 0) in place of v_j. Let no u_i be above the limit of a payer that may stay unmatched
there, and make the prices fair for the pairs of the node (`gpumatch.certificates.slacks`). Then
every assignment of the node costs at least F + sum(u) + sum(v).

Proof. Each payer pays at least u_i and the v_j of its vertex; vertices that are in no pair have
v_j <= 0. If none may stay unmatched, all v_j are paid. ∎

A node has no assignment if some of its payers must be matched, to vertices that are fewer (Hall).

Integers are checked exactly. With floats, sums and signs are exact too, and the bound may be below
the last objective by the allowance of `gpumatch.certificates.gaps`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    check_flag,
    check_numbers,
)
from gpumatch.certificates.gaps import allowance_of, check_objective
from gpumatch.certificates.limits import bars_of, limits_of
from gpumatch.certificates.slacks import (
    LEAST,
    Prices,
    Shortfalls,
    most,
    nearest,
    sum_in_units,
    units_of,
)
from gpumatch.costs import CostBatch, Costs, as_costs
from gpumatch.numeric.arrays import array_of

__all__ = ["RankingCertificate", "RankingsCertificate", "verify_ranking", "verify_rankings"]


@dataclass(frozen=True)
class RankingCertificate(Certificate):
    """The proof of the k cheapest assignments, checked.

    Attributes
    ----------
    problem : str
        ``"ranking"``.
    size : int
        Assignments.
    bound : int or float
        What every other assignment costs at least; the objective of the last one, or inf (-inf to
        be maximised) if there are no others.
    edges : int
        Pairs that were checked, once for each node.
    first, last : int, float or None
        The objectives of the first and the last assignment.
    parts : int
        Nodes of the tree; 0 if no proof was asked for.
    """

    first: float | None
    last: float | None
    parts: int

    def __str__(self) -> str:
        ends = "" if self.first is None else f" from {self.first} to {self.last}"
        if not self.parts:
            return f"ranked: {self.size}{ends}, not proven to be the cheapest"
        rest = "; there are no others" if math.isinf(self.bound) else ""
        return f"cheapest: {self.size}{ends}, proven by a tree of {self.parts} parts{rest}"


@dataclass(frozen=True)
class RankingsCertificate(Certificate):
    """The proofs of a batch of rankings, checked.

    Attributes
    ----------
    problem : str
        ``"rankings"``.
    size, edges : int
        Assignments and checked pairs of all problems.
    bound : int or float
        The sum of the bounds.
    certificates : tuple of RankingCertificate
        Those of the problems.
    """

    certificates: tuple[RankingCertificate, ...]

    def __str__(self) -> str:
        is_proven = all(one.parts for one in self.certificates)
        return (
            f"{'cheapest' if is_proven else 'not proven to be the cheapest'}: {self.size} "
            f"assignments of {len(self.certificates)} problems"
        )


def verify_rankings(
    C: Any, result: Any, *, sizes: Any = None, optimal: bool = True
) -> RankingsCertificate:
    """Check the k cheapest assignments of each problem of a batch; see `gpumatch.verify`."""
    problems = CostBatch(C, sizes)
    if len(problems) != len(result):
        raise CertificateError(f"there are {len(problems)} problems, but {len(result)} results")
    checked = []
    for number, costs in enumerate(problems):
        try:
            checked.append(verify_ranking(costs, result[number], optimal=optimal))
        except CertificateError as exc:
            raise CertificateError(f"problem {number}: {exc}") from exc
    return RankingsCertificate(
        "rankings",
        sum(one.size for one in checked),
        sum(one.bound for one in checked),
        sum(one.edges for one in checked),
        tuple(checked),
    )


def verify_ranking(C: Any, result: Any, *, optimal: bool = True) -> RankingCertificate:
    """Check the k cheapest assignments and their partition; see `gpumatch.verify`."""
    claim = _Claim(as_costs(C).to_host(), result)
    claim.check_assignments()
    claim.check_order()
    tree = result.tree
    if tree is None:
        if optimal:
            raise CertificateError("there is no tree that proves this: ask k_best for proof=True")
        return claim.certificate(0, 0, None)
    checker = _Tree(claim, tree)
    checker.check_division()
    return claim.certificate(len(tree.parent), checker.check_leaves(), checker)


class _Claim:
    """A result and its costs, turned so that payers are rows and costs are minimised."""

    def __init__(self, costs: Costs, result: Any) -> None:
        self.result = result
        self.sign = -1 if check_flag("maximize", result.maximize) else 1
        if (costs.low if self.sign > 0 else -costs.high) == -math.inf:
            raise CertificateError("an infinite cost asks for a pair instead of forbidding it")
        nrows, ncols = costs.shape
        limits = limits_of(result.cost_limit, costs, self.sign)
        has_own = getattr(result.cost_limit, "shape", ()) != ()
        self.by_columns = nrows > ncols and not has_own
        self.is_integer = costs.is_integer and (limits is None or limits.dtype.kind == "i")
        self.costs, self.allowed = _matrix_of(costs, self.sign, self.by_columns)
        self.limits = None if limits is None else limits[:1].repeat(len(self.costs))
        if has_own:
            self.limits = limits
        if self.limits is not None:
            self.allowed &= self.costs <= bars_of(self.limits, costs.is_integer)[:, None]
        if not self.is_integer:
            self.costs = self.costs.astype(np.float64, copy=False)
        self.largest = most(self.costs[self.allowed])
        self.options = self._options(array_of(np, result.row_to_col), nrows, ncols)
        self.objective = check_numbers(
            "objectives", array_of(np, result.objective), len(self.options)
        )
        if not len(self.costs):  # a limit that nobody pays may have a fraction
            self.is_integer &= self.objective.dtype.kind == "i"

    def _options(self, row_to_col: np.ndarray, nrows: int, ncols: int) -> np.ndarray:
        """The option of each payer in each assignment."""
        is_fit = row_to_col.ndim == 2 and row_to_col.shape[1] == nrows
        if not is_fit or row_to_col.dtype.kind != "i":
            raise CertificateError(
                f"row_to_col must be integers, {nrows} for each assignment; "
                f"got {row_to_col.dtype} of shape {row_to_col.shape}"
            )
        if row_to_col.size and (row_to_col.min() < -1 or row_to_col.max() >= ncols):
            raise CertificateError(f"a row is matched to a column outside [-1, {ncols})")
        if not self.by_columns:
            return row_to_col.astype(np.int64)
        options = np.full((len(row_to_col), ncols), -1)
        for mates, own in zip(row_to_col, options):
            (rows,) = (mates >= 0).nonzero()
            own[mates[rows]] = rows
            if np.count_nonzero(own >= 0) != rows.size:
                raise CertificateError("a column is matched twice")
        return options

    def check_assignments(self) -> None:
        """Point 1."""
        self.totals = []
        for number, options in enumerate(self.options):
            (payers,) = (options >= 0).nonzero()
            others = options[payers]
            if np.unique(others).size != others.size:
                raise CertificateError(f"assignment {number} matches a vertex twice")
            if not self.allowed[payers, others].all():
                raise CertificateError(f"assignment {number} has a pair that is forbidden")
            rest = options < 0
            if self.limits is None and rest.any():
                raise CertificateError(
                    f"assignment {number} leaves vertex {int(rest.argmax())} of the smaller side "
                    "unmatched"
                )
            paid = self.costs[payers, others]
            dues = self.limits[rest] if self.limits is not None else paid[:0]
            total = sum_in_units(paid) + sum_in_units(dues)
            self.totals.append(total)
            magnitude = sum_in_units(abs(paid)) + sum_in_units(abs(dues))
            check_objective(
                self.objective[number].item(), total * self.sign, self.is_integer,
                functools.partial(int, magnitude),
            )  # fmt: skip

    def check_order(self) -> None:
        """Point 2."""
        keys = [
            (self.sign * claimed, mates)
            for claimed, mates in zip(
                self.objective.tolist(), array_of(np, self.result.row_to_col).tolist()
            )
        ]
        for number in range(1, len(keys)):
            if keys[number - 1] >= keys[number]:
                raise CertificateError(f"assignment {number} is not after the one before")
        if len({tuple(mates) for _, mates in keys}) != len(keys):
            raise CertificateError("two assignments are the same")

    def allowance(self, dual: float) -> float:
        """How far below the last objective a bound of floats may be."""
        if self.is_integer:
            return 0
        largest = self.largest
        if self.limits is not None:
            largest = max(largest, most(self.limits))
        return allowance_of(max(1, len(self.costs)), largest, dual)

    def certificate(self, parts: int, edges: int, tree: Any) -> RankingCertificate:
        claimed = self.objective.tolist()
        first, last = (claimed[0], claimed[-1]) if claimed else (None, None)
        far = self.sign * math.inf
        bound = -far if tree is None else far if tree.is_complete or last is None else last
        return RankingCertificate(
            "ranking", len(claimed), bound, edges, first=first, last=last, parts=parts
        )


class _Node(NamedTuple):
    """A node of the tree.

    Attributes
    ----------
    fixed : int array
        The option of each payer that is fixed; FREE for the others.
    excluded : list of (payer, option)
    numbers : array
        The duals of payers and of the others, or the marks of an empty node.
    """

    fixed: np.ndarray
    excluded: list[tuple[int, int]]
    numbers: np.ndarray


_FREE = -2


class _Tree:
    """The partition of a claim."""

    def __init__(self, claim: _Claim, tree: Any) -> None:
        self.claim, self.tree = claim, tree
        self.is_complete = check_flag("is_complete", claim.result.is_complete)
        if check_flag("by_columns", tree.by_columns) != claim.by_columns:
            raise CertificateError("the tree divides by the other side")
        self.payers, self.others = claim.costs.shape

    def check_division(self) -> None:
        """Point 3."""
        tree, count = self.tree, len(self.tree.parent)
        if count == 0 or tree.parent[0] != -1 or tree.opened.shape != tree.parent.shape:
            raise CertificateError("the tree has no first node")
        if (tree.parent[1:] < 0).any() or (tree.parent >= np.arange(count)).any():
            raise CertificateError("a node comes before its parent")
        opened = tree.opened[tree.opened >= 0]
        if np.unique(opened).size != opened.size or opened.max(initial=-1) >= len(
            self.claim.options
        ):
            raise CertificateError("an assignment is taken from two nodes")
        if (self.is_complete or not len(self.claim.options)) and opened.size != len(
            self.claim.options
        ):
            raise CertificateError("an assignment is taken from no node")
        if len(self.claim.options) - opened.size > 1:
            raise CertificateError("more than one assignment is taken from no node")
        self._check_children()

    def _check_children(self) -> None:
        """Check that the children of each divided node are those of its free places."""
        tree = self.tree
        places: dict[int, list[int]] = {
            node: [] for node, number in enumerate(tree.opened.tolist()) if number >= 0
        }
        for parent, place in zip(tree.parent[1:].tolist(), tree.place[1:].tolist()):
            if parent not in places:
                raise CertificateError(f"node {parent} has children, but is not divided")
            places[parent].append(place)
        for node, its in places.items():
            depth = 0 if node == 0 else int(tree.place[node])
            if sorted(its) != list(range(depth, self.payers)):
                raise CertificateError(f"the children of node {node} leave assignments out")
            order = tree.order[tree.opened[node]]
            if not np.array_equal(np.sort(order), np.arange(self.payers)):
                raise CertificateError(f"the order of node {node} is no permutation")
            if node and not np.array_equal(order[:depth], self._order_above(node)[:depth]):
                raise CertificateError(f"the order of node {node} changes what is fixed")

    def _order_above(self, node: int) -> np.ndarray:
        order: np.ndarray = self.tree.order[self.tree.opened[self.tree.parent[node]]]
        return order

    def _nodes(self) -> Iterator[tuple[int, _Node]]:
        """All nodes, each after its parent."""
        tree = self.tree
        kept: dict[int, _Node] = {}
        starts = tree.starts
        if starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] != tree.differences.size:
            raise CertificateError("the differences do not belong to nodes")
        size = self.payers + self.others
        number = np.int64 if self.claim.is_integer else np.float64
        values = check_numbers("differences", tree.differences, tree.vertices.size)
        if self.claim.is_integer and values.dtype.kind == "f":
            raise CertificateError("the differences must be integers, as the costs are")
        for node, parent in enumerate(tree.parent.tolist()):
            its = slice(starts[node], starts[node + 1])
            if parent < 0:
                above = _Node(np.full(self.payers, _FREE), [], np.zeros(size, number))
                fixed, excluded = above.fixed, above.excluded
            else:
                above = kept[parent]
                fixed, excluded = self._part(above, parent, int(tree.place[node]))
            is_empty = bool(tree.is_empty[node])
            numbers = np.zeros(size, number) if is_empty else above.numbers.copy()
            numbers[tree.vertices[its]] += values[its]
            made = _Node(fixed, excluded, numbers)
            if tree.opened[node] >= 0:
                kept[node] = made
            yield node, made

    def _part(
        self, above: _Node, parent: int, place: int
    ) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """What a child fixes and excludes."""
        number = self.tree.opened[parent]
        order, options = self.tree.order[number], self.claim.options[number]
        fixed = above.fixed.copy()
        fixed[order[:place]] = options[order[:place]]
        payer = int(order[place])
        return fixed, [*above.excluded, (payer, int(options[payer]))]

    def check_leaves(self) -> int:
        """Point 4, and that a divided node has its assignment; the number of pairs looked at."""
        edges = 0
        for node, part in self._nodes():
            number = self.tree.opened[node]
            if number >= 0:
                self._check_inside(node, part, self.claim.options[number])
            elif self.tree.is_empty[node]:
                edges += self._check_empty(node, part)
            elif self.is_complete or not len(self.claim.options):
                raise CertificateError(f"node {node} may have another assignment")
            else:
                edges += self._check_bound(node, part)
        return edges

    def _check_inside(self, node: int, part: _Node, options: np.ndarray) -> None:
        is_fixed = part.fixed != _FREE
        is_inside = np.array_equal(part.fixed[is_fixed], options[is_fixed])
        if not is_inside or any(options[payer] == option for payer, option in part.excluded):
            raise CertificateError(
                f"node {node} does not have the assignment that is taken from it"
            )

    def _open_pairs(self, part: _Node) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Free payers, free others, the pairs that are allowed, and who may stay unmatched."""
        claim = self.claim
        (payers,) = (part.fixed == _FREE).nonzero()
        is_open = np.ones(self.others, bool)
        is_open[part.fixed[part.fixed >= 0]] = False
        (others,) = is_open.nonzero()
        may_stay = np.full(self.payers, claim.limits is not None)
        allowed = claim.allowed
        if part.excluded:
            allowed = allowed.copy()
            for payer, option in part.excluded:
                if option < 0:
                    may_stay[payer] = False
                else:
                    allowed[payer, option] = False
        return payers, others, allowed[np.ix_(payers, others)], may_stay[payers]

    def _check_empty(self, node: int, part: _Node) -> int:
        """Check that marked payers have fewer marked vertices, and no other options."""
        payers, others, allowed, may_stay = self._open_pairs(part)
        is_short = part.numbers[payers] > 0
        is_among = part.numbers[self.payers + others] < 0
        has_way = bool(may_stay[is_short].any() or allowed[is_short][:, ~is_among].any())
        if has_way or np.count_nonzero(is_short) <= np.count_nonzero(is_among):
            raise CertificateError(f"node {node} may have an assignment")
        return int(np.count_nonzero(allowed[is_short]))

    def _check_bound(self, node: int, part: _Node) -> int:
        """Check that the node's assignments cost as much as the last one; the theorem."""
        claim = self.claim
        payers, others, allowed, may_stay = self._open_pairs(part)
        u, v = part.numbers[payers], part.numbers[self.payers + others]
        if payers.size != others.size or may_stay.any():
            v = np.minimum(v, 0)
        if claim.limits is not None:
            u = np.where(may_stay, np.minimum(u, claim.limits[payers]), u)
        prices = Prices([u], [v], claim.largest, is_integer=claim.is_integer)
        short = Shortfalls(allowed.shape, prices.dtype)
        if allowed.size:
            tile = np.arange(payers.size)[:, None], np.arange(others.size)[None, :]
            costs = claim.costs[np.ix_(payers, others)]
            short.add(np.ones(payers.size, bool), *prices.below(*tile, costs, allowed))
        bound = sum_in_units(u) + sum_in_units(v) - sum_in_units(short.lowered[0])
        bound += self._fixed_cost(part)
        missing = claim.totals[-1] - bound
        dual = max(most(u), most(v)) if u.size else 0
        if missing > 0 and missing > units_of(claim.allowance(dual)):
            raise CertificateError(
                f"node {node} is proven to cost {_shown(bound, claim)} at least, less than the "
                "last assignment"
            )
        return int(np.count_nonzero(allowed))

    def _fixed_cost(self, part: _Node) -> int:
        """What the fixed options cost, in units."""
        claim = self.claim
        (matched,) = (part.fixed >= 0).nonzero()
        cost = sum_in_units(claim.costs[matched, part.fixed[matched]])
        if claim.limits is not None:
            cost += sum_in_units(claim.limits[part.fixed == -1])
        return cost


def _shown(units: int, claim: _Claim) -> float:
    value = units >> LEAST if claim.is_integer else nearest(units)
    return claim.sign * value


def _matrix_of(costs: Costs, sign: int, by_columns: bool) -> tuple[np.ndarray, np.ndarray]:
    """The costs to be minimised as int64 or float64, payers as rows, and which are allowed."""
    matrix = np.zeros(costs.shape, np.int64 if costs.is_integer else np.float64)
    allowed = np.zeros(costs.shape, bool)
    for tile in costs.tiles():
        rows, cols, values = costs.tile(tile)
        fine = abs(values) < math.inf
        matrix[rows, cols] = np.where(fine, values, 0)
        allowed[rows, cols] = fine
    matrix *= sign
    return (matrix.T, allowed.T) if by_columns else (matrix, allowed)

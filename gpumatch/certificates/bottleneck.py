"""Check a bottleneck assignment, by code that algorithms do not share.

`gpumatch.problems.bottleneck` states why this proves it. With the signs turned for costs to be
maximised, these are checked:

1. the mate arrays name each other,
2. every pair is allowed and costs what is claimed, and the objective is the largest of these costs,
3. the pairs are as many as asked for: all of the smaller side, or those of a vertex cover that
   every allowed pair touches,
4. every pair cheaper than the objective touches the threshold cover, which has fewer vertices than
   there are pairs.

Theorem. Then no assignment with as many pairs has a smaller largest cost.

Proof. Each pair of an assignment needs a vertex of its own in a cover of all its pairs. One whose
pairs are all cheaper than the objective would need as many vertices as it has pairs, but the
threshold cover has fewer. With ``"maximum"``, the other cover shows in the same way that there are
no more pairs. ∎

Costs are compared, not added, as int64, uint64 or float64 with Python's numbers, which NumPy does
not round for that. So all of this is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    ClaimedBottleneck,
    check_cardinality,
    check_claim_of_size,
    check_flag,
    check_pair_costs,
    check_pairs,
    count_of,
    cover_of,
    first_pair,
    marks_of,
    python_number,
)
from gpumatch.costs import Costs, as_costs
from gpumatch.numeric.arrays import array_of, first_true

CARDINALITIES = ("full", "maximum")


@dataclass(frozen=True)
class BottleneckCertificate(Certificate):
    """The proof of a bottleneck assignment, checked.

    Attributes
    ----------
    problem : str
        ``"bottleneck"``.
    size : int
        Assigned pairs.
    bound : int
        Vertices of the threshold cover: no more pairs are better than the objective.
    edges : int
        Allowed pairs that were checked.
    objective : int, float or None
        The largest cost of a pair; None if there are no pairs.
    """

    objective: float | None

    def __str__(self) -> str:
        return (
            f"optimal: {self.size} pairs up to {self.objective}, and a cover of {self.bound} "
            f"vertices of all that are better, checked on {self.edges} pairs"
        )


def verify_bottleneck(C: Any, result: ClaimedBottleneck) -> BottleneckCertificate:
    """Check a bottleneck assignment and its covers; see `gpumatch.verify`."""
    costs = as_costs(C, summed=False)  # they are only compared
    xp = costs.xp
    maximize = check_flag("maximize", result.maximize)
    check_cardinality(result.cardinality, CARDINALITIES)
    if (-costs.high if maximize else costs.low) == -math.inf:
        raise CertificateError("an infinite cost asks for a pair instead of forbidding it")
    mates = array_of(xp, result.row_to_col), array_of(xp, result.col_to_row)
    row_to_col, _ = check_pairs(*mates, costs.shape)
    rows = (row_to_col >= 0).nonzero()[0]
    size = int(rows.size)
    objective = _objective(costs, result, rows, row_to_col[rows])
    if result.cardinality == "maximum":
        in_rows, in_cols, count = _cover(costs, lambda: cover_of(result))
        if count != size:
            raise CertificateError(f"{size} pairs are assigned, but the cover has {count} vertices")
        _check_touched(costs, in_rows, in_cols, _allowed, "is not in the cover")
    elif size != min(costs.shape):
        raise CertificateError(
            f"{size} pairs are assigned, not the smaller side, {min(costs.shape)}"
        )
    check_claim_of_size(result, size)
    in_rows, in_cols, bound = _cover(costs, result.threshold_cover)
    if size and bound >= size:
        raise CertificateError(
            f"the threshold cover has {bound} vertices, which {size} pairs do not exceed: no proof"
        )
    edges = _check_touched(
        costs,
        in_rows,
        in_cols,
        _better(objective, maximize),
        "is better than the objective, but not covered",
    )
    return BottleneckCertificate("bottleneck", size, bound, edges, objective)


def _objective(costs: Costs, result: ClaimedBottleneck, rows: Any, cols: Any) -> float | None:
    """Point 2; the cost of the pair that is farthest from best, as Python's number."""
    stray = first_true(~costs.allows(rows, cols))
    if stray is not None:
        raise CertificateError(
            f"row {int(rows[stray])} is assigned to column {int(cols[stray])}, "
            "but that pair is forbidden"
        )
    if not rows.size:
        if result.objective is not None:
            raise CertificateError(f"there are no pairs, but the objective is {result.objective}")
        return None
    paid = _exact(costs.at(rows, cols))
    if hasattr(result, "pair_costs"):
        _check_named(array_of(costs.xp, result.pair_costs), paid)
    most: float = (paid.min() if result.maximize else paid.max()).item()
    if python_number("the objective", result.objective) != most:
        raise CertificateError(
            f"the objective is {result.objective}, but the pair farthest from best costs {most}"
        )
    return most


def _check_named(claimed: Any, paid: Any) -> None:
    """Check the costs of the pairs that a result names."""
    if (claimed.dtype.kind == "f") != (paid.dtype.kind == "f"):
        raise CertificateError("pair_costs does not agree with the costs of the pairs in its type")
    check_pair_costs(claimed, paid)


def _cover(costs: Costs, cover: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any, int]:
    """A cover of the result as marks of rows and of columns, and how many there are."""
    try:
        rows, cols = (array_of(costs.xp, part) for part in cover())
    except ValueError as exc:
        raise CertificateError(str(exc)) from exc
    in_rows = marks_of(costs.xp, rows, costs.shape[0], "row")
    in_cols = marks_of(costs.xp, cols, costs.shape[1], "column")
    return in_rows, in_cols, count_of(in_rows) + count_of(in_cols)


def _allowed(values: Any) -> Any:
    return abs(values) < math.inf


def _better(objective: float | None, maximize: bool) -> Callable[[Any], Any]:
    """What marks the costs that are better than the objective."""
    if objective is None:
        return _allowed
    if maximize:
        return lambda values: _allowed(values) & (values > objective)
    return lambda values: _allowed(values) & (values < objective)


def _check_touched(
    costs: Costs, in_rows: Any, in_cols: Any, is_meant: Callable[[Any], Any], what: str
) -> int:
    """Check that a cover touches the pairs that are meant; the number of allowed pairs."""
    count = 0
    for rows, cols, values in _tiles(costs):
        count += count_of(_allowed(values))
        bare = is_meant(values) & ~(in_rows[rows] | in_cols[cols])
        pair = first_pair(costs.xp, rows, cols, bare)
        if pair is not None:
            raise CertificateError(f"the pair of row {pair[0]} and column {pair[1]} {what}")
    return count


def _tiles(costs: Costs) -> Iterator[tuple[Any, Any, Any]]:
    """Rows, columns and costs of all pairs, a tile at a time, in arrays that broadcast."""
    for tile in costs.tiles():
        rows, cols, values = costs.tile(tile)
        yield rows, cols, _exact(values)


def _exact(values: Any) -> Any:
    """The costs in a type in which comparing them with a Python number does not round it."""
    if values.dtype.kind == "u" and values.dtype.itemsize == 8:
        return values
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64, copy=False)

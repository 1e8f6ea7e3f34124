"""The front door to the k cheapest assignments."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from numbers import Integral
from typing import Any

from gpumatch.costs import CostBatch, as_costs, is_batch
from gpumatch.dispatch.arguments import checked_flag, checked_threads
from gpumatch.numeric.arrays import device_array
from gpumatch.problems.device_ranking import rank_on_device
from gpumatch.problems.ranking import Ranked, rank, rank_all
from gpumatch.results.ranking import RankedAssignments, RankedBatch
from gpumatch.results.tensors import are_tensors, solve_tensors
from gpumatch.running.control import Callback, Control, with_interrupts_result

__all__ = ["k_best"]


@with_interrupts_result
def k_best(
    C: Any,
    k: int,
    *,
    maximize: bool = False,
    cost_limit: Any = None,
    proof: bool = False,
    weight: Hashable | None = "weight",
    row_nodes: Iterable[Hashable] | None = None,
    sizes: Any = None,
    threads: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
) -> RankedAssignments | RankedBatch:
    """Find the k cheapest assignments, in order.

    Parameters
    ----------
    C : whatever `assign` takes
        The costs of one problem, dense or sparse, or a batch of problems.
    k : int
        How many assignments are wanted, at least 1.
    maximize : bool
        Find those of the greatest total instead.
    cost_limit : number, or array of length nrows, optional
        Without it, each vertex of the smaller side is matched. With it, a vertex of the smaller
        side may stay unmatched, and then costs the limit, and pairs that cost more are forbidden
        (`alternatives` lists these).
        An array has a limit for each row: then each row pays its own, and columns pay nothing.
    proof : bool
        Keep the proof as `RankedAssignments.tree`, which `verify` checks.
    weight, row_nodes, sizes
        As for `assign`.
    threads, time_limit, progress, callback
        As for `maximum_matching`. Problems of a batch are solved on all cores. A run that is
        stopped returns the first assignments, which are the cheapest. ``callback(progress)`` sees
        the number found so far as ``matched``.

    Returns
    -------
    RankedAssignments, or RankedBatch for a batch
        With tensors in place of arrays if the costs are torch tensors
        or JAX arrays. Fewer than k assignments if
        there are no more, none if no full assignment exists. Two assignments differ in some pair.
        Those of equal cost are in lexicographic order of `row_to_col`. If more than k share the
        last one's cost, which of them are returned depends on the algorithm, but not on threads or
        time.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong, or the costs are not valid, as for `assign`.

    Notes
    -----
    A matrix, or an array of matrices, on a device is ranked there, a warp a problem, if no proof is
    asked for and rows times columns times k are at most 2**26. Such a run cannot be stopped.
    Everything else is ranked on the host, and its results go to the device of the costs.

    Integer costs are ranked exactly. The order of other costs is true up to rounding: an assignment
    that is left out may be cheaper than the last one by some units in the last place of the largest
    cost for each pair, but not by more.

    Murty's partition with the order and the inherited duals of Miller, Stone and Cox: for n rows
    and m >= n columns, O(n²m) for the first assignment and at most O(n(nm + m log m)) for each
    other one. A part is solved only when its bound is reached; then it takes one path.

    References
    ----------
    Murty, *An algorithm for ranking all the assignments in order of increasing cost*, Operations
    Research 16(3), 1968; Miller, Stone, Cox, *Optimizing Murty's ranked assignment method*, IEEE
    Transactions on Aerospace and Electronic Systems 33(3), 1997.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> C = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    >>> b = gm.k_best(C, 3, proof=True)
    >>> b.objective.tolist()
    [5, 6, 6]
    >>> b.row_to_col.tolist()
    [[1, 0, 2], [0, 1, 2], [2, 1, 0]]
    >>> print(gm.verify(C, b))
    cheapest: 3 from 5 to 6, proven by a tree of 7 parts
    """
    count, wants_proof = _checked_count(k), checked_flag(proof, "proof")
    is_largest, workers = checked_flag(maximize, "maximize"), checked_threads(threads)
    control = Control(
        time_limit=time_limit, progress=checked_flag(progress, "progress"), callback=callback
    )

    def run(C: Any, cost_limit: Any, sizes: Any) -> RankedAssignments | RankedBatch:
        wish = Ranked(count, is_largest, cost_limit, wants_proof)
        if type(C) is device_array() and C.ndim in (2, 3) and sizes is None:
            ranked = rank_on_device(C, wish)
            if ranked is not None:
                return ranked if C.ndim == 3 else ranked[0]
        if sizes is not None or is_batch(C):
            problems = C if isinstance(C, CostBatch) else CostBatch(C, sizes)
            control.total = wish.k * len(problems)
            ranked_all = rank_all(problems, wish, control, workers)
            return RankedBatch.of(ranked_all, wish.k, problems.shape[0])
        control.total = wish.k
        alone = rank(as_costs(C, weight, row_nodes), wish, control.tick)
        control.close(len(alone))
        return alone

    arguments = {"cost_limit": cost_limit, "sizes": sizes}
    return solve_tensors(run, C, **arguments) if are_tensors(C) else run(C, **arguments)


def _checked_count(k: Any) -> int:
    """Return how many assignments are wanted."""
    if not isinstance(k, Integral) or isinstance(k, bool):
        raise TypeError(f"k must be an integer; got {k!r}")
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k}")
    return int(k)

"""One transport problem of some thousand pairs in a compiled call, with its duals and their proof.

The network simplex method (`gpumatch.cpu.transport.simplex`) solves it on all pairs, which are few.
What comes in and what comes out is as in `gpumatch.cpu.transport.small`, but the pairs are entries
in CSR. They are copied once, checked, and turned if rows have more mass than columns: caller's
columns are nodes of rows then. All numbers are floats, and integers are exact in them.

    indptr, indices, values   a caller's CSR, whose columns must ascend strictly in each row
    owner, entry_of[k]        the row of each entry; the entry of arc k, after those of the root
    units[e]                  the flow of entry e
    numbers                   duals of the caller's rows, then of columns, less the limit for those
                              that may keep units
    left                      units that each node has left, room for both sides
    totals                    HIGH, LOW, GAP, as in `small`

A problem with an infinite cost, without a path for some units, or with unsorted entries is not for
this code, and neither is one whose duals leave more than rounding. `small` says what is proven.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.contracts.batch import LARGEST_INTEGER
from gpumatch.contracts.transport import SmallFlows
from gpumatch.cpu.assignment.small.proof import gap_above
from gpumatch.cpu.numba_tools.compiled import kernel, strict_kernel
from gpumatch.cpu.numba_tools.error_free import difference_below
from gpumatch.cpu.own_csr import copy_offsets, int32_of
from gpumatch.cpu.transport import simplex
from gpumatch.cpu.transport.small import GAP, LEAST, add_paid
from gpumatch.numeric.arrays import for_kernels
from gpumatch.numeric.gaps import ULPS, UNIT

__all__ = ["solve"]

FAR = 64
"""How many times the range of costs a unit costs that stays, where all must be shipped."""
WHOLE = 2.0**53
"""float64 holds all integers up to this."""
ROUNDING = 2.0**-48
"""The reduced cost of floats that is rounding, as a share of the largest magnitude."""
BUDGET = 2**27
"""Arcs and nodes that pivots look at, at most: some tenths of a second."""
LEAST_BLOCK, NODES_IN_BLOCK = 32, 4
"""The arcs of which the best one enters: at least, and nodes for each of them."""
HIGH, LOW = range(2)
_ALL = np.ones(1, bool)


def solve(
    arrays: tuple[Any, Any, Any],
    supply: np.ndarray,
    demand: np.ndarray,
    sign: float,
    limit: float,
    takes_equal: bool,
    largest: float,
) -> SmallFlows | None:
    """The solution of a problem in CSR, whose arrays are as a caller gave them.

    None if it is not for this code.
    """
    indptr, indices = int32_of(arrays[0]), int32_of(arrays[1])
    if indptr is None or indices is None or not indices.size:
        return None
    values = for_kernels(np.ascontiguousarray(arrays[2], np.float64))
    if values.ndim != 1 or values.size != indices.size:
        return None
    nrows, ncols, size = supply.size, demand.size, indices.size
    offsets = np.empty(nrows + 1, np.int32)
    if not copy_offsets(indptr, size, offsets) or offsets[nrows] != size:
        return None
    turned = int(supply.sum()) > int(demand.sum())
    nodes = nrows + ncols + 1
    ends, cost = np.empty((2, nodes + size), np.int32), np.empty(nodes + size)
    entry_of, owner = np.empty((2, size), np.int32)
    sides = (demand, supply) if turned else (supply, demand)
    arcs = ends[0], ends[1], cost
    count = take(
        offsets, indices, values, *sides, sign, limit, turned, largest,  # IN
        arcs, entry_of, owner,  # OUT
    )  # fmt: skip
    if count == 0:
        return None
    links = np.empty((6, nodes), np.int32)
    tree = links[0], links[1], np.zeros(nodes, np.int64), *links[2:]
    dual, units, left = np.zeros(nodes), np.zeros(size, np.int64), np.empty(nodes, np.int64)
    state, totals = np.zeros(simplex.STATES, np.int64), np.empty(3)
    numbers = np.empty(nrows + ncols)
    is_solved = run(
        arcs, count, entry_of, owner, indices, values, turned, *sides, sign, limit,  # IN
        takes_equal, largest,
        tree, dual, units, left, state, numbers, totals,  # OUT
    )  # fmt: skip
    if not is_solved:
        return None
    used = units.nonzero()[0]
    return SmallFlows(
        _ALL, np.array((0, used.size)), owner[used].astype(np.int64),
        indices[used].astype(np.int64), units[used], values[used], numbers[None, :nrows],
        numbers[None, nrows:], totals[:GAP, None], totals[GAP:], state[simplex.PIVOTS :][:1],
        state[simplex.SEEN :][:1],
    )  # fmt: skip


@strict_kernel  # else NaN passes
def take(
    offsets, indices, values, supply, demand, sign, limit, turned, largest, arcs, entry_of, owner
):  # fmt: skip
    """Copy the entries as arcs, after those of the root; return how many arcs, 0 if one is unfit.

    Pairs of a vertex without mass are no arcs.
    """
    tails, heads, cost = arcs
    nrows, root = supply.size, supply.size + demand.size
    width = supply.size if turned else demand.size
    fit = limit == np.inf or limit == 0 or LEAST <= abs(limit) <= largest
    low, high, count = np.inf, -np.inf, root
    for line in range(offsets.size - 1):
        before = -1
        for entry in range(offsets[line], offsets[line + 1]):
            other, there = indices[entry], sign * values[entry]
            if other <= before or other >= width:
                return 0
            fit &= there == 0 or LEAST <= abs(there) <= largest
            owner[entry] = line
            before = other
            tail, head = (other, line) if turned else (line, other)
            low, high = min(low, there), max(high, there)
            if supply[tail] > 0 and demand[head] > 0:
                tails[count], heads[count], cost[count] = tail, nrows + head, there
                entry_of[count - root] = entry
                count += 1
    most = max(abs(low), abs(high))
    stays = limit if limit < np.inf else high + FAR * (high - low) + max(most, 1.0)
    for node in range(root):
        tails[node] = node if node < nrows else root
        heads[node] = root if node < nrows else node
        cost[node] = stays if node < nrows else 0.0
    is_exact = largest <= LARGEST_INTEGER
    if is_exact and 4.0 * (min(nrows, demand.size) + 2) * max(abs(stays), most) > WHOLE:
        return 0
    return count if fit else 0


@kernel
def run(
    arcs, count, entry_of, owner, indices, values, turned, supply, demand, sign, limit, takes_equal,
    largest, tree, dual, units, left, state, numbers, totals,
):  # fmt: skip
    """Find a cheapest flow and its duals; return whether they prove it."""
    _, _, cost = arcs
    _, arc, flow, _, _, _, _ = tree
    nrows, root = supply.size, supply.size + demand.size
    is_exact = largest <= LARGEST_INTEGER
    simplex.begin(arcs, tree, dual, supply, demand)
    most = 0.0
    for one in range(count):
        most = max(most, abs(cost[one]))
    tolerance = 0.0 if is_exact else ROUNDING * most
    block = max(LEAST_BLOCK, root // NODES_IN_BLOCK)
    if simplex.pivot(arcs, count, tree, dual, nrows, state, block, tolerance, BUDGET) != (
        simplex.DONE
    ):
        return False
    simplex.refresh_duals(arcs, tree, dual)
    for node in range(root):
        if arc[node] >= root:
            units[entry_of[arc[node] - root]] = flow[node]
        elif arc[node] < nrows and limit == np.inf and flow[node] > 0:
            return False  # no path, or one that costs more than to stay
    for node in range(root):
        left[node] = supply[node] if node < nrows else demand[node - nrows]
    for entry in range(owner.size):
        tail, head = _ends(owner, indices, entry, turned)
        left[tail] -= units[entry]
        left[nrows + head] -= units[entry]
    if takes_equal:
        _ship_at_limit(owner, indices, values, turned, sign, limit, units, left, nrows)
    if limit == np.inf:
        _raise_prices(arcs, tree, dual, demand, left)
    _settle_duals(owner, indices, values, turned, supply, demand, sign, limit, dual)
    is_proven = _prove(
        owner, indices, values, turned, supply, demand, sign, limit, is_exact, units, dual, totals
    )
    own, other = (supply.size, 0) if turned else (0, supply.size)
    size = demand.size if turned else supply.size
    for line in range(size):
        numbers[line] = sign * dual[own + line]
    for line in range(root - size):
        numbers[size + line] = sign * dual[line if turned else other + line]
    totals[HIGH], totals[LOW] = sign * totals[HIGH], sign * totals[LOW]
    return is_proven


@kernel
def _ends(owner, indices, entry, turned):
    """Return the places of an entry's vertices in supply and demand."""
    if turned:
        return indices[entry], owner[entry]
    return owner[entry], indices[entry]


@kernel
def _ship_at_limit(owner, indices, values, turned, sign, limit, units, left, nrows):
    """Ship units that stay by pairs that cost no more than the limit."""
    for entry in range(owner.size):
        tail, head = _ends(owner, indices, entry, turned)
        more = min(left[tail], left[nrows + head])
        if more > 0 and sign * values[entry] <= limit:
            units[entry] += more
            left[tail] -= more
            left[nrows + head] -= more


@kernel
def _raise_prices(arcs, tree, dual, demand, left):
    """If all columns are full, raise their duals until one is 0; they are more exact then.

    The cost of units that stay, which all of them are the less for, is far above all others.
    """
    root = tree[0].size - 1
    nrows, greatest = root - demand.size, -np.inf
    for node in range(nrows, root):
        if left[node] > 0:
            return
        if demand[node - nrows] > 0:
            greatest = max(greatest, dual[node])
    if greatest > -np.inf:
        for row in range(nrows):
            arcs[2][row] += greatest
        simplex.refresh_duals(arcs, tree, dual)


@kernel
def _settle_duals(owner, indices, values, turned, supply, demand, sign, limit, dual):
    """Make prices at most 0, those of columns that take nothing low enough, and rows' duals fair.

    The duals of rows are less the limit then.
    """
    nrows, root = supply.size, supply.size + demand.size
    for node in range(nrows, root):
        dual[node] = min(dual[node], 0.0) if demand[node - nrows] > 0 else 0.0
    for entry in range(owner.size):
        tail, head = _ends(owner, indices, entry, turned)
        if demand[head] == 0 and supply[tail] > 0:
            dual[nrows + head] = min(dual[nrows + head], sign * values[entry] - dual[tail])
    for row in range(nrows):
        dual[row] = limit
    for entry in range(owner.size):
        tail, head = _ends(owner, indices, entry, turned)
        there = difference_below(sign * values[entry], dual[nrows + head])
        dual[tail] = min(dual[tail], there)
    base = limit if limit < np.inf else 0.0
    for row in range(nrows):
        dual[row] = difference_below(dual[row], base) if dual[row] < np.inf else 0.0


@kernel
def _prove(
    owner, indices, values, turned, supply, demand, sign, limit, is_exact, units, dual, totals
):  # fmt: skip
    """Write the cost in two floats and the gap; return whether the duals prove the flow."""
    nrows, ncols = supply.size, demand.size
    total = rest = bound = bound_rest = lost = 0.0
    used = largest = shipped = 0.0
    for entry in range(owner.size):
        if units[entry] > 0:
            there = sign * values[entry]
            total, rest, lost = add_paid(total, rest, lost, there, units[entry])
            if limit < np.inf:
                bound, bound_rest, lost = add_paid(bound, bound_rest, lost, limit, units[entry])
            used = max(used, abs(there))
            shipped += units[entry]
    for node in range(nrows + ncols):
        mass = supply[node] if node < nrows else demand[node - nrows]
        bound, bound_rest, lost = add_paid(bound, bound_rest, lost, dual[node], mass)
        largest = max(largest, abs(dual[node]))
    totals[HIGH], totals[LOW], totals[GAP] = total, rest, np.inf
    if is_exact and lost > 0:
        return False
    if limit < np.inf and shipped > 0:
        used = max(used, abs(limit))
    gap = gap_above(total, rest, bound, bound_rest, lost)
    totals[GAP] = gap
    scale = max(used, min(largest, 4.0 * (min(nrows, ncols) + 1) * used))
    return gap == 0 or (not is_exact and 0 < gap <= ULPS * UNIT * shipped * scale)

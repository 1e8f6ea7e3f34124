"""Shortest augmenting paths of a transport problem in CSR, which ship their bottlenecks.

The search from a row with units to ship is Dijkstra's over the residual graph, with the reduced
costs c - u - v >= 0 of pairs as lengths. The way back, from a full column to a row that ships to
it, has length 0, because pairs with flow are tight. The search is pruned: once it has reached a
column that is not full, or a row whose units may stay, it keeps no column that is as far or
farther. Columns no farther than the front wait in a queue, all others in a heap. A path ships as
much as its root has, its end takes, and its pairs against the flow carry. The prices of the columns
in the tree fall afterwards, so that all pairs with flow stay tight.

The number of searches does not depend on the masses alone: each of them empties a root, fills a
column, or ends the flow of a pair.

    entries      indptr, indices, costs: CSR, at most one entry a pair
    price[j]     the dual v of column j
    unmatched[i] units that row i has yet to ship
    unshipped[i] units of row i that stay, at the price of its limit
    spare[j]     units that column j can still take
    flow[e]      units that the pair of entry e carries
    owner[e]     the row of entry e
    head, link   the entries with flow of column j as a list: head[j], link[head[j]], ... up to END;
                 link[e] is ABSENT if e is in no list. An entry whose flow has ended leaves the list
                 when its column is scanned next.
    limit[i]     what a unit of row i costs that is not shipped; empty if each row ships all

    dist[j]      distance of column j from the root; ``far`` if not reached
    pred[j]      the entry by which column j is reached
    via[i]       the entry, against whose flow row i is reached; ABSENT if not reached
    offset[i]    distance of row i, less its dual
    line         rows of the tree: line[:LINE_HEAD] are scanned, line[:LINE_TAIL] are reached
    near, keys, heap, tree, reached: as in `searches.sparse`
    spot, mark   the state of a search that has spent its budget, so that the next call goes on:
                 see `state`

Reference: Ahuja, Magnanti, Orlin, *Network Flows*, 1993; chapter 9.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import kernel, vector_kernel
from gpumatch.cpu.numba_tools.prefetch import prefetch_range
from gpumatch.cpu.numba_tools.vector_min import lesser
from gpumatch.cpu.searches.heap import drop_top, push
from gpumatch.cpu.transport.state import (
    ABSENT,
    END,
    FOUND,
    FRONT,
    HEAD,
    LEAVE,
    LEAVER,
    LEFT,
    LINE_HEAD,
    LINE_TAIL,
    NEAR,
    NEXT,
    PATHS,
    REACHED,
    SCANS,
    SERVED,
    SINK,
    SPENT,
    STUCK,
    TAIL,
    WAITING,
)

__all__ = [
    "BUDGET",
    "augment",
    "column_minima",
    "list_flows",
    "part_slack",
    "row_duals",
    "ship_tight",
]

BUDGET = 2**22
"""Entries read between two returns to Python: under half a second even with the heap."""


# -- duals -----------------------------------------------------------------------------------------


@vector_kernel
def column_minima(indices, costs, price):
    """Lower prices to the least costs of columns."""
    for entry in range(indices.size):
        col = indices[entry]
        price[col] = lesser(price[col], costs[entry])


@kernel
def _least(entries, price, limit, far, row):
    """Return the dual of a row: its least reduced cost, or its limit."""
    indptr, indices, costs = entries
    least = limit[row] if limit.size > 0 else far
    for entry in range(indptr[row], indptr[row + 1]):
        least = lesser(least, costs[entry] - price[indices[entry]])
    return least


@kernel
def row_duals(entries, price, limit, far, row_dual, first, last):
    """Write the duals of rows first to last; 0 for a row without entries and limit."""
    for row in range(first, last):
        least = _least(entries, price, limit, far, row)
        row_dual[row] = least if least < far else 0


# -- flows -----------------------------------------------------------------------------------------


@kernel
def _join(link, head, col, entry):
    """Put an entry into the list of its column, if it is in none."""
    if link[entry] == ABSENT:
        link[entry] = head[col]
        head[col] = entry


@kernel
def list_flows(entries, owner, flow, link, head):
    """List the entries with flow by columns; write the row of each entry."""
    indptr, indices, _ = entries
    for row in range(indptr.size - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            owner[entry] = row
            link[entry] = ABSENT
            if flow[entry] > 0:
                _join(link, head, indices[entry], entry)


@kernel
def ship_tight(entries, flows, price, limit, far, first, last):
    """Ship from rows first to last by tight pairs to columns that are not full."""
    indptr, indices, costs = entries
    _, flow, link, head, spare, unmatched, unshipped = flows
    for row in range(first, last):
        if unmatched[row] == 0:
            continue
        least = _least(entries, price, limit, far, row)
        for entry in range(indptr[row], indptr[row + 1]):
            col = indices[entry]
            if spare[col] > 0 and costs[entry] - price[col] <= least:
                units = min(spare[col], unmatched[row])
                flow[entry] += units
                spare[col] -= units
                unmatched[row] -= units
                _join(link, head, col, entry)
                if unmatched[row] == 0:
                    break
        if limit.size > 0 and limit[row] <= least:
            unshipped[row] += unmatched[row]
            unmatched[row] = 0


@kernel
def part_slack(entries, flows, price, limit, far, rounding, first, last):
    """End the flow of pairs that are not tight, of rows first to last.

    ``rounding`` is the share of costs and prices that may be an error of rounding.
    """
    indptr, indices, costs = entries
    _, flow, _, _, spare, unmatched, unshipped = flows
    for row in range(first, last):
        least = _least(entries, price, limit, far, row)
        for entry in range(indptr[row], indptr[row + 1]):
            if flow[entry] > 0:
                col = indices[entry]
                there = costs[entry] - price[col]
                if there - least > rounding * (abs(there) + abs(price[col])):
                    spare[col] += flow[entry]
                    unmatched[row] += flow[entry]
                    flow[entry] = 0
        if limit.size > 0 and limit[row] > least:
            unmatched[row] += unshipped[row]
            unshipped[row] = 0


# -- paths -----------------------------------------------------------------------------------------


@kernel
def _grow(entries, flows, price, root, spot, mark, room, terms, budget):
    """Grow the tree of ``root`` until no shorter path exists or the budget is spent.

    Returns what ended the search, and the work.
    """
    indptr, indices, costs = entries
    owner, flow, link, head, spare, _, _ = flows
    dist, pred, via, offset, line, near, keys, heap, tree, reached = room
    limit, low, far = terms
    leaves = limit.size > 0
    front, leave = mark[FRONT], mark[LEAVE]
    near_head, tail, nears = spot[HEAD], spot[TAIL], spot[NEAR]
    line_head, line_tail = spot[LINE_HEAD], spot[LINE_TAIL]
    waiting, count = spot[WAITING], spot[REACHED]
    sink, leaver = spot[SINK], spot[LEAVER]
    if near_head < 0:
        near_head = tail = nears = waiting = count = line_head = 0
        line[0], via[root], offset[root], line_tail = root, END, 0, 1
        sink, leaver = -1, root if leaves else -1
        front, leave = low, limit[root] if leaves else far
    outcome, work = SPENT, 0
    while True:
        while line_head < line_tail and work < budget:
            row = line[line_head]
            line_head += 1
            if line_head < line_tail:
                later = line[line_head]
                prefetch_range(costs, indptr[later], indptr[later + 1] - 1)
                prefetch_range(indices, indptr[later], indptr[later + 1] - 1)
            begin, end, start = indptr[row], indptr[row + 1], offset[row]
            work += 1 + end - begin
            for entry in range(begin, end):
                col = indices[entry]
                there = (costs[entry] - price[col]) + start
                if there >= leave or there >= dist[col]:
                    continue
                if there < front:
                    if far < np.inf:
                        continue  # a sum beyond 2**63 has wrapped around
                    there = front  # but for rounding
                    if there >= dist[col]:
                        continue
                if dist[col] == far:
                    reached[count] = col
                    count += 1
                dist[col] = there
                pred[col] = entry
                if spare[col] > 0:
                    leave, sink, leaver = there, col, -1
                elif there <= front:
                    near[nears] = col
                    nears += 1
                else:
                    push(keys, heap, waiting, there, col)
                    waiting += 1
        if work >= budget:
            break
        if near_head < nears and front < leave:
            col = near[near_head]
            near_head += 1
        else:
            if waiting == 0 or keys[0] >= leave:
                front = leave
                outcome = STUCK if leave == far else LEFT if leaver >= 0 else FOUND
                break
            key, col = keys[0], heap[0]
            waiting -= 1
            drop_top(keys, heap, waiting)
            if key > dist[col]:
                continue
            front = key
        tree[tail] = col
        tail += 1
        work += 1
        last, entry = END, head[col]
        while entry != END:
            after = link[entry]
            if flow[entry] == 0:
                link[entry] = ABSENT
                if last == END:
                    head[col] = after
                else:
                    link[last] = after
            else:
                last, row = entry, owner[entry]
                if via[row] == ABSENT:
                    via[row] = entry
                    offset[row] = front - (costs[entry] - price[col])
                    line[line_tail] = row
                    line_tail += 1
                    if leaves and limit[row] + offset[row] < leave:
                        leave, leaver = limit[row] + offset[row], row
                        leave = leave if leave > front else front
                work += 1
            entry = after
    mark[FRONT], mark[LEAVE] = front, leave
    spot[HEAD], spot[TAIL], spot[NEAR] = near_head, tail, nears
    spot[LINE_HEAD], spot[LINE_TAIL] = line_head, line_tail
    spot[WAITING], spot[REACHED] = waiting, count
    spot[SINK], spot[LEAVER] = sink, leaver
    return outcome, work


@kernel
def _ship(entries, flows, room, root, sink, leaver):
    """Ship the bottleneck of the path from the root to a column, or to a row whose units stay."""
    indices = entries[1]
    owner, flow, link, head, spare, unmatched, unshipped = flows
    pred, via = room[1], room[2]
    units = unmatched[root]
    if sink >= 0:
        units = min(units, spare[sink])
    row = owner[pred[sink]] if sink >= 0 else leaver
    while row != root:
        units = min(units, flow[via[row]])
        row = owner[pred[indices[via[row]]]]
    if sink >= 0:
        spare[sink] -= units
        flow[pred[sink]] += units
        _join(link, head, sink, pred[sink])
        row = owner[pred[sink]]
    else:
        unshipped[leaver] += units
        row = leaver
    while row != root:
        flow[via[row]] -= units
        col = indices[via[row]]
        entry = pred[col]
        flow[entry] += units
        _join(link, head, col, entry)
        row = owner[entry]
    unmatched[root] -= units


@kernel
def augment(entries, flows, price, roots, spot, mark, room, terms, budget):
    """Ship all units of the rows of ``roots`` by shortest paths, as far as the budget goes.

    Returns how it ended: SERVED; SPENT; or STUCK if a row has no path. Then its tree stays.
    """
    dist, via, line, tree, reached = room[0], room[2], room[4], room[8], room[9]
    unmatched, far = flows[5], terms[2]
    while spot[NEXT] < roots.size:
        root = roots[spot[NEXT]]
        if spot[HEAD] < 0 and unmatched[root] == 0:
            spot[NEXT] += 1
            continue
        if budget <= 0:
            return SPENT
        outcome, work = _grow(entries, flows, price, root, spot, mark, room, terms, budget)
        budget -= work
        spot[SCANS] += work
        if outcome in (SPENT, STUCK):
            return outcome
        for k in range(spot[TAIL]):
            price[tree[k]] += dist[tree[k]] - mark[FRONT]
        if outcome == FOUND:
            _ship(entries, flows, room, root, spot[SINK], -1)
        else:
            _ship(entries, flows, room, root, -1, spot[LEAVER])
        spot[PATHS] += 1
        for k in range(spot[REACHED]):
            dist[reached[k]] = far
        for k in range(spot[LINE_TAIL]):
            via[line[k]] = ABSENT
        spot[HEAD] = -1
    return SERVED

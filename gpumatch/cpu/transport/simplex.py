"""The network simplex method for a transport problem whose arcs are a list that may grow.

The nodes are rows, then columns, then a root. Beside the arcs from rows to columns there is one
from each row to the root, for units that stay, and one from the root to each column, for demand
that is not met. So every problem has a first tree. An arc that costs less than the duals of its
ends enters the tree, flow turns along the cycle that it closes, and an arc whose flow has become 0
leaves. Arcs have no upper bounds. The arcs of nearby numbers are looked at in blocks, and the best
one of a block enters.

The tree stays strongly feasible: an arc without flow points to the root. So no sequence of trees
repeats, whatever ties there are (Cunningham). A pivot moves any number of units at once.

From a tree that is nearly right, `sweep` is much faster than `pivot`: it goes through arcs that
were too cheap at the last duals, and adds up the costs along the cycle of each, so pivots change
no dual. One of `pivot` changes those of all nodes below the arc, which may be most of them.

    arcs         tail, head, cost: nodes and costs of arcs. Arc a < nodes - 1 is the one between
                 node a and the root.
    dual[w]      u of a row, v of a column, 0 for the root
    parent[w]    the next node on the way to the root; END for the root
    arc[w]       the arc between node w and its parent; it points up for rows, down for columns
    flow[w]      the units of that arc
    size[w]      nodes in the tree below node w, itself included
    child, after, before     the children of a node as a list in both directions

Finding the end of the cycle by sizes, and what changes in a pivot, is as in LEMON
(Király, Kovács, *Efficient implementations of minimum-cost flow algorithms*, Acta Universitatis
Sapientiae, Informatica 4, 2012). Its order of nodes by threads is a list of children here.

Reference: Cunningham, *A network simplex method*, Mathematical Programming 11, 1976.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = [
    "DONE",
    "NEXT",
    "PIVOTS",
    "SPENT",
    "STATES",
    "VAIN",
    "absorb",
    "begin",
    "find_cheap",
    "greedy",
    "pivot",
    "plant",
    "planting_room",
    "pour",
    "refresh_duals",
    "sweep",
]

END = -1
NEXT, PIVOTS, SEEN, MOVED, VAIN, STATES = range(6)
DONE, SPENT = range(2)
_NO_BOUND = 2**63 - 1


@kernel
def _hang(tree, node, above):
    """Make a node the first child of another one."""
    parent, _, _, _, child, after, before = tree
    first = child[above]
    parent[node], after[node], before[node] = above, first, END
    child[above] = node
    if first != END:
        before[first] = node


@kernel
def _unhang(tree, node):
    """Take a node from the children of its parent."""
    parent, _, _, _, child, after, before = tree
    left, right = before[node], after[node]
    if left == END:
        child[parent[node]] = right
    else:
        after[left] = right
    if right != END:
        before[right] = left


@kernel
def begin(arcs, tree, dual, supply, demand):
    """Make the tree of the root alone: all units stay."""
    parent, arc, flow, size, child, after, before = tree
    _, _, cost = arcs
    nrows, root = supply.size, supply.size + demand.size
    for node in range(root + 1):
        child[node] = after[node] = before[node] = END
        size[node] = 1
    parent[root], arc[root], size[root], dual[root] = END, END, root + 1, 0
    for node in range(root):
        arc[node], dual[node] = node, cost[node]
        flow[node] = supply[node] if node < nrows else demand[node - nrows]
        _hang(tree, node, root)


def planting_room(arcs, nodes):
    """Room for `plant`, with so many arcs that have flow, and nodes."""
    return (
        np.empty(arcs, np.int64), np.empty(2 * arcs, np.int64), np.empty(nodes + 2, np.int64),
        *np.empty((2, nodes), np.int32),
    )  # fmt: skip


@kernel
def plant(arcs, used, units, tree, dual, nrows, room):
    """Make a tree of arcs with flow: units[k] by arc used[k]. Return how many of them it lacks.

    An arc that closes a cycle is not in the tree; `absorb` takes it. The places of these arcs in
    ``used`` are written into the first of ``room``. Its others are two places of each arc, a begin
    of each node and two more, and two arrays of a number for each node.
    """
    tails, heads, _ = arcs
    parent, arc, flow, size, child, after, before = tree
    closing, near, begins, line, head = room
    root = parent.size - 1
    for node in range(root + 1):
        child[node] = after[node] = before[node] = END
        parent[node], size[node], head[node] = END, 1, node
    begins[:] = 0
    extra = 0
    for k in range(used.size):
        one, two = _head_of(head, tails[used[k]]), _head_of(head, heads[used[k]])
        if one == two:
            closing[extra] = k
            extra += 1
            continue
        head[one] = two
        begins[tails[used[k]] + 2] += 1
        begins[heads[used[k]] + 2] += 1
    for node in range(2, root + 3):
        begins[node] += begins[node - 1]
    left_out = 0
    for k in range(used.size):
        if left_out < extra and closing[left_out] == k:
            left_out += 1
            continue
        tail, end = tails[used[k]] + 1, heads[used[k]] + 1
        near[begins[tail]] = near[begins[end]] = k
        begins[tail] += 1
        begins[end] += 1
    arc[root], flow[root] = END, 0
    count = 0
    for place in range(root + 1):  # the root's own tree, then those of rows that it does not reach
        top = root if place == 0 else place - 1
        if top != root and parent[top] != END:
            continue
        if top != root:
            arc[top], flow[top] = top, 0
            _hang(tree, top, root)
        done = count
        line[count] = top
        count += 1
        while done < count:
            node = line[done]
            done += 1
            for slot in range(begins[node], begins[node + 1]):
                k = near[slot]
                other = heads[used[k]] if tails[used[k]] == node else tails[used[k]]
                if other != parent[node]:
                    arc[other], flow[other] = used[k], units[k]
                    _hang(tree, other, node)
                    line[count] = other
                    count += 1
    for place in range(count - 1, 0, -1):
        size[parent[line[place]]] += size[line[place]]
    refresh_duals(arcs, tree, dual)
    return extra


@kernel
def _head_of(head, node):
    """Return the node that stands for the tree of another one."""
    while head[node] != node:
        head[node] = head[head[node]]
        node = head[node]
    return node


@kernel
def absorb(arcs, used, units, closing, first, tree, nrows, budget):
    """Turn flow along the cycles of arcs, from the first on, until an arc of each is empty.

    The flow turns in the cheaper direction, and the arc enters the tree in place of an empty one.
    Returns the next arc.
    """
    tails, heads, cost = arcs
    spent = 0
    while first < closing.size and spent < budget:
        k = closing[first]
        entering = used[k]
        tail, head = tails[entering], heads[entering]
        along, walked = _around(tree, cost, tail, head, nrows)
        spent += 1 + 2 * walked
        if cost[entering] + along <= 0:
            _turn(tree, entering, tail, head, units[k], _NO_BOUND, nrows)
        else:
            _turn(tree, entering, head, tail, units[k], units[k], nrows)
        first += 1
    return first


@kernel
def pour(rows_of, row_begins, cols_of, col_begins, groups, left, need, sent_rows, sent_cols, sent):
    """Divide flow between groups of rows and columns among their members; return how many pairs.

    ``groups``: group of rows, group of columns, units. The members of a group stand in rows_of from
    row_begins on, which changes.
    """
    count = 0
    for k in range(groups.shape[1]):
        of_rows, of_cols, units = groups[0, k], groups[1, k], groups[2, k]
        while units > 0:
            row, col = rows_of[row_begins[of_rows]], cols_of[col_begins[of_cols]]
            some = min(units, min(left[row], need[col]))
            if some > 0:
                sent_rows[count], sent_cols[count], sent[count] = row, col, some
                count += 1
                units -= some
                left[row] -= some
                need[col] -= some
            if units > 0 and left[row] == 0:
                row_begins[of_rows] += 1
            if units > 0 and need[col] == 0:
                col_begins[of_cols] += 1
    return count


@kernel
def refresh_duals(arcs, tree, dual):
    """Compute all duals anew from the root on."""
    parent, arc, _, _, child, after, _ = tree
    cost = arcs[2]
    root = parent.size - 1
    node = child[root]
    while node != END:
        above = parent[node]
        dual[node] = cost[arc[node]] - dual[above]
        if child[node] != END:
            node = child[node]
            continue
        while node != root and after[node] == END:
            node = parent[node]
        node = END if node == root else after[node]


@kernel
def _move(tree, dual, top, nrows, of_rows):
    """Add to the duals of the rows below ``top``, and take from those of columns; count them."""
    parent, _, _, _, child, after, _ = tree
    node, count = top, 0
    while True:
        dual[node] += of_rows if node < nrows else -of_rows
        count += 1
        if child[node] != END:
            node = child[node]
            continue
        while node != top and after[node] == END:
            node = parent[node]
        if node == top:
            return count
        node = after[node]


@kernel
def _turn(tree, entering, down, up, carried, room, nrows):
    """Turn flow along an arc and from its end ``up`` through the tree to its other end ``down``.

    The arc carries some units before, and takes ``room`` more or has so many to give. Returns its
    end that has moved, or END if it has not entered the tree. The one that leaves is the last empty
    one of the cycle, as seen from the node where both ways to the root meet.
    """
    parent, arc, flow, size, _, _, _ = tree
    one, two = down, up
    units, leaving = room, END
    units_of_two, leaving_of_two = _NO_BOUND, END
    while one != two:  # a smaller subtree cannot be the join
        if size[one] < size[two]:
            if one < nrows and flow[one] < units:
                units, leaving = flow[one], one
            one = parent[one]
        else:
            if two >= nrows and flow[two] <= units_of_two:
                units_of_two, leaving_of_two = flow[two], two
            two = parent[two]
    join, is_down = one, units < units_of_two
    if not is_down:
        units, leaving = units_of_two, leaving_of_two
    node = down
    while node != join:
        flow[node] -= units if node < nrows else -units
        node = parent[node]
    node = up
    while node != join:
        flow[node] += units if node < nrows else -units
        node = parent[node]
    if leaving == END:
        return END
    inner, outer = (down, up) if is_down else (up, down)
    moved, node, is_above = size[leaving], inner, False
    while node != join:
        size[node] -= moved if is_above else 0
        is_above |= node == leaving
        node = parent[node]
    node = outer
    while node != join:
        size[node] += moved
        node = parent[node]
    carried += units if room == _NO_BOUND else -units
    node, above, link, sent, left = inner, outer, entering, carried, moved
    while True:
        next_node, next_link, next_sent, whole = parent[node], arc[node], flow[node], size[node]
        _unhang(tree, node)
        _hang(tree, node, above)
        arc[node], flow[node], size[node] = link, sent, left
        if node == leaving:
            break
        above, link, sent, left = node, next_link, next_sent, moved - whole
        node = next_node
    return inner


@kernel
def _enter(arcs, tree, entering, nrows):
    """Exchange an arc without flow for another one; return its end that has moved."""
    tails, heads, _ = arcs
    return _turn(tree, entering, tails[entering], heads[entering], 0, _NO_BOUND, nrows)


@kernel
def greedy(arcs, order, tree, nrows):
    """Ship along the arcs of ``order`` what both ends have left at the root."""
    tails, heads, _ = arcs
    parent, _, flow, _, _, _, _ = tree
    root = parent.size - 1
    for entering in order:
        tail, head = tails[entering], heads[entering]
        if parent[tail] == root and parent[head] == root and flow[tail] > 0 and flow[head] > 0:
            _enter(arcs, tree, entering, nrows)


@kernel
def pivot(arcs, count, tree, dual, nrows, state, block, tolerance, budget):
    """Exchange arcs until none of the first ``count`` is cheaper than its ends: DONE, or SPENT."""
    tails, heads, cost = arcs
    place, fruitless, seen, moved, pivots = state[NEXT], 0, 0, 0, 0
    outcome = DONE
    while fruitless < count:
        if seen + moved >= budget:
            outcome = SPENT
            break
        best, entering = -tolerance, END
        place = 0 if place >= count else place
        last = place + block
        last = last if last < count else count
        for one in range(place, last):
            reduced = cost[one] - dual[tails[one]] - dual[heads[one]]
            if reduced < best:
                best, entering = reduced, one
        seen += last - place
        fruitless += last - place
        place = last
        if entering != END:
            fruitless = 0
            inner = _enter(arcs, tree, entering, nrows)
            moved += _move(tree, dual, inner, nrows, best if inner < nrows else -best)
            pivots += 1
    state[NEXT] = place
    state[PIVOTS] += pivots
    state[SEEN] += seen
    state[MOVED] += moved
    return outcome


# -- sweeps ----------------------------------------------------------------------------------------


@kernel
def find_cheap(arcs, count, dual, block, tolerance, cheap, keys):
    """Write the arcs that cost less than their ends, one of each block, and by how much.

    Returns how many there are.
    """
    tails, heads, cost = arcs
    found = 0
    for first in range(0, count, block):
        best, entering = -tolerance, END
        last = first + block
        for one in range(first, last if last < count else count):
            reduced = cost[one] - dual[tails[one]] - dual[heads[one]]
            if reduced < best:
                best, entering = reduced, one
        if entering != END:
            cheap[found], keys[found] = entering, best
            found += 1
    return found


@kernel
def _around(tree, cost, down, up, nrows):
    """Return the cost of a unit from ``up`` through the tree to ``down``, and the nodes passed."""
    parent, arc, _, size, _, _, _ = tree
    one, two, passed = down, up, 0
    total = cost[0] * 0
    while one != two:
        passed += 1
        if size[one] < size[two]:
            total += -cost[arc[one]] if one < nrows else cost[arc[one]]
            one = parent[one]
        else:
            total += cost[arc[two]] if two < nrows else -cost[arc[two]]
            two = parent[two]
    return total, passed


@kernel
def sweep(arcs, cheap, tree, nrows, state, tolerance, patience, budget):
    """Let those of some arcs enter that are too cheap when it is their turn, from state[NEXT] on.

    DONE if all have had their turn, or those that were not cheap any more have had walks through
    more than ``patience`` nodes. Duals do not change.
    """
    tails, heads, cost = arcs
    place, pivots, spent, vain, outcome = state[NEXT], 0, 0, state[VAIN], DONE
    while place < cheap.size and vain < patience:
        if spent >= budget:
            outcome = SPENT
            break
        entering = cheap[place]
        place += 1
        along, passed = _around(tree, cost, tails[entering], heads[entering], nrows)
        spent += 1 + passed
        if cost[entering] + along < -tolerance:
            _enter(arcs, tree, entering, nrows)
            spent += 3 * passed
            pivots += 1
        else:
            vain += passed
    state[NEXT], state[VAIN] = place, vain
    state[PIVOTS] += pivots
    state[SEEN] += spent
    return outcome

"""The network simplex method for a transport problem whose arcs are a list that may grow.

The nodes are rows, then columns, then a root. Beside the arcs from rows to columns there is one
from each row to the root, for units that stay, and one from the root to each column, for demand
that is not met. So every problem has a first tree. An arc that costs less than the duals of its
ends enters the tree, flow turns along the cycle that it closes, and an arc whose flow has become 0
leaves. Arcs have no upper bounds. The arcs of nearby numbers are looked at in blocks, and the best
one of a block enters.

The tree stays strongly feasible: an arc without flow points to the root. So no sequence of trees
repeats, whatever ties there are (Cunningham). A pivot moves any number of units at once.

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

from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = [
    "DONE",
    "PIVOTS",
    "SPENT",
    "STATES",
    "begin",
    "greedy",
    "pivot",
    "plant",
    "pour",
    "refresh_duals",
]

END = -1
NEXT, PIVOTS, SEEN, MOVED, STATES = range(5)
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


@kernel
def plant(arcs, first, sent, tree, dual, supply, demand, near, line):
    """Make the tree of a flow without cycles, which ships all: sent[k] units by arc first + k.

    ``near`` is room for two arcs of each arc and a begin of each node, ``line`` for the nodes.
    """
    tails, heads, _ = arcs
    parent, arc, flow, size, child, after, before = tree
    nrows, root = supply.size, supply.size + demand.size
    begins, near = near[: root + 2], near[root + 2 :]
    begins[:] = 0
    for k in range(first, first + sent.size):
        begins[tails[k] + 2] += 1
        begins[heads[k] + 2] += 1
    for node in range(2, root + 2):
        begins[node] += begins[node - 1]
    for k in range(first, first + sent.size):
        near[begins[tails[k] + 1]] = near[begins[heads[k] + 1]] = k
        begins[tails[k] + 1] += 1
        begins[heads[k] + 1] += 1
    for node in range(root + 1):
        child[node] = after[node] = before[node] = END
        parent[node], size[node] = END, 1
    arc[root], dual[root] = END, 0
    count = 0
    for top in range(nrows):
        if parent[top] != END:
            continue
        arc[top], flow[top] = top, 0
        _hang(tree, top, root)
        head = count
        line[count] = top
        count += 1
        while head < count:
            node = line[head]
            head += 1
            for slot in range(begins[node], begins[node + 1]):
                k = near[slot]
                other = heads[k] if tails[k] == node else tails[k]
                if other != parent[node]:
                    arc[other], flow[other] = k, sent[k - first]
                    _hang(tree, other, node)
                    line[count] = other
                    count += 1
    for place in range(count - 1, -1, -1):
        size[parent[line[place]]] += size[line[place]]
    refresh_duals(arcs, tree, dual)


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
def _exchange(arcs, tree, entering, nrows):
    """Turn flow along the cycle of an arc, and exchange arcs; return its end that has moved."""
    tails, heads, _ = arcs
    parent, arc, flow, size, _, _, _ = tree
    tail, head = tails[entering], heads[entering]
    one, two = tail, head
    units, leaving = _NO_BOUND, END
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
    join, is_tails = one, units < units_of_two
    if not is_tails:
        units, leaving = units_of_two, leaving_of_two
    inner, outer = (tail, head) if is_tails else (head, tail)
    moved, is_above = size[leaving], False
    of_rows = -units if is_tails else units
    node = inner
    while node != join:
        flow[node] += of_rows if node < nrows else -of_rows
        size[node] -= moved if is_above else 0
        is_above |= node == leaving
        node = parent[node]
    node = outer
    while node != join:
        flow[node] -= of_rows if node < nrows else -of_rows
        size[node] += moved
        node = parent[node]
    node, above, link, sent, left = inner, outer, entering, units, moved
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
def greedy(arcs, order, tree, nrows):
    """Ship along the arcs of ``order`` what both ends have left at the root."""
    tails, heads, _ = arcs
    parent, _, flow, _, _, _, _ = tree
    root = parent.size - 1
    for entering in order:
        tail, head = tails[entering], heads[entering]
        if parent[tail] == root and parent[head] == root and flow[tail] > 0 and flow[head] > 0:
            _exchange(arcs, tree, entering, nrows)


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
            inner = _exchange(arcs, tree, entering, nrows)
            moved += _move(tree, dual, inner, nrows, best if inner < nrows else -best)
            pivots += 1
    state[NEXT] = place
    state[PIVOTS] += pivots
    state[SEEN] += seen
    state[MOVED] += moved
    return outcome

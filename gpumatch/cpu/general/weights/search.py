"""One search of Edmonds' algorithm: a tree of tight edges from one unmatched vertex.

A search moves the duals of its tree alone. At *distance* d, the duals of vertices in OUTER nodes
have fallen by d since the search began, and those in INNER nodes have risen since they joined. The
dual of an OUTER blossom grows by twice as much, and that of an INNER one shrinks. Both are lazy: a
node keeps numbers from which its duals at any distance follow (`state`).

Events happen at ascending distances:

- grow: an edge from an OUTER node to a FREE one is tight. That joins the tree as INNER, and the
  node matched to it as OUTER.
- shrink: an edge between two OUTER nodes is tight. The cycle that it closes becomes a blossom.
- expand: the dual of an INNER blossom is 0. The path through it stays in the tree.
- end: an edge to a FREE unmatched node is tight, or the dual of a vertex in an OUTER node is LEVEL.
  The path from there to the root changes sides: its free edges become matched, and its matched ones
  free. Then the root is matched; in the second case the vertex is unmatched in its place.

The first three wait on a heap. The nearest end is one number, which no later event needs to reach.
An event may be out of date when its turn comes: then its distance is not that of its nodes.

A search that has looked at PATIENCE edges is *given up*: it leaves the duals of its tree where they
are, at the distance of the next event. So all trees have grown before one grows large, and those
of near vertices meet. Without that, the last searches make and expand large blossoms many times.
The engine lets the patience grow, so that the last searches are not given up.

All duals of a tree's vertices have the same parity, as their weights are even. So the slack between
two OUTER nodes is even, and all distances are integers.

A vertex becomes OUTER at most once in a search, and only then its edges are looked at. When a
blossom is expanded, all but its largest child are relabelled, which is O(n log n) in a search. So a
search takes O(m log n).

References
----------
Edmonds, *Maximum matching and a polyhedron with 0,1-vertices*, J. Res. NBS 69B, 1965.
Galil, Micali, Gabow, *An O(EV log V) algorithm for finding a maximal weighted matching in general
graphs*, SIAM J. Comput. 15(1), 1986.
Cook, Rohe, *Computing minimum-weight perfect matchings*, INFORMS J. Computing 11(2), 1999: trees
with a distance of their own.
Kolmogorov, *Blossom V*, Mathematical Programming Computation 1, 2009.
"""

from __future__ import annotations

from gpumatch.cpu.general.weights.blossoms import LOW, shrink, unfold
from gpumatch.cpu.general.weights.seats import clear, nearest, raise_up
from gpumatch.cpu.general.weights.state import (
    BOUND,
    DISTANCE,
    END,
    FAR,
    FREE,
    GIVEN_UP,
    GONE,
    INNER,
    LAST,
    LEVEL,
    NONE,
    NOTHING,
    OUTER,
    OUTERS,
    PATIENCE,
    ROOT,
    SCANNED,
    SEARCHES,
    SPARES,
    TOUCHED,
    TREE,
    UNMATCHED,
    WAITING,
    find,
    top_of,
)
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.searches.heap import drop_top, push

__all__ = ["CROWDED", "DONE", "PAUSED", "advance", "close", "solve"]

DONE, PAUSED, CROWDED = range(3)


@kernel
def _put(work, key, code):
    """Put an event on the heap, if it comes before the end."""
    keys, codes, state = work[0], work[1], work[8]
    if key < state[BOUND]:
        push(keys, codes, state[WAITING], key, code)
        state[WAITING] += 1


@kernel
def _note(work, node):
    """Note a node that has got a label."""
    tree, state = work[4], work[8]
    tree[state[TREE]] = node
    state[TREE] += 1


@kernel
def _enter(nodes, rings, work, node, shift):
    """Make the vertices of a node OUTER; their duals are `shift` above those that are written."""
    outer, state = work[2], work[8]
    distance, level = state[DISTANCE], state[LEVEL]
    vertex, last, count = rings[node].first, rings[node].last, state[OUTERS]
    while True:
        nodes[vertex].dual += shift + distance
        outer[count] = vertex
        count += 1
        if nodes[vertex].dual - level < state[BOUND]:
            state[BOUND], state[END] = nodes[vertex].dual - level, -1 - vertex
        if vertex == last:
            break
        vertex = rings[vertex].after
    state[OUTERS] = count


@kernel
def _scan(graph, nodes, rings, work, node):
    """Look at all edges of a node that is OUTER, or now part of an OUTER blossom."""
    indptr, indices, weights = graph
    keys, codes, _, touched, _, _, _, _, state = work
    home = find(nodes, node)
    vertex, last = rings[node].first, rings[node].last
    while True:
        dual, begin, end = nodes[vertex].dual, indptr[vertex], indptr[vertex + 1]
        state[SCANNED] += end - begin
        code = vertex << 32
        for k in range(begin, end):
            other = indices[k]
            top = nodes[other].top
            label = nodes[top].label
            if label == GONE:
                top = find(nodes, top)
                label = nodes[top].label
            key = dual - weights[k]
            if label == OUTER:
                key = (key + nodes[other].dual) >> 1
                if key < state[BOUND] and find(nodes, top) != home:
                    push(keys, codes, state[WAITING], key, code | (k - begin))
                    state[WAITING] += 1
            elif key < nodes[other].reach:
                if nodes[other].reach == FAR:
                    touched[state[TOUCHED]] = other
                    state[TOUCHED] += 1
                nodes[other].reach = key
                nodes[other].edge = code | (k - begin)
                if nodes[other].seat != NONE:
                    raise_up(nodes, rings, work, other)
                key += nodes[other].dual - nodes[top].time
                if label == FREE and key < state[BOUND]:
                    if nodes[nodes[top].base].mate == NONE:
                        state[BOUND], state[END] = key, code | (k - begin)
                    else:
                        push(keys, codes, state[WAITING], key, code | (k - begin))
                        state[WAITING] += 1
        if vertex == last:
            break
        vertex = rings[vertex].after


@kernel
def _become_outer(graph, nodes, rings, work, node):
    """Make a FREE node OUTER."""
    nodes[node].label = OUTER
    _note(work, node)
    if rings[node].child != NONE:
        nodes[node].dual -= 2 * work[8][DISTANCE]
    _enter(nodes, rings, work, node, -nodes[node].time)
    _scan(graph, nodes, rings, work, node)


@kernel
def _grow(graph, nodes, rings, work, v, x):
    """Put the FREE node of x, and the one matched to it, into the tree."""
    distance = work[8][DISTANCE]
    node = top_of(nodes, x)
    nodes[node].label = INNER
    nodes[node].link = (v << 32) | x
    _note(work, node)
    if rings[node].child != NONE:
        _put(work, distance + (nodes[node].dual >> 1), -1 - node)
        nodes[node].dual -= 2 * nodes[node].time
    nodes[node].time += distance
    _become_outer(graph, nodes, rings, work, top_of(nodes, nodes[nodes[node].base].mate))


@kernel
def _shrink(graph, nodes, rings, work, v, x):
    """Make a blossom of the cycle that edge vx closes, and look at the edges of its INNER nodes."""
    distance = work[8][DISTANCE]
    blossom = shrink(nodes, rings, work, v, x)
    first = rings[blossom].child
    child = rings[first].next
    while child != first:
        if nodes[child].label == INNER:
            shift = distance - nodes[child].time
            if rings[child].child != NONE:
                nodes[child].dual -= 2 * shift
            _enter(nodes, rings, work, child, shift)
        child = rings[child].next
    child = rings[first].next
    while child != first:
        if nodes[child].label == INNER:
            nodes[child].label = OUTER
            _scan(graph, nodes, rings, work, child)
        child = rings[child].next


@kernel
def _expand(graph, nodes, rings, work, blossom):
    """Take an INNER blossom apart, and go on from the vertices that are FREE or OUTER now."""
    path = work[5]
    count, steps, step = unfold(nodes, rings, work, blossom)
    for k in range(count):
        child = path[k]
        if nodes[child].label == FREE:
            vertex = nearest(nodes, rings, work, child)
            if nodes[vertex].reach < FAR:
                key = nodes[vertex].reach + nodes[vertex].dual - nodes[child].time
                _put(work, key, nodes[vertex].edge)
        elif rings[child].child != NONE:
            _put(work, nodes[child].time + (nodes[child].dual >> 1), -1 - child)
    for k in range(1, steps, 2):
        _become_outer(graph, nodes, rings, work, path[k * step % count])


@kernel
def advance(graph, nodes, rings, work, budget):
    """Go on with a search; DONE when its end is the next event.

    PAUSED says that so many edges have been looked at;
    CROWDED that the heap may be too small for all events that follow when a blossom is expanded.
    """
    indptr, indices, weights = graph
    keys, codes, _, _, _, _, _, _, state = work
    last = state[SCANNED] + budget
    while state[WAITING] > 0 and keys[0] < state[BOUND]:
        if state[SCANNED] > last:
            return PAUSED
        key, code = keys[0], codes[0]
        if state[SCANNED] > state[LAST]:
            state[BOUND], state[END] = key, NOTHING
            break
        if code < 0 and keys.size - state[WAITING] < indices.size + 2 * indptr.size:
            return CROWDED
        state[WAITING] -= 1
        drop_top(keys, codes, state[WAITING])
        if code < 0:
            node = -1 - code
            if nodes[node].label == INNER and nodes[node].time + (nodes[node].dual >> 1) == key:
                state[DISTANCE] = key
                _expand(graph, nodes, rings, work, node)
            continue
        v = code >> 32
        k = indptr[v] + (code & LOW)
        x = indices[k]
        top = top_of(nodes, x)
        slack = nodes[v].dual + nodes[x].dual - weights[k]
        if nodes[top].label == FREE:
            if slack - nodes[top].time == key:
                state[DISTANCE] = key
                _grow(graph, nodes, rings, work, v, x)
        elif nodes[top].label == OUTER and slack >> 1 == key and top_of(nodes, v) != top:
            state[DISTANCE] = key
            _shrink(graph, nodes, rings, work, v, x)
    state[DISTANCE] = state[BOUND]
    return DONE


@kernel
def close(nodes, rings, work):
    """Write the duals of the tree at its distance, and take all labels away."""
    _, _, outer, touched, tree, _, spare, _, state = work
    distance = state[DISTANCE]
    for k in range(state[OUTERS]):
        vertex = outer[k]
        nodes[vertex].dual -= distance
        nodes[vertex].top = top_of(nodes, vertex)
    for k in range(state[TREE]):
        node = tree[k]
        label = nodes[node].label
        if label == GONE:
            _refresh_top(nodes, rings, find(nodes, node))
            spare[state[SPARES]] = node
            state[SPARES] += 1
        elif rings[node].parent == NONE:
            is_blossom = rings[node].child != NONE
            if label == OUTER:
                nodes[node].dual += 2 * distance if is_blossom else 0
            else:
                shift = (distance if label == INNER else 0) - nodes[node].time
                if label == INNER and is_blossom:
                    nodes[node].dual -= 2 * shift
                _raise_all(nodes, rings, node, shift)
        nodes[node].label, nodes[node].time = FREE, 0
    for k in range(state[TREE]):
        nodes[tree[k]].above = tree[k]
    for k in range(state[TOUCHED]):
        nodes[touched[k]].reach = FAR
    clear(nodes, work)
    state[OUTERS] = state[TREE] = state[TOUCHED] = state[WAITING] = 0


@kernel
def _refresh_top(nodes, rings, node):
    """Write the top of a node's vertices, which have one in common, if that is another one."""
    vertex = rings[node].first
    if nodes[vertex].top == node or rings[node].parent != NONE:
        return
    while True:
        nodes[vertex].top = node
        if vertex == rings[node].last:
            break
        vertex = rings[vertex].after


@kernel
def _raise_all(nodes, rings, node, shift):
    """Add to the duals of a node's vertices."""
    vertex = rings[node].first
    while shift != 0:
        nodes[vertex].dual += shift
        if vertex == rings[node].last:
            break
        vertex = rings[vertex].after


@kernel
def _turn(graph, nodes, rings, work):
    """Match the root, by the path from the end of the search."""
    indptr, indices, _ = graph
    state = work[8]
    code = state[END]
    if code < 0:
        v, x = -1 - code, NONE
    else:
        v = code >> 32
        x = indices[indptr[v] + (code & LOW)]
        nodes[nodes[x].top].base = x
        nodes[x].mate = v
        state[UNMATCHED] -= 2
    while True:
        node = nodes[v].top
        base = nodes[node].base
        mate = nodes[base].mate
        nodes[node].base = v
        nodes[v].mate = x
        if mate == NONE:
            break
        inner = nodes[mate].top
        v, x = nodes[inner].link >> 32, nodes[inner].link & LOW
        nodes[inner].base = x
        nodes[x].mate = v


@kernel
def solve(graph, nodes, rings, work, n, budget):
    """Search from each unmatched vertex whose dual is above LEVEL, in turn, with some patience.

    DONE after the last one, which may leave vertices of searches that were given up; else as
    `advance`.
    """
    state = work[8]
    last = state[SCANNED] + budget
    while True:
        if state[TREE] == 0:
            root = state[ROOT]
            while root < n:
                top = nodes[root].top
                is_open = nodes[top].base == root and nodes[root].mate == NONE
                if is_open and nodes[root].dual > state[LEVEL]:
                    break
                root += 1
            state[ROOT] = root
            if root == n:
                return DONE
            state[DISTANCE], state[BOUND], state[END] = 0, FAR, NOTHING
            state[SEARCHES] += 1
            state[LAST] = state[SCANNED] + state[PATIENCE]
            _become_outer(graph, nodes, rings, work, nodes[root].top)
        code = advance(graph, nodes, rings, work, last - state[SCANNED])
        if code != DONE:
            return code
        close(nodes, rings, work)
        if state[END] == NOTHING:
            state[ROOT] += 1
            state[GIVEN_UP] += 1
        else:
            _turn(graph, nodes, rings, work)
        if state[SCANNED] > last:
            return PAUSED

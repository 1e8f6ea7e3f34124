"""Blossoms: how the tree of a search shrinks and expands them, and how they end.

`state` has the encodings. A blossom of the tree is OUTER when it is made. An INNER one is expanded
when its dual is 0. A FREE one stays as it is, even with dual 0.
"""

from __future__ import annotations

from gpumatch.cpu.general.weights.seats import holds, seat
from gpumatch.cpu.general.weights.state import (
    DISTANCE,
    EXPANDED,
    FREE,
    GONE,
    INNER,
    NONE,
    OUTER,
    SHRUNK,
    SPARES,
    STAMP,
    TREE,
    top_of,
)
from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["LOW", "settle", "shrink", "unfold", "write_sets"]

LOW = 2**32 - 1


@kernel
def _outer_above(nodes, rings, node):
    """The OUTER node two steps above an OUTER node of the tree, or NONE at the root."""
    mate = nodes[nodes[node].base].mate
    if mate == NONE:
        return NONE
    link = nodes[top_of(nodes, mate)].link
    return top_of(nodes, link >> 32)


@kernel
def _common(nodes, rings, one, other, stamp):
    """The first OUTER node on the paths of two OUTER nodes to the root."""
    while True:
        if one != NONE:
            if rings[one].mark == stamp:
                return one
            rings[one].mark = stamp
            one = _outer_above(nodes, rings, one)
        one, other = other, one


@kernel
def _join(nodes, rings, blossom, child, here, following, there):
    """Put a node behind a child into the ring of a blossom."""
    rings[child].next = following
    rings[child].here, rings[child].there = here, there
    if following != rings[blossom].child:
        rings[following].parent = blossom
        rings[rings[blossom].last].after = rings[following].first
        rings[blossom].last = rings[following].last
        rings[blossom].size += rings[following].size


@kernel
def shrink(nodes, rings, work, v, x):
    """Make a blossom of the cycle that an edge between two OUTER nodes closes; return it.

    Its nodes that were INNER are the ones at odd places of the ring up to the edge, and at even
    places behind it. The caller makes their vertices OUTER: they have `label` INNER until then.
    """
    _, _, _, _, tree, path, spare, _, state = work
    one, other = top_of(nodes, v), top_of(nodes, x)
    state[STAMP] += 1
    common = _common(nodes, rings, one, other, state[STAMP])
    state[SPARES] -= 1
    blossom = spare[state[SPARES]]
    distance = state[DISTANCE]
    ring = rings[blossom]
    ring.parent, ring.child, ring.mark = NONE, common, NONE
    ring.first, ring.last = rings[common].first, rings[common].last
    ring.size = rings[common].size
    rings[common].parent = blossom
    nodes[blossom].dual = -2 * distance
    nodes[blossom].base = nodes[common].base
    nodes[blossom].label = OUTER
    tree[state[TREE]] = blossom
    state[TREE] += 1
    state[SHRUNK] += 1

    length, node = 0, one
    while node != common:
        path[length] = node
        length += 1
        node = _outer_above(nodes, rings, node)
    child = common
    for k in range(length - 1, -1, -1):  # down to `one`
        outer = path[k]
        base = nodes[outer].base
        mate = nodes[base].mate
        inner = top_of(nodes, mate)
        link = nodes[inner].link
        _join(nodes, rings, blossom, child, link >> 32, inner, link & LOW)
        _join(nodes, rings, blossom, inner, mate, outer, base)
        child = outer
    here, there, node = v, x, other
    while node != common:  # up from `other`
        _join(nodes, rings, blossom, child, here, node, there)
        base = nodes[node].base
        mate = nodes[base].mate
        inner = top_of(nodes, mate)
        link = nodes[inner].link
        _join(nodes, rings, blossom, node, base, inner, mate)
        child, here, there = inner, link & LOW, link >> 32
        node = top_of(nodes, link >> 32)
    _join(nodes, rings, blossom, child, here, common, there)

    child = common
    while True:
        nodes[child].above = blossom
        if nodes[child].label == OUTER and rings[child].child != NONE:
            nodes[child].dual += 2 * distance
        child = rings[child].next
        if child == common:
            break
    nodes[blossom].above = blossom
    return blossom


@kernel
def settle(nodes, rings, blossom, path):
    """Match the children of a blossom around the one with its base; return how many there are.

    ``path`` becomes the ring from that child on. The vertices have seats.
    """
    base = nodes[blossom].base
    start = rings[blossom].child
    while not holds(nodes, rings, start, base):
        start = rings[start].next
    nodes[start].base = base
    path[0], count = start, 1
    child = rings[start].next
    while child != start:
        path[count] = child
        following = rings[child].next
        if count & 1:
            here, there = rings[child].here, rings[child].there
            nodes[child].base, nodes[following].base = here, there
            nodes[here].mate, nodes[there].mate = there, here
        child = following
        count += 1
    return count


@kernel
def _part(nodes, rings, blossom, path, count):
    """Make the children of an INNER blossom top nodes. The largest one keeps its vertices' top."""
    largest = path[0]
    for k in range(count):
        if rings[path[k]].size > rings[largest].size:
            largest = path[k]
    for k in range(count):
        child = path[k]
        rings[child].parent = NONE
        if child == largest:
            continue
        vertex = rings[child].first
        while True:
            nodes[vertex].top = child
            if vertex == rings[child].last:
                break
            vertex = rings[vertex].after
    nodes[blossom].label, nodes[blossom].above = GONE, largest


@kernel
def unfold(nodes, rings, work, blossom):
    """Take an INNER blossom of dual 0 apart, and put the path through it into the tree.

    Returns
    -------
    count, steps, step : int
        The ring of ``count`` children is in the scratch array of `work`. The path has the places 0,
        step, 2 step, ... up to ``steps`` of them, modulo ``count``. Those at odd places of the path
        are to become OUTER; the others are INNER, and all other children FREE.
    """
    _, _, _, _, tree, path, _, _, state = work
    distance, time, link = state[DISTANCE], nodes[blossom].time, nodes[blossom].link
    if nodes[rings[blossom].first].seat == NONE:
        seat(nodes, rings, work, blossom)
    count = settle(nodes, rings, blossom, path)
    _part(nodes, rings, blossom, path, count)
    place = 0
    for k in range(count):
        child = path[k]
        if holds(nodes, rings, child, link & LOW):
            place = k
        nodes[child].label, nodes[child].time = FREE, time - distance
        tree[state[TREE]] = child
        state[TREE] += 1
    step = 1 if place & 1 == 0 else -1
    steps = place if step == 1 else count - place
    for k in range(0, steps + 1, 2):
        child = path[k * step % count]
        nodes[child].label, nodes[child].time = INNER, time
        if rings[child].child != NONE:
            nodes[child].dual += 2 * (distance - time)
        if k == steps:
            nodes[child].link = link
        elif step == 1:  # from the child at place k + 1, to which the edge of this one leads
            nodes[child].link = (rings[child].there << 32) | rings[child].here
        else:
            outer = path[(k + 1) * step % count]
            nodes[child].link = (rings[outer].here << 32) | rings[outer].there
    state[EXPANDED] += 1
    return count, steps, step


@kernel
def write_sets(nodes, rings, work, order, begins, ends, duals):
    """Write the mates of all vertices, and the odd sets with a dual above 0.

    ``order`` becomes the vertices of these sets. A set has those from its begin to its end there.

    Returns
    -------
    count, length : int
        The number of sets, and of vertices in ``order``.
    """
    _, _, _, _, stack, path, _, _, _ = work
    count, length = 0, 0
    for vertex in range(order.size):
        top = nodes[vertex].top
        if top < order.size or rings[top].first != vertex:
            continue
        before, start, leaf = count, length, vertex
        for length in range(start, start + rings[top].size):
            order[length], nodes[leaf].seat = leaf, length
            leaf = rings[leaf].after
        length += 1
        waiting, stack[0] = 1, top
        while waiting > 0:
            waiting -= 1
            blossom = stack[waiting]
            if nodes[blossom].dual > 0:
                begins[count] = nodes[rings[blossom].first].seat
                ends[count] = nodes[rings[blossom].last].seat + 1
                duals[count] = nodes[blossom].dual
                count += 1
            for k in range(settle(nodes, rings, blossom, path)):
                if rings[path[k]].child != NONE:
                    stack[waiting] = path[k]
                    waiting += 1
        if count == before:
            length = start
    return count, length

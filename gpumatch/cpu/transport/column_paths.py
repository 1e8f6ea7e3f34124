"""Shortest paths between the columns of a transport problem that has few of them.

The vertices are the columns and a root, which takes the load of every column: between its lower and
its upper bound. A unit moves from column j to column l with one of the rows that ship to j: with
the one for which l costs least more. So the whole problem is a network of a few vertices, however
many rows there are. Rows begin in their cheapest column at given prices. Columns that then have too
much are emptied into those that have too little along shortest paths, one bottleneck at a time.
The last prices prove the flow.

    costs        matrix of the rows and columns
    flow[i, j]   units of row i that go to column j
    place[i, j]  where row i stands among the rows that ship to j; NONE if it is not there
    members[j]   the rows that ship to column j: the first count[j] places
    gain[j, l]   the least of c_il - c_ij of these rows, in the last row and column of the matrix
                 those of arcs from and to the root: 0, or ``far`` if the arc carries no more
    who[j, l]    that row
    price[j]     the dual of column j; the last one is that of the root
    load[j]      units from column j to the root, from low[j] to high[j]
    excess[j]    units that a column has beyond its load, or lacks; the last one is the root's
    dist, pred, via   distances of a search, predecessors (NONE for a source), and their ``who``
    is_done, sinks    marks of vertices with final distances; those of them that lack units
    state        PATHS: how many there were; WORK: numbers that were read

Reference: Ahuja, Magnanti, Orlin, *Network Flows*, 1993; chapter 9: successive shortest paths.
"""

from __future__ import annotations

from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["DONE", "PATHS", "SPENT", "STATES", "STUCK", "WORK", "begin", "move", "retrace"]

NONE = -1
PATHS, WORK, STATES = range(3)
DONE, SPENT, STUCK = range(3)


@kernel
def begin(costs, homes, supply, pieces, net, bounds, far):
    """Ship each row to its column of ``homes``, and find the arcs. ``excess`` has other loads."""
    flow, place, _, count = pieces
    gain, who, price, excess = net
    load, low, high = bounds
    root = ncols = low.size
    for col in range(ncols + 1):
        for other in range(ncols + 1):
            gain[col, other], who[col, other] = far, NONE
    for col in range(ncols):
        count[col] = 0
    for row in range(homes.size):
        col = homes[row]
        for other in range(ncols):
            flow[row, other], place[row, other] = 0, NONE
        flow[row, col] = supply[row]
        excess[col] += supply[row]
        _enter(costs, pieces, gain, who, row, col)
    excess[root] = 0
    for col in range(ncols):
        if price[col] < price[root]:
            load[col] = high[col]
        elif price[col] > price[root]:
            load[col] = low[col]
        else:
            load[col] = min(max(excess[col], low[col]), high[col])
        _open(gain, bounds, root, col)
        excess[root] += load[col] - excess[col]
        excess[col] -= load[col]


@kernel
def _open(gain, bounds, root, col):
    """Open or close the arcs between a column and the root."""
    load, low, high = bounds
    far = gain[root, root]
    gain[col, root] = 0 if load[col] < high[col] else far
    gain[root, col] = 0 if load[col] > low[col] else far


@kernel
def _enter(costs, pieces, gain, who, row, col):
    """Let a row ship to a column, where it has shipped nothing."""
    _, place, members, count = pieces
    place[row, col] = count[col]
    members[col, count[col]] = row
    count[col] += 1
    for other in range(count.size):
        more = costs[row, other] - costs[row, col]
        if more < gain[col, other] and other != col:
            gain[col, other], who[col, other] = more, row


@kernel
def _leave(costs, pieces, gain, who, row, col, stale, far):
    """Let a row no longer ship to a column; return the numbers that were read."""
    _, place, members, count = pieces
    count[col] -= 1
    last = members[col, count[col]]
    members[col, place[row, col]] = last
    place[last, col] = place[row, col]
    place[row, col] = NONE
    stales = 0
    for other in range(count.size):
        if who[col, other] == row:
            gain[col, other], who[col, other] = far, NONE
            stale[stales] = other
            stales += 1
    for slot in range(count[col]):
        one = members[col, slot]
        base = costs[one, col]
        for k in range(stales):
            more = costs[one, stale[k]] - base
            if more < gain[col, stale[k]]:
                gain[col, stale[k]], who[col, stale[k]] = more, one
    return count[col] * (stales + 1)


@kernel
def _search(net, room, far):
    """Find shortest paths from the vertices with too many units to those that lack some.

    Return how many of these can be reached, and how far the last one is.
    """
    gain, who, price, excess = net
    dist, pred, via, is_done, sinks, _ = room
    nodes, lacking, found = price.size, 0, 0
    for node in range(nodes):
        lacking += excess[node] < 0
        dist[node] = 0 if excess[node] > 0 else far
        pred[node], is_done[node] = NONE, 0
    farthest = far
    while found < lacking:
        node, least = NONE, far
        for other in range(nodes):
            if dist[other] < least and is_done[other] == 0:
                node, least = other, dist[other]
        if node == NONE:
            break
        is_done[node] = 1
        if excess[node] < 0:
            sinks[found] = node
            found += 1
            farthest = least
        for other in range(nodes):
            if is_done[other] == 1 or gain[node, other] == far:
                continue
            length = (gain[node, other] + price[node]) - price[other]
            there = least + length if length > 0 else least  # below 0 it is rounding
            if there < dist[other]:
                dist[other], pred[other], via[other] = there, node, who[node, other]
    return found, farthest


@kernel
def _carried(pieces, net, bounds, room, sink):
    """Return the source of a path, and what the path carries after others have been used."""
    flow = pieces[0]
    who, excess = net[1], net[3]
    load, low, high = bounds
    pred, via = room[1], room[2]
    root = low.size
    units, node = -excess[sink], sink
    while pred[node] != NONE and units > 0:
        before = pred[node]
        if node == root:
            here = high[before] - load[before]
        elif before == root:
            here = load[node] - low[node]
        elif who[before, node] == via[node]:
            here = flow[via[node], before]
        else:
            here = 0
        units = min(units, here)
        node = before
    return node, min(units, excess[node])


@kernel
def move(costs, pieces, net, bounds, room, state, far, budget):
    """Move units until no column has too much: DONE; SPENT; or STUCK if some cannot go on."""
    flow, place, _, _ = pieces
    gain, who, price, excess = net
    load, low, _ = bounds
    dist, pred, _, is_done, sinks, stale = room
    root = low.size
    work, outcome = 0, SPENT
    while work < budget:
        has_more = False
        for node in range(root + 1):
            has_more |= excess[node] > 0
        if not has_more:
            outcome = DONE
            break
        found, farthest = _search(net, room, far)
        if found == 0:
            outcome = STUCK
            break
        for node in range(root + 1):
            if is_done[node] == 1:
                work += 2 * root
                if dist[node] < farthest:
                    price[node] -= farthest - dist[node]
        for k in range(found):
            sink = sinks[k]
            source, units = _carried(pieces, net, bounds, room, sink)
            if units <= 0:
                continue
            state[PATHS] += 1
            excess[source] -= units
            excess[sink] += units
            node = sink
            while node != source:  # from the end, so that arcs not yet used stay as they were
                before = pred[node]
                if node == root:
                    load[before] += units
                    _open(gain, bounds, root, before)
                elif before == root:
                    load[node] -= units
                    _open(gain, bounds, root, node)
                else:
                    row = who[before, node]
                    flow[row, before] -= units
                    if flow[row, before] == 0:
                        work += _leave(costs, pieces, gain, who, row, before, stale, far)
                    if place[row, node] == NONE:
                        _enter(costs, pieces, gain, who, row, node)
                        work += root
                    flow[row, node] += units
                node = before
    state[WORK] += work
    return outcome


@kernel
def retrace(costs, pieces, price, bounds, line, is_done):
    """Find prices again along rows that ship to several columns, from columns of price 0 on.

    Prices of floats add up the rounding of all paths. The price of the root is 0.
    """
    flow, _, members, count = pieces
    load, low, high = bounds
    ncols = low.size
    last = 0
    for col in range(ncols):
        is_done[col] = 0
        if low[col] < load[col] < high[col]:
            price[col], is_done[col], line[last] = 0, 1, col
            last += 1
    first = 0
    for top in range(ncols + 1):
        while first < last:
            col = line[first]
            first += 1
            for slot in range(count[col]):
                row = members[col, slot]
                for other in range(ncols):
                    if flow[row, other] > 0 and is_done[other] == 0:
                        price[other] = price[col] + (costs[row, other] - costs[row, col])
                        is_done[other], line[last] = 1, other
                        last += 1
        if top < ncols and is_done[top] == 0:
            is_done[top], line[last] = 1, top
            last += 1

"""Shortest augmenting paths in a network of rows, columns and a hub, whose arcs have bounds.

Each pair carries at most its capacity, and each row and column has a number of units between its
bounds. The hub gives each row its units, and gets those of each column. A vertex that has more
units than it passes on has an *excess*, one that has fewer a *deficit*. A search is Dijkstra's in
the residual graph, from an excess to the nearest deficit, and ships the bottleneck of its path.
Lengths are reduced costs, none of which is below 0:

    from row i to column j    c - u_i - v_j, if the pair is not full
    from column j to row i    u_i + v_j - c, if the pair carries something
    from row i to the hub     -u_i - p, if the row has more than its lower bound
    from the hub to row i     u_i + p, if it has less than its upper bound
    from column j to the hub  v_j - p, if it has less than its upper bound
    from the hub to column j  p - v_j, if it has more than its lower bound

    entries      indptr, indices, costs: CSR, at most one entry a pair
    room[e]      the capacity of the pair of entry e
    lower, upper, units     of nodes: bounds, and the units of rows and columns now
    excess[w]    units of node w that wait: a row does not ship them, or a column gets them beyond
                 its units; below 0 if a column or the hub lacks some
    flow, owner, head, link     as in `search`
    dual[w]      u of a row, v of a column, p of the hub
    dist[w]      distance from the source; ``far`` if not reached
    pred[w]      for a row or column, the entry by which it is reached, or HUB; for the hub, the
                 node; START for the source
    near, keys, heap, reached     as in `search`; nodes are in all of them
    spot, mark   the state of a search that has spent its budget, so that the next call goes on:
                 see `state`

Reference: Ahuja, Magnanti, Orlin, *Network Flows*, 1993; chapter 9.
"""

from __future__ import annotations

from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.searches.heap import drop_top, push
from gpumatch.cpu.transport.state import (
    ABSENT,
    END,
    FOUND,
    FRONT,
    HEAD,
    LEAVE,
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

__all__ = ["begin", "relieve", "serve"]

HUB, START = -1, -2


@kernel
def begin(entries, room, bounds, flows, dual, state, far):
    """Ship what is best for each row at the duals of columns; write the owners of entries.

    A row ships by its pairs of least reduced cost, up to its upper bound while that is below 0, and
    up to its lower bound in any case. Its dual is the reduced cost of the last of these pairs, or 0
    between its bounds. Columns then have as many units as is best at their duals. What they get
    beyond these is their excess.
    """
    indptr, indices, costs = entries
    lower, upper, units = bounds
    owner, flow, link, head = flows
    excess, keys, heap = state[0], state[4], state[5]
    nrows, hub = indptr.size - 1, lower.size
    dual[hub] = 0
    for row in range(nrows):
        begin, count = indptr[row], 0
        for entry in range(begin, indptr[row + 1]):
            owner[entry] = row
            if room[entry] > 0:
                push(keys, heap, count, costs[entry] - dual[nrows + indices[entry]], entry - begin)
                count += 1
        sent, dual[row] = 0, keys[0] if count > 0 and upper[row] == 0 else 0
        while count > 0 and sent < (upper[row] if keys[0] < 0 else lower[row]):
            entry, dual[row] = begin + heap[0], keys[0]
            count -= 1
            drop_top(keys, heap, count)
            more = min(room[entry], (upper[row] if dual[row] < 0 else lower[row]) - sent)
            sent += more
            flow[entry] = more
            excess[nrows + indices[entry]] += more
            link[entry] = head[indices[entry]]
            head[indices[entry]] = entry
        if lower[row] < sent < upper[row] or (sent == lower[row] < upper[row] and dual[row] < 0):
            dual[row] = 0  # the next pair costs more than its column is worth
        units[row] = max(sent, lower[row])
        excess[row] = units[row] - sent
    excess[hub] = 0
    for node in range(nrows, hub):
        best = upper[node] if dual[node] < 0 else lower[node]
        if dual[node] == 0:
            best = max(lower[node], min(upper[node], excess[node]))
        units[node] = best
        excess[node] -= best
        excess[hub] += best
    for row in range(nrows):
        excess[hub] -= units[row]


@kernel
def relieve(flows, excess, nrows):
    """End flow of columns that get more than their units, so that none is beyond its bound."""
    _, flow, link, head = flows
    for col in range(head.size):
        entry = head[col]
        while entry != END and excess[nrows + col] > 0:
            less = min(flow[entry], excess[nrows + col])
            flow[entry] -= less
            excess[nrows + col] -= less
            entry = link[entry]


@kernel
def _relax(node, there, back, state, spot, mark, far):
    """Take a shorter way to a node, unless a deficit is as near."""
    excess, dist, pred, near, keys, heap, reached = state
    front = mark[FRONT]
    there = there if there > front else front  # but for rounding
    if there >= dist[node] or there >= mark[LEAVE]:
        return
    if dist[node] == far:
        reached[spot[REACHED]] = node
        spot[REACHED] += 1
    dist[node], pred[node] = there, back
    if excess[node] < 0:
        mark[LEAVE], spot[SINK] = there, node
    elif there <= front:
        near[spot[TAIL]] = node
        spot[TAIL] += 1
    else:
        push(keys, heap, spot[WAITING], there, node)
        spot[WAITING] += 1


@kernel
def _scan_hub(nrows, bounds, dual, state, spot, mark, far):
    """Relax the arcs from the hub."""
    lower, upper, units = bounds
    dist, hub = state[1], lower.size
    for node in range(hub):
        if node < nrows:
            if units[node] < upper[node]:
                _relax(node, dist[hub] + (dual[node] + dual[hub]), HUB, state, spot, mark, far)
        elif units[node] > lower[node]:
            _relax(node, dist[hub] + (dual[hub] - dual[node]), HUB, state, spot, mark, far)


@kernel
def _grow(entries, room, bounds, flows, dual, state, spot, mark, source, far, budget):
    """Grow the tree of ``source`` to the nearest deficit; what ended the search, and the work."""
    indptr, indices, costs = entries
    lower, upper, units = bounds
    owner, flow, link, head = flows
    dist, pred, near, keys, heap, reached = state[1:]
    nrows, hub = indptr.size - 1, lower.size
    if spot[HEAD] < 0:
        spot[HEAD], spot[TAIL], spot[WAITING], spot[REACHED], spot[SINK] = 0, 1, 0, 1, -1
        mark[FRONT], mark[LEAVE] = 0, far
        dist[source], pred[source] = 0, START
        near[0] = reached[0] = source
    work = 0
    while True:
        if work >= budget:
            return SPENT, work
        if spot[HEAD] < spot[TAIL] and mark[FRONT] < mark[LEAVE]:
            node = near[spot[HEAD]]
            spot[HEAD] += 1
        else:
            if spot[WAITING] == 0 or keys[0] >= mark[LEAVE]:
                mark[FRONT] = mark[LEAVE]
                return (FOUND if spot[SINK] >= 0 else STUCK), work
            key, node = keys[0], heap[0]
            spot[WAITING] -= 1
            drop_top(keys, heap, spot[WAITING])
            if key > dist[node]:
                continue
            mark[FRONT] = key
        here = dist[node]
        work += 1
        if node == hub:
            _scan_hub(nrows, bounds, dual, state, spot, mark, far)
            work += hub
        elif node < nrows:
            u = dual[node]
            for entry in range(indptr[node], indptr[node + 1]):
                if flow[entry] < room[entry]:
                    col = nrows + indices[entry]
                    there = here + (costs[entry] - u - dual[col])
                    if there < mark[LEAVE] and there < dist[col]:
                        _relax(col, there, entry, state, spot, mark, far)
            work += indptr[node + 1] - indptr[node]
            if units[node] > lower[node]:
                _relax(hub, here + (-u - dual[hub]), node, state, spot, mark, far)
        else:
            v, col = dual[node], node - nrows
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
                    there = here + (dual[row] + v - costs[entry])
                    _relax(row, there, entry, state, spot, mark, far)
                work += 1
                entry = after
            if units[node] < upper[node]:
                _relax(hub, here + (v - dual[hub]), node, state, spot, mark, far)


@kernel
def _origin(node, nrows, hub, indices, owner, pred):
    """The node before this one on its path."""
    if node == hub:
        return pred[hub]
    if pred[node] == HUB:
        return hub
    return nrows + indices[pred[node]] if node < nrows else owner[pred[node]]


@kernel
def _bottleneck(entries, room, bounds, flows, state, source, sink):
    """The units that the path to the sink carries."""
    indptr, indices, _ = entries
    lower, upper, units = bounds
    owner, flow, _, _ = flows
    excess, pred = state[0], state[2]
    nrows, hub = indptr.size - 1, lower.size
    most = min(excess[source], -excess[sink])
    node = sink
    while node != source:
        back = pred[node]
        if node == hub:
            most = min(
                most, units[back] - lower[back] if back < nrows else upper[back] - units[back]
            )
        elif back == HUB:
            most = min(
                most, upper[node] - units[node] if node < nrows else units[node] - lower[node]
            )
        else:
            most = min(most, flow[back] if node < nrows else room[back] - flow[back])
        node = _origin(node, nrows, hub, indices, owner, pred)
    return most


@kernel
def _ship(entries, bounds, flows, state, source, sink, most):
    """Ship units along the path to the sink."""
    indptr, indices, _ = entries
    lower, _, units = bounds
    owner, flow, link, head = flows
    excess, pred = state[0], state[2]
    nrows, hub = indptr.size - 1, lower.size
    excess[source] -= most
    excess[sink] += most
    node = sink
    while node != source:
        back = pred[node]
        if node == hub:
            units[back] += -most if back < nrows else most
        elif back == HUB:
            units[node] += most if node < nrows else -most
        elif node < nrows:
            flow[back] -= most
        else:
            flow[back] += most
            if link[back] == ABSENT:
                link[back] = head[indices[back]]
                head[indices[back]] = back
        node = _origin(node, nrows, hub, indices, owner, pred)


@kernel
def serve(entries, room, bounds, flows, dual, state, sources, spot, mark, far, budget):
    """Ship the excess of all ``sources`` by shortest paths, as far as the budget goes.

    Returns how it ended: SERVED; SPENT; or STUCK if a source has no path. Then its tree stays.
    """
    nrows = entries[0].size - 1
    excess, dist, reached = state[0], state[1], state[6]
    while spot[NEXT] < sources.size:
        source = sources[spot[NEXT]]
        if excess[source] <= 0:
            spot[NEXT] += 1
            continue
        if budget <= 0:
            return SPENT
        outcome, work = _grow(
            entries, room, bounds, flows, dual, state, spot, mark, source, far, budget
        )
        budget -= work
        spot[SCANS] += work
        if outcome != FOUND:
            return outcome
        for k in range(spot[REACHED]):
            node = reached[k]
            step = dist[node] - mark[FRONT]
            if step < 0:
                dual[node] += -step if node < nrows else step
        most = _bottleneck(entries, room, bounds, flows, state, source, spot[SINK])
        _ship(entries, bounds, flows, state, source, spot[SINK], most)
        spot[PATHS] += 1
        for k in range(spot[REACHED]):
            dist[reached[k]] = far
        spot[HEAD] = -1
    return SERVED

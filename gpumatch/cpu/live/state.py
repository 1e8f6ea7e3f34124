"""What a live assignment keeps for each side, and what holds of it between two changes.

Rows and columns are treated alike: a kernel that serves a row serves a column if all arrays change
places. So "own" is the side of the vertex that is served, and "other" is the opposite one. A vertex
is known by its slot. A slot that is not in use has only forbidden pairs and no mate.

    costs[x, k]       cost of the pair of own x and other k, to be minimised; inf forbids it
    numbers[DUAL, x]  dual
    numbers[SHOWN, x] the dual as searches from the other side see it; -inf hides the vertex
    numbers[DIST, x]  in a search from the other side, the distance of x; inf in the tree
    numbers[REACH, t], marks[TREE, t], marks[BACK, t]
                      the t-th vertex of that tree, its distance, and the mate it had
    numbers[LINE, x]  room for one line of costs
    numbers[SCALARS, LINES]    lines that searches have read from this side
    numbers[SCALARS, LARGEST]  the greatest magnitude of a cost that was ever set by a change of
                               the other side
    marks[MATE, x]    mate, or -1 - x without one: the least mate of several names an unmatched one
    marks[PRED, x]    in a search from the other side, the vertex from which x is reached
    marks[FREE, x]    1 if x may stay unmatched at the cost numbers[SCALARS, TOP], 0 if it must not
    marks[WAITS, x]   1 if x is unmatched and is to be served
    marks[QUEUE, q]   the vertices that wait, marks[COUNTS, WAITING] of them; some may be served
    marks[PARTNER, x] the mate that x has lost by the change for which it waits, or -1
    marks[USED, x]    1 if the slot is in use
    marks[COUNTS, SLOTS]   slots up to the last that was ever in use
    marks[COUNTS, LIVE]    slots in use
    marks[COUNTS, BOUND]   vertices in use that are not free

One proof for all cardinalities
-------------------------------
With a limit L, or with cardinality "any" (L = 0), every vertex is free. The top is L for rows and 0
for columns. Then the duals u and v satisfy

    u_x + v_k <= c_xk,   with equality on pairs;   dual <= top,   with equality if it is unmatched,

which proves the pairs optimal: any other pairs and unmatched vertices cost at least the sum of all
duals.

Without a limit, let pairs cost (-1, c) in lexicographic order, and let every vertex be free at
(0, 0). An optimum then is a maximum matching of least cost. Its duals are pairs of numbers, too.
The first number can only be 0 or -1, and it is -1 for just one vertex of each pair: these vertices
are a vertex cover. A vertex in the cover must be matched; so FREE says that the first number is 0,
and DUAL is the second one. What is left of the conditions is

    u_x + v_k <= c_xk unless neither is free, with equality on pairs, of which one vertex is free;
    no allowed pair has two free vertices;
    the dual of a free vertex is at most 0, and 0 if it is unmatched.

This is what `gpumatch.problems.cardinality` asks for cardinality "maximum". If every row can be
matched, all rows are in the cover, and no column: the usual duals of a full assignment. If more
rows come than columns, only columns end in the cover. In between, a vertex that has no path takes
its tree along to the other class (`search.release`). So no order of changes needs another form of
the problem, and a problem without a full assignment has a state as good as any.

A vertex that waits is unmatched, and may violate the last condition. All others always hold. Duals
are fair (`gpumatch.numeric.fair_duals`): no pair undercuts them as real numbers.
"""

from __future__ import annotations

__all__ = [
    "BACK",
    "BOUND",
    "COUNTS",
    "DIST",
    "DUAL",
    "FREE",
    "LARGEST",
    "LINE",
    "LINES",
    "LIVE",
    "MARKS",
    "MATE",
    "NUMBERS",
    "PARTNER",
    "PRED",
    "QUEUE",
    "REACH",
    "SCALARS",
    "SHOWN",
    "SLOTS",
    "TOP",
    "TREE",
    "USED",
    "WAITING",
    "WAITS",
]

NUMBERS = 6
DUAL, SHOWN, DIST, REACH, LINE, SCALARS = range(NUMBERS)
MARKS = 10
MATE, PRED, TREE, BACK, FREE, WAITS, QUEUE, PARTNER, USED, COUNTS = range(MARKS)
TOP, LINES, LARGEST = range(3)  # of numbers[SCALARS]
SLOTS, WAITING, BOUND, LIVE = range(4)  # of marks[COUNTS]

"""The work of one rank on alternating forests whose rows and columns are divided among ranks.

    row_to_col[i]     global column matched to own row i, -1 if unmatched
    row_root[i]       global root of own row i's tree, -1 for none
    col_to_row[j]     global row matched to own column j
    col_root[j]       global root of own column j's tree, -1 for none
    parent[j]         global row from which own column j joined
    done[root]        whether a root's tree has found a path, by global row
    seen[column]      whether this rank needs not offer a global column: it is in a tree, or offered

Vertices of other ranks are known by their global numbers only.
"""

from __future__ import annotations

from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["claim_free", "expand", "join"]


@kernel
def claim_free(rows, indptr, indices, taken, wanted):
    """Let each own row want the first column that is not taken; it is taken then. -1 for none."""
    for k in range(rows.size):
        row = rows[k]
        wanted[k] = -1
        for e in range(indptr[row], indptr[row + 1]):
            col = indices[e]
            if not taken[col]:
                taken[col] = True
                wanted[k] = col
                break


@kernel
def expand(frontier, begin, budget, first, indptr, indices, row_root, done, seen, offers, count):
    """Offer unseen columns their place below own rows ``frontier[begin:]``; where it stopped.

    ``offers[:count]`` are columns, with row and root beside each; all numbers are global.
    It stops if the budget of edges is spent. Returns also the count, and the edges read.
    """
    read = 0
    k = begin
    while k < frontier.size and read < budget:
        row = frontier[k]
        k += 1
        root = row_root[row]
        if done[root]:
            continue
        for e in range(indptr[row], indptr[row + 1]):
            col = indices[e]
            read += 1
            if not seen[col]:
                seen[col] = True
                offers[count, 0] = col
                offers[count, 1] = first + row
                offers[count, 2] = root
                count += 1
    return k, count, read


@kernel
def join(offers, first, col_to_row, col_root, parent, done, followers, ends):
    """Let own columns join by the first offer each. Mates follow, with their roots; unmatched ones
    end.

    ``followers[:f]`` are mates and roots, ``ends[:e]`` roots and unmatched columns; f and e are
    given.
    """
    f = e = 0
    for k in range(offers.shape[0]):
        col, row, root = offers[k, 0] - first, offers[k, 1], offers[k, 2]
        if col_root[col] >= 0 or done[root]:
            continue
        col_root[col] = root
        parent[col] = row
        mate = col_to_row[col]
        if mate >= 0:
            followers[f, 0] = mate
            followers[f, 1] = root
            f += 1
        else:
            ends[e, 0] = root
            ends[e, 1] = offers[k, 0]
            e += 1
    return f, e

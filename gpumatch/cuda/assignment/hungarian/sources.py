"""The kernels of the Hungarian algorithm on the GPU, and the constants that the host shares."""

from __future__ import annotations

import numpy as np

from gpumatch.cuda.kernels import COSTS, Source

REDUCTION = Source(
    "assignment/hungarian/reduction.cu",
    ("row_minima<{Cost}>", "column_minima<{Cost}>"),
    {"Cost": COSTS},
    structs=("Problem<{Cost}>",),
)
CLASSICAL = Source(
    "assignment/hungarian/classical.cu",
    # the type of costs; true if rows begin at multiples of 16 bytes
    ("hungarian_classical<{Cost}, false>", "hungarian_classical<{Cost}, true>"),
    {"Cost": COSTS},
    structs=("State", "Member", "Problem<{Cost}>", "Trees", "Adjacency"),
    cooperative=True,
)
TREE = Source(
    "assignment/hungarian/tree.cu",
    ("hungarian_tree<{Cost}, false>", "hungarian_tree<{Cost}, true>"),
    {"Cost": COSTS},
    structs=("State", "Member", "Problem<{Cost}>", "Trees", "Slacks", "Level", "Search"),
    cooperative=True,
)
TREE_PAPER = Source(
    "assignment/hungarian/tree_paper.cu",
    ("hungarian_tree_paper<{Cost}, false>", "hungarian_tree_paper<{Cost}, true>"),
    {"Cost": COSTS},
    structs=("State", "Member", "Problem<{Cost}>", "Trees", "Slacks"),
    cooperative=True,
)

BLOCK = TREE.constant("kBlock")
TRACE = TREE.constant("kTraceLength"), TREE.constant("kTraceWidth")
NEVER = np.int64(TREE.constant("kNever"))
"""The cost of a forbidden pair among integers."""
CHECK, DONE, FULL, TOO_FINE = map(TREE.constant, ("kCheck", "kDone", "kFull", "kTooFine"))
"""The stages that the host reads. All kernels number them alike."""

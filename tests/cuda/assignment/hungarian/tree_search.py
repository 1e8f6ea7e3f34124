"""The searches of tree.cu in plain Python, one column after another.

These are the kernel's own rules where they differ from the paper's, so that they are tested where
there is no GPU: which columns join in a level, where a search ends, which leaves may end a path.
Functions, names and encodings are those of tree.cu and paths.cuh, which say
why. Left out are launches, and what becomes of duals that 64 bits can't hold.

What blocks may do in any order is done in a random one: columns are looked at, and so the frontier
has its order; leaves are walked. Where a column joins while its predecessor's changes trees, either
root is read. (Walks agree in all that lies beyond the row where they meet; so one may follow the
other.)
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

FAR = math.inf  # beyond all distances; all others are whole numbers
NONE = -2  # what a row gets that goes without
MOST_SPREAD = 2.0**59

Member = tuple[float, int]  # base and row
Ending = Enum("Ending", ["AT_NEAREST_LEAF", "AT_SECOND_LEAF", "ANYWHERE"])


@dataclass
class Level:
    """What a level makes."""

    next: list[Member] = field(default_factory=list)
    found: int = 0
    again: int = 0
    least: float = FAR
    bound: float = FAR
    last: float = 0


@dataclass
class Search:
    """Where a search stands."""

    roots: list[int]
    frontier: list[Member]
    grown: int
    reach: float
    end: float
    limit: float
    last: float = 0
    leaves: int = 0
    depth: int = 0


class TreeSearch:
    """A problem, its matching and its duals; methods that hold one rule are there to be overridden.

    Attributes
    ----------
    costs : list of lists
        Whole numbers; `FAR` forbids the pair.
    limit : float
        What it costs a row to go without a column; `FAR` if none may.
    paths : list of int
        How many paths each search has found.
    """

    def __init__(
        self,
        costs: np.ndarray,
        limit: float = FAR,
        *,
        seed: int,
        is_patient: bool = False,
        spread: float = 0,
        batch: int = 128,
        roots_a_leaf: int = 2,
    ) -> None:
        self.costs, self.limit, self.random = costs.tolist(), limit, random.Random(seed)
        self.nrows, self.ncols = costs.shape
        all_match = limit == FAR and self.nrows == self.ncols
        self.ending = Ending.ANYWHERE if all_match else Ending.AT_SECOND_LEAF
        if is_patient:
            self.ending = Ending.AT_NEAREST_LEAF
        self.spread, self.batch, self.roots_a_leaf = spread, batch, roots_a_leaf
        self.row_to_col, self.col_to_row = [-1] * self.nrows, [-1] * self.ncols
        least = np.minimum(costs.min(axis=1, initial=FAR), limit)
        self.row_dual = np.where(least < FAR, least, 0).tolist()
        self.col_dual = [0.0] * self.ncols
        self.col_root, self.col_next = [-1] * self.ncols, [-1] * self.ncols
        self.paths: list[int] = []

    def solve(self) -> bool:
        """Match the rows, or let them go without; False if some can do neither."""
        while self.check():
            if not self.grow_trees():
                return False
            leaves = self.update_duals()
            self.reverse_pass(leaves)
            self.augmentation_pass()
            self.assert_invariants()
        return True

    def check(self) -> bool:
        """check and begin: whether there are roots."""
        nrows, ncols = self.nrows, self.ncols
        self.dist, self.joined_at = [FAR] * ncols, [FAR] * ncols
        self.col_pred, self.row_pred = [-1] * ncols, [-1] * nrows
        self.row_next, self.first_leaf = [-1] * nrows, [FAR] * nrows
        roots = [row for row in range(nrows) if self.wants(row)]
        if not roots:
            return False
        for root in roots:
            self.first_leaf[root] = self.limit - self.row_dual[root]
        own = [self.first_leaf[root] for root in roots]
        end = min(own) if self.ending is Ending.AT_NEAREST_LEAF else FAR
        reach = min(end, self.spread // len(roots))
        self.random.shuffle(roots)
        members = [(-self.row_dual[root], root) for root in roots]
        self.at = Search(roots, members, len(roots), reach, end, max(own))
        return True

    def wants(self, row: int) -> bool:
        return self.row_to_col[row] == -1 and self.row_dual[row] < self.limit

    # -- levels ------------------------------------------------------------------------------------

    def grow_trees(self) -> bool:
        """Level by level; False if what is left can't be reached."""
        while True:
            made = self.grow()
            self.find_end(made)
            if made.least > self.at.end:
                return True
            if made.least == FAR:
                return False
            self.reach_out(made)
            # After the first, each lets the nearest column join for good, or scans its mate.
            assert self.at.depth <= 2 * self.ncols + 1, "a search goes on and on"

    def grow(self) -> Level:
        made = Level()
        self.root_before = self.col_root.copy()
        for col in self.random.sample(range(self.ncols), self.ncols):
            self.look_at(col, made)
        return made

    def look_at(self, col: int, made: Level) -> None:
        for base, row in self.at.frontier:
            here = base + self.costs[row][col] - self.col_dual[col]
            if here < self.dist[col]:
                self.dist[col], self.col_pred[col] = here, row
        dist, before, mate = self.dist[col], self.joined_at[col], self.col_to_row[col]
        if mate == -1 and self.ending is Ending.AT_NEAREST_LEAF:
            made.bound = min(made.bound, dist)
        if dist >= before:
            return
        if dist > self.at.reach or mate != -1:
            made.least = min(made.least, dist)
        if dist > self.at.reach:
            return
        self.joined_at[col] = dist
        if self.ending is Ending.AT_SECOND_LEAF:
            self.join_tree(col, before, made)
        if mate == -1:
            made.found += before == FAR
            made.last = max(made.last, dist)
            return
        made.again += before != FAR
        if self.ending is Ending.AT_NEAREST_LEAF:
            made.bound = min(made.bound, dist + (self.limit - self.row_dual[mate]))
        self.row_pred[mate] = col
        made.next.append((dist - self.row_dual[mate], mate))

    def join_tree(self, col: int, before: float, made: Level) -> None:
        row, mate = self.col_pred[col], self.col_to_row[col]
        via = self.row_pred[row]
        root = row
        if via != -1:
            root = self.random.choice((self.root_before[via], self.col_root[via]))
        is_same = before != FAR and root == self.col_root[col]
        self.col_root[col] = root
        beyond = 0 if mate == -1 else self.limit - self.row_dual[mate]
        leaf, first = self.dist[col] + beyond, self.first_leaf[root]
        self.first_leaf[root] = min(first, leaf)
        if first != FAR and not self.is_itself(is_same, first, before + beyond):
            made.bound = min(made.bound, max(first, leaf))

    def is_itself(self, is_same: bool, first: float, before: float) -> bool:
        """Whether the tree's first leaf is the one that joins, which has joined before."""
        return is_same and first == before

    def find_end(self, made: Level) -> None:
        """The first half of go_on: what is known of the end after a level."""
        at = self.at
        at.depth += 1
        at.leaves += made.found
        at.end = min(at.end, made.bound)
        at.last = max(at.last, made.last)
        if self.ending is Ending.AT_NEAREST_LEAF:
            return
        if at.leaves >= (len(at.roots) - 1) // self.roots_a_leaf + 1:
            at.end = min(at.end, at.last)
        if made.least == FAR:
            at.end = min(at.end, at.last if at.leaves else at.limit)

    def reach_out(self, made: Level) -> None:
        """Its second half: the next level."""
        at, size = self.at, len(made.next)
        at.grown += size - made.again
        if made.again > max(self.batch, size // 2):
            self.spread //= 2
        if size < self.batch:
            self.spread = min(2 * self.spread + 1, MOST_SPREAD)
        at.reach = min(at.end, made.least + self.spread // at.grown)
        at.frontier = made.next

    # -- paths -------------------------------------------------------------------------------------

    def is_open(self, root: int) -> bool:
        """Whether a leaf just at the end may get its tree's path."""
        return self.ending is not Ending.AT_SECOND_LEAF or self.first_leaf[root] >= self.at.end

    def update_duals(self) -> list[int]:
        """Raise the duals; return the leaves, a column or ~row of one that goes without."""
        leaves = []
        end = self.at.end

        def rise(dist: float) -> float:
            return end - dist if dist < end else 0

        shift = rise(self.dist[0]) if self.ending is Ending.ANYWHERE else 0
        for row, col in enumerate(self.row_to_col):
            dist = self.dist[col] if col != -1 else 0 if self.wants(row) else FAR
            self.row_dual[row] += rise(dist) - shift
            if dist <= end and self.row_dual[row] >= self.limit:
                root = row if col == -1 else self.col_root[col]
                if self.row_dual[row] > self.limit or self.is_open(root):
                    leaves.append(~row)
                self.put_back(row)
        for col, dist in enumerate(self.dist):
            is_near = dist < end or (dist == end and self.is_open(self.col_root[col]))
            if is_near and self.col_to_row[col] == -1:
                leaves.append(col)
            self.col_dual[col] -= rise(dist) - shift
        self.random.shuffle(leaves)
        return leaves

    def put_back(self, row: int) -> None:
        """A row that goes without has no pair that must be tight."""
        self.row_dual[row] = self.limit

    def reverse_pass(self, leaves: list[int]) -> None:
        for leaf in leaves:
            row = ~leaf if leaf < 0 else self.col_pred[leaf]
            if leaf >= 0:
                self.col_next[leaf] = -1
            self.row_next[row] = NONE if leaf < 0 else leaf
            while (col := self.row_pred[row]) != -1:
                self.col_next[col] = row
                row = self.col_pred[col]
                self.row_next[row] = col

    def augmentation_pass(self) -> None:
        found = 0
        for row in self.at.roots:
            col = self.row_next[row]
            found += col != -1
            while row != -1 and col >= 0:
                self.row_to_col[row], self.col_to_row[col] = col, row
                row = self.col_next[col]
                col = self.row_next[row] if row != -1 else col
            if col == NONE:
                self.row_to_col[row] = -1
        self.paths.append(found)

    # -- what holds --------------------------------------------------------------------------------

    def assert_invariants(self) -> None:
        """What must hold after every search."""
        assert self.paths[-1] > 0, "a search without a path"
        for row, col in enumerate(self.row_to_col):
            u = self.row_dual[row]
            slacks = [cost - u - v for cost, v in zip(self.costs[row], self.col_dual)]
            assert min(slacks, default=0) >= 0, f"row {row} has a negative slack"
            assert u <= self.limit, f"row {row} is above the limit"
            if col != -1:
                assert self.col_to_row[col] == row, f"row {row} has lost its column"
                assert slacks[col] == 0, f"row {row} has a pair that is not tight"
        for col, row in enumerate(self.col_to_row):
            assert row == -1 or self.row_to_col[row] == col, f"column {col} has lost its row"
            if self.ending is not Ending.ANYWHERE:
                assert self.col_dual[col] <= 0, f"column {col} has a positive dual"
                assert row != -1 or self.col_dual[col] == 0, f"column {col} is free and has lost"
            if self.ending is Ending.AT_SECOND_LEAF and self.dist[col] <= self.at.end:
                assert self.col_root[col] == self.root_of(col), f"column {col} has another root"

    def root_of(self, col: int) -> int:
        row = self.col_pred[col]
        while (via := self.row_pred[row]) != -1:
            row = self.col_pred[via]
        return row

"""Rows searched one after the other: all that is told, beside plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.cpu.matching import one_by_one
from tests.cpu.matching.cases import check_maximum, check_valid, random
from tests.cpu.matching.runs import scattered


class Plain:
    """The same with lists, level by level."""

    def __init__(self, graph, row_to_col, col_to_row):
        self.lists = np.split(graph.indices, graph.indptr[1:-1])
        self.row_to_col, self.col_to_row = row_to_col.copy(), col_to_row.copy()
        self.dead = set()

    def search(self, most):
        """Paths, levels of the deepest search, edges read, and whether it has tried all roots."""
        free = np.flatnonzero(self.row_to_col < 0)
        roots = [row for row in free.tolist() if len(self.lists[row])]
        found = levels = read = paid = 0
        for tried, root in enumerate(roots, 1):
            col, depth, edges = self.grow(root)
            levels, read = max(levels, depth), read + edges
            if col is None:
                self.dead |= self.parent.keys()
            else:
                self.turn(col)
                found, paid = found + 1, paid + edges
            tells = paid > most // one_by_one._SAMPLE
            too_long = tells and paid * len(roots) > most // one_by_one._SHARE * tried
            if tried < len(roots) and (read > most or too_long):
                return found, levels, read, paid, False
        return found, levels, read, paid, True

    def grow(self, root):
        """The free column that is found first, or None; levels; and edges read."""
        self.parent, level, depth, edges = {}, [root], 0, 0
        while level:
            depth, rows, level = depth + 1, level, []
            for row in rows:
                for col in self.lists[row].tolist():
                    edges += 1
                    if col in self.parent or col in self.dead:
                        continue
                    self.parent[col] = row
                    if self.col_to_row[col] < 0:
                        return col, depth, edges
                    level.append(int(self.col_to_row[col]))
        return None, depth, edges

    def turn(self, col):
        while col >= 0:
            row = self.parent[col]
            above = int(self.row_to_col[row])
            self.row_to_col[row], self.col_to_row[col] = col, row
            col = above


@pytest.mark.parametrize("most", [0, 3, 10, 30, 100, 10**9])
def test_a_search_is_that_of_plain_loops(most):
    """From any matching, with rows that have no column, and however much may be read."""
    ends = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        nrows, ncols, count = rng.integers(1, 30), rng.integers(1, 30), rng.integers(1, 90)
        graph = random(nrows, ncols, count, seed)
        mates = scattered(graph, rng.choice([0, 0.5, 0.9]), seed)
        plain = Plain(graph, *mates)
        told = one_by_one.search(graph.indptr, graph.indices, most, *mates)
        assert told == plain.search(most)
        assert np.array_equal(mates[0], plain.row_to_col)
        assert np.array_equal(mates[1], plain.col_to_row)
        (check_maximum if told[-1] else check_valid)(graph, *mates)
        ends.add(told[-1])
    assert ends == ({True} if most == 10**9 else {True, False})

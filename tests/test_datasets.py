"""The manifest and the matrices in datasets/ are what they are said to be."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy.sparse.csgraph import structural_rank

from gpumatch import io

DATASETS = Path(__file__).parents[1] / "datasets"
FILES = sorted(DATASETS.glob("*.mtx.gz"))
NUMBERS = {"rows", "columns", "entries", "sprank"}


def table():
    """The table of README.md: file -> (name, rows, columns, entries, structural rank)."""
    lines = (DATASETS / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: (row[1], *map(int, row[2:6])) for row in rows if row[0].endswith(".mtx.gz")}


def networkx_rank(pattern):
    graph = nx.Graph()
    rows, columns = pattern.tocoo().coords
    graph.add_nodes_from(range(pattern.shape[0]))
    graph.add_edges_from(zip(rows.tolist(), (-1 - columns).tolist(), strict=True))
    return len(nx.bipartite.hopcroft_karp_matching(graph, range(pattern.shape[0]))) // 2


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_small_matrix_is_what_the_table_says(path):
    name, rows, columns, entries, rank = table()[path.name]
    matrix = io.read(path)
    assert (*matrix.shape, matrix.nnz) == (rows, columns, entries)
    pattern = matrix.copy()
    pattern.data = np.ones(matrix.nnz)  # SciPy drops stored zeros
    assert structural_rank(pattern) == networkx_rank(pattern) == rank
    assert path.stat().st_size < 300_000
    if name:
        assert io.manifest()[name] == {
            "rows": rows,
            "columns": columns,
            "entries": entries,
            "sprank": rank,
        }


def test_table_lists_the_files_that_are_there():
    assert sorted(table()) == [path.name for path in FILES]


def test_manifest():
    for name, known in io.manifest().items():
        assert name.count("/") == 1
        assert {"rows", "columns", "entries"} <= set(known) <= NUMBERS | {"sha256", "sets"}
        assert all(isinstance(known[key], int) and known[key] > 0 for key in NUMBERS & set(known))
        assert known.get("sprank", 0) <= min(known["rows"], known["columns"])


def test_manifest_has_the_twenty_graphs_of_deveci_2013():
    sets = [known.get("sets", []) for known in io.manifest().values()]
    assert sum("deveci2013-hardest20" in names for names in sets) == 20

"""What the reports of several suites share."""

from __future__ import annotations

from bench.report import tables


def test_graphs_come_by_their_size_whatever_the_order_in_the_file():
    graphs = {name: {"rows": rows, "name": name} for name, rows in zip("abc", (9, 4, 9))}
    groups = tables.by_size({"graphs": graphs})
    assert list(groups) == [4, 9]
    assert [[graph["name"] for graph in group] for group in groups.values()] == [["b"], ["a", "c"]]

"""What errors say, word for word."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, dia_array

import gpumatch as gm
from gpumatch import csgraph, linalg, optimize
from gpumatch.costs import CostBatch, DenseCosts, SparseCosts
from gpumatch.interop import networkx_backend as backend
from gpumatch.interop.networkx import NodeGraph
from gpumatch.results.pairs import Pairs
from gpumatch.running.control import Control

ONES, WIDE = np.ones((2, 2)), np.ones((2, 3))
GRAPH = gm.BipartiteGraph(ONES)
PATH, TWO = nx.path_graph(3), nx.Graph([(0, 1), (2, 3)])
LONG = nx.cycle_graph(25)


def nodes(graph, **values):
    return NodeGraph.of(graph, values)


def case(says, call, *args, **kwargs):
    return pytest.param(says, lambda: call(*args, **kwargs), id=says[:50].replace("\n", " "))


WRONG_ARGUMENTS = [
    case(
        "assign got an unexpected argument 'maximise'; did you mean 'maximize'?",
        gm.assign, ONES, maximise=True,
    ),
    case("maximum_matching got an unexpected argument 'zzz'", gm.maximum_matching, ONES, zzz=1),
    case("maximize must be True or False; got 1", gm.assign, ONES, maximize=1),
    case("seed must be an integer in [0, 2**63); got -1", gm.assign, ONES, seed=-1),
    case("threads must be an integer >= 1; got 0", gm.assign, ONES, threads=0),
    case(
        "cardinality must be one of ('full', 'maximum', 'any'); got 'all'",
        gm.assign, ONES, cardinality="all",
    ),
    case(
        "cardinality must be one of ('full', 'maximum', 'any'); got 'ful'; did you mean 'full'?",
        gm.assign, ONES, cardinality="ful",
    ),
    case(
        "objective must be one of ('sum', 'bottleneck', 'lexicographic'); got 'bottlenek'; "
        "did you mean 'bottleneck'?",
        gm.assign, ONES, objective="bottlenek",
    ),
    case(
        "search must be one of ('levels', 'stack', 'paper'); got 'level'; did you mean 'levels'?",
        gm.assign, ONES, algorithm="hungarian-tree", search="level",
    ),
    case("cost_limit must be None, a number, or one for each row; got '3'",
         gm.assign, ONES, cost_limit="3"),
    case("cost_limit must be None or finite; got -inf", gm.assign, ONES, cost_limit=-math.inf),
    case("objective must be one of ('sum', 'bottleneck', 'lexicographic'); got 'x'",
         gm.assign, ONES, objective="x"),
    case(
        "cardinality 'any' has no bottleneck: no pair at all would be best",
        gm.assign, ONES, objective="bottleneck", cardinality="any",
    ),
    case(
        "the objective 'bottleneck' takes no cost_limit: pass a limit's pairs as forbidden",
        gm.assign, ONES, objective="bottleneck", cost_limit=1,
    ),
    case(
        "the objective 'lexicographic' takes no cost_limit: pass a limit's pairs as forbidden",
        gm.assign, ONES, objective="lexicographic", cost_limit=1,
    ),
    case(
        "the objective 'bottleneck' is found by matchings: algorithm must be 'auto' or "
        "'thresholds' or 'paths'",
        gm.assign, ONES, objective="bottleneck", algorithm="engine",
    ),
    case(
        "the objective 'bottleneck' is found by matchings: algorithm must be 'auto' or "
        "'thresholds' or 'paths'",
        gm.assign, ONES, objective="bottleneck", search="stack",
    ),
    case(
        "row_nodes and weight are for a networkx graph only", gm.assign, [ONES], weight="cost",
    ),
    case("row_nodes and weight are for a networkx graph only", gm.assign, [ONES], row_nodes=[0]),
    case("a batch takes no initial", gm.assign, [ONES], initial=[0, 1]),
    case(
        "a batch takes the objective 'sum' only; got 'bottleneck'",
        gm.assign, [ONES], objective="bottleneck",
    ),
    case("on_error must be one of ('raise', 'mark'); got 'x'", gm.assign, [ONES], on_error="x"),
    case("on_error must be one of ('raise', 'mark'); got 'y'", gm.assign, ONES, on_error="y"),
    case(
        "cardinality must be one of ('full', 'maximum', 'any'); got 'all'",
        gm.assign, [ONES], cardinality="all",
    ),
    case("time_limit must be None or a number; got '1'", Control, time_limit="1"),
    case("time_limit must be None or seconds >= 0; got -1", Control, time_limit=-1),
    case("time_limit must be None or seconds >= 0; got nan", Control, time_limit=math.nan),
    case("callback must be callable; got int", Control, callback=3),
    case("problem must be None or one of ('matching', 'assignment', 'transport', "
         "'general-matching', 'general-weights'); got 'x'",
         gm.algorithms, "x"),
    case("row_nodes are for the nodes of a networkx graph only",
         gm.maximum_matching, ONES, row_nodes=[0]),
    case("row_nodes and weight are for a networkx graph only", gm.assign, ONES, row_nodes=[0]),
    case("row_nodes and weight are for a networkx graph only", gm.assign, ONES, weight="cost"),
    case(
        "backend must be 'auto' or one of ('cpu', 'cuda', 'reference'); got 'gpu'; "
        "did you mean 'cuda'?",
        gm.assign, ONES, backend="gpu",
    ),
    case(
        "algorithm 'hk' takes no option 'launch'; these do: 'apfb-gpubfs-wr', 'apfb-gpubfs', "
        "'apsb-gpubfs-wr', 'apsb-gpubfs'",
        gm.maximum_matching, ONES, algorithm="hk", launch="ct",
    ),
    case(
        "launch must be one of ('ct', 'mt'); got 'x'",
        gm.maximum_matching, ONES, algorithm="apfb-gpubfs", launch="x",
    ),
    case(
        "algorithm 'hk' runs on 'cpu', not on 'reference'",
        gm.maximum_matching, ONES, algorithm="hk", backend="reference",
    ),
]  # fmt: skip
WRONG_INPUT = [
    case("indptr must have nrows + 1 = 3 entries; got 2", gm.BipartiteGraph, ([0, 1], [0], (2, 2))),
    case("indptr[0] must be 0; got 1", gm.BipartiteGraph, ([1, 1, 1], [0], (2, 2))),
    case(
        "indptr[-1] is 3, but there are only 1 indices",
        gm.BipartiteGraph, ([0, 1, 3], [0], (2, 2)),
    ),
    case("indptr must not decrease", gm.BipartiteGraph, ([0, 2, 1], [0, 1], (2, 2))),
    case("indices: 2 lies outside [0, 2)", gm.BipartiteGraph, ([0, 1, 2], [0, 2], (2, 2))),
    case("indices: -1 lies outside [0, 2)", gm.BipartiteGraph, ([0, 1, 2], [-1, 9], (2, 2))),
    case("rows: 2 lies outside [0, 2)", gm.BipartiteGraph.from_edges, [2], [0], (2, 2)),
    case("cols: 5 lies outside [0, 2)", gm.BipartiteGraph.from_edges, [0], [5], (2, 2)),
    case("shape must be two integers (rows, columns); got (2.5, 2)",
         gm.BipartiteGraph, ([0], [], (2.5, 2))),
    case("shape must be two integers (rows, columns); got (2,)",
         gm.BipartiteGraph, ([0], [], (2,))),
    case("shape must not be negative; got (-1, 2)", gm.BipartiteGraph, ([0], [], (-1, 2))),
    case("shape (0, 2146435073): at most 2146435072 rows and columns are held",
         gm.BipartiteGraph, ([0], [], (0, 2**31 - 2**20 + 1))),
    case(
        "a tuple must be (indptr, indices, shape) or (indptr, indices, data, shape); got 2 parts",
        gm.BipartiteGraph, ([0], []),
    ),
    case("rows and cols must have one length; got 1 and 2",
         gm.BipartiteGraph.from_edges, [0], [1, 2]),
    case("indptr must have 1 dimension; got 2", gm.BipartiteGraph, (ONES.astype(int), [0], (2, 2))),
    case("indices must be integers; got dtype float64",
         gm.BipartiteGraph, ([0, 1], [0.0], (1, 2))),
    case("a dense graph must have 2 dimensions; got 1", gm.BipartiteGraph, np.ones(3)),
    case(
        "the graph must be a sparse matrix, a boolean or numeric array, a tuple of CSR arrays or a "
        "networkx graph; got str (dtype <U1); for pairs of labels, see "
        "LabelledArray.from_pairs",
        gm.BipartiteGraph, "a",
    ),
    case("dtype must be boolean or numeric; got object", GRAPH.to_csr, object),
    case("the sparse array must have 2 dimensions; got 1",
         gm.BipartiteGraph, coo_array(np.ones(3))),
    case("the sparse array must have 2 dimensions; got 1", SparseCosts, coo_array(np.ones(3))),
    case("the costs must have 2 dimensions; got 1", DenseCosts, np.ones(3)),
    case(
        "the costs must be a matrix of numbers, dense or sparse, or a tuple of CSR arrays; got str",
        DenseCosts, "a",
    ),
    case("the costs must be real numbers; got dtype complex128", DenseCosts, ONES * 1j),
    case("the costs: got a masked array: fill it, with inf to forbid a pair, or with 0 where there "
         "is no entry",
         DenseCosts, np.ma.masked_equal(ONES, 0)),
    case("the costs hold NaN, first at row 1, column 0", DenseCosts, [[1, 2], [math.nan, 1]]),
    case("the costs hold NaN, first at entry 1 of the data",
         SparseCosts, csr_array(np.array([[1, math.nan]]))),
    case("the costs hold inf, but to be maximised: -inf forbids a pair",
         gm.assign, [[1.0, math.inf]], maximize=True),
    case("the costs hold -inf: inf forbids a pair", gm.assign, [[1.0, -math.inf]]),
    case(
        f"integer costs up to {2**61} are too large for 1 rows or columns: "
        "(n + 1) * max |cost| must be below 2**62",
        DenseCosts, [[2**61]],
    ),
    case(
        f"integer costs up to {2**61} are too large for 2 rows or columns: "
        "(n + 1) * max |cost| must be below 2**62",
        gm.assign, [[1, 2], [3, 4]], cost_limit=2**61,
    ),
    case("the total of 2 pairs overflow float64: pass the costs divided by 2**6",
         gm.assign, [[1e308, 1e308], [1e308, 1e308]]),
    case("costs up to 1.5e+308 overflow when 1 of them are summed", DenseCosts, [[1.5e308]]),
    case("data must have 1 dimension; got 2", SparseCosts, ([0, 1], [0], [[1]], (1, 1))),
    case("data must have 2 entries; got 1", SparseCosts, ([0, 2], [0, 1], [1], (1, 2))),
    case("a tuple must be (indptr, indices, data, shape); got 3 parts",
         SparseCosts, ([0, 1], [0], (1, 1))),
    case(
        "the costs are in DIA, which fills diagonals with zeros, so a cost of 0 looks like no "
        "entry: pass them in another format",
        SparseCosts, dia_array(([[1, 0]], [0]), shape=(2, 2)),
    ),
    case("the directed graph has an edge in both directions, with two costs",
         SparseCosts.from_networkx, nx.DiGraph([(0, 1), (1, 0)])),
    case("a BipartiteGraph has no costs: pass a sparse matrix or a tuple with data",
         gm.assign, GRAPH),
    case("sizes are for an array of three dimensions, not for a list", CostBatch, [ONES], (1, 1)),
    case("problem 1: the costs must have 2 dimensions", CostBatch, [ONES, np.ones(2)]),
    case("sizes need costs of 3 dimensions; got 2", gm.assign, ONES, sizes=(1, 1)),
    case("sizes must be integers, or arrays of 4 of them",
         CostBatch, np.ones((4, 2, 3)), (1.5, 1)),
    case("sizes must be integers, or arrays of 4 of them",
         CostBatch, np.ones((4, 2, 3)), (1, [1, 2])),
    case("sizes must be from 0 to 2", CostBatch, np.ones((4, 2, 3)), (3, 3)),
    case("sizes must be from 0 to 3", CostBatch, np.ones((4, 2, 3)), (2, -1)),
]  # fmt: skip
WRONG_START = [
    case("initial: the mates of the rows must be 2 integers; got int64 of shape (1,)",
         gm.assign, ONES, initial=np.array([1])),
    case("initial: row 1 is matched to column 2, outside [-1, 2)",
         gm.maximum_matching, ONES, initial=[0, 2]),
    case("initial: row 0 is matched to column -2, outside [-1, 2)",
         gm.maximum_matching, ONES, initial=[-2, 0]),
    case("initial: row 0 is matched to column 1, which is matched to row 1",
         gm.maximum_matching, ONES, initial=[1, 1]),
    case("initial: row 1 is matched to column 1, but that is no edge",
         gm.maximum_matching, [[1, 1], [1, 0]], initial=[0, 1]),
    case("initial: its shape is not that of the costs, (2, 2)",
         lambda: gm.assign(ONES, initial=gm.assign(WIDE, algorithm="engine"))),
]  # fmt: skip
NO_PROOF = [
    case("these pairs have no vertex cover", Pairs(np.array([0]), np.array([0])).vertex_cover),
    case("only a proven assignment of cardinality 'maximum' has a vertex cover",
         lambda: gm.assign(ONES).vertex_cover()),
    case("only a proven assignment of cardinality 'maximum' has a vertex cover",
         lambda: gm.assign(ONES, objective="bottleneck").vertex_cover()),
    case("only a proven assignment has a threshold cover",
         lambda: gm.assign(ONES, objective="bottleneck", time_limit=0).threshold_cover()),
    case("values must be one for each of the 2 pairs; got shape (3,)",
         lambda: gm.assign(ONES).to_matrix([1, 2, 3])),
    case("problem 1 of 1", lambda: gm.assign([ONES])[1]),
    case(
        "result must be BoundedMatching, GeneralWeightMatching, GeneralMatching, RankedBatch, "
        "RankedAssignments, BatchTransport, BatchAssignment, Transport, Assignment, EdgeSet, "
        "MatchingEdges, Alternatives, LexicographicAssignment, BottleneckAssignment, "
        "DulmageMendelsohn, ProductMatching, BlockTriangularForm, BMatching or Matching; got list",
        gm.verify, ONES, [0],
    ),
    case("the costs are infeasible: 2 rows may be assigned to 1 columns only, so no full "
         "assignment exists", gm.assign, [[1, math.inf], [2, math.inf]]),
    case("the costs are infeasible: 2 columns may be assigned to 1 rows only, so no full "
         "assignment exists", gm.assign, [[1, 2], [math.inf, math.inf], [math.inf, math.inf]]),
    case("problem 1: the costs are infeasible: 1 rows may be assigned to 0 columns only, so no "
         "full assignment exists", gm.assign, [ONES, np.full((1, 1), math.inf)]),
]  # fmt: skip
SCIPYS_NAMES = [
    case("perm_type must be 'row' or 'column'; got 'x'",
         csgraph.maximum_bipartite_matching, csr_array(ONES), "x"),
    case("graph must be sparse", csgraph.maximum_bipartite_matching, ONES),
    case("graph must be sparse", csgraph.min_weight_full_bipartite_matching, ONES),
    case("graph must be in CSC, CSR, or COO format.",
         csgraph.maximum_bipartite_matching, csr_array(ONES).tolil()),
    case("graph must be in CSC, CSR, or COO format.",
         csgraph.min_weight_full_bipartite_matching, csr_array(ONES).tolil()),
    case("no full matching exists",
         csgraph.min_weight_full_bipartite_matching, csr_array([[1, 0], [1, 0]])),
    case("Input must be sparse", csgraph.structural_rank, ONES),
    case("expected a matrix (2-D array), got a 1 array", optimize.linear_sum_assignment, [1, 2]),
    case(
        "Cannot cast array data from dtype('complex128') to dtype('float64') according to the "
        "rule 'safe'",
        optimize.linear_sum_assignment, ONES * 1j,
    ),
    case("matrix contains invalid numeric entries",
         optimize.linear_sum_assignment, [[math.nan]]),
    case("cost matrix is infeasible", optimize.linear_sum_assignment, [[math.inf]]),
]  # fmt: skip
NETWORKX = [
    case("the graph was converted without its edge attribute 'w'", nodes(PATH).value, "w"),
    case(
        "a multigraph may have several values of 'w' for an edge: make a Graph of it, with the one "
        "that counts",
        nodes, nx.MultiGraph([(0, 1)]), w=1,
    ),
    case(
        "the graph is not bipartite: it has the odd cycle 0, 24, 23, 22, 21, 20, 19, 18, 17, 16, "
        "15, 14, 13, 12, 11, 10, 9, 8, 7, 6, … (25 nodes)",
        gm.BipartiteGraph, LONG,
    ),
    case("the graph is not bipartite: it has the odd cycle 0, 2, 1",
         gm.BipartiteGraph, nx.cycle_graph(3)),
    case("the graph is not bipartite: edge (0, 1) stays on one side",
         gm.BipartiteGraph.from_networkx, PATH, [0, 1]),
    case("row_nodes: 7 is not a node of the graph", gm.BipartiteGraph.from_networkx, PATH, [0, 7]),
    case("Graph has a node with no edge incident on it, so no edge cover exists.",
         backend.min_edge_cover, nodes(nx.empty_graph(1))),
    case(
        "The input node set contains duplicates.\n"
        "This may lead to incorrect results when using it in bipartite algorithms.\n"
        "Consider using set(nodes) as the input",
        backend.is_bipartite_node_set, nodes(PATH), [0, 0],
    ),
    case("Connectivity is undefined for the null graph.", backend.sets, nodes(nx.Graph())),
    case("Disconnected graph: Ambiguous solution for bipartite sets.", backend.sets, nodes(TWO)),
    case(
        "Graph is not bipartite. It has an odd cycle of 25 nodes: 0, 24, 23, 22, 21, 20, 19, 18, "
        "17, 16, ….",
        backend.sets, nodes(LONG),
    ),
    case("matching has non-2-tuple edge (0,)", backend.is_matching, nodes(PATH), [(0,)]),
    case("matching contains edge (0, 9) with node not in G",
         backend.is_matching, nodes(PATH), [(0, 9)]),
    case(
        "matching is no matching of the graph: initial: row 0 is matched to column 1, but that is "
        "no edge",
        backend.to_vertex_cover, nodes(nx.path_graph(4)), {0: 3}, [0, 2],
    ),
    case("weight 'cost' of edge ('a', 'y') is NaN or None",
         gm.assign, nx.Graph([("a", "x", {"cost": 1}), ("a", "y", {"cost": None})]), weight="cost"),
    case("weight 'cost' of edge ('b', 'x') is NaN or None", gm.assign,
         nx.Graph([("a", "x"), ("b", "x", {"cost": math.nan})]), weight="cost"),
    case("weight 'cost' must be a number at every edge: one is '3', of type str", gm.assign,
         nx.Graph([("a", "x", {"cost": "3"}), ("a", "y", {"cost": 2})]), weight="cost"),
    case("weight 'weight' must be a number at every edge: ",
         SparseCosts.from_networkx, nx.Graph([(0, 1, {"weight": {}})])),
]  # fmt: skip
SOLVERS = [
    case("the search for strong components runs on 'cpu' and 'cuda', not on 'reference'",
         linalg.btf, ONES, backend="reference"),
    case("backend must be 'auto' or one of ('cpu', 'cuda', 'reference'); got 'gpu'; "
         "did you mean 'cuda'?",
         linalg.strongcomp, ONES, backend="gpu"),
    case("A must be square; got 2 rows and 3 columns", linalg.btf, WIDE),
    case("A must be square; got 2 rows and 3 columns", linalg.splu, WIDE),
    case("q must have n = 2 entries; got 3", linalg.strongcomp, ONES, [0, 1, 2]),
    case("q must be a permutation of 0 to 1; in order, its entry 0 is 1",
         linalg.strongcomp, ONES, [1, 1]),
    case("job must be 1, 2, 3, 4 or 5; got 6", linalg.mc64, ONES, 6),
    case("A must have 2 dimensions; got 1", linalg.mc64, np.ones(2)),
    case("the values of A must be numbers; got dtype <U1", linalg.mc64, [["a"]]),
    case("the values of A must be finite; that of row 1 and column 0 is nan",
         linalg.mc64, [[1, 2], [math.nan, 1]]),
    case("a tuple must be (indptr, indices, data, shape); got 3 parts",
         linalg.mc64, ([0, 1], [0], (1, 1))),
    case("A is on a device: this runs on 'cpu' only, so pass a copy on the host",
         linalg.splu, ([0, 1], [0], SimpleNamespace(__cuda_array_interface__={}), (1, 1))),
    case("the matrix is singular whatever its values: 2 rows have entries in 1 columns only",
         linalg.splu, [[1, 0], [1, 0]]),
    case("the matrix is singular whatever its values: 2 rows have entries in 1 columns only",
         linalg.solve_btf, [[1, 0], [1, 0]], [1, 1]),
    case("b must have 2 rows and one or two dimensions; got shape (3,)",
         lambda: linalg.splu(np.eye(2)).solve(np.ones(3))),
    case("trans must be one of ('N', 'T', 'H'); got 'x'",
         lambda: linalg.splu(np.eye(2)).solve(np.ones(2), "x")),
    case("there is no scaling: pass scaling=True",
         lambda: linalg.maximum_product_matching(ONES, scaling=False).symmetric_log_scale()),
    case("only a square matrix has a symmetric scaling",
         lambda: linalg.maximum_product_matching(WIDE).symmetric_log_scale()),
    case("only a square matrix has symmetric pivots",
         lambda: linalg.maximum_product_matching(WIDE).symmetric_pivots()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("says", "call"),
    [*WRONG_ARGUMENTS, *WRONG_INPUT, *WRONG_START, *NO_PROOF, *SCIPYS_NAMES, *NETWORKX, *SOLVERS],
)
def test_what_an_error_says(says, call):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    said = str(caught.value)
    assert said == says or (says.endswith(": ") and said.startswith(says))


def test_why_networkx_keeps_a_call():
    small = "the graph is small: it has fewer than 400 edges"
    for edges, expected in ((399, small), (400, True)):
        graph = nx.path_graph(edges + 1)
        assert backend.should_run("hopcroft_karp_matching", (graph,), {}) == expected
        quick = "networkx is done before the graph would be converted"
        assert backend.should_run("is_bipartite", (graph,), {}) == quick
    for name, args, says in (
        ("sets", (nx.DiGraph(),), "the graph is directed: networkx then goes along the directions "
         "only"),
        ("minimum_weight_full_matching", (nx.MultiGraph(),),
         "a multigraph may have several weights for an edge"),
        ("min_edge_cover", (PATH, print),
         "matching_algorithm is not one that this backend has"),
        ("min_weight_matching", (nx.cycle_graph(3),), True),
        ("min_weight_matching", (PATH,), True),
        ("is_matching", (nx.DiGraph(), {}), True),
        ("is_matching", (nx.MultiGraph(), {}), True),
        ("min_edge_cover", (PATH, nx.bipartite.eppstein_matching), True),
        ("sets", (PATH,), True),
    ):  # fmt: skip
        assert backend.can_run(name, args, {}) == says


def test_a_graph_that_is_converted_already_is_served():
    graph = nx.path_graph(3)
    assert backend.should_run("is_bipartite", (graph,), {}) is not True
    graph.__networkx_cache__ = {"backends": {"gpumatch": {"key": nodes(graph)}}}
    assert backend.should_run("is_bipartite", (graph,), {}) is True
    assert backend.should_run("hopcroft_karp_matching", (graph,), {}) is True


def test_numbers_that_are_not_floats_are_weights():
    G = nx.Graph([(0, 1, {"weight": Fraction(1, 4)})])
    assert SparseCosts.from_networkx(G).weights.tolist() == [0.25]

"""Maximum matchings: every algorithm on every backend from every start, and what a Matching is."""

from __future__ import annotations

import copy
import pickle
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from scipy.sparse.csgraph import maximum_bipartite_matching

import gpumatch as gm
import graphs
from gpumatch.bipartite import BipartiteGraph
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.dispatch import arguments, registry
from gpumatch.results.matching import Matching
from tests.cases import CASES, EVERY_RUN, EVERY_START, GENERATED, PROVEN, SMALL, matrix

# -- the peers' answers ----------------------------------------------------------------------------


def size_by_scipy(graph):
    return int((maximum_bipartite_matching(graph) >= 0).sum())


def networkx_graph(graph):
    """Rows are 0, 1, …, columns ~0, ~1, …"""
    peer = nx.Graph()
    peer.add_nodes_from(range(graph.shape[0]), bipartite=0)
    peer.add_nodes_from((~c for c in range(graph.shape[1])), bipartite=1)
    rows, cols = graph.nonzero()
    peer.add_edges_from(zip(rows.tolist(), (~cols).tolist()))
    return peer


def size_by_networkx(graph):
    peer = networkx_graph(graph)
    return len(nx.bipartite.hopcroft_karp_matching(peer, range(graph.shape[0]))) // 2


@pytest.fixture
def deep_recursion():
    """networkx recurses once for each edge of an augmenting path."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(limit)


def ids(cases):
    return [case.name for case in cases]


def test_every_family_of_graphs_is_a_case_at_three_sizes():
    assert {family: len(sizes) for family, sizes in GENERATED.items()} == dict.fromkeys(
        graphs.FAMILIES, 3
    )


SCIPY_CAN = [case for case in CASES if case.scipy_can]


@pytest.mark.parametrize("case", SCIPY_CAN, ids=ids(SCIPY_CAN))
def test_known_sizes_are_scipys(case):
    assert size_by_scipy(case.graph) == case.size


@pytest.mark.parametrize("case", SMALL, ids=ids(SMALL))
@pytest.mark.usefixtures("deep_recursion")
def test_known_sizes_are_networkxs(case):
    assert size_by_networkx(case.graph) == case.size


# -- every algorithm -------------------------------------------------------------------------------


@pytest.mark.parametrize(("run", "init", "case"), PROVEN)
def test_every_algorithm_proves_the_known_size(run, init, case):
    m = gm.maximum_matching(case.graph, init=init, **run.arguments)
    certificate = gm.verify(case.graph, m)
    assert (certificate.size, certificate.bound, certificate.edges) == (
        case.size,
        case.size,
        case.graph.nnz,
    )
    assert (m.size, m.proven) == (case.size, True)
    assert m.row_to_col.dtype == m.col_to_row.dtype == np.int32


@st.composite
def bipartite_graphs(draw):
    nrows, ncols = draw(st.integers(0, 12)), draw(st.integers(0, 12))
    if nrows == 0 or ncols == 0:
        return csr_array((nrows, ncols))
    vertices = st.tuples(st.integers(0, nrows - 1), st.integers(0, ncols - 1))
    return matrix(nrows, ncols, draw(st.sets(vertices, max_size=40)))


@pytest.mark.parametrize(("run", "init"), EVERY_START)
@given(graph=bipartite_graphs(), seed=st.integers(0, 2**63 - 1))
def test_every_algorithm_agrees_with_scipy_and_networkx(run, init, graph, seed):
    m = gm.maximum_matching(graph, init=init, seed=seed, **run.arguments)
    assert gm.verify(graph, m).size == size_by_both(graph)


SIZES: dict[tuple, int] = {}


def size_by_both(graph):
    """Hypothesis draws many graphs again for another algorithm."""
    key = graph.shape, graph.indptr.tobytes(), graph.indices.tobytes()
    if key not in SIZES:
        SIZES[key] = size_by_scipy(graph)
        assert SIZES[key] == size_by_networkx(graph)
    return SIZES[key]


SPARSE = random_array((300, 280), density=0.008, rng=np.random.default_rng(7), format="csr")


@pytest.mark.parametrize("run", EVERY_RUN)
def test_numbering_and_direction_do_not_matter(run):
    expected = size_by_scipy(SPARSE)
    for graph in (SPARSE.T, graphs.rcp(SPARSE, seed=3), BipartiteGraph(SPARSE).transpose()):
        m = gm.maximum_matching(graph, **run.arguments)
        assert gm.verify(graph, m).size == expected


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("run", [param for param in EVERY_RUN if "cpu" in param.id])
def test_any_number_of_threads(run, threads):
    graph = graphs.make("grid", 60, 0.65, seed=2, rcp=True)
    m = gm.maximum_matching(graph, threads=threads, **run.arguments)
    assert gm.verify(graph, m).size == size_by_scipy(graph)


@pytest.mark.parametrize(
    ("run", "init"), [param for param in EVERY_START if "cuda" not in param.id]
)
def test_seed_and_one_thread_fix_the_matching(run, init):
    def once(seed):
        m = gm.maximum_matching(SPARSE, init=init, seed=seed, threads=1, **run.arguments)
        return m.row_to_col.tolist()

    for seed in (0, 2**63 - 1):
        assert once(seed) == once(seed)


@pytest.mark.parametrize("algorithm", ["hk", "hkdw", "pfp"])
def test_sequential_algorithms_use_one_thread_whatever_is_asked(algorithm, monkeypatch):
    """With several, the matching would vary from run to run."""
    threads = []
    init = Workers.__init__

    def recorded(self, count, edges):
        threads.append(count)
        init(self, count, edges)

    monkeypatch.setattr(Workers, "__init__", recorded)
    gm.maximum_matching(SPARSE, algorithm=algorithm, init="none", threads=4)
    assert threads == [1]


def test_all_cores_of_the_process_are_used_unless_told(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 2, 5}, raising=False)
    assert arguments.checked_threads(None) == 3
    monkeypatch.delattr("os.sched_getaffinity")  # as on macOS and Windows
    for known, threads in ((7, 7), (None, 1)):
        monkeypatch.setattr("os.cpu_count", lambda known=known: known)
        assert arguments.checked_threads(None) == threads


@pytest.mark.parametrize("run", EVERY_RUN)
def test_what_is_asked_for_reaches_the_algorithm(run, monkeypatch):
    calls = []

    def load(function):
        if function.endswith("no_start"):
            return registry.no_start
        return lambda task, **own: calls.append((function, task, own))

    monkeypatch.setattr(registry, "load", load)
    gm.maximum_matching(SPARSE, init="none", seed=5, threads=3, **run.arguments)
    ((function, task, told),) = calls
    (algorithm,) = (a for a in gm.algorithms("matching") if a.name == run.algorithm)
    assert function == algorithm.homes[run.backend].function
    home = algorithm.homes[run.backend]
    own = {name: value for name, value in run.options.items() if name in home.options}
    assert (task.seed, task.threads) == (5, 3)
    assert told == {**home.fixed, **own}


# -- statistics ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("run", "init"), EVERY_START)
def test_statistics_say_what_ran_and_add_up(run, init):
    m = gm.maximum_matching(SPARSE, init=init, **run.arguments)
    expected = {"algorithm": run.algorithm, "backend": run.backend, "init": init}
    assert m.stats.items() >= expected.items()
    if run.backend == "cuda":
        assert m.stats.items() >= run.options.items()
    assert m.stats["start_size"] == 0 if init == "none" else m.stats["start_size"] >= m.size / 2
    assert {"graph", "transfer", "start", "search"} <= m.stats["seconds"].keys()
    assert all(seconds >= 0 for seconds in m.stats["seconds"].values())
    assert m.stats["phases"] == len(m.stats["trace"]) > 0
    assert m.stats["levels"] == sum(phase["levels"] for phase in m.stats["trace"])
    sizes = [m.stats["start_size"], *(phase["matched"] for phase in m.stats["trace"])]
    assert sizes == sorted(sizes)
    assert sizes[-1] == m.size


# -- warm starts -----------------------------------------------------------------------------------

FORMS = {
    "matching": lambda m: m,
    "array": lambda m: m.row_to_col,
    "int64 array": lambda m: m.row_to_col.astype(np.int64),
    "list": lambda m: m.row_to_col.tolist(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(("run", "init"), EVERY_START)
def test_an_initial_matching_is_extended(run, init, form):
    whole = gm.maximum_matching(SPARSE)
    half = whole.row_to_col.copy()
    half[::2] = -1
    before = half.copy()
    partial = Matching(
        BipartiteGraph(SPARSE), half, np.array([]), proven=False, stats={}
    )  # only its row_to_col is asked for
    m = gm.maximum_matching(SPARSE, init=init, initial=form(partial), **run.arguments)
    assert gm.verify(SPARSE, m).size == whole.size
    assert m.stats["start_size"] >= partial.size
    assert np.all(m.col_to_row[half[half >= 0]] >= 0)  # augmenting leaves no column behind
    np.testing.assert_array_equal(half, before)


@pytest.mark.parametrize("run", EVERY_RUN)
def test_a_maximum_initial_matching_is_kept(run):
    whole = gm.maximum_matching(SPARSE)
    m = gm.maximum_matching(SPARSE, initial=whole, **run.arguments)
    np.testing.assert_array_equal(m.row_to_col, whole.row_to_col)
    assert m.row_to_col is not whole.row_to_col


TWO_BY_THREE = [[1, 1, 0], [0, 1, 1]]


@pytest.mark.parametrize(
    ("initial", "error", "message"),
    [
        ([0], ValueError, ": the mates of the rows must be 2 integers"),
        ([0, 1, -1], ValueError, ": the mates of the rows must be 2 integers"),
        ([[0, 1]], ValueError, " must have 1 dimension; got 2"),
        ([0.0, 1.0], TypeError, " must be integers; got dtype float64"),
        ([True, False], TypeError, " must be integers; got dtype bool"),
        ("ab", ValueError, " must have 1 dimension; got 0"),
        ([3, -1], ValueError, ": row 0 is matched to column 3, outside"),
        ([-1, -2], ValueError, ": row 1 is matched to column -2, outside"),
        (np.array([2**64 - 1, 0], np.uint64), ValueError, ": row 0 is matched to column 1844674"),
        ([1, 1], ValueError, ": row 0 is matched to column 1, which is matched to row 1"),
        ([2, -1], ValueError, ": row 0 is matched to column 2, but that is no edge"),
        ([-1, 0], ValueError, ": row 1 is matched to column 0, but that is no edge"),
    ],
)
def test_wrong_initial_matchings_are_refused(initial, error, message):
    with pytest.raises(error, match="^initial" + message):
        gm.maximum_matching(TWO_BY_THREE, initial=initial)


def test_an_initial_matching_may_be_unsigned_or_empty():
    assert gm.maximum_matching(TWO_BY_THREE, initial=np.array([1, 2], np.uint64)).size == 2
    assert gm.maximum_matching(csr_array((0, 3)), initial=[]).size == 0


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"algorithm": "hopcroft"}, ValueError, "algorithm must be 'auto' or one of .*'hkdw'"),
        ({"backend": "gpu"}, ValueError, "backend must be 'auto' or one of .*'cuda'"),
        ({"init": "greedy"}, ValueError, "init must be 'auto' or one of .*'karp-sipser'"),
        ({"algorithm": None}, ValueError, "algorithm must be"),
        ({"algorithm": "hk", "backend": "cuda"}, ValueError, "'hk' runs on 'cpu', not on 'cuda'"),
        ({"algorithm": "hk", "backend": "reference"}, ValueError, "not on 'reference'"),
        (
            {"algorithm": "apfb-gpubfs", "backend": "cpu"},
            ValueError,
            "'apfb-gpubfs' runs on 'cuda' and 'reference', not on 'cpu'",
        ),
        (
            {"algorithm": "apfb-gpubfs", "backend": "reference", "init": "karp-sipser"},
            ValueError,
            "init='karp-sipser' runs on .*, not on 'reference'",
        ),
        (
            {"algorithm": "hk", "launch": "ct"},
            TypeError,
            "'hk' takes no option 'launch'; these do: 'apfb-gpubfs-wr', .* 'apsb-gpubfs'$",
        ),
        ({"launch": "ct", "backend": "cpu"}, ValueError, "launch='ct' runs on 'cuda' and .*'cpu'$"),
        ({"fast": "yes"}, TypeError, "^maximum_matching got an unexpected argument 'fast'$"),
        (
            {"labels": [1]},
            TypeError,
            "^maximum_matching got an unexpected argument 'labels'$",
        ),
        ({"thread": 2}, TypeError, r"argument 'thread'; did you mean 'threads'\?$"),
        ({"lanch": "ct"}, TypeError, r"argument 'lanch'; did you mean 'launch'\?$"),
        ({"progress": "no"}, TypeError, "progress must be True or False; got 'no'"),
        (
            {"algorithm": "hk", "frontier": "scan"},
            TypeError,
            "takes no option 'frontier'; these do: 'apfb-gpubfs-wr', 'apfb-gpubfs', "
            "'apsb-gpubfs-wr', 'apsb-gpubfs'$",
        ),
        (
            {"algorithm": "apfb-gpubfs", "backend": "reference", "launch": "xt"},
            ValueError,
            "launch must be one of .*'ct', 'mt'.*'xt'",
        ),
        (
            {"algorithm": "apfb-gpubfs", "backend": "reference", "frontier": "queue"},
            ValueError,
            "frontier='queue' runs on 'cuda'",
        ),
        ({"seed": -1}, ValueError, "seed must be .*-1"),
        ({"seed": 2**63}, ValueError, "seed must be"),
        ({"seed": 1.5}, ValueError, "seed must be .*1.5"),
        ({"seed": True}, ValueError, "seed must be .*True"),
        ({"seed": np.True_}, ValueError, "seed must be .*True"),
        ({"threads": True}, ValueError, "threads must be .*True"),
        ({"threads": 0}, ValueError, "threads must be .*0"),
        ({"threads": "all"}, ValueError, "threads must be .*'all'"),
        ({"time_limit": -1}, ValueError, "time_limit must be .*-1"),
        ({"time_limit": float("nan")}, ValueError, "time_limit must be .*nan"),
        ({"time_limit": "1 s"}, TypeError, "time_limit must be .*'1 s'"),
        ({"callback": 7}, TypeError, "callback must be callable; got int"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        gm.maximum_matching(TWO_BY_THREE, **arguments)


def test_all_but_the_graph_is_given_by_name():
    with pytest.raises(TypeError, match="positional argument"):
        gm.maximum_matching(TWO_BY_THREE, "hk")


@pytest.mark.parametrize("seed", [np.int32(5), np.uint64(5), 5])
def test_numpy_integers_are_integers(seed):
    assert gm.maximum_matching(TWO_BY_THREE, seed=seed, threads=np.int64(1)).size == 2


# -- what a Matching is ----------------------------------------------------------------------------


@pytest.fixture(params=["square", "tall", "wide"])
def shaped(request):
    nrows, ncols = {"square": (60, 60), "tall": (90, 40), "wide": (40, 90)}[request.param]
    return random_array(
        (nrows, ncols), density=0.04, rng=np.random.default_rng(3), format="csr", dtype=np.float64
    )


def test_row_permutation_puts_matched_entries_on_the_diagonal(shaped):
    m = gm.maximum_matching(shaped)
    order = m.row_permutation()
    nrows, ncols = shaped.shape
    assert sorted(order.tolist()) == list(range(nrows))
    assert all(
        order[c] == m.col_to_row[c] for c in range(min(shaped.shape)) if m.col_to_row[c] >= 0
    )
    placed = [m.col_to_row[c] for c in range(min(nrows, ncols))]
    others = [order[i] for i in range(nrows) if i >= ncols or placed[i] < 0]
    assert others == sorted(others)
    assert (shaped[order].diagonal() != 0).sum() >= sum(row >= 0 for row in placed)


def test_cover_and_independent_set_part_the_vertices(shaped):
    m = gm.maximum_matching(shaped)
    cover, independent = m.vertex_cover(), m.independent_set()
    for covered, free, length in zip(cover, independent, shaped.shape):
        assert sorted([*covered, *free]) == list(range(length))
    assert sum(map(len, cover)) == m.size
    assert shaped[independent[0]][:, independent[1]].nnz == 0


def test_edges_are_the_matched_pairs_by_row(shaped):
    m = gm.maximum_matching(shaped)
    assert m.edges().tolist() == [[r, c] for r, c in enumerate(m.row_to_col.tolist()) if c >= 0]
    assert m.edges().shape == (m.size, 2)


def test_edges_of_a_networkx_graph_are_its_nodes():
    peer = nx.Graph([("ann", "x"), ("ann", "y"), ("bob", "x")])
    m = gm.maximum_matching(BipartiteGraph.from_networkx(peer, ["ann", "bob"]))
    assert m.edges() == [("ann", "y"), ("bob", "x")]


def not_maximum(graph=TWO_BY_THREE):
    """A matching that stopped with nothing matched."""
    m = gm.maximum_matching(graph, init="none", time_limit=0)
    assert (m.size, m.proven) == (0, False)
    return m


def test_the_cover_of_a_matching_that_is_not_maximum_is_refused():
    with pytest.raises(ValueError, match="not maximum: an augmenting path reaches column"):
        not_maximum().vertex_cover()
    with pytest.raises(ValueError, match="not maximum"):
        not_maximum().independent_set()


def test_repr_tells_size_proof_and_algorithm():
    assert repr(gm.maximum_matching(TWO_BY_THREE)) == "Matching(size 2, maximum, engine)"
    assert repr(not_maximum()) == "Matching(size 0, not proven maximum, engine)"


@pytest.mark.parametrize("through", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_a_copied_matching_keeps_arrays_cover_and_labels(through):
    peer = nx.Graph([("ann", "x"), ("ann", "y"), ("bob", "x")])
    graph = BipartiteGraph.from_networkx(peer, ["ann", "bob"])
    m = gm.maximum_matching(graph)
    again = through(m)
    assert (again.size, again.proven, again.stats) == (m.size, m.proven, m.stats)
    assert again.edges() == m.edges()
    assert gm.verify(graph, again) == gm.verify(graph, m)
    assert again.row_permutation().tolist() == m.row_permutation().tolist()


def test_a_pickle_does_not_carry_the_graph():
    graph = BipartiteGraph(np.ones((300, 300), bool))
    assert len(pickle.dumps(gm.maximum_matching(graph))) < graph.nbytes / 20


def test_an_unproven_matching_pickles_without_a_cover():
    again = pickle.loads(pickle.dumps(not_maximum()))
    assert (again.size, again.proven) == (0, False)
    with pytest.raises(ValueError, match="no cover is kept"):
        again.vertex_cover()
    assert gm.maximum_matching(TWO_BY_THREE, initial=again).size == 2


@pytest.mark.parametrize("graph", [np.array(TWO_BY_THREE), np.array(TWO_BY_THREE).T])
def test_a_full_matching_is_proven_though_stopped(graph):
    full = gm.maximum_matching(graph)
    assert gm.maximum_matching(graph, initial=full, time_limit=0).proven


# -- devices ---------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, bool])
def test_device_data_stays_on_the_device(form, dtype):
    cupy = pytest.importorskip("cupy")
    cupyx_sparse = pytest.importorskip("cupyx.scipy.sparse")
    graph = cupyx_sparse.csr_matrix(SPARSE.astype(dtype)).asformat(form)
    m = gm.maximum_matching(graph)
    arrays = [m.row_to_col, m.col_to_row, *m.vertex_cover(), *m.independent_set()]
    arrays += [m.row_permutation(), m.edges()]
    assert all(isinstance(array, cupy.ndarray) for array in arrays)
    assert gm.verify(graph, m).size == size_by_scipy(SPARSE)
    assert gm.verify(SPARSE, m).size == m.size  # checked on the host too
    host = gm.maximum_matching(SPARSE)
    assert gm.verify(graph, host).size == m.size
    np.testing.assert_array_equal(
        gm.maximum_matching(graph, initial=host).row_to_col.get(), host.row_to_col
    )
    assert sorted(m.row_permutation().get().tolist()) == list(range(m.row_to_col.size))


def test_graphs_side_by_side_are_matched_as_one_by_one():
    rng = np.random.default_rng(12)
    shapes = [(5, 9), (0, 3), (30, 20), (4, 0), (12, 12)]
    sources = [csr_array(rng.random(shape) < 0.2) for shape in shapes]
    graph = gm.BipartiteGraph.batch([sources[0], gm.BipartiteGraph(sources[1]), *sources[2:]])
    whole = gm.maximum_matching(graph)
    found = whole.split()
    assert whole.size == sum(m.size for m in found)
    for m, source in zip(found, sources, strict=True):
        assert m.row_to_col.shape == (source.shape[0],)
        assert m.proven
        gm.verify(source, m)
        assert m.size == gm.maximum_matching(source).size
    gm.verify(graph, whole)
    for one, again in zip(found, whole.split(), strict=True):
        assert (one.row_to_col == again.row_to_col).all()
        assert (one.col_to_row == again.col_to_row).all()


def test_what_is_no_batch_is_not_split():
    with pytest.raises(ValueError, match="at least one graph"):
        gm.BipartiteGraph.batch([])
    with pytest.raises(ValueError, match="only the matching of a batch"):
        gm.maximum_matching(csr_array(np.eye(3))).split()
    batch = gm.maximum_matching(gm.BipartiteGraph.batch([np.eye(3), np.eye(2)]))
    with pytest.raises(ValueError, match="only the matching of a batch"):
        pickle.loads(pickle.dumps(batch)).split()

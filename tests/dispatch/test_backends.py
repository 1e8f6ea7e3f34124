"""Which algorithm, start and backend serve a call, with a GPU and without one."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.costs import SparseCosts
from gpumatch.dispatch import backends, registry
from gpumatch.dispatch.backends import choose_assignment, choose_matching

LARGE = {"on_device": False, "nnz": 10**9}
TINY = {"on_device": False, "nnz": 10}
DEVICE = {"on_device": True, "nnz": 10}


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(backends, "why_no_cuda", lambda: None)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(backends, "why_no_cuda", lambda: "no NVIDIA GPU: install X")


def chosen_for_graph(algorithm, init, backend, options={}, **data):  # noqa: B006
    """Names of what serves a matching."""
    choice, init = choose_matching(algorithm, init, backend, options, **data)
    return choice.algorithm.name, init, choice.backend


def chosen_for_costs(algorithm, backend, costs, options={}):  # noqa: B006
    """Names of what serves an assignment."""
    choice = choose_assignment(algorithm, backend, options, costs)
    return choice.algorithm.name, choice.backend


@pytest.mark.parametrize(
    ("names", "data", "expected"),
    [
        (("auto", "auto", "auto"), TINY, ("engine", "cheap", "cpu")),
        (("auto", "auto", "auto"), LARGE, ("engine", "min-degree", "cuda")),
        (("auto", "auto", "auto"), DEVICE, ("engine", "min-degree", "cuda")),
        (("hk", "auto", "auto"), LARGE, ("hk", "cheap", "cpu")),
        (("auto", "none", "auto"), LARGE, ("engine", "none", "cuda")),
        (("auto", "auto", "cpu"), DEVICE, ("engine", "cheap", "cpu")),
        (("auto", "auto", "reference"), TINY, ("apfb-gpubfs-wr", "cheap", "reference")),
        (("apsb-gpubfs", "auto", "auto"), TINY, ("apsb-gpubfs", "cheap", "cuda")),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_with_a_gpu(names, data, expected):
    assert chosen_for_graph(*names, **data) == expected


@pytest.mark.parametrize(("entries", "backend"), [(99_999, "cpu"), (100_000, "cuda")])
@pytest.mark.usefixtures("gpu")
def test_the_size_from_which_graphs_of_the_host_go_to_the_gpu(entries, backend):
    assert chosen_for_graph("auto", "auto", "auto", on_device=False, nnz=entries)[2] == backend


SAP, TREE, ENGINE = "shortest-augmenting-path", "hungarian-tree", "engine"


class Costs(NamedTuple):
    """What the choice asks of costs."""

    shape: tuple[int, int] = (30_000, 50_000)
    on_device: bool = False
    has_matrix: bool = True
    is_sparse: bool = False
    nnz: int = 30_000 * 50_000
    is_integer: bool = True
    largest: int = 1000
    itemsize: int = 4
    is_computed: bool = False
    points: object = None
    nbytes: int = 0

    @property
    def unfolding_bytes(self):
        return 0 if self.has_matrix else 32 * self.nnz


def room_for(nbytes, monkeypatch):
    """A GPU with so much memory to give."""

    def require_memory(needed, purpose):
        if needed > nbytes:
            raise MemoryError(purpose)

    monkeypatch.setattr(backends, "require_device_memory", require_memory)


MATRIX = 30_000 * 50_000 * 4
SMALL = Costs(shape=(2, 5), nnz=10)


@pytest.mark.parametrize(
    ("names", "data", "expected"),
    [
        (("auto", "auto"), SMALL, (ENGINE, "cpu")),
        (("engine", "auto"), SMALL, (ENGINE, "cpu")),
        (("engine", "auto"), SMALL._replace(has_matrix=False), (ENGINE, "cpu")),
        (("auto", "auto"), Costs(), (ENGINE, "cuda")),
        (("auto", "auto"), SMALL._replace(on_device=True), (ENGINE, "cuda")),
        (("auto", "cpu"), Costs(on_device=True), (ENGINE, "cpu")),
        (("auto", "cuda"), SMALL, (ENGINE, "cuda")),
        (("auto", "reference"), SMALL, (TREE, "reference")),
        ((SAP, "auto"), Costs(), (SAP, "cpu")),
        (("hungarian-classical", "auto"), Costs(), ("hungarian-classical", "cuda")),
        (("hungarian-classical", "auto"), SMALL, ("hungarian-classical", "cpu")),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_assignment_with_a_gpu(names, data, expected, monkeypatch):
    room_for(MATRIX * 5 // 4, monkeypatch)
    assert chosen_for_costs(*names, data) == expected


@pytest.mark.parametrize(("pairs", "backend"), [(1_999_999, "cpu"), (2_000_000, "cuda")])
@pytest.mark.usefixtures("gpu")
def test_the_size_from_which_costs_of_the_host_go_to_the_gpu(pairs, backend, monkeypatch):
    room_for(MATRIX, monkeypatch)
    assert chosen_for_costs("auto", "auto", Costs((1, pairs), nnz=pairs))[1] == backend


@pytest.mark.usefixtures("gpu")
def test_host_costs_that_the_gpu_has_no_room_for_stay_on_the_cpu(monkeypatch):
    room_for(MATRIX, monkeypatch)
    assert chosen_for_costs("auto", "auto", Costs())[1] == "cpu"
    assert chosen_for_costs("auto", "cuda", Costs())[1] == "cuda"
    assert chosen_for_costs("auto", "auto", Costs(on_device=True))[1] == "cuda"


@pytest.mark.parametrize("algorithm", ["auction", "dgs"])
@pytest.mark.usefixtures("gpu")
def test_a_transposed_matrix_needs_room_too(algorithm, monkeypatch):
    for matrices, expected in ((2, "cpu"), (3, "cuda")):
        room_for(matrices * MATRIX, monkeypatch)
        assert chosen_for_costs(algorithm, "auto", Costs())[1] == expected


SPARSE = Costs((1000, 1000), on_device=True, has_matrix=False, is_sparse=True, nnz=10_000)
COMPUTED = SPARSE._replace(is_sparse=False, itemsize=8)


@pytest.mark.parametrize(
    ("data", "room", "expected"),
    [
        (SPARSE, 0, ENGINE),
        (SPARSE._replace(nnz=999_999, is_integer=False), 0, ENGINE),
        (COMPUTED, 10**7, ENGINE),
        (COMPUTED, 10**7 - 1, "auction"),
        (COMPUTED._replace(nnz=200_000), 144 * 10**5, ENGINE),
        (COMPUTED._replace(nnz=200_000), 144 * 10**5 - 1, "auction"),
        (COMPUTED._replace(shape=(0, 9), nnz=0), 0, ENGINE),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_the_engine_needs_a_matrix_or_csr_or_room_to_make_a_matrix(
    data, room, expected, monkeypatch
):
    room_for(room, monkeypatch)
    for costs, backend in ((data, "auto"), (data._replace(on_device=False), "cuda")):
        assert chosen_for_costs("auto", backend, costs) == (expected, "cuda")
    assert chosen_for_costs(TREE, "cuda", data)[0] == TREE
    assert chosen_for_costs("auto", "cpu", data)[0] == ENGINE


@pytest.mark.usefixtures("gpu")
def test_computed_costs_need_no_room_for_a_matrix(monkeypatch):
    room_for(0, monkeypatch)
    assert chosen_for_costs("auto", "auto", COMPUTED._replace(is_computed=True))[0] == ENGINE


@pytest.mark.parametrize(
    ("pairs", "room", "algorithm", "backend"),
    [
        (2_000_000, 16 * 10**6 + 400, "auto", "cuda"),
        (1_999_999, 16 * 10**6 + 400, "auto", "cpu"),
        (2_000_000, 16 * 10**6 + 399, "auto", "cpu"),
        (2_000_000, 16 * 10**6 + 400, "auction", "cpu"),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_points_of_the_host_go_to_the_gpu_for_the_engine(
    pairs, room, algorithm, backend, monkeypatch
):
    room_for(room, monkeypatch)
    costs = COMPUTED._replace(
        on_device=False, is_computed=True, points=(), nnz=pairs, nbytes=100, is_integer=False
    )
    assert chosen_for_costs(algorithm, "auto", costs)[1] == backend


@pytest.mark.usefixtures("no_gpu")
def test_assignment_without_a_gpu():
    assert chosen_for_costs("auto", "auto", Costs()) == (ENGINE, "cpu")
    with pytest.raises(RuntimeError, match=r"^backend 'cuda' can't run: .* install X$"):
        choose_assignment("auto", "cuda", {}, SPARSE)


@pytest.mark.usefixtures("gpu")
def test_a_start_that_the_cpu_alone_has_keeps_large_graphs_there():
    expected = ("engine", "karp-sipser", "cpu")
    assert chosen_for_graph("auto", "karp-sipser", "auto", **LARGE) == expected


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_host_data_stays_on_the_cpu():
    assert chosen_for_graph("auto", "auto", "auto", **LARGE) == ("engine", "cheap", "cpu")


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        (("auto", "auto", "cuda"), ""),
        (("apfb-gpubfs", "auto", "cuda"), ""),
        (("apfb-gpubfs", "auto", "auto"), "algorithm 'apfb-gpubfs' needs a GPU: "),
        (("auto", "min-degree", "auto"), "init='min-degree' needs a GPU: "),
    ],
)
@pytest.mark.usefixtures("no_gpu")
def test_asking_for_a_gpu_without_one_says_what_to_install(names, asked):
    with pytest.raises(RuntimeError, match=rf"^{asked}backend 'cuda' can't run: .* install X$"):
        chosen_for_graph(*names, **TINY)


@pytest.mark.usefixtures("gpu")
def test_cpu_algorithms_do_not_take_device_data_silently():
    with pytest.raises(ValueError, match="pass backend='cpu' to copy the data to the host"):
        chosen_for_graph("hk", "auto", "auto", **DEVICE)


@pytest.mark.usefixtures("gpu")
def test_nobody_is_told_to_copy_what_the_cpu_cannot_do_either():
    with pytest.raises(ValueError, match=r"not on 'cuda'$"):
        chosen_for_graph("hk", "min-degree", "auto", **DEVICE)


ON_HOST = SPARSE._replace(on_device=False, shape=(20_000, 20_000), nnz=backends.GPU_PAYS_FROM)


@pytest.mark.parametrize(
    ("algorithm", "costs", "expected"),
    [
        ("auto", ON_HOST, (ENGINE, "cuda")),
        ("auto", ON_HOST._replace(nnz=backends.GPU_PAYS_FROM - 1), (ENGINE, "cpu")),
        ("auto", ON_HOST._replace(is_sparse=False), (ENGINE, "cpu")),
        ("auto", ON_HOST._replace(largest=2**44), (ENGINE, "cuda")),
        ("auto", ON_HOST._replace(largest=2**45), (ENGINE, "cpu")),
        ("auto", ON_HOST._replace(largest=2**43, is_integer=False), (ENGINE, "cuda")),
        ("auction", ON_HOST, ("auction", "cpu")),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_large_sparse_costs_go_to_the_gpu_for_the_engine(algorithm, costs, expected, monkeypatch):
    room_for(10**9, monkeypatch)
    assert chosen_for_costs(algorithm, "auto", costs) == expected
    room_for(10**6, monkeypatch)
    assert chosen_for_costs(algorithm, "auto", costs)[1] == "cpu"


# -- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "options", "costs", "backend"),
    [
        ("auction", {}, SMALL, "cpu"),
        ("auction", {"convergence": "counter"}, SMALL, "cpu"),
        ("auction", {"convergence": "reduction"}, SMALL, "cuda"),
        ("auction", {"convergence": "reduction"}, SMALL._replace(has_matrix=False), "cuda"),
        ("hungarian-tree", {"search": "levels"}, Costs(), "cuda"),
        ("hungarian-tree", {"search": "stack"}, Costs(), "cpu"),
        ("hungarian-tree", {"search": "paper"}, SMALL, "cuda"),
        ("dgs", {"evaluation": "cpu"}, Costs(), "cpu"),
        ("dgs", {"evaluation": "block"}, SMALL, "cuda"),
        ("dgs", {"start": "greedy", "switching": "parallel"}, SMALL, "cuda"),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_options_choose_where_an_assignment_runs(algorithm, options, costs, backend, monkeypatch):
    room_for(10 * MATRIX, monkeypatch)
    assert chosen_for_costs(algorithm, "auto", costs, options) == (algorithm, backend)


@pytest.mark.parametrize(
    ("options", "costs", "expected"),
    [
        ({"search": "stack"}, Costs(), (TREE, "cpu")),
        ({"search": "paper"}, SMALL, (TREE, "cuda")),
        ({"search": "levels"}, SMALL, (TREE, "cpu")),
        ({"search": "levels"}, Costs(), (TREE, "cuda")),
        ({"finish": "epsilon"}, SMALL, ("auction", "cpu")),
        ({"finish": "epsilon", "convergence": "reduction"}, SMALL, ("auction", "cuda")),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_options_choose_the_algorithm_too(options, costs, expected, monkeypatch):
    room_for(10 * MATRIX, monkeypatch)
    assert chosen_for_costs("auto", "auto", costs, options) == expected


@pytest.mark.usefixtures("gpu")
def test_room_is_asked_for_the_algorithm_that_options_choose(monkeypatch):
    for matrices, expected in ((2, "cpu"), (3, "cuda")):
        room_for(matrices * MATRIX, monkeypatch)
        chosen = chosen_for_costs("auto", "auto", Costs(), {"finish": "epsilon"})
        assert chosen == ("auction", expected)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"launch": "mt"}, "apfb-gpubfs-wr"),
        ({"frontier": "queue", "host_loop": "level"}, "apfb-gpubfs-wr"),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_options_choose_the_algorithm_of_a_matching(options, expected):
    chosen = chosen_for_graph("auto", "auto", "auto", options, **TINY)
    assert chosen == (expected, "cheap", "cuda")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"start": "greedy"}, TypeError, "algorithm 'auto' takes no option 'start'; .*: 'dgs'$"),
        ({"search": "deep"}, ValueError, r"^search must be one of .*'paper'\); got 'deep'$"),
        (
            {"search": "paper", "finish": "exact"},
            ValueError,
            "^no algorithm takes search='paper' with finish='exact'$",
        ),
        (
            {"search": "paper", "backend": "cpu"},
            ValueError,
            "^search='paper' runs on 'cuda' and 'reference', not on 'cpu'$",
        ),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_options_that_no_algorithm_takes_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        gm.assign([[1]], **options)


@pytest.mark.usefixtures("no_gpu")
def test_an_option_that_needs_a_gpu_says_so():
    with pytest.raises(RuntimeError, match=r"^convergence='reduction' needs a GPU: backend 'cuda'"):
        gm.assign([[1]], algorithm="auction", convergence="reduction")
    with pytest.raises(RuntimeError, match=r"^search='paper' needs a GPU: backend 'cuda'"):
        gm.assign([[1]], algorithm="hungarian-tree", search="paper")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hungarian-tree", "reference", {"search": "stack"}), "search='stack' runs on 'cpu', not"),
        (("auction", "cpu", {"convergence": "reduction"}), "on 'cuda' and 'reference', not on 'cp"),
        (("auction", "reference", {"scaling": "epsilon"}), "on 'cpu' and 'cuda', not on 'ref"),
        (("dgs", "cuda", {"evaluation": "cpu"}), "evaluation='cpu' runs on 'cpu', not on 'cuda'$"),
        (
            ("dgs", "auto", {"evaluation": "cpu", "switching": "parallel"}),
            "no backend has all that is asked for: .*evaluation='cpu' runs on 'cpu', switching=",
        ),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_options_that_a_backend_lacks_are_refused_before_anything_runs(arguments, message):
    algorithm, backend, options = arguments
    with pytest.raises(ValueError, match=message):
        choose_assignment(algorithm, backend, options, SMALL)


@pytest.mark.usefixtures("gpu")
def test_options_that_the_cpu_alone_has_do_not_move_device_data():
    costs = SMALL._replace(on_device=True)
    with pytest.raises(ValueError, match=r"^search='stack' runs on 'cpu', .* pass backend='cpu'"):
        choose_assignment("hungarian-tree", "auto", {"search": "stack"}, costs)


def test_options_of_an_algorithm_that_is_chosen_by_itself_are_checked_too():
    choice, _ = choose_matching("auto", "auto", "reference", {"launch": "mt"}, **TINY)
    assert choice.options == {"launch": "mt", "host_loop": "level", "frontier": "scan"}
    with pytest.raises(ValueError, match="frontier='queue' runs on 'cuda', not on 'reference'"):
        choose_matching("auto", "auto", "reference", {"frontier": "queue"}, **TINY)
    with pytest.raises(ValueError, match="launch='mt' runs on 'cuda' and 'reference', not on 'cp"):
        choose_matching("auto", "auto", "cpu", {"launch": "mt"}, **TINY)


@pytest.mark.parametrize(
    ("algorithm", "backend", "function"),
    [
        ("engine", "cuda", "gpumatch.cpu.assignment.shortest_augmenting_path:run"),
        ("auction", "cuda", "gpumatch.cpu.assignment.shortest_augmenting_path:run"),
        ("auction", "cpu", None),
        ("dgs", "cuda", None),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_a_fallback_is_loaded_when_it_is_called(algorithm, backend, function, monkeypatch):
    loaded = []
    monkeypatch.setattr(backends, "load", lambda name: loaded.append(name) or (lambda task: task))
    fallback = choose_assignment(algorithm, backend, {}, SMALL).fallback()
    assert loaded == []
    if function is None:
        assert fallback is None
    else:
        assert fallback("the task") == "the task"
        assert loaded == [function]


def test_sparse_costs_need_room_for_vertices_and_entries(monkeypatch):
    """Just as many bytes as the device has, and one more."""
    costs = SparseCosts(csr_array(np.eye(3, 5)))
    needed = 400 * 8 + 120 * 3

    def require(nbytes, _, free):
        if nbytes > free:
            raise MemoryError

    for free, fits in ((needed, True), (needed - 1, False)):
        monkeypatch.setattr(
            backends, "require_device_memory", functools.partial(require, free=free)
        )
        assert backends._fits_as_csr(costs) == fits


@pytest.mark.parametrize(("entries", "backend"), [(99_999, "cpu"), (100_000, "cuda")])
@pytest.mark.usefixtures("gpu")
def test_the_size_from_which_components_go_to_the_gpu(entries, backend, monkeypatch):
    monkeypatch.setattr(backends, "load", lambda name: name)
    graph = SimpleNamespace(on_device=False, nnz=entries)
    found = backends.choose_components("auto", graph)
    assert found == (backend, registry.COMPONENTS[backend])


@pytest.mark.parametrize("name", ["strongcomp", "btf", "dmperm"])
def test_no_search_of_a_pattern_has_another_backend(name):
    with pytest.raises(ValueError, match=r"^backend must be 'auto' or one of .*got 'cpus'"):
        getattr(gm.linalg, name)(np.eye(3), backend="cpus")

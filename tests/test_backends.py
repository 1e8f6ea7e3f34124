"""Which algorithm, start and backend serve a call, with a GPU and without one."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import NamedTuple

import pytest

import gpumatch as gm
from gpumatch import backends
from gpumatch.backends import choose, choose_assignment

LARGE = {"on_device": False, "nnz": 10**9}
TINY = {"on_device": False, "nnz": 10}
DEVICE = {"on_device": True, "nnz": 10}


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(backends, "why_no_cuda", lambda: None)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(backends, "why_no_cuda", lambda: "no NVIDIA GPU: install X")


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
    chosen, init, backend = choose(*names, **data)
    assert (chosen.name, init, backend) == expected


@pytest.mark.parametrize(("entries", "backend"), [(99_999, "cpu"), (100_000, "cuda")])
@pytest.mark.usefixtures("gpu")
def test_the_size_from_which_graphs_of_the_host_go_to_the_gpu(entries, backend):
    assert choose("auto", "auto", "auto", on_device=False, nnz=entries)[2] == backend


SAP, TREE, ENGINE = "shortest-augmenting-path", "hungarian-tree", "engine"


class Costs(NamedTuple):
    """What the choice asks of costs."""

    shape: tuple[int, int] = (30_000, 50_000)
    on_device: bool = False
    has_matrix: bool = True
    nnz: int = 30_000 * 50_000
    is_integer: bool = True
    itemsize: int = 4

    @property
    def unfolding_bytes(self):
        return 0 if self.has_matrix else 32 * self.nnz


def room_for(nbytes, monkeypatch):
    """A GPU with so much memory to give."""

    def require_memory(needed, purpose):
        if needed > nbytes:
            raise MemoryError(purpose)

    module = SimpleNamespace(require_memory=require_memory)
    monkeypatch.setattr(backends, "module_for", lambda name, *, on_device: module)


MATRIX = 30_000 * 50_000 * 4
SMALL = Costs(shape=(2, 5), nnz=10)


@pytest.mark.parametrize(
    ("names", "data", "expected"),
    [
        (("auto", "auto"), SMALL, (SAP, "cpu")),
        (("engine", "auto"), SMALL, (ENGINE, "cuda")),
        (("engine", "auto"), SMALL._replace(has_matrix=False), (ENGINE, "cuda")),
        (("auto", "auto"), Costs(), (ENGINE, "cuda")),
        (("auto", "auto"), SMALL._replace(on_device=True), (ENGINE, "cuda")),
        (("auto", "cpu"), Costs(on_device=True), (SAP, "cpu")),
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
    chosen, backend = choose_assignment(*names, data)
    assert (chosen.name, backend) == expected


@pytest.mark.parametrize(("pairs", "backend"), [(1_999_999, "cpu"), (2_000_000, "cuda")])
@pytest.mark.usefixtures("gpu")
def test_the_size_from_which_costs_of_the_host_go_to_the_gpu(pairs, backend, monkeypatch):
    room_for(MATRIX, monkeypatch)
    assert choose_assignment("auto", "auto", Costs((1, pairs), nnz=pairs))[1] == backend


@pytest.mark.usefixtures("gpu")
def test_host_costs_that_the_gpu_has_no_room_for_stay_on_the_cpu(monkeypatch):
    room_for(MATRIX, monkeypatch)
    assert choose_assignment("auto", "auto", Costs())[1] == "cpu"
    assert choose_assignment("auto", "cuda", Costs())[1] == "cuda"
    assert choose_assignment("auto", "auto", Costs(on_device=True))[1] == "cuda"


@pytest.mark.parametrize("algorithm", ["auction", "dgs"])
@pytest.mark.usefixtures("gpu")
def test_a_transposed_matrix_needs_room_too(algorithm, monkeypatch):
    for matrices, expected in ((2, "cpu"), (3, "cuda")):
        room_for(matrices * MATRIX, monkeypatch)
        assert choose_assignment(algorithm, "auto", Costs())[1] == expected


SPARSE = Costs(shape=(1000, 1000), on_device=True, has_matrix=False, nnz=10_000, itemsize=8)


@pytest.mark.parametrize(
    ("data", "room", "expected"),
    [
        (SPARSE, 10**7, ENGINE),
        (SPARSE, 10**7 - 1, "auction"),
        (SPARSE._replace(nnz=9_999), 10**7, "auction"),
        (SPARSE._replace(nnz=9_999, is_integer=False), 10**7, ENGINE),
        (SPARSE._replace(nnz=9_999, is_integer=False), 10**7 - 1, "auction"),
        (SPARSE._replace(nnz=200_000), 144 * 10**5, ENGINE),
        (SPARSE._replace(nnz=200_000), 144 * 10**5 - 1, "auction"),
        (SPARSE._replace(shape=(0, 9), nnz=0), 0, ENGINE),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_sparse_costs_are_made_dense_where_that_pays_and_there_is_room(
    data, room, expected, monkeypatch
):
    room_for(room, monkeypatch)
    for costs, backend in ((data, "auto"), (data._replace(on_device=False), "cuda")):
        chosen, where = choose_assignment("auto", backend, costs)
        assert (chosen.name, where) == (expected, "cuda")
    assert choose_assignment(TREE, "cuda", data)[0].name == TREE
    assert choose_assignment("auto", "cpu", data)[0].name == SAP


@pytest.mark.usefixtures("no_gpu")
def test_assignment_without_a_gpu():
    chosen, backend = choose_assignment("auto", "auto", Costs())
    assert (chosen.name, backend) == (SAP, "cpu")
    with pytest.raises(RuntimeError, match=r"^backend 'cuda' can't run: .* install X$"):
        choose_assignment("auto", "cuda", SPARSE)


@pytest.mark.usefixtures("gpu")
def test_a_start_that_the_cpu_alone_has_keeps_large_graphs_there():
    chosen, _, backend = choose("auto", "karp-sipser", "auto", **LARGE)
    assert (chosen.name, backend) == ("engine", "cpu")


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_host_data_stays_on_the_cpu():
    chosen, init, backend = choose("auto", "auto", "auto", **LARGE)
    assert (chosen.name, init, backend) == ("engine", "cheap", "cpu")


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        (("auto", "auto", "cuda"), ""),
        (("apfb-gpubfs", "auto", "cuda"), ""),
        (("apfb-gpubfs", "auto", "auto"), "algorithm 'apfb-gpubfs' needs a GPU: "),
        (("auto", "min-degree", "auto"), "init 'min-degree' needs a GPU: "),
    ],
)
@pytest.mark.usefixtures("no_gpu")
def test_asking_for_a_gpu_without_one_says_what_to_install(names, asked):
    with pytest.raises(RuntimeError, match=rf"^{asked}backend 'cuda' can't run: .* install X$"):
        choose(*names, **TINY)


@pytest.mark.usefixtures("gpu")
def test_cpu_algorithms_do_not_take_device_data_silently():
    with pytest.raises(ValueError, match="pass backend='cpu' to copy the graph to the host"):
        choose("hk", "auto", "auto", **DEVICE)


def test_without_cupy_the_package_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # import cupy raises ImportError
    with pytest.raises(RuntimeError, match=r"CuPy is missing .*pip install 'gpumatch\[cuda13\]'"):
        gm.maximum_matching([[1]], backend="cuda")


def test_a_cupy_that_cannot_write_its_cache_is_no_gpu(monkeypatch, tmp_path):
    (tmp_path / "cupy.py").write_text("raise PermissionError(13, 'Permission denied', '/nowhere')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    reason = backends.why_no_cuda()
    assert reason is not None
    assert "'/nowhere'" in reason
    assert "CUPY_CACHE_DIR" in reason


class FakeRuntime:
    """What `why_no_cuda` asks of cupy.cuda.runtime."""

    class CUDARuntimeError(RuntimeError):
        pass

    def __init__(self, devices):
        self.devices = devices

    def getDeviceCount(self):  # CuPy's name
        if self.devices is None:
            raise self.CUDARuntimeError("cudaErrorInsufficientDriver")
        return self.devices


@pytest.mark.parametrize(
    ("devices", "reason"),
    [
        (1, None),
        (0, "there is no NVIDIA GPU on this machine"),
        (None, "no NVIDIA GPU answers (cudaErrorInsufficientDriver): install the NVIDIA driver"),
    ],
)
def test_why_no_cuda_tells_apart_what_is_missing(devices, reason, monkeypatch):
    cupy = pytest.importorskip("cupy")
    monkeypatch.setattr(cupy.cuda, "runtime", FakeRuntime(devices))
    assert backends.why_no_cuda() == reason


# -- the table -------------------------------------------------------------------------------------


def test_the_table_lists_every_algorithm_where_it_runs():
    table = {algorithm.name: algorithm for algorithm in gm.algorithms("matching")}
    deveci = {"apfb-gpubfs", "apfb-gpubfs-wr", "apsb-gpubfs", "apsb-gpubfs-wr"}
    on_cpu = {"engine", "hk", "hkdw", "pfp", "p-hk", "p-pfp", "p-dbfs"}
    assert table.keys() == deveci | on_cpu
    assert {name for name, a in table.items() if "cpu" in a.backends} == on_cpu
    assert {name for name, a in table.items() if {"cuda", "reference"} <= {*a.backends}} == deveci
    assert all(a.problem == "matching" and a.exact and a.reference for a in table.values())


@pytest.mark.parametrize(
    "home",
    sorted(
        {
            home
            for homes in [*(a.homes for a in gm.algorithms()), *backends._STARTS.values()]
            for home in homes.values()
        }
    ),
)
def test_every_home_holds_a_function(home):
    if ".cuda." in home:
        pytest.importorskip("cupy")
    assert callable(backends.load(home))

"""Which algorithm, start and backend serve a call, with a GPU and without one."""

from __future__ import annotations

import sys

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


SAP, TREE = "shortest-augmenting-path", "hungarian-tree"


@pytest.mark.parametrize(
    ("names", "on_device", "pairs", "expected"),
    [
        (("auto", "auto"), False, 10, (SAP, "cpu")),
        (("auto", "auto"), False, 10**9, (TREE, "cuda")),
        (("auto", "auto"), True, 10, (TREE, "cuda")),
        (("auto", "cpu"), True, 10**9, (SAP, "cpu")),
        (("auto", "cuda"), False, 10, (TREE, "cuda")),
        (("auto", "reference"), False, 10, (TREE, "reference")),
        ((SAP, "auto"), False, 10**9, (SAP, "cpu")),
        (("hungarian-classical", "auto"), False, 10**9, ("hungarian-classical", "cuda")),
        (("hungarian-classical", "auto"), False, 10, ("hungarian-classical", "cpu")),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_assignment_with_a_gpu(names, on_device, pairs, expected, monkeypatch):
    monkeypatch.setattr(backends, "_fits", lambda nbytes: nbytes == 5 * pairs)
    chosen, backend = choose_assignment(*names, on_device=on_device, pairs=pairs, itemsize=4)
    assert (chosen.name, backend) == expected


@pytest.mark.usefixtures("gpu")
def test_host_costs_that_the_gpu_has_no_room_for_stay_on_the_cpu(monkeypatch):
    monkeypatch.setattr(backends, "_fits", lambda nbytes: False)
    names = {"on_device": False, "pairs": 10**9, "itemsize": 4}
    assert choose_assignment("auto", "auto", **names)[1] == "cpu"
    assert choose_assignment("auto", "cuda", **names)[1] == "cuda"
    assert choose_assignment("auto", "auto", **names | {"on_device": True})[1] == "cuda"


@pytest.mark.usefixtures("no_gpu")
def test_assignment_without_a_gpu():
    chosen, backend = choose_assignment("auto", "auto", on_device=False, pairs=10**9, itemsize=4)
    assert (chosen.name, backend) == (SAP, "cpu")
    with pytest.raises(RuntimeError, match=r"^backend 'cuda' can't run: .* install X$"):
        choose_assignment("auto", "cuda", on_device=False, pairs=10, itemsize=4)


@pytest.mark.usefixtures("gpu")
def test_a_start_that_the_cpu_alone_has_keeps_large_graphs_there():
    chosen, _, backend = choose("auto", "karp-sipser", "auto", **LARGE)
    assert (chosen.name, backend) == ("engine", "cpu")


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_host_data_stays_on_the_cpu():
    chosen, init, backend = choose("auto", "auto", "auto", **LARGE)
    assert (chosen.name, init, backend) == ("engine", "cheap", "cpu")


@pytest.mark.parametrize("names", [("auto", "auto", "cuda"), ("apfb-gpubfs", "auto", "auto")])
@pytest.mark.usefixtures("no_gpu")
def test_asking_for_a_gpu_without_one_says_what_to_install(names):
    with pytest.raises(RuntimeError, match=r"^backend 'cuda' can't run: .* install X$"):
        choose(*names, **TINY)


@pytest.mark.usefixtures("gpu")
def test_cpu_algorithms_do_not_take_device_data_silently():
    with pytest.raises(ValueError, match="pass backend='cpu' to copy the graph to the host"):
        choose("hk", "auto", "auto", **DEVICE)


def test_without_cupy_the_package_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # import cupy raises ImportError
    with pytest.raises(RuntimeError, match=r"CuPy is missing .*pip install 'gpumatch\[cuda13\]'"):
        gm.maximum_matching([[1]], backend="cuda")


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

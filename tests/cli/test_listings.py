"""``gpumatch algorithms``, ``gpumatch info``, wrong usage, and the real command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import gpumatch
from gpumatch.cli import listings
from gpumatch.cpu.numba_tools import compiled
from tests.cli.outcomes import assert_rejected


@pytest.mark.parametrize("arguments", [[], ["match"], ["assign"], ["conquer"]])
def test_usage_errors(gpumatch_cli, arguments):
    assert_rejected(gpumatch_cli(*arguments))


# -- algorithms and info ---------------------------------------------------------------------------


def test_algorithms_table(gpumatch_cli):
    code, out, _ = gpumatch_cli("algorithms")
    header, *rows = out.splitlines()
    assert code == 0
    assert header.split() == ["name", "problem", "backends", "result", "options", "reference"]
    assert [row.split()[0] for row in rows] == [a.name for a in gpumatch.algorithms()]
    (row,) = (row for row in rows if row.startswith("apfb-gpubfs-wr "))
    assert re.search(r"  matching +cuda, reference +exact +launch=ct\|mt host_loop=batch\|", row)
    results = [" exact" if a.exact else " heuristic" for a in gpumatch.algorithms()]
    assert len({row.index(result) for row, result in zip(rows, results)}) == 1


def test_algorithms_json(gpumatch_cli):
    code, out, _ = gpumatch_cli("algorithms", "--json")
    known = {algorithm["name"]: algorithm for algorithm in json.loads(out)}
    assert code == 0
    assert set(known) == {a.name for a in gpumatch.algorithms()}
    assert known["apfb-gpubfs-wr"] == {
        "name": "apfb-gpubfs-wr",
        "problem": "matching",
        "backends": ["cuda", "reference"],
        "exact": True,
        "reference": known["apfb-gpubfs-wr"]["reference"],
        "options": {
            "launch": ["ct", "mt"],
            "host_loop": ["batch", "level"],
            "frontier": ["scan", "queue"],
        },
    }


@pytest.mark.parametrize(("driver", "expected"), [(12000, "12.0"), (0, None)])
def test_versions_of_cuda_have_their_points(driver, expected, monkeypatch):
    """The driver's is 0 if there is none."""
    runtime = SimpleNamespace(runtimeGetVersion=lambda: 13020, driverGetVersion=lambda: driver)
    cupy = SimpleNamespace(__version__="14.0.1", cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    versions = {"cupy": "14.0.1", "cuda": "13.2", "cuda driver": expected}
    assert listings._cuda_versions() == versions


def test_each_device_is_asked_for_its_own_memory(monkeypatch):
    entered = []

    class Device:
        def __init__(self, number):
            self.number = number

        def __enter__(self):
            entered.append(self.number)

        def __exit__(self, *_):
            entered.pop()

    runtime = SimpleNamespace(
        getDeviceCount=lambda: 2,
        memGetInfo=lambda: (10 + entered[-1], 20 + entered[-1]),
        getDeviceProperties=lambda number: {"name": f"Abacus {number}".encode()},
    )
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, Device=Device))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert listings._devices() == [
        {"name": f"Abacus {k}", "memory_bytes": 20 + k, "free_bytes": 10 + k} for k in range(2)
    ]


def test_info_says_why_cuda_is_off(gpumatch_cli, monkeypatch):
    monkeypatch.setattr("gpumatch.dispatch.devices.why_no_cuda", lambda: "the driver is on holiday")
    code, out, _ = gpumatch_cli("info")
    assert code == 0
    assert "off: the driver is on holiday" in out
    assert gpumatch.__version__ in out
    assert np.__version__ in out


def test_info_says_where_compiled_code_is_kept(gpumatch_cli, monkeypatch):
    folder = os.environ["NUMBA_CACHE_DIR"]
    assert f"kept below {folder}" in gpumatch_cli("info")[1]
    monkeypatch.setattr(compiled, "cache_folder", lambda: None)
    assert "set NUMBA_CACHE_DIR" in gpumatch_cli("info")[1]
    assert json.loads(gpumatch_cli("info", "--json")[1])["compiled_code"] is None


def test_info_json(gpumatch_cli, monkeypatch):
    device = {"name": "Abacus 9000", "memory_bytes": 2**34, "free_bytes": 2**33}
    monkeypatch.setattr("gpumatch.dispatch.devices.why_no_cuda", lambda: None)
    monkeypatch.setattr(listings, "_devices", lambda: [device])
    code, out, _ = gpumatch_cli("info", "--json")
    found = json.loads(out)
    assert code == 0
    expected = {"versions", "python", "platform", "threads", "devices", "cuda_off"}
    assert set(found) == {*expected, "compiled_code", "machine_code"}
    assert {"gpumatch", "numpy", "scipy", "numba", "cupy"} <= set(found["versions"])
    assert found["devices"] == [device]
    assert found["cuda_off"] is None
    assert found["threads"] >= 1
    assert "Abacus 9000, 16.0 GiB, 8.0 GiB free" in gpumatch_cli("info")[1]
    assert "CUDA           on\n" in gpumatch_cli("info")[1]


def test_info_without_cupy(gpumatch_cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    code, out, _ = gpumatch_cli("info", "--json")
    assert code == 0
    assert json.loads(out)["versions"]["cupy"] is None
    assert "CuPy is missing" in json.loads(out)["cuda_off"]
    assert "cupy           not installed\n" in gpumatch_cli("info")[1]


@pytest.mark.parametrize("in_json", [False, True])
def test_warmup_tells_of_each_step_or_prints_json_alone(gpumatch_cli, monkeypatch, in_json):
    def warm(*, backend, tell):
        tell(f"{backend}: first", 1.5)
        return {"first": 1.5, "second": 2.0}

    monkeypatch.setattr(gpumatch, "warmup", warm)
    code, out, _ = gpumatch_cli("warmup", *["--json"] * in_json)
    assert code == 0
    if in_json:
        assert json.loads(out) == {"seconds": {"first": 1.5, "second": 2.0}}
    else:
        assert out == "    1.50 s  auto: first\n    3.50 s in all\n"
    assert "cpu: first" in gpumatch_cli("warmup", "--backend", "cpu")[1]
    assert "cuda: first" in gpumatch_cli("warmup", "--cuda")[1]


def test_version(gpumatch_cli):
    assert gpumatch_cli("--version")[:2] == (0, f"gpumatch {gpumatch.__version__}\n")


# -- the real command ------------------------------------------------------------------------------


def test_as_a_process(file):
    command = [sys.executable, "-m", "gpumatch", "match", file, "--backend", "reference"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert "2 edges, maximum" in done.stdout
    assert done.stderr == ""


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from gpumatch import cli; cli.main(['--help']); "
        "print(*(set(sys.modules) & {'numpy', 'scipy', 'numba', 'cupy'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Exit codes" in done.stdout
    assert done.stdout.splitlines()[-1] == ""

"""Matching and assignment on several ranks, started by mpiexec; `ranks/` has what they do.

Starting ranks takes seconds, so one start does many things.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
YIELDING = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "100"}
"""MPICH's ranks that wait then leave the cores to others, of which there are more than cores."""
SECONDS, LONG = 300, 900  # for a start, compiling on a busy machine, and ranks without a core


def run(ranks, *arguments, seconds=SECONDS, **environment):
    """What the ranks print, and how they end."""
    assert MPIEXEC, "the tests need mpiexec: pip install mpich"
    return subprocess.run(
        [MPIEXEC, "-n", str(ranks), sys.executable, "-m", "tests.distributed.ranks", *arguments],
        env={**os.environ, **AS_ROOT, **YIELDING, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=seconds,
        cwd=ROOT,
    )


def cases_of(done):
    assert done.returncode == 0, done.stdout + done.stderr
    (told,) = re.findall(r'{"cases": .*?}', done.stdout)  # mpiexec may put colour codes around it
    return json.loads(told)["cases"]


def two_gpus():
    """Skip a test where there are not so many."""
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is but one GPU")


SEVERAL = [
    *("collectives", "linked", "faults", "limits", "certificates", "blocks", "matching"),
    *("papers", "commands", "batches", "cores", "stopped", "largest", "counted", "phases"),
]
QUICK = {
    1: ([*SEVERAL, "assignment", "wishes", "whole_arrays"], 200),
    2: ([*SEVERAL, "emulated"], 90),
    4: (["collectives", "few"], 7),
}
EVERY = ["every_matching wishes blocks emulated", "every_assignment every_paper", "real"]


@pytest.mark.parametrize("ranks", QUICK)
def test_ranks(ranks, tmp_path):
    groups, least = QUICK[ranks]
    done = run(ranks, *groups, GPUMATCH_TEST_FILE=str(tmp_path / "costs.npy"))
    assert cases_of(done) >= least


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("groups", EVERY)
def test_every_case(ranks, groups, tmp_path):
    """On an even and an odd number of ranks; one rank and four have the cases of `QUICK`."""
    if groups == "real" and "GPUMATCH_DATA" not in os.environ:
        pytest.skip("GPUMATCH_DATA is not set: no real matrices here")
    file = str(tmp_path / "costs.npy")
    done = run(ranks, *groups.split(), seconds=LONG, GPUMATCH_TEST_FILE=file)
    assert cases_of(done) > 0


@pytest.mark.gpu
@pytest.mark.parametrize(
    "group",
    [
        *("devices", "graphs_on_devices", "lists_on_devices", "ends_on_devices blocks_on_devices"),
        *("given_up_on_devices", "trees_on_devices"),
        "every_matching_on_devices real_on_devices",
        "every_assignment_on_devices every_paper_on_devices",
    ],
)
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_gpu_a_rank(ranks, group):
    """Two ranks share a GPU if there is but one, and with other tests: a minute becomes five."""
    assert cases_of(run(ranks, *group.split(), seconds=LONG)) > 10


@pytest.mark.gpu
def test_more_than_two_to_the_32_edges():
    """On GPUs that have room for half of them each."""
    two_gpus()
    assert cases_of(run(2, "more_than_two_to_the_32")) == 1


@pytest.mark.parametrize(
    "group",
    [
        *("killed", "failed_ahead"),
        *(
            pytest.param(f"killed_{how}", marks=pytest.mark.gpu)
            for how in ("on_devices", "in_nccl")
        ),
    ],
)
def test_a_rank_that_is_killed_ends_all(group):
    if group == "killed_in_nccl":
        two_gpus()
    begin = time.perf_counter()
    done = run(2, group)
    assert done.returncode != 0
    assert "is dead" in done.stdout + done.stderr
    assert "survived" not in done.stdout
    assert time.perf_counter() - begin < 60


@pytest.mark.parametrize(
    "group", ["endless", pytest.param("endless_on_devices", marks=pytest.mark.gpu)]
)
def test_ctrl_c_ends_all(group, tmp_path):
    """Of mpiexec itself, as a terminal sends it."""
    ready = tmp_path / "ready"
    assert MPIEXEC
    job = subprocess.Popen(
        [MPIEXEC, "-n", "2", sys.executable, "-m", "tests.distributed.ranks", group],
        env={**os.environ, **AS_ROOT, "PYTHONPATH": str(ROOT), "GPUMATCH_TEST_FILE": str(ready)},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        limit = time.monotonic() + SECONDS
        while not ready.exists() and job.poll() is None and time.monotonic() < limit:
            time.sleep(0.05)
        assert ready.exists()
        job.send_signal(signal.SIGINT)
        assert job.wait(30) != 0
    finally:
        job.kill()


def test_without_mpi4py_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['mpi4py'] = None\n"
        "import gpumatch\n"
        "gpumatch.distributed.assign([[1]])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert "ImportError: gpumatch.distributed needs mpi4py" in done.stderr
    assert "gpumatch[mpi]" in done.stderr

"""Kernels compile where Numba can keep nothing, and say so once."""

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import TypingError

import gpumatch
from gpumatch.cpu.numba_tools import compiled
from gpumatch.cpu.numba_tools.compiled import cache_folder, kernel, short_kernel

PACKAGE = Path(gpumatch.__file__).parent

MATCH = """
import numpy as np, gpumatch
from gpumatch.cpu.numba_tools.compiled import cache_folder
print(gpumatch.__file__)
print(gpumatch.maximum_matching(np.eye(3), init="cheap", threads=1).size, cache_folder())
"""


def run_in(folder: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        cwd=folder,
        env={**kept, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def copy_that_keeps_nothing(folder: Path) -> Path:
    """The package, with files where Numba would make folders: even root cannot write there."""
    copied = folder / "gpumatch"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (copied, *copied.rglob("*")):
        if path.is_dir():
            (path / "__pycache__").touch()
    return copied


def test_compiles_where_nothing_can_be_kept(tmp_path):
    copied = copy_that_keeps_nothing(tmp_path)
    nowhere = str(copied / "__init__.py")
    run = run_in(tmp_path, MATCH, HOME=nowhere, XDG_CACHE_HOME=nowhere)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [nowhere, "3", "None"]
    assert run.stderr.count("UserWarning") == 1
    assert run.stderr.count("set NUMBA_CACHE_DIR") == 1


def test_goes_on_when_the_disk_is_full(tmp_path):
    """As on a full disk, files can be made, but nothing can be written into them."""
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    cache = tmp_path / "cache"
    environment = {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(PACKAGE.parent)}
    run = run_in(tmp_path, full + MATCH, **environment)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [str(PACKAGE / "__init__.py"), "3", str(cache)]
    assert run.stderr.count("UserWarning") == 1
    assert run.stderr.count("set NUMBA_CACHE_DIR") == 1
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_tells_below_which_folder_code_is_kept(tmp_path):
    assert cache_folder() == Path(os.environ["NUMBA_CACHE_DIR"])
    package = tmp_path / "gpumatch"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    code = "from gpumatch.cpu.numba_tools.compiled import cache_folder; print(cache_folder())"
    run = run_in(tmp_path, code)
    assert Path(run.stdout.strip()) == package / "cpu", run.stderr


@short_kernel
def pair_of(number):
    return np.full(2, number)


@kernel
def another_pair_of(number):
    return np.full(2, number)


def test_only_short_kernels_make_arrays():
    assert pair_of(3).tolist() == [3, 3]
    with pytest.raises(TypingError, match="No implementation of function"):
        another_pair_of(3)


VECTORS = {"fastmath": {"nnan", "nsz"}}
ALONE = {"nogil": True, "_nrt": False}
FLAGS = {
    "kernel": ALONE,
    "vector_kernel": ALONE | VECTORS,
    "short_kernel": VECTORS,
    "strict_kernel": ALONE | {"fastmath": False},
    "fused": VECTORS | {"_nrt": False, "forceinline": True},
}


@pytest.mark.parametrize("name", FLAGS)
def test_what_numba_is_told_of_a_kernel(name):
    told = getattr(compiled, name)(lambda: None).targetoptions
    of_all = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True}
    assert told == of_all | FLAGS[name]


@pytest.fixture
def no_collection():
    """Young objects stay young, and none are frozen."""
    gc.collect(0)
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()


def young_objects(made):
    """How many objects Python would look at first, of which so many are new."""
    kept = [set() for _ in range(made)]  # of which Python keeps none for later
    return gc.get_count()[0], kept


@pytest.mark.usefixtures("no_collection")
def test_what_compilations_leave_is_looked_through_some_time():
    compilation = compiled._Compilation()
    count, _ = young_objects(500)
    assert count >= 500
    compilation._leave_garbage()
    assert gc.get_count()[0] < 100  # they are old now
    assert compilation.left >= 500
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("no_collection")
def test_much_that_compilations_leave_is_looked_through_soon(monkeypatch):
    monkeypatch.setattr(compiled, "_GARBAGE", 900)
    compilation = compiled._Compilation()
    for young in (False, True, False):  # together the first two leave more than that
        gc.collect(0)
        _, kept = young_objects(500)
        compilation._leave_garbage()
        assert (gc.get_count()[0] >= 500) == young
        assert (compilation.left == 0) == young
        del kept


@pytest.mark.usefixtures("no_collection")
def test_what_a_program_froze_stays_frozen():
    """Nothing else is frozen either. Other threads may free frozen objects meanwhile."""
    gc.freeze()
    frozen = gc.get_freeze_count()
    young = young_objects(500)
    compiled._Compilation()._leave_garbage()
    assert frozen - 500 < gc.get_freeze_count() <= frozen
    del young


def test_only_the_outermost_compilation_lets_python_collect_again():
    compilation = compiled._Compilation()
    for _ in range(2):
        for depth in (1, 2):
            compilation.on_start(None)
            assert compilation.depth == depth
            assert not gc.isenabled()
        compilation.on_end(None)
        assert not gc.isenabled()
        compilation.on_end(None)
        assert gc.isenabled()

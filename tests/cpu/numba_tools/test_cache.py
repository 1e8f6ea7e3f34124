"""Compiled code is loaded until a source of it changes, whichever file that is in."""

from __future__ import annotations

import ast
import os
import shutil
from pathlib import Path

import pytest

import gpumatch
from gpumatch.cpu.numba_tools import cache
from tests.cpu.numba_tools.test_compiled import run_in

PACKAGE = Path(gpumatch.__file__).parent

CALLER = """
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.called import fee
@kernel
def price(cost):
    return cost + fee(cost)
"""
CALLED = """
from gpumatch.cpu.numba_tools.compiled import kernel
@kernel
def fee(cost):
    return {fee}
"""
CALL = """
from gpumatch.cpu import caller
print(caller.__file__, caller.price(10), sum(caller.price.stats.cache_hits.values()))
"""


@pytest.fixture
def copied(tmp_path):
    """The package with two more files: a kernel, and one that calls it."""
    folder = tmp_path / "gpumatch"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__", "cuda"))
    (folder / "cpu" / "caller.py").write_text(CALLER)
    (folder / "cpu" / "called.py").write_text(CALLED.format(fee=1))
    return folder


def price_in(copied, code=CALL):
    """What a new process pays, and whether it has loaded the kernel."""
    run = run_in(copied.parent, code, NUMBA_CACHE_DIR=str(copied.parent / "cache"))
    assert run.returncode == 0, run.stderr
    file, price, hits = run.stdout.split()
    assert file == str(copied / "cpu" / "caller.py")
    return int(price), int(hits)


def test_an_edit_of_a_called_kernel_is_seen(copied):
    called = copied / "cpu" / "called.py"
    status = called.stat()
    assert price_in(copied) == (11, 0)
    os.utime(copied / "cpu" / "caller.py", (9, 9))
    assert price_in(copied) == (11, 1)  # no content has changed
    called.write_text(CALLED.format(fee=2))
    os.utime(called, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert called.stat().st_size == status.st_size
    assert price_in(copied) == (12, 0)


def test_an_edit_is_seen_where_numba_keeps_its_own_files(copied):
    plain = f"from gpumatch.cpu.numba_tools import cache\ncache._works = lambda: False\n{CALL}"
    assert price_in(copied, plain) == (11, 0)
    assert price_in(copied, plain) == (11, 1)
    (copied / "cpu" / "called.py").write_text(CALLED.format(fee=2))
    assert price_in(copied, plain) == (12, 0)


def test_code_that_two_processes_save_at_once_is_not_mixed_up(tmp_path):
    """Both take the first number. The last index is of one, and the last code of the other."""
    one, two = (cache._Files(str(tmp_path), "kernel", "stamp") for _ in range(2))
    save_index, save_code, late = one._save_index, two._save_data, []

    def save_after_the_other(index):
        two.save("float64", "code for floats")
        save_index(index)

    one._save_index, two._save_data = save_after_the_other, lambda *code: late.append(code)
    one.save("int64", "code for integers")
    save_code(*late[0])
    new = cache._Files(str(tmp_path), "kernel", "stamp")
    assert new._load_index().keys() == {"int64"}
    assert new.load("int64") is new.load("float64") is None
    for key in ("int64", "float64"):
        new.save(key, f"code for {key}")
    assert [new.load(key) for key in ("int64", "float64")] == ["code for int64", "code for float64"]
    assert cache._Files(str(tmp_path), "kernel", "another stamp").load("int64") is None


# -- the stamp -------------------------------------------------------------------------------------


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A package of two kernels' files, and one whose constants they read."""
    for folder in ("contracts", "cpu/matching", "numeric"):
        (tmp_path / folder).mkdir(parents=True)
    for path in (*cache.BEYOND, "cpu/pairs_in_csr.py", "cpu/matching/engine.py"):
        (tmp_path / path).write_text("LIMIT = 1")
    monkeypatch.setattr(cache, "FOLDER", str(tmp_path / "cpu"))
    return tmp_path


def stamp():
    return cache.stamp.__wrapped__()


@pytest.mark.parametrize("path", [cache.BEYOND[0], "cpu/pairs_in_csr.py", "cpu/matching/engine.py"])
def test_each_content_and_name_counts(sources, path):
    before = stamp()
    (sources / path).write_text("LIMIT = 2")
    edited = stamp()
    (sources / path).unlink()
    removed = stamp()
    (sources / path).write_text("LIMIT = 1")
    assert stamp() == before
    assert len({before, edited, removed}) == 3


def test_a_file_that_moves_is_another(sources):
    before = stamp()
    (sources / "cpu" / "pairs_in_csr.py").rename(sources / "cpu" / "matching" / "pairs_in_csr.py")
    assert stamp() != before


def test_what_is_no_source_does_not_count(sources):
    before = stamp()
    for path in ("cuda.py", "cpu/notes.txt", "cpu/__pycache__/search.py"):
        (sources / path).parent.mkdir(exist_ok=True)
        (sources / path).write_text("other")
    assert stamp() == before


def test_the_stamp_names_the_version_of_llvm(sources, monkeypatch):
    before = stamp()
    monkeypatch.setattr(cache.llvmlite, "__version__", "99.0")
    assert stamp() != before


def test_a_package_that_is_an_archive_has_a_stamp(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "FOLDER", str(tmp_path / "gpumatch.zip" / "gpumatch" / "cpu"))
    assert len(stamp()) == 16


def test_what_the_stamp_does_not_cover_has_numbas_own(sources):
    """Kernels of tests, and those of an archive, whose files cannot be read."""
    kernels = sources / "cpu" / "pairs_in_csr.py"
    assert cache._is_covered(str(kernels))
    for other in (
        sources / "contracts" / "__init__.py",
        sources / "cpu2" / "pairs_in_csr.py",
        kernels / "pairs_in_csr.py",
    ):
        assert not cache._is_covered(str(other))


def constants_from_elsewhere():
    """The files, from the package, of constants that modules below cpu/ import from elsewhere."""
    for file in (PACKAGE / "cpu").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and not node.module.startswith("gpumatch.cpu"):
                path = PACKAGE.parent.joinpath(*node.module.split(".")).with_suffix(".py")
                if path.is_file() and any(alias.name.isupper() for alias in node.names):
                    yield path.relative_to(PACKAGE).as_posix()


def test_all_files_whose_constants_kernels_read_count():
    """Numba makes a constant part of the code."""
    assert {*constants_from_elsewhere()} == {*cache.BEYOND}

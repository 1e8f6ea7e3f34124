"""Compiled kernels are kept by their sources, Numba, Python and checks of indices."""

from __future__ import annotations

import os

import pytest

from tests import numba_cache
from tests.numba_cache import KEPT, kernels_key, use_folder


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Sources of two files."""
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    folder = tmp_path / "gpumatch" / "cpu" / "matching"
    folder.mkdir(parents=True)
    (folder / "kernel.py").write_text("def kernel(): return helper()")
    (folder.parent / "helper.py").write_text("def helper(): return 1")
    return tmp_path


def change(checkout, text):
    (checkout / "gpumatch" / "cpu" / "helper.py").write_text(f"def helper(): return {text}")


def test_these_tests_compile_into_a_folder_of_their_own():
    assert "NUMBA_CACHE_DIR" in os.environ


def test_a_change_of_any_file_changes_the_key(checkout):
    first = kernels_key(checkout)
    change(checkout, 2)
    second = kernels_key(checkout)
    helper = checkout / "gpumatch" / "cpu" / "helper.py"
    helper.rename(helper.with_name("other.py"))
    assert len({first, second, kernels_key(checkout)}) == 3
    helper.with_name("other.py").rename(helper)
    change(checkout, 1)
    assert kernels_key(checkout) == first


def test_each_numba_python_and_check_of_indices_has_a_key(checkout, monkeypatch):
    monkeypatch.delenv("NUMBA_BOUNDSCHECK", raising=False)
    keys = [kernels_key(checkout)]
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    keys.append(kernels_key(checkout))
    monkeypatch.setattr(numba_cache, "version", lambda package: f"{package} of tomorrow")
    keys.append(kernels_key(checkout))
    monkeypatch.setattr("sys.version", "4.0")
    keys.append(kernels_key(checkout))
    assert len(set(keys)) == 4


def test_the_same_sources_get_the_same_folder_and_few_folders_stay(checkout, monkeypatch):
    folders = checkout / "folders"
    used = []
    for state in range(KEPT + 2):
        change(checkout, state)
        used.append(use_folder(folders, checkout))
        assert os.environ["NUMBA_CACHE_DIR"] == str(used[-1])
        assert use_folder(folders / "ignored", checkout) == used[-1]  # as in a worker
        os.utime(used[-1], (state, state))
        monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert set(folders.iterdir()) == set(used[-KEPT:])
    assert use_folder(folders, checkout) == used[-1]

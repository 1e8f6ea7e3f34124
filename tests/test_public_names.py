"""No module takes the place of a public function, whatever is imported first."""

from __future__ import annotations

import subprocess
import sys

EVERY_MODULE_THEN_EVERY_NAME = """
import importlib, pkgutil
import gpumatch

missing = {"cupy", "cupyx", "cupy_backends", "mpi4py", "torch"}
for found in pkgutil.walk_packages(gpumatch.__path__, "gpumatch."):
    if found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
    except ImportError as exc:
        assert (exc.name or "").split(".")[0] in missing, (found.name, exc)
wrong = []
for name in gpumatch.__all__:
    value = getattr(gpumatch, name)
    is_module = type(value).__name__ == "module"
    if is_module != (name in gpumatch._MODULES):
        wrong.append(name)
assert not wrong, wrong
assert gpumatch.maximum_matching([[1]], threads=1).size == 1
assert gpumatch.assign([[1.0]], threads=1).size == 1
assert gpumatch.verify([[1]], gpumatch.maximum_matching([[1]], threads=1)).size == 1
"""


def test_every_public_name_is_what_it_is_after_every_import():
    subprocess.run([sys.executable, "-c", EVERY_MODULE_THEN_EVERY_NAME], check=True)

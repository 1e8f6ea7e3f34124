"""Where tests keep compiled kernels: a folder for each state of their sources and compilers.

After an edit, all kernels are compiled again (`gpumatch.cpu.numba_tools.cache`), and in one folder
the new code would replace the old. With separate folders, git may switch to and fro between two
branches, and nothing is compiled that was compiled before. Numba does not notice a change of
NUMBA_BOUNDSCHECK, and it discards the index of another Numba, which two versions in one folder
would do in turns.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ROOT / ".pytest_cache" / "numba"
KEPT = 6


def kernels_key(root: Path) -> str:
    """A hash of what kernels are made of, and by: sources below `root`, Numba, Python, checks."""
    checks = os.environ.get("NUMBA_BOUNDSCHECK", "")
    digest = hashlib.sha256(f"{version('numba')}\0{sys.version}\0{checks}\0".encode())
    for path in sorted((root / "gpumatch" / "cpu").rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def use_folder(folders: Path = FOLDERS, root: Path = ROOT) -> Path:
    """Have Numba, which must not be loaded yet, cache in the folder of the present key.

    A caller's NUMBA_CACHE_DIR stays, so workers of pytest-xdist share the folder of the first
    process. Of older folders the latest are kept.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return Path(os.environ["NUMBA_CACHE_DIR"])
    folder = folders / kernels_key(root)
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    latest = sorted(folders.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for old in latest[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    return folder

"""What numbers depend on: machine, versions, sources."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import time
from pathlib import Path
from typing import Any

from gpumatch.cli.listings import environment

_ROOT = Path(__file__).parents[1]
PEERS = ("igraph", "lapx", "pot")
_SOURCES = (".py", ".cu", ".cuh")


def describe() -> dict[str, Any]:
    """The machine, the versions, the sources' hash and the day."""
    here = environment()
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "processor": _processor(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        **here,
        "versions": here["versions"] | _peers(),
        "sources_sha256": source_hash(_ROOT / "gpumatch"),
    }


def source_hash(folder: Path) -> str:
    """SHA-256 over the Python and CUDA files below a folder, in sorted order.

    The hash is over the path of each from the folder's parent, a zero byte, and its content.
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in _SOURCES):
        digest.update(path.relative_to(folder.parent).as_posix().encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _peers() -> dict[str, str]:
    """The versions of the peers that the library itself does not know."""
    installed = {found.name.lower(): found.version for found in importlib.metadata.distributions()}
    return {name: installed[name] for name in PEERS if name in installed}


def _processor() -> str:
    """The processor's name, if Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()

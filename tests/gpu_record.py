"""The record of a test run on a GPU: what passed where, and of which sources.

The sources are the .py, .cu and .cuh files below gpumatch/cuda. A machine without a GPU compares
the committed record's hash with theirs, to know whether what it holds was ever run.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import gpumatch

ROOT = Path(__file__).parents[1]
COMMITTED = ROOT / "bench" / "results" / "gpu-tests.json"


def sources_hash(root: Path) -> str:
    """SHA-256 over the sources in sorted path order: path from `root`, a zero byte, content."""
    sources = {
        path.relative_to(root).as_posix(): path
        for path in (root / "gpumatch" / "cuda").rglob("*")
        if path.suffix in {".py", ".cu", ".cuh"}
    }
    digest = hashlib.sha256()
    for name in sorted(sources):
        digest.update(name.encode() + b"\0" + sources[name].read_bytes())
    return digest.hexdigest()


def why_outdated(record: Path, root: Path) -> str | None:
    """None where `record` is of the sources below `root`, else what is wrong with it."""
    if not record.exists():
        return f"no GPU has run the tests yet: {record.name} is missing"
    if json.loads(record.read_text())["sha256"] != sources_hash(root):
        return f"gpumatch/cuda has changed since a GPU last ran the tests ({record.name})"
    return None


def device_and_versions() -> dict[str, Any]:
    """The GPU in use and what drives it."""
    import cupy

    runtime = cupy.cuda.runtime
    return {
        "device": runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode(),
        "versions": {
            "gpumatch": gpumatch.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "cupy": cupy.__version__,
            "cuda_runtime": runtime.runtimeGetVersion(),
            "cuda_driver": runtime.driverGetVersion(),
        },
    }


class GpuRecord:
    """A pytest plugin that counts the tests marked `gpu` and writes down how they went."""

    def __init__(self) -> None:
        self.path = Path(os.environ.get("GPUMATCH_GPU_RECORD", COMMITTED))
        self.counts: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if "gpu" in report.keywords and (report.when == "call" or not report.passed):
            self.counts[report.outcome] += 1

    def pytest_sessionfinish(self) -> None:
        if self.counts["passed"] + self.counts["failed"] == 0:
            return
        record = device_and_versions() | {"sha256": sources_hash(ROOT)}
        record |= {outcome: self.counts[outcome] for outcome in ("passed", "failed", "skipped")}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(record, indent=2) + "\n")

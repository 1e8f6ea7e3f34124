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
OUTCOMES = ("passed", "failed", "skipped")
EVERY = 100  # tests after which what a run has so far is written
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
    """A pytest plugin that counts the tests marked `gpu` and writes down how they went.

    With ``GPUMATCH_GPU_RECORD_ADD`` set, a run of some of them adds to the record of the others,
    if that is of the same sources, device and versions: what needs a GPU alone runs apart.

    Until the run ends, what it has so far is in a file beside the record, ``….partial.json``. A run
    that is cut leaves that.
    """

    def __init__(self) -> None:
        self.path = Path(os.environ.get("GPUMATCH_GPU_RECORD", COMMITTED))
        self.partial = self.path.with_suffix(".partial.json")
        self.counts: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if "gpu" in report.keywords and (report.when == "call" or not report.passed):
            self.counts[report.outcome] += 1
            if self.counts.total() % EVERY == 0:
                self._write(self.partial)

    def pytest_sessionfinish(self) -> None:
        self._write(self.path)
        self.partial.unlink(missing_ok=True)

    def _write(self, path: Path) -> None:
        """Write what there is, if a GPU has run anything."""
        if self.counts["passed"] + self.counts["failed"] == 0:
            return
        run = device_and_versions() | {"sha256": sources_hash(ROOT)}
        others = self._record_of_others(run)
        counts = {name: self.counts[name] + others.get(name, 0) for name in OUTCOMES}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(run | counts, indent=2) + "\n")

    def _record_of_others(self, run: dict[str, Any]) -> dict[str, Any]:
        if not os.environ.get("GPUMATCH_GPU_RECORD_ADD") or not self.path.exists():
            return {}
        earlier = json.loads(self.path.read_text())
        return earlier if all(earlier.get(key) == value for key, value in run.items()) else {}

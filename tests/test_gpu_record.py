"""The record of GPU tests: its hash, when it is written, and whether the committed one is old."""

from __future__ import annotations

import hashlib
import json
import warnings

import pytest

from tests import gpu_record
from tests.gpu_record import COMMITTED, ROOT, GpuRecord, sources_hash, why_outdated


def test_the_committed_record_is_of_these_sources():
    reason = why_outdated(COMMITTED, ROOT)
    if reason is not None:
        warnings.warn(reason, UserWarning, stacklevel=1)


@pytest.fixture
def sources(tmp_path):
    """A repository with sources in two folders, and files that don't count."""
    files = {"b.cu": "2", "a.py": "1", "sub/c.cuh": "3", "a.pyc": "-", "notes.md": "-"}
    for name, content in files.items():
        path = tmp_path / "gpumatch" / "cuda" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def test_the_hash_is_over_paths_and_contents_in_order(sources):
    counted = {"gpumatch/cuda/a.py": "1", "gpumatch/cuda/b.cu": "2", "gpumatch/cuda/sub/c.cuh": "3"}
    text = "".join(f"{path}\x00{content}" for path, content in counted.items())
    assert sources_hash(sources) == hashlib.sha256(text.encode()).hexdigest()


def test_a_record_is_outdated_when_missing_or_of_other_sources(sources):
    record = sources / "record.json"
    assert "missing" in why_outdated(record, sources)
    record.write_text(json.dumps({"sha256": sources_hash(sources)}))
    assert why_outdated(record, sources) is None
    (sources / "gpumatch" / "cuda" / "b.cu").write_text("changed")
    assert "has changed" in why_outdated(record, sources)


def report(outcome, when="call", *marks):
    return pytest.TestReport(
        "nodeid", ("file", 0, "name"), dict.fromkeys(marks, 1), outcome, longrepr=None, when=when
    )


RAN = [
    report("passed", "setup", "gpu"),
    report("passed", "call", "gpu"),
    report("passed", "teardown", "gpu"),
    report("failed", "call", "gpu"),
    report("failed", "setup", "gpu"),
    report("passed", "call"),
]
SKIPPED = [report("skipped", "setup", "gpu"), report("failed", "call")]


@pytest.mark.parametrize(
    ("reports", "counts"),
    [
        (RAN + SKIPPED, {"passed": 1, "failed": 2, "skipped": 1}),
        (SKIPPED, None),
        ([], None),
    ],
)
def test_a_record_is_written_when_a_gpu_test_ran(reports, counts, tmp_path, monkeypatch):
    path = tmp_path / "new" / "record.json"
    monkeypatch.setenv("GPUMATCH_GPU_RECORD", str(path))
    here = {"device": "a GPU", "versions": {"cupy": "14"}}
    monkeypatch.setattr(gpu_record, "device_and_versions", lambda: here)
    plugin = GpuRecord()
    for one in reports:
        plugin.pytest_runtest_logreport(one)
    plugin.pytest_sessionfinish()
    expected = counts and here | counts | {"sha256": sources_hash(ROOT)}
    assert (json.loads(path.read_text()) if path.exists() else None) == expected


def test_a_run_that_is_cut_leaves_what_it_had(tmp_path, monkeypatch):
    path, partial = tmp_path / "record.json", tmp_path / "record.partial.json"
    monkeypatch.setenv("GPUMATCH_GPU_RECORD", str(path))
    monkeypatch.setattr(gpu_record, "device_and_versions", lambda: {"device": "a GPU"})
    monkeypatch.setattr(gpu_record, "EVERY", 3)
    plugin = GpuRecord()
    for one in 3 * SKIPPED:
        plugin.pytest_runtest_logreport(one)
    assert not partial.exists()
    for one in RAN:
        plugin.pytest_runtest_logreport(one)
    assert not path.exists()
    assert {name: json.loads(partial.read_text())[name] for name in ("passed", "failed")} == {
        "passed": 1,
        "failed": 2,
    }
    plugin.pytest_sessionfinish()
    assert path.exists()
    assert not partial.exists()


@pytest.mark.parametrize(
    ("adds", "of_same_sources", "passed"), [("1", True, 6), ("1", False, 1), ("", True, 1)]
)
def test_a_run_of_a_part_adds_to_the_record_of_the_same_sources(
    adds, of_same_sources, passed, tmp_path, monkeypatch
):
    path = tmp_path / "record.json"
    here = {"device": "a GPU", "versions": {"cupy": "14"}}
    sources = sources_hash(ROOT) if of_same_sources else "others"
    path.write_text(json.dumps(here | {"sha256": sources, "passed": 5, "failed": 0, "skipped": 0}))
    monkeypatch.setenv("GPUMATCH_GPU_RECORD", str(path))
    monkeypatch.setenv("GPUMATCH_GPU_RECORD_ADD", adds)
    monkeypatch.setattr(gpu_record, "device_and_versions", lambda: here)
    plugin = GpuRecord()
    for one in RAN + SKIPPED:
        plugin.pytest_runtest_logreport(one)
    plugin.pytest_sessionfinish()
    assert json.loads(path.read_text())["passed"] == passed

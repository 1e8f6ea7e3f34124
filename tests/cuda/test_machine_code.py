"""Machine code of kernels: what is found, and what is compiled because nothing is.

Only the last test needs a GPU. The others use a stand-in for CuPy, which records its calls.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("cupy", reason="CuPy is not installed")

from gpumatch.cuda import kernels
from gpumatch.cuda.kernels import build, machine_code
from gpumatch.cuda.kernels.machine_code import Program, find
from gpumatch.cuda.surveys import SOURCE

ROOT = Path(__file__).parents[2]
INT32 = {"Number": "int"}
NAMES = tuple(f"kernel{k}" for k in range(len(SOURCE.kernels)))
KEY = machine_code.key_of(SOURCE.text(), SOURCE.names(INT32), kernels.COMPILE_OPTIONS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_code, "FOLDER", tmp_path)
    return tmp_path


def archive(folder: Path, name: str, key: str, code: bytes = b"\x7fELF") -> Path:
    machine_code.write(folder / name, {key: Program(NAMES, code)})
    return folder / name


def test_a_program_is_found_with_the_names_of_its_kernels(folder):
    archive(folder, "sm_90-cuda13.zip", "key", b"\x7fELF\n more\n")
    assert find("key", capability=90, cuda=13) == Program(NAMES, b"\x7fELF\n more\n")
    assert find("other", capability=90, cuda=13) is None


@pytest.mark.parametrize(
    ("built", "runs", "refuses"),
    [
        ("80", (80, 86, 89), (75, 90, 100, 87)),  # 87 is a module, which runs no code for others
        ("89", (89,), (80, 86, 90)),
        ("90", (90,), (89, 100)),
        ("100", (100, 103), (90, 101, 120)),
        ("87", (87,), (86, 89)),
        ("120", (120, 121), (100, 12)),
    ],
)
def test_a_device_runs_code_for_older_ones_with_its_major_number(folder, built, runs, refuses):
    archive(folder, f"sm_{built}-cuda13.zip", "key")
    assert all(find("key", capability=each, cuda=13) for each in runs)
    assert not any(find("key", capability=each, cuda=13) for each in refuses)


def test_code_for_the_device_itself_comes_before_that_for_an_older_one(folder):
    for name in ("86-cuda13", "89-cuda12", "89-cuda13", "80-cuda13"):
        archive(folder, f"sm_{name}.zip", "key", name.encode())
    assert find("key", capability=89, cuda=14).code == b"89-cuda13"
    assert find("key", capability=89, cuda=12).code == b"89-cuda12"
    assert find("key", capability=86, cuda=13).code == b"86-cuda13"


def test_a_driver_of_an_older_cuda_gets_nothing(folder):
    archive(folder, "sm_90-cuda13.zip", "key")
    assert find("key", capability=90, cuda=12) is None
    assert find("key", capability=90, cuda=14)


def test_archives_are_listed(folder):
    for name in ("sm_90-cuda13.zip", "sm_100-cuda12.zip", "other.zip"):
        (folder / name).touch()
    assert machine_code.archives() == ["sm_100-cuda12", "sm_90-cuda13"]


def test_files_that_are_no_archives_are_passed_over(folder):
    (folder / "sm_90-cuda13.zip").write_bytes(b"no zip")
    (folder / "notes.zip").write_bytes(b"")
    assert find("key", capability=90, cuda=13) is None


def test_a_damaged_program_is_passed_over(folder):
    file = archive(folder, "sm_90-cuda13.zip", "key", bytes(range(256)) * 40)
    content = bytearray(file.read_bytes())
    content[100] ^= 255
    file.write_bytes(content)
    assert find("key", capability=90, cuda=13) is None


@pytest.mark.parametrize("change", ["source", "kernels", "order of the kernels", "options"])
def test_whatever_the_compiler_is_given_is_in_the_key(change):
    given = {"text": "a", "names": ("f", "g"), "options": ("-x",)}
    changed = {
        "source": {"text": "b"},
        "kernels": {"names": ("f",)},
        "order of the kernels": {"names": ("g", "f")},
        "options": {"options": ("-y",)},
    }[change]
    assert machine_code.key_of(**given) != machine_code.key_of(**{**given, **changed})


class Modules:
    """In the place of CuPy: notes the modules that are made, on a device of capability 9.0."""

    def __init__(
        self, monkeypatch, *, cuda: int = 13, refuses: bool = False, is_captured: bool = False
    ) -> None:
        import cupy
        from cupy.cuda import driver, runtime

        self.made, self.loaded, self.refuses = [], [], refuses
        self.error = driver.CUDADriverError
        monkeypatch.setattr(cupy, "RawModule", self.module)
        monkeypatch.setattr(runtime, "driverGetVersion", lambda: 1000 * cuda + 20)
        monkeypatch.setattr(cupy.cuda, "Device", lambda: Device90)
        stream = SimpleNamespace(ptr=7, is_capturing=lambda: is_captured)
        monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: stream)

    def module(self, **how):
        if "path" in how:
            how["path"] = Path(how["path"]).read_bytes()
        self.made.append(how)
        return Module(self, "path" in how)


class Device90:
    compute_capability = "90"


class Module:
    def __init__(self, modules, is_machine_code):
        self.modules, self.is_machine_code = modules, is_machine_code

    def get_function(self, name):
        return Function(self.modules, name, self.is_machine_code)


class Function:
    def __init__(self, modules, name, is_machine_code):
        self.modules, self.name, self.is_machine_code = modules, name, is_machine_code

    @property
    def kernel(self):
        if self.modules.refuses and self.is_machine_code:
            raise self.modules.error.__new__(self.modules.error)  # it asks a driver for its text
        self.modules.loaded.append(self.name)
        return self


def test_kernels_with_machine_code_are_not_compiled(folder, monkeypatch):
    archive(folder, "sm_90-cuda13.zip", KEY)
    modules, found = Modules(monkeypatch), kernels.Kernels(SOURCE, INT32)
    assert [found[name].name for name in SOURCE.kernels] == [*NAMES]
    assert modules.made == [{"path": b"\x7fELF", "enable_cooperative_groups": False}]
    assert modules.loaded == [*NAMES]  # while the file was there


@pytest.mark.parametrize("why", ["a wrong key", "an older driver", "a refusal", "no archive"])
def test_what_has_no_machine_code_is_compiled(folder, monkeypatch, why):
    if why != "no archive":
        archive(folder, "sm_90-cuda13.zip", "wrong" if why == "a wrong key" else KEY)
    modules = Modules(
        monkeypatch, cuda=12 if why == "an older driver" else 13, refuses=why == "a refusal"
    )
    found = kernels.Kernels(SOURCE, INT32)
    assert [found[name].name for name in SOURCE.kernels] == [*SOURCE.names(INT32)]
    compiled = modules.made[-1]
    assert compiled["code"] == SOURCE.text()
    assert compiled["name_expressions"] == SOURCE.names(INT32)
    assert compiled["options"] == kernels.COMPILE_OPTIONS
    assert len(modules.made) == 1 + (why == "a refusal")


def test_no_kernel_is_loaded_while_a_graph_is_captured(folder, monkeypatch):
    archive(folder, "sm_90-cuda13.zip", KEY)
    modules = Modules(monkeypatch, is_captured=True)
    with pytest.raises(RuntimeError, match="make one call of this shape and type before"):
        kernels.Kernels(SOURCE, INT32)[SOURCE.kernels[0]]
    assert modules.made == []


def test_kernels_that_are_compiled_apart_are_compiled_when_asked_for(folder, monkeypatch):
    from gpumatch.cuda.assignment.batched.batch import SOURCE as LARGE

    modules, found = Modules(monkeypatch), kernels.Kernels(LARGE, {"Cost": "float"})
    assert LARGE.apart
    for name in ("turn<{Cost}>", "solve<{Cost}, 2>", "turn<{Cost}>"):
        assert found[name].name == name.format(Cost="float")
    assert [each["name_expressions"] for each in modules.made] == [
        ("turn<float>",),
        ("solve<float, 2>",),
    ]


def test_an_archive_has_every_program_of_its_sources(folder):
    """And programs of other sources are compiled. Without a GPU, this is all that can be seen."""
    (file,) = build.build([90], folder, ["surveys.cu"], workers=1)
    assert file.name.startswith("sm_90-cuda")
    with zipfile.ZipFile(file) as opened:
        assert len(opened.namelist()) == len([*SOURCE.instances()])
    cuda = int(file.stem.partition("cuda")[2])
    program = find(KEY, capability=90, cuda=cuda)
    assert program.code.startswith(b"\x7fELF")
    assert len(program.names) == len(SOURCE.kernels)
    assert all(name.encode() in program.code for name in program.names)


def test_build_rejects_an_unknown_source(folder):
    with pytest.raises(ValueError, match=r"files: there is no source 'more\.cu'"):
        build.build([90], folder, ["surveys.cu", "more.cu"])


def test_the_command_takes_architectures_as_nvcc_names_them(monkeypatch, capsys, tmp_path):
    asked = []
    monkeypatch.setattr(build, "build", lambda *how: asked.append(how) or [])
    build.main(["--arch", "sm_90", "--arch", "100", "--out", str(tmp_path), "--only", "a.cu"])
    build.main([])
    assert asked[0] == ([90, 100], tmp_path, ["a.cu"], 0)
    assert asked[1] == (build.ARCHITECTURES, machine_code.FOLDER, [], 0)


ON_A_DEVICE = """
import sys
import cupy as cp
import gpumatch as gm
from cupy.cuda import compiler
from gpumatch.cuda.kernels import build, machine_code
from gpumatch.cuda.surveys import SOURCE, count_matched
from pathlib import Path

machine_code.FOLDER = Path(sys.argv[1])
build_it = sys.argv[2] == "built"
if __name__ == "__main__":
    if build_it:
        build.build([int(cp.cuda.Device().compute_capability)], machine_code.FOLDER, ["surveys.cu"])
    mates = cp.array([1, -1, 3], "i4")
    compiled = []
    inner = compiler._compile_module_with_cache
    def noted(source, *how, **more):
        compiled.append("count_matched" in source)
        return inner(source, *how, **more)
    compiler._compile_module_with_cache = noted
    assert count_matched(mates) == 2
    print(any(compiled))
"""


@pytest.mark.gpu
@pytest.mark.parametrize(("what", "compiles"), [("built", "False"), ("nothing", "True")])
def test_machine_code_counts_on_a_device(tmp_path, what, compiles):
    script = tmp_path / "counting.py"
    script.write_text(ON_A_DEVICE)
    command = [sys.executable, str(script), str(tmp_path), what]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == compiles


BUILD_A_WHEEL = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"


@pytest.mark.parametrize("wish", [None, "--arch 90 --arch sm_100 --only surveys.cu"])
def test_a_wheel_has_the_machine_code_that_is_asked_for(tmp_path, wish):
    pytest.importorskip("hatchling")
    env = {key: value for key, value in os.environ.items() if key != "GPUMATCH_MACHINE_CODE"}
    if wish is not None:
        env["GPUMATCH_MACHINE_CODE"] = wish
    command = [sys.executable, "-c", BUILD_A_WHEEL, str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        archives = [name for name in names if name.startswith("gpumatch/cuda/kernels/archives/")]
        assert "gpumatch/cuda/assignment/batched/batch.cu" in names
        assert "gpumatch/_manifest.toml" in names
        assert not [name for name in names if "hatch_build" in name]
        opened.extractall(tmp_path, archives)
    found = [Path(name).name.partition("-")[0] for name in sorted(archives)]
    assert found == ([] if wish is None else ["sm_100", "sm_90"])
    for name in archives:
        with zipfile.ZipFile(tmp_path / name) as archive:
            assert KEY in archive.namelist()

"""Put machine code of CUDA kernels into a wheel, if the environment asks for it.

    GPUMATCH_MACHINE_CODE="--arch 90 --arch 100" python -m build --wheel

The variable has arguments of ``python -m gpumatch.cuda.kernels.build``. If it is empty, all
architectures of `build.ARCHITECTURES` are compiled, which takes minutes. Without the variable, a
wheel has no machine code, and needs nothing but hatchling.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WISH = "GPUMATCH_MACHINE_CODE"


class MachineCodeHook(BuildHookInterface):
    """Compiles the kernels before a wheel is packed."""

    def dependencies(self) -> list[str]:
        """What compiling needs besides hatchling."""
        if WISH not in os.environ:
            return []
        core = self.metadata.core
        return [*core.dependencies, *core.optional_dependencies["machine-code"]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add the archives to the wheel. An editable installation gets none."""
        if WISH not in os.environ or self.target_name != "wheel" or version == "editable":
            return
        self.folder = tempfile.TemporaryDirectory()
        module, wish = "gpumatch.cuda.kernels.build", shlex.split(os.environ[WISH])
        command = [sys.executable, "-m", module, "--out", self.folder.name, *wish]
        subprocess.run(command, cwd=self.root, check=True)
        build_data["force_include"][self.folder.name] = "gpumatch/cuda/kernels/archives"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what has been packed."""
        if hasattr(self, "folder"):
            self.folder.cleanup()

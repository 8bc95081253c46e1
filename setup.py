"""Builds the package; csrc/build.py says how."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "csrc"))

from build import Build, torch_npu_for  # noqa: E402


class NinjaBuild(build_ext):
    """Hands the whole of csrc/ to ninja, which rebuilds only what changed."""

    def run(self) -> None:
        """Builds into the source tree for an editable install, else into the wheel's tree."""
        in_place = self.inplace or self.editable_mode
        package = ROOT / "aclnn_torch" if in_place else Path(self.build_lib).resolve() / "aclnn_torch"
        directory = ROOT / "build" / "release"  # either links the same objects
        Build(package, directory, torch_npu=torch_npu_for(directory, None), relocatable=not in_place).run()

    def get_outputs(self) -> list[str]:
        """Nothing for setuptools to copy: the files are where they belong."""
        return []

    def get_output_mapping(self) -> dict[str, str]:
        """As get_outputs."""
        return {}


setup(ext_modules=[Extension("aclnn_torch._C", sources=[])], cmdclass={"build_ext": NinjaBuild})

"""Builds the package; csrc/build.py says how."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "csrc"))

from build import Build  # noqa: E402


class NinjaBuild(build_ext):
    """Hands the whole of csrc/ to ninja, which rebuilds only what changed."""

    def build_extension(self, ext: Extension) -> None:
        """Builds into the source tree (editable installs) or into the wheel's tree."""
        package = ROOT / "aclnn_torch" if self.inplace else Path(self.build_lib).resolve() / "aclnn_torch"
        directory = ROOT / "build" / ("release" if self.inplace else "wheel")
        Build(package, directory, relocatable=not self.inplace).run()


setup(ext_modules=[Extension("aclnn_torch._C", sources=[])], cmdclass={"build_ext": NinjaBuild})

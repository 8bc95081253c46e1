"""README's commands as a new user has them: ``python -m tests.stock`` (or ``make stock``).

Clones the last commit into a folder whose name has a space, with an empty home, pip without any configuration, and
torch's build for CUDA, which is what the package index gives. Prints what each command took. Downloads 3 GB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = ("demo", "demo-npu", "test")
# TORCH_INDEX is set to nothing, so that no build for CPUs is found.
SETTINGS = {"PIP_CONFIG_FILE": os.devnull, "TORCH_INDEX": ""}


def environment(home: Path) -> dict[str, str]:
    """This process's, without what is set for pip but the certificates of its connections."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_") or name == "PIP_CERT"}
    return kept | SETTINGS | {"HOME": str(home)}


def size(folder: Path) -> float:
    """In GB, of the files in a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()) / 1e9


def main() -> int:
    """Ends with the first command that fails, whose output is shown."""
    with tempfile.TemporaryDirectory(prefix="aclnn_torch stock ") as name:
        home = Path(name) / "home"
        home.mkdir()
        clone = Path(name) / "clone"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        for command in COMMANDS:
            begin = time.monotonic()
            result = subprocess.run(["make", command], cwd=clone, env=environment(home), capture_output=True, text=True)
            print(f"make {command}: {time.monotonic() - begin:.0f} s, exit status {result.returncode}", flush=True)
            if result.returncode != 0:
                print(result.stdout[-20000:], result.stderr[-20000:], sep="\n")
                return 1
            print("\n".join(result.stdout.splitlines()[-12:]), flush=True)
        for folder in (".venv", ".venv-npu", "build"):
            print(f"{folder}: {size(clone / folder):.1f} GB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

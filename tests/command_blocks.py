"""The command blocks of the documents: lists them, and runs a page's blocks as printed.

``python -m tests.command_blocks [PAGE ...]`` runs those of the given pages, or of all pages, including slow ones.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests import LONGEST_SESSION

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *("README.md", "CONTRIBUTING.md"),
    *(str(path.relative_to(ROOT)) for folder in ("docs", "examples") for path in sorted((ROOT / folder).rglob("*.md"))),
]
# The code and text blocks of these pages are excerpts of the tree.
EXCERPTS = ("docs/adding_a_row.md", "docs/adding_an_operator.md")
# Pages whose Python is that of the environment with torch_npu.
WITH_TORCH_NPU = ("docs/npu.md",)

# The launcher of programs that need WORLD_SIZE.
SEVERAL_PROCESSES = "-m torch.distributed.run --standalone --nproc-per-node 2"

# Prefixes of slow commands: run by `make commands`.
LONG = (
    ".venv-npu/bin/python -m aclnn_torch run --devices 2 examples/train_digits.py",
    ".venv-npu/bin/python -m aclnn_torch run --devices 2 -m pytest",
    ".venv-npu/bin/python -m aclnn_torch doctor",
    ".venv-npu/bin/python -m aclnn_torch run examples/finetune_llama.py",
    "build/aot_inductor/run_package",
    ".venv/bin/cmake ",
    ".venv/bin/python -m pytest tests/test_operators.py -k strides",
    ".venv/bin/python examples/aot_inductor/make_package.py",
    ".venv/bin/python examples/finetune_llama.py",
    ".venv/bin/python -m benchmarks.call_path",
    ".venv/bin/python -m benchmarks.precision",
    "LD_PRELOAD=build/release/tests/libfaults.so",
    "build/release/tests/test_faults",
    "build/release/tests/test_runtime_stream",
)
# Prefixes of commands that are not run here, with the reason.
ELSEWHERE = {
    "make ": "builds into the tree and takes minutes; .ci/run and make test-deep run most, a person the others",
    ".venv/bin/python -m pytest tests/test_distributed.py": "make test-all runs every file of tests",
    ".venv/bin/python -m pytest tests/test_elu.py": "make test-all runs every file of tests",
    ".venv/bin/cmake --build": "make test runs it",
    ".venv/bin/python -m pip install pre-commit": "changes the environment, over the network",
    ".venv/bin/pre-commit install": "changes the repository's hooks",
    ".venv/bin/python -m benchmarks.torture": "15 minutes; tests/test_numerics.py holds its figures",
    ".venv/bin/python -m benchmarks.run --filter elu": "minutes of measuring",
    ".venv/bin/python -m benchmarks.run --quick --no-compile": "minutes of measuring",
    ".venv/bin/python -m benchmarks.run --no-compile --filter vocabulary": "half an hour of measuring",
    "pip install ": "on an Ascend machine; tests/wheel.py installs what is built",
    "aclnn-torch verify": "on an Ascend machine; tests/test_verify.py runs it on a simulated NPU",
    "python examples/train_digits.py --device npu": "on an Ascend machine; make demo-npu runs it on a simulated NPU",
    "python -m aclnn_torch run ": "train.py stands for any program; tests/test_npu.py runs programs in this way",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language (may be empty) and its text."""

    language: str
    text: str


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    found = re.findall(r"^```([\w+]*)\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    return [Block(*parts) for parts in found]


def commands_of(block: Block) -> list[str]:
    """The lines of a shell block, without comments; continued lines are joined."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [command for line in lines if (command := re.sub(r"(^|\s+)#.*", "", line))]


def is_long(command: str) -> bool:
    """True if the command is in LONG."""
    return command.startswith(LONG)


def is_elsewhere(command: str) -> bool:
    """True if the command is in ELSEWHERE; LONG takes precedence."""
    return command.startswith(tuple(ELSEWHERE)) and not is_long(command)


def script_of(page: str, long: bool) -> str:
    """A page as a bash script.

    One shell runs all commands, since a block may prepare the next; Python blocks start in the page's folder.
    """
    python = ".venv-npu/bin/python" if page in WITH_TORCH_NPU else ".venv/bin/python"
    lines = [
        "mapfile -d '' start < <(env -0)",
        "trap 'status=$?; echo \"failed: $BASH_COMMAND\" >&2; exit $status' ERR",
    ]
    for block in blocks_of(page):
        if block.language == "sh":
            lines += [
                command
                for command in commands_of(block)
                if not is_elsewhere(command) and (long or not is_long(command))
            ]
        elif block.language == "python":
            launcher = SEVERAL_PROCESSES if "WORLD_SIZE" in block.text else ""
            lines += ["cat > build/program.py <<'END_OF_BLOCK'", block.text + "END_OF_BLOCK"]
            lines += [f'env -i "${{start[@]}}" {python} {launcher} build/program.py']
    return "\n".join(lines)


def needs_torch_npu(script: str) -> bool:
    """True if the command needs an environment that a machine may not have."""
    return ".venv-npu" in script


def copy_tree(target: Path) -> None:
    """Copies the tree with the built package; environments and C++ tests are linked."""
    left_out = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "__pycache__", ".*_cache", "*.egg-info")
    shutil.copytree(ROOT, target, symlinks=True, ignore=left_out)
    (target / "build").mkdir()
    links = {".venv": Path(sys.prefix), ".venv-npu": ROOT / ".venv-npu", "build/release": ROOT / "build" / "release"}
    for name, place in links.items():
        if place.exists():
            (target / name).symlink_to(place)


def run_page(page: str, tree: Path, long: bool) -> str:
    """Runs a page's commands in a copy of the tree and returns what they printed.

    Pages of examples that name their folder run there, the others in the root.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ACLNN_TORCH", "PYTEST"))}
    environment["PYTHONPATH"] = str(tree)  # the copy's package, for commands in any folder
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])  # cmake, pkg-config
    folder = (tree / page).parent if page.startswith("examples/") else tree
    script = ["bash", "-c", script_of(page, long)]
    limit = 2 * LONGEST_SESSION if long else LONGEST_SESSION
    result = subprocess.run(script, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit)
    assert result.returncode == 0, f"{page}: status {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def main(pages: list[str]) -> None:
    """Runs pages, and prints their output."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        copy_tree(tree)
        for page in pages or PAGES:
            print(f"== {page}", run_page(page, tree, long=True), sep="\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

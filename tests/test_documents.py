"""What the documents show runs as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def python_blocks(document: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def run_block(folder: Path, block: str, *launcher: str) -> str:
    """What a block prints as a program of its own, started by python or by a module of python's."""
    program = folder / "program.py"
    program.write_text(block)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *launcher, str(program)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_python_block_of_the_readme_runs(tmp_path: Path) -> None:
    (block,) = python_blocks("README.md")
    assert "507015 ACL_ERROR_RT_AICORE_EXCEPTION" in run_block(tmp_path, block)


def test_python_blocks_about_the_ecosystem_run(tmp_path: Path) -> None:
    transformers, distributed = python_blocks("docs/ecosystem.md")
    printed = run_block(tmp_path, transformers)
    assert "'model.layers.0.input_layernorm'" in printed
    assert "AclnnCrossEntropyLossBackward0" in printed
    launcher = "-m torch.distributed.run --standalone --nproc-per-node 2"
    assert launcher in (ROOT / "docs" / "ecosystem.md").read_text()
    lines = run_block(tmp_path, distributed, *launcher.split()).splitlines()
    assert len(lines) == 2
    assert lines[0] == lines[1]


def test_nothing_is_left_to_fill_in() -> None:
    assert "@@" not in (ROOT / "README.md").read_text()


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    for document in documents:
        named = set(re.findall(r"(?:^|`)make ([a-z-]+)", document.read_text(), re.MULTILINE))
        assert named <= targets, document


def test_links_lead_somewhere() -> None:
    documents = [path for path in ROOT.rglob("*.md") if not {".venv", "build"} & set(path.relative_to(ROOT).parts)]
    assert len(documents) >= 6
    for document in documents:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document}: {target}"

"""The hosted workflows, .github/workflows, compared with the tree; and the text of a release, tools/release.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import aclnn_torch
from tests import wheels

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = ROOT / ".github" / "workflows"
PROGRAM = ROOT / "tools" / "release.py"


def test_hosted_machines_check_what_ci_run_does() -> None:
    commands = re.sub(r"#.*", "", (ROOT / ".ci" / "run").read_text())
    workflow = (WORKFLOWS / "ci.yml").read_text()
    (parts,) = re.findall(r"^ +part: \[(.*)\]$", workflow, re.MULTILINE)
    assert parts.split(", ") == re.findall(r"\bmake ([a-z-]+)", commands)
    assert "\n      - run: make ${{ matrix.part }}\n" in workflow


@pytest.mark.parametrize("path", sorted(WORKFLOWS.glob("*.yml")), ids=lambda path: path.name)
def test_actions_of_others_are_named_by_their_content(path: Path) -> None:
    """A tag may be moved to other code, a commit may not."""
    used = re.findall(r"\buses: (.*)", path.read_text())
    assert used
    assert [name for name in used if not re.fullmatch(r"\./\S+|\S+@[0-9a-f]{40} # v\S+", name)] == []


def test_what_builds_the_package_is_the_same_everywhere() -> None:
    """pyproject.toml is for pip's isolated builds; the others build in an environment that has torch."""
    (required,) = re.findall(r"^requires = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    tools = set(re.findall(r'"([^"]+)"', required)) - {next(each for each in required.split('"') if "torch" in each)}
    assert set(wheels.TOOLS) == tools
    for name, line in {"Makefile": "PIP", "docs/ascend.md": "pip install"}.items():
        (found,) = re.findall(rf'^.*{line}.*"setuptools.*$', (ROOT / name).read_text(), re.MULTILINE)
        assert tools <= set(re.findall(r'"([^"]+)"', found)), name
    source = re.findall(r"pip install build (.*)", (WORKFLOWS / "release.yml").read_text())
    assert set(source[0].replace('"', "").split()) <= tools


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("aclnn_torch-0.1.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl", True),
        ("aclnn_torch-0.1.0-cp311-cp311-manylinux_2_28_aarch64.whl", True),
        ("aclnn_torch-0.1.0-cp311-cp311-manylinux_2_35_x86_64.whl", False),
        ("aclnn_torch-0.1.0-cp311-cp311-linux_x86_64.whl", False),
    ],
)
def test_released_wheels_are_for_every_machine_of_torch(name: str, fits: bool) -> None:
    assert wheels.is_for_every_machine_of_torch(name) == fits


CHANGES = """# Changelog

## [1.2.3] - 2026-01-31

### Added

- A list whose item goes on
  in the next line, -1 and `a -
  b` as well ([docs/ci.md](docs/ci.md#one)).
- [Another](https://example.org) ([above](#added)).

A paragraph
of two lines.

## [1.2.2] - 2026-01-01

- Older.
"""
TEXT = """### Added

- A list whose item goes on in the next line, -1 and `a - b` as well ([docs/ci.md](ADDRESS/docs/ci.md#one)).
- [Another](https://example.org) ([above](#added)).

A paragraph of two lines.
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that is ready for its release."""
    for name in ("tools", "aclnn_torch"):
        (tmp_path / name).mkdir()
    (tmp_path / "tools" / "release.py").write_text(PROGRAM.read_text())
    (tmp_path / "aclnn_torch" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    return tmp_path


def say(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, tree / "tools" / "release.py", *arguments], capture_output=True, text=True)


def test_a_release_says_its_section(tree: Path) -> None:
    result = say(tree, "v1.2.3", "ADDRESS")
    assert (result.stdout, result.stderr, result.returncode) == (TEXT, "", 0)


@pytest.mark.parametrize(
    ("tag", "old", "new", "reason"),
    [
        ("v1.2.2", "", "", "the tag is v1.2.2, and aclnn_torch/__init__.py says that the version is 1.2.3"),
        ("1.2.3", "", "", "the tag is 1.2.3, and aclnn_torch/__init__.py says that the version is 1.2.3"),
        ("v1.2.3", "[1.2.3]", "[1.2.4]", "CHANGELOG.md has no section [1.2.3]"),
        ("v1.2.3", "[1.2.3]", "[1x2y3]", "CHANGELOG.md has no section [1.2.3]"),
        ("v1.2.3", "2026-01-31", "unreleased", "CHANGELOG.md says of 1.2.3 'unreleased', expected its date"),
        ("v1.2.3", CHANGES[CHANGES.index("### Added") : CHANGES.index("## [1.2.2]")], "", "has nothing in its section"),
    ],
)
def test_a_tree_that_is_not_ready(tree: Path, tag: str, old: str, new: str, reason: str) -> None:
    (tree / "CHANGELOG.md").write_text(CHANGES.replace(old, new) if old else CHANGES)
    result = say(tree, tag)
    assert (result.stdout, result.returncode) == ("", 1)
    assert result.stderr.startswith("tools/release.py: ") and reason in result.stderr


def test_the_next_release_has_its_section() -> None:
    """In this tree, where only its date may be missing."""
    result = say(ROOT, f"v{aclnn_torch.__version__}")
    assert result.stdout or "expected its date" in result.stderr

"""Commands shown in the documents run as printed, and their links are valid."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from docs.site import build as site

from . import inductor, listings
from .cabi import Dtype
from .command_blocks import (
    ELSEWHERE,
    EXCERPTS,
    LONG,
    PAGES,
    ROOT,
    blocks_of,
    commands_of,
    copy_tree,
    needs_torch_npu,
    run_page,
    script_of,
)
from .conformance.machinery import all_tables

DOCUMENTS = [ROOT / page for page in PAGES] + [path for path in [ROOT / "CHANGELOG.md"] if path.exists()]
RUN = [
    page for page in PAGES if page not in EXCERPTS and {block.language for block in blocks_of(page)} & {"sh", "python"}
]


# Output that the pages' comments announce.
PRINTED = {
    "README.md": ["507015 ACL_ERROR_RT_AICORE_EXCEPTION"],
    "docs/ecosystem.md": ["'model.layers.0.input_layernorm'", "AclnnCrossEntropyLossBackward0"],
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree."""
    place = tmp_path_factory.mktemp("documents") / "tree"
    copy_tree(place)
    return place


def run_as_printed(page: str, tree: Path, long: bool) -> str:
    """The page's blocks without a language show some of its output."""
    if needs_torch_npu(script_of(page, long)) and not (ROOT / ".venv-npu").exists():
        pytest.skip("no torch_npu: run `make npu`")
    if "torch.compile(" in script_of(page, long) and not inductor.WORKS:
        pytest.skip(inductor.REASON)
    printed = run_page(page, tree, long)
    for block in blocks_of(page):
        assert block.language or block.text in printed, block.text
    return printed


@pytest.mark.parametrize(
    "page", [page if page == "README.md" else pytest.param(page, marks=pytest.mark.test_all) for page in RUN]
)
def test_commands_run_as_printed(page: str, tree: Path) -> None:
    printed = run_as_printed(page, tree, long=False)
    for text in PRINTED.get(page, ()):
        assert text in printed


@pytest.mark.deep
@pytest.mark.parametrize("page", [page for page in RUN if script_of(page, True) != script_of(page, False)])
def test_long_commands_run_as_printed(page: str, tree: Path) -> None:
    run_as_printed(page, tree, long=True)


def test_what_is_not_run_is_in_a_document() -> None:
    """Every entry of the lists still has its command."""
    commands = [command for page in PAGES for block in blocks_of(page) for command in commands_of(block)]
    for beginning in (*LONG, *ELSEWHERE):
        assert any(command.startswith(beginning) for command in commands), beginning


def without_comment(line: str) -> str:
    return line.partition("  // ")[0].strip()


@pytest.mark.parametrize("page", EXCERPTS)
def test_excerpts_are_in_the_tree(page: str) -> None:
    """Line by line; dots stand for omissions."""
    sources = [path for folder in ("csrc", "aclnn_torch", "tests", "benchmarks") for path in (ROOT / folder).rglob("*")]
    lines = {
        without_comment(line)
        for path in sources
        if path.suffix in (".h", ".cpp", ".py", ".txt") and path.name != "test_documents.py"
        for line in path.read_text().splitlines()
    }
    shown = [block for block in blocks_of(page) if block.language in ("cpp", "python", "text")]
    assert len(shown) >= 4
    for block in shown:
        for line in map(without_comment, block.text.splitlines()):
            assert line in ("", "...", "...,") or line in lines, line


def dtypes_in_features() -> dict[tuple[str, str], str]:
    """The cells of the table of dtypes in docs/features.md, by dtype and operator."""
    table = re.search(r"^\| dtype \|.*?(?=^$)", (ROOT / "docs/features.md").read_text(), re.DOTALL | re.MULTILINE)
    assert table
    header, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table[0].splitlines()]
    return {
        (dtype, operator): cell
        for names, *cells in rows
        for dtype in names.split(", ")
        for operator, cell in zip(header[1:], cells, strict=True)
    }


@pytest.mark.parametrize(("dtype", "operator"), dtypes_in_features())
def test_dtypes_in_features_are_those_that_are_accepted(dtype: str, operator: str) -> None:
    """Compared with the operators' pages on the site, which query the host CANN."""
    api = "aclnn" + operator.title().replace("_", "")
    (table,) = (table for table in all_tables() if table.operator.api in (api, f"{api}Loss"))
    code = Dtype[{"bfloat16": "BF16", "float64": "DOUBLE", "float32": "FLOAT"}.get(dtype, dtype.upper())]
    kept = site.accepting_dtype(table, code, {})
    expected = site.words(kept)
    if "cubeMathType" in table.operator.arguments:
        cast = [site.accepting_dtype(table, code, {"cubeMathType": kind}) for kind in (1, 2)]
        if more := [product for product in cast[0] if product not in kept]:
            expected = f"{site.words(cast[0])}; {' and '.join(more)} with `cube_math_type` 1 or 2"
            assert cast[0] == cast[1]
    assert dtypes_in_features()[dtype, operator] == expected


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_left_to_fill_in(document: Path) -> None:
    text = document.read_text()
    assert "@@" not in text
    assert not re.search(r"^(<<<<<<<|>>>>>>>) ", text, re.MULTILINE)  # merge conflicts


def test_readme_is_for_a_person_who_has_two_minutes() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    ten_lines = re.search(r"^## Ten lines\n\n```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert ten_lines and len([line for line in ten_lines[1].splitlines() if line]) == 10


@pytest.mark.parametrize("path", listings.FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_operators_are_listed_as_their_modules_say(path: Path) -> None:
    text = path.read_text()
    assert text == listings.FILES[path](text), "python -m tests.listings writes the lists"


DECLARED = (ROOT / "pyproject.toml").read_text()


def series_of_torch() -> list[str]:
    """The series that the package declares."""
    found = re.search(r'^requires = .*"torch>=2\.(\d+),<2\.(\d+)"', DECLARED, re.MULTILINE)
    assert found
    return [f"2.{minor}" for minor in range(int(found[1]), int(found[2]))]


def test_compatibility_in_readme_is_what_the_package_declares() -> None:
    text = (ROOT / "README.md").read_text()
    python = re.search(r'^requires-python = ">=([\d.]+)"$', DECLARED, re.MULTILINE)
    assert python and f"\n| Python | {python[1]} or newer |" in text
    assert f"\n| torch | {series_of_torch()[0]} to {series_of_torch()[-1]} |" in text


def test_the_ends_of_the_range_were_tried() -> None:
    rows = re.findall(r"^\| (2\.\d+)\.\d+ \|(.*)$", (ROOT / "docs/compatibility.md").read_text(), re.MULTILINE)
    tried = [series for series, _ in rows]
    assert set(tried) <= set(series_of_torch())
    assert (tried[0], tried[-1]) == (series_of_torch()[0], series_of_torch()[-1])
    for _, results in rows:
        assert " passed" in results and not re.search("failed|error|not build", results)


def test_every_operator_has_a_page() -> None:
    assert {path.stem for path in (ROOT / site.OPERATORS).glob("*.md")} == set(site.families())


def test_every_document_is_listed_once() -> None:
    """docs/README.md has each page in one group; the documents' site uses its groups."""
    listed = [page for pages in site.groups().values() for page in pages]
    others = {"docs/README.md"}
    assert sorted(listed) == sorted({str(path.relative_to(ROOT)) for path in DOCUMENTS} - others)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git knows which folders are the tree's")
def test_the_layout_has_every_folder() -> None:
    """CONTRIBUTING.md's table: the tree's folders, those of csrc, and those of its two largest."""
    command = ["git", "ls-files"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    folders = {"/".join(file.split("/")[:depth]) for file in files for depth in (1, 2, 3) if file.count("/") >= depth}
    divided = {"csrc", "csrc/cann", "csrc/host_cann"}
    asked_for = {folder for folder in folders if folder.rpartition("/")[0] in {"", *divided}} - divided
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## Layout")[2].partition("\n## ")[0]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall("`(.*?)`", row)}
    assert asked_for - named == set()


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        named = set(re.findall(r"(?:^|`)make ([a-z0-9-]+)", document.read_text(), re.MULTILINE))
        assert named <= targets, document


def anchors_of(document: Path) -> set[str]:
    """The anchors of headings on GitHub and on the documents' site."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", link):  # an external address
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link

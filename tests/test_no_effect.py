"""docs/emulation/runtime.md lists the functions that succeed without effect; compared with the sources.

A function has no effect if its body, and the helpers of its file that it calls, only check their arguments and then
return success.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aten_ops.sweep import LIBRARY, ROOT

SOURCES = [file for folder in ("host_cann", "cann") for file in sorted((ROOT / "csrc" / folder).rglob("*.cpp"))]
SECTION = "## Functions that succeed without effect"

SUCCESS = r"(?:ACL_SUCCESS|HCCL_SUCCESS|OK|0|nullptr|status)"
# Calls without effect: in conditions, and as statements.
LOOKS = re.compile(r"(?:find|require|is|has|check)_\w+|null_argument|fail|contains|empty|(?:reinterpret|static)_cast")


def code_of(text: str) -> str:
    """A source without comments, and with empty strings."""
    pattern = r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/'
    return re.sub(pattern, lambda found: '""' if found[1] else " ", text, flags=re.DOTALL)


def body_at(text: str, begin: int) -> str:
    """The text between the brace before a position and its closing brace."""
    depth, end = 1, begin
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return " ".join(text[begin : end - 1].split())


def definitions(text: str) -> dict[str, str]:
    """The bodies of the functions that a source defines, by name."""
    found = re.finditer(r"^[A-Za-z_][\w &*:<>,]*[ *&](\w+)\([^;{}]*\)\s*(?:noexcept\s*)?\{", text, re.MULTILINE)
    return {each[1]: body_at(text, each.end()) for each in found}


def statements(body: str) -> Iterator[str]:
    """The statements of a body, including those of a lambda passed to guarded()."""
    if match := re.fullmatch(r"(.*?)(?:return )?guarded\(\w+, \[&\](?:\(\) -> \w+)? \{ ?(.*?) ?\}\);", body):
        body = match[1] + match[2]
    depth, statement = 0, ""
    for letter in body:
        statement += letter
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(letter, 0)
        if depth == 0 and letter in ";}":
            yield statement.strip().rstrip(";")
            statement = ""


def only_looks(expression: str) -> bool:
    return all(LOOKS.fullmatch(call) for call in re.findall(r"(\w+)(?:<[^()]*>)?\(", expression) if call != "if")


def is_inert(statement: str, helpers: dict[str, str]) -> bool:
    """True if a statement only checks, declares or returns success."""
    if re.fullmatch(rf"return {SUCCESS}|constexpr .*|(?!return)[\w:<>]+ \w+|\w+ status = {SUCCESS}", statement):
        return True
    if check := re.fullmatch(r"if \((.*?)\) (?:\{ )?return ([^;]*)(?:; \})?", statement):
        return not re.fullmatch(SUCCESS, check[2]) and only_looks(statement.replace("return", ""))
    call = re.fullmatch(r"(?:return )?(\w+)\(.*\)", statement)
    if not call:
        return False
    if re.match("find_|require_", call[1]):
        return True
    others = {name: body for name, body in helpers.items() if name != call[1]}  # an overload is another function
    return call[1] in helpers and does_nothing(helpers[call[1]], others)


def does_nothing(body: str, helpers: dict[str, str]) -> bool:
    return all(is_inert(statement, helpers) for statement in statements(body))


@functools.cache
def exported() -> set[str]:
    """The functions of the prefix's libraries."""
    command = ["nm", "-D", "--defined-only", *sorted(LIBRARY.parent.glob("*.so"))]
    return set(re.findall(r" T (\w+)\n", subprocess.run(command, capture_output=True, text=True, check=True).stdout))


@functools.cache
def found_in_sources() -> set[str]:
    found = set()
    for file in SOURCES:
        bodies = definitions(code_of(file.read_text()))
        found |= {name for name, body in bodies.items() if name in exported() and does_nothing(body, bodies)}
    return found


def listed(heading: str) -> set[str]:
    """The functions in the first column of a section's table."""
    text = (
        Path(ROOT / "docs" / "emulation" / "runtime.md").read_text().partition(f"\n{heading}\n")[2].partition("\n#")[0]
    )
    rows = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")]
    return {name for row in rows[1:] for name in row.split(", ")}


def test_the_list_is_what_the_sources_have() -> None:
    assert listed(SECTION) == found_in_sources()


def test_what_is_remembered_is_there() -> None:
    """Functions listed as storing or returning a value without effect are exported by the libraries, too."""
    assert listed("### What is kept without effect") <= exported() - found_in_sources()


@pytest.mark.parametrize(
    ("body", "nothing"),
    [
        ("return ACL_SUCCESS;", True),
        ("", True),
        ("return check(1);", True),
        ("if (is_there(x)) return fail(1); return 0;", True),
        ("return guarded(kApi, [&]() -> aclError { if (x == nullptr) return null_argument(kApi); return OK; });", True),
        ("*x = 1; return 0;", False),
        ("state = x; return 0;", False),
        ("return start(1);", False),
        ("if (state.exchange(true)) return fail(1); return 0;", False),
        ("return refuse(kApi);", False),
        ("if (x) return 0; return fail(1);", False),
    ],
)
def test_bodies_are_told_apart(body: str, nothing: bool) -> None:
    helpers = {"check": "require_it(x); return status;", "start": "worker().push(x); return 0;"}
    assert does_nothing(body, helpers) == nothing

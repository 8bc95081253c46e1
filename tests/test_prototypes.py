"""Every function that a program can call here has the parameters published by CANN."""

from __future__ import annotations

import re

from aclnn_torch.host import PREFIX
from tests.cabi import exported_operators, header_text
from tests.published import OF_FORMATS, SINCE, c_type, functions, is_extension, refused, refused_to_torch_npu, rows

LIBRARY = PREFIX / "lib64" / "libopapi.so"

# Functions that torch_npu calls and no public repository declares.
UNPUBLISHED = {
    "aclnnFusedAdam",
    "aclnnMhcPreV2",
    "aclnnMoeReRouting",
    "aclnnTopkV2",
}


def declared() -> dict[str, list[tuple[str, str]]]:
    """The C type and the name of each parameter of stage 1, for functions with a header."""
    found = {}
    for name, parameters in re.findall(r"(aclnn\w+)GetWorkspaceSize\(([^)]*)\)\s*;", header_text()):
        pairs = [re.fullmatch(r"(.*?)(\w+)", " ".join(text.split())) for text in parameters.split(",")]
        found[name] = [(pair[1].strip(), pair[2]) for pair in pairs if pair][:-2]
    return found


def ours() -> dict[str, list[tuple[str, str]]]:
    """The parameters of every function, from its header or its row; of the others from the table of both."""
    of_rows = {name: [(c_type(kind), argument) for kind, argument in row] for name, row in rows(LIBRARY).items()}
    of_table = {name: list(functions()[name].parameters) for name in OF_FORMATS | refused()}
    return declared() | of_rows | of_table


def as_passed(c_type: str) -> str:
    """The type in the ABI: without the constness of pointers and values."""
    return re.sub(r"\s|const\b", "", c_type)


def test_every_function_is_known() -> None:
    """The comparison covers every exported function."""
    refused_here = {name for name in refused_to_torch_npu() if not name.endswith("GetMaxWorkspaceSize")}
    assert exported_operators(LIBRARY) == set(ours()) | refused_here
    assert not set(ours()) & set(refused_to_torch_npu())
    assert {name for name in set(ours()) - set(functions()) if not is_extension(name)} == UNPUBLISHED
    assert not any(is_extension(name) for name in functions())


def test_parameters_are_the_published_ones() -> None:
    different = {}
    here, there = ours(), functions()
    for name in set(here) & set(there):
        mine = [as_passed(c_type) for c_type, _ in here[name]]
        published = [as_passed(c_type) for c_type, _ in there[name].parameters]
        if mine != published:
            different[name] = (mine, published)
    assert different == {}


def test_headers_say_which_functions_an_older_cann_lacks() -> None:
    said = {"9.0": "Since CANN 9.0.", "9.1": "Since CANN 9.1.", "later": "Not in CANN 9.1 yet."}
    found = {}
    for path in sorted((PREFIX / "include" / "aclnnop").glob("*.h")):
        pattern = r"/\*((?:[^*]|\*(?!/))*)\*/\s*(?:ACLNN_API|ACL_FUNC_VISIBILITY)\s+aclnnStatus\s+(\w+)GetWorkspaceSize"
        for comment, name in re.findall(pattern, path.read_text()):
            found[name] = next((since for since, words in said.items() if words in " ".join(comment.split())), "")
    table = functions()
    assert {function.since for function in table.values()} == set(SINCE)
    published = found.keys() & table.keys()
    assert {"aclnnSparseFlashMla", "aclnnAdd"} <= published
    assert {name: found[name] for name in published} == {
        name: table[name].since if table[name].since in said else "" for name in published
    }

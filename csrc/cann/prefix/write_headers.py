"""Writes the headers of the operators: copies of those written by hand, and headers of a library's other functions.

Functions that belong to a header written by hand are appended to its copy.

``write_headers.py NM LIBRARY FOLDER``: functions.tsv has the name of each function's header, the parameters of stage 1
as CANN publishes them, and a description; NM lists the functions of LIBRARY. Their headers are written to
FOLDER/aclnnop, with aclnn_util.h, which CANN's own headers include; level2 has every header once more, under the path
of older releases.
"""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Headers written by hand: of operators that are also in the embedded library, and of functions with one stage.
BY_HAND = sorted(
    path for folder in (HERE.parents[1] / "host_cann", HERE) for path in (folder / "include" / "aclnnop").glob("*.h")
)
WIDTH = 100

# The end of headers that are written by hand.
END = "\n#ifdef __cplusplus\n}\n#endif\n#endif\n"
HEADER = """\
/* {title} */
#ifndef {guard}
#define {guard}

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {{
#endif
{functions}
#ifdef __cplusplus
}}
#endif
#endif
"""
# What a comment says of functions that are not in CANN 8.5.
SINCE = {"9.0": " Since CANN 9.0.", "9.1": " Since CANN 9.1.", "later": " Not in CANN 9.1 yet."}
UTIL = """\
/* What CANN's operator headers put before a function. */
#ifndef ACLNN_TORCH_ACLNN_UTIL_H_
#define ACLNN_TORCH_ACLNN_UTIL_H_

#ifdef __cplusplus
#include <array> /* CANN's headers bring it, and programs count on that. */
#endif

#include "aclnn/aclnn_base.h"

#ifndef ACLNN_API
#define ACLNN_API ACL_FUNC_VISIBILITY
#endif

#endif
"""


def exported(nm: str, library: str, stage: str = "GetWorkspaceSize") -> set[str]:
    """The two-stage functions of a library; or those with another variant of stage 1, which `stage` names."""
    lines = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return set(re.findall(rf" (acl\w+){stage}$", lines, re.MULTILINE))


def declared() -> set[str]:
    """The functions of the headers that are written by hand."""
    text = "".join(path.read_text() for path in BY_HAND)
    return set(re.findall(r"(aclnn\w+)GetWorkspaceSize\(", text))


def declaration(name: str, parameters: list[str]) -> str:
    """The declaration of a function in a header."""
    whole = (parameter.replace(" ", "\N{NO-BREAK SPACE}") for parameter in parameters)
    text = f"ACLNN_API aclnnStatus {name}({', '.join(whole)});"
    lines = textwrap.wrap(text, WIDTH, subsequent_indent="    ", break_long_words=False)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def both_stages(row: dict[str, str], with_largest: bool) -> str:
    """The declarations and the description of a function, with that of its largest workspace if it has one."""
    name = row["function"]
    first = [*row["parameters"].split(", "), "uint64_t* workspaceSize", "aclOpExecutor** executor"]
    second = ["void* workspace", "uint64_t workspaceSize", "aclOpExecutor* executor", "aclrtStream stream"]
    stages = [declaration(f"{name}GetWorkspaceSize", first), declaration(name, second)]
    if with_largest:
        stages.append(declaration(f"{name}GetMaxWorkspaceSize", first))
    since = SINCE.get(row["since"], "")
    comment = "\n".join(textwrap.wrap(f"/* {row['computes']}.{since} */", WIDTH, subsequent_indent="   "))
    return "\n".join(("", comment, *stages, ""))


def headers(nm: str, library: str) -> dict[str, str]:
    """The text of each header by its name."""
    with (HERE / "functions.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    wanted = exported(nm, library) - declared()
    largest = exported(nm, library, "GetMaxWorkspaceSize")
    by_header: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        if row["function"] in wanted:
            by_header[row["header"]].append(row)
    texts = {path.name: path.read_text() for path in BY_HAND} | {"aclnn_util.h": UTIL}
    for header, functions in by_header.items():
        declarations = "".join(both_stages(row, row["function"] in largest) for row in functions)
        if header in texts:
            text, end, _ = texts[header].rpartition(END)
            assert end, f"{header} does not end as the others do"
            added = declarations.replace("ACLNN_API", "ACL_FUNC_VISIBILITY")
            texts[header] = text + added + end
            continue
        names = ", ".join(row["function"] for row in functions)
        texts[header] = HEADER.format(
            title="\n   ".join(textwrap.wrap(f"{names}; written by {Path(__file__).name}.", WIDTH - 6)),
            guard=f"ACLNN_TORCH_{re.sub(r'[^A-Z0-9]', '_', header.upper())}_",
            functions=declarations,
        )
    return texts


def main(nm: str, library: str, folder: str) -> None:
    """Writes all headers; those of an earlier library are removed."""
    target = Path(folder) / "aclnnop"
    shutil.rmtree(target, ignore_errors=True)
    (target / "level2").mkdir(parents=True)
    texts = headers(nm, library)
    texts |= {f"level2/{name}": f'#include "../{name}"\n' for name in texts}
    for name, text in texts.items():
        (target / name).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])

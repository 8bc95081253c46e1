"""Writes docs/dtypes.md, what the sweep of the functions on ATen found, and docs/functions.md, all that are published.

The command is `python -m tests.aten_ops.report`.
"""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable

from tests.aten_ops.limits import lacks
from tests.aten_ops.sweep import DTYPES, LIBRARY, ROOT, Result, Tensor, is_output, main_dtype, samples, sweep
from tests.cabi import exported_operators
from tests.published import OF_FORMATS, functions, named_operators, refused, rows

PAGE = ROOT / "docs" / "dtypes.md"
FUNCTIONS = ROOT / "docs" / "functions.md"

# Their numbers of different dtypes have nothing in common.
RANDOM = {
    "aclnnInplaceNormal",
    "aclnnInplaceRandom",
    "aclnnInplaceRandomWithoutFromTo",
    "aclnnInplaceRandomWithoutFromToTensor",
    "aclnnInplaceUniform",
    "aclnnNormalFloatFloat",
    "aclnnNormalFloatTensor",
    "aclnnNormalTensorFloat",
    "aclnnNormalTensorTensor",
    "aclnnSimThreadExponential",
    "aclnnStatelessExponentialTensor",
}

INTRODUCTION = """\
# Dtypes of the functions on ATen

This page lists the functions of the host CANN that ATen computes. `make conformance` calls each of them with every
dtype and writes the page. A function's main tensors take the dtype; indices are INT32 and INT64. The host CANN either
computes a call or refuses it in stage 1 with 161002; no call fails in stage 2. Results in FLOAT16 and BFLOAT16 are
the result in FLOAT, rounded once (except for functions of random numbers). The last column has the dtypes that CANN's
document lists and the host CANN does not compute; in-place functions with integers there are those whose result is a
floating-point number. The product is `host`.

| Function | Computed | Refused, though documented |
|---|---|---|
"""

OF_FUNCTIONS = """\
# Functions

This page lists the two-stage functions that CANN's public repositories document, {count} in number, and which of them
the host CANN's `libopapi.so` has, for C and C++ programs: {present}. `make conformance` writes it. The functions marked
"checked" have CANN's own checks, status codes and texts ([conformance.md](conformance.md)); those marked "computed"
are computed by ATen ([emulation.md](emulation.md#operators-of-aten), [dtypes.md](dtypes.md)); those marked "partial",
too, but for what is named there, which they refuse or do otherwise, as that page says. Stage 1 of those marked
"refused" ends with 361001 and the reason; the others are not there, so that a program that calls them does not link.
A header is included as `aclnnop/<header>`. The last section has the operators that programs call by name.
"""

OF_NAMES = """
## Operators called by name

`aclopCompileAndExecute` of `libacl_op_compiler.so` computes these {count} operators, on ATen. Their names, inputs and
attributes are those of CANN's operator prototypes, as torch_npu calls them.

{names}.
"""

# Groups of dtypes that the page writes in one word.
GROUPS = {
    "all floating-point types": ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE"),
    "INT8 to INT64, UINT8": ("INT8", "INT16", "INT32", "INT64", "UINT8"),
    "UINT16 to UINT64": ("UINT16", "UINT32", "UINT64"),
    "COMPLEX64, COMPLEX128": ("COMPLEX64", "COMPLEX128"),
}


def named(dtypes: Iterable[str]) -> str:
    """The dtypes in words, in the order of DTYPES."""
    given = set(dtypes)
    left = [*(dtype for dtype in DTYPES if dtype in given), *sorted(given - set(DTYPES))]
    words = []
    while left:
        for word, group in GROUPS.items():
            if left[0] == group[0] and set(group) <= set(left):
                words.append(word)
                left = [dtype for dtype in left if dtype not in group]
                break
        else:
            words.append(left.pop(0))
    return ", ".join(words)


def documented(name: str, arguments: dict[str, object]) -> set[str]:
    """The dtypes that the document has for every main tensor of a sample; empty if it has no table of them."""
    published = functions().get(name)
    if published is None:
        return set()
    main = main_dtype(name, arguments)
    found = []
    for (kind, argument), (_, parameter) in zip(rows(LIBRARY)[name], published.parameters, strict=True):
        value = arguments[argument]
        tensors = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, Tensor)]
        if not is_output(kind) and main in (each.dtype for each in tensors) and parameter in published.dtypes:
            found.append(set(published.dtypes[parameter]))
    return set.intersection(*found) if found else set()


def page(results: list[Result]) -> str:
    """The page for these results."""
    computed: dict[str, set[str]] = defaultdict(set)
    refused: dict[str, set[str]] = defaultdict(set)
    for result in results:
        (computed if result.verdict == "computed" else refused)[result.function].add(result.dtype)
    lines = []
    for name, arguments in dict(samples()).items():
        lacking = (documented(name, arguments) & refused[name]) - computed[name]
        lines.append(f"| {name} | {named(computed[name])} | {named(lacking)} |")
    return INTRODUCTION + "\n".join(lines) + "\n"


def functions_page() -> str:
    """The page of all published functions."""
    here = exported_operators(LIBRARY) - refused()
    computed, lacking = set(rows(LIBRARY)) | OF_FORMATS, lacks()
    present = len(here & functions().keys())
    parts = [OF_FUNCTIONS.format(count=len(functions()), present=present)]
    for repository in sorted({function.repository for function in functions().values()}):
        of_it = {name: each for name, each in functions().items() if each.repository == repository}
        parts.append(f"\n## {repository}\n\n{len(here & of_it.keys())} of {len(of_it)} are here.\n")
        parts.append("| Function | Header | Computes | Here |\n|---|---|---|---|")
        for name, each in of_it.items():
            state = "computed" if name in computed else "checked" if name in here else ""
            if each.refused:
                state = f"refused: {each.refused}"
            if name in lacking:
                state = f"partial: {', '.join(lacking[name])}"
            computes = re.sub(r"([|*_<>])", r"\\\1", each.computes)
            parts.append(f"| {name} | {each.header} | {computes} | {state} |")
    names = sorted(named_operators(LIBRARY))
    parts.append(OF_NAMES.format(count=len(names), names=textwrap.fill(", ".join(names), 120)))
    return "\n".join(parts)


if __name__ == "__main__":
    FUNCTIONS.write_text(functions_page())
    PAGE.write_text(page(sweep()))

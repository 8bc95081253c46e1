"""The dtypes that each function on ATen computes, and the site's pages of functions and their dtypes.

`dtypes.tsv` holds the sweep's results. `python -m tests.aten_ops.report` repeats the sweep and writes it. The pages are
made from that table, the table of published functions and the library, without calls.
"""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.aten_ops.limits import lacks
from tests.aten_ops.sweep import DTYPES, LIBRARY, Result, Tensor, is_output, main_dtype, samples, sweep
from tests.published import OF_FORMATS, functions, named_operators, refused, rows

TABLE = Path(__file__).with_name("dtypes.tsv")

# Random numbers of different dtypes are unrelated.
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

OF_DTYPES = """\
# Dtypes of the functions on ATen

This page lists the functions of the host CANN that ATen computes, with the dtypes that their main tensors may have;
indices are INT32 and INT64. `make conformance` calls each function with every dtype, on the product `host`. The host
CANN either computes a call or refuses it in stage 1 with 161002; no call fails in stage 2. Results in FLOAT16 and
BFLOAT16 are the result in FLOAT, rounded once (except for functions of random numbers). The last column has the dtypes
that CANN's document lists and the host CANN does not compute. Where it lists integers for an in-place function, the
function's result is a floating-point number.

| Function | Computed | Refused, though documented |
|---|---|---|
"""

OF_FUNCTIONS = """\
# Functions

CANN's public repositories document {count} two-stage functions. The host CANN's `libopapi.so` computes {computed} of
them; stage 1 of the others ends with 361001 and the reason. The last column says which kind a function is:

- *checked*: it has CANN's own checks, status codes and texts ([conformance](conformance.md)).
- *computed*: ATen computes it ([how](emulation/rows.md), [its dtypes](dtypes.md)).
- *partial*: as *computed*, but for the parts of its document that are named.
- *refused*: the reason is given.

*Since* is the first CANN whose public sources have the function. They begin with 8.5, so that older functions have 8.5,
too; *later* functions are in no release yet (August 2026); those that the operator repositories lack have none.

A header is included as `aclnnop/<header>`. The [last section](#operators-called-by-name) has the operators that
programs call by name.
"""

OF_NAMES = """
## Operators called by name

`aclopCompileAndExecute` of `libacl_op_compiler.so` computes these {count} operators, on ATen. Their names, inputs and
attributes are those of CANN's operator prototypes, as torch_npu calls them.

{names}.
"""

# Groups of dtypes for which the page has one word.
GROUPS = {
    "all floating-point types": ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE"),
    "INT8 to INT64, UINT8": ("INT8", "INT16", "INT32", "INT64", "UINT8"),
    "UINT16 to UINT64": ("UINT16", "UINT32", "UINT64"),
    "COMPLEX64, COMPLEX128": ("COMPLEX64", "COMPLEX128"),
}


def in_order(dtypes: Iterable[str]) -> list[str]:
    """The dtypes in the order of DTYPES, then the others."""
    given = set(dtypes)
    return [*(dtype for dtype in DTYPES if dtype in given), *sorted(given - set(DTYPES))]


def named(dtypes: Iterable[str]) -> str:
    """The dtypes as text."""
    left = in_order(dtypes)
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
    """The documented dtypes that every main tensor of a sample has; empty without a table."""
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


def table(results: Iterable[Result]) -> str:
    """dtypes.tsv for these results: one function per line, with the dtypes that it computes."""
    computed: dict[str, set[str]] = defaultdict(set)
    for result in results:
        computed[result.function] |= {result.dtype} if result.verdict == "computed" else set()
    lines = [f"{name}\t{' '.join(in_order(dtypes))}" for name, dtypes in computed.items()]
    return "\n".join(["function\tcomputed", *lines]) + "\n"


def computed_dtypes() -> dict[str, set[str]]:
    """The dtypes that each function computes, from dtypes.tsv."""
    lines = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
    return {name: set(dtypes.split()) for name, dtypes in lines}


def dtypes_page() -> str:
    """The page of the functions on ATen and their dtypes."""
    tried: dict[str, set[str]] = defaultdict(lambda: set(DTYPES))
    for name, arguments in samples():
        tried[name].add(main_dtype(name, arguments))
    sampled = dict(samples())
    lines = []
    for name, computed in computed_dtypes().items():
        lacking = documented(name, sampled[name]) & tried[name] - computed
        lines.append(f"| {name} | {named(computed)} | {named(lacking)} |")
    return OF_DTYPES + "\n".join(lines) + "\n"


def state_of(name: str) -> str:
    """The page's text for the host CANN's support of a published function."""
    if name in refused():
        return f"refused: {functions()[name].refused}"
    if name in lacks():
        return f"partial: {', '.join(lacks()[name])}"
    return "computed" if name in rows(LIBRARY) or name in OF_FORMATS else "checked"


def functions_page() -> str:
    """The page of all published functions."""
    parts = [OF_FUNCTIONS.format(count=len(functions()), computed=len(functions()) - len(refused()))]
    for repository in sorted({function.repository for function in functions().values()}):
        of_it = {name: each for name, each in functions().items() if each.repository == repository}
        parts.append(f"\n## {repository}\n\n{len(of_it.keys() - refused())} of {len(of_it)} are computed.\n")
        parts.append("| Function | Header | Since | Computes | Here |\n|---|---|---|---|---|")
        for name, each in of_it.items():
            computes = re.sub(r"([|*_<>])", r"\\\1", each.computes)
            parts.append(f"| {name} | {each.header} | {each.since} | {computes} | {state_of(name)} |")
    names = sorted(named_operators(LIBRARY))
    parts.append(OF_NAMES.format(count=len(names), names=textwrap.fill(", ".join(names), 120)))
    return "\n".join(parts)


if __name__ == "__main__":
    TABLE.write_text(table(sweep()))
    print(f"written to {TABLE}")

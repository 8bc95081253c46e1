"""The sources of the tables' rows: each row names one, and `make conformance` counts the kinds.

For each number of a check, a table names the function of the published sources that makes it; for a row without a
number, the function that decides it; a row may have its own source. A row in which the host deliberately differs from
CANN is the project's own rule, whatever CANN's source: the DEVIATIONS of its table name the section with
the reason.

`published_functions.tsv` lists the definitions in each cited file at the commit that was read: functions, methods,
macros.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

PUBLISHED = Path(__file__).with_name("published_functions.tsv")


def _published() -> tuple[dict[str, str], dict[tuple[str, str], frozenset[str]]]:
    """The commit of each repository, and the definitions in each of its files."""
    revisions: dict[str, str] = {}
    definitions = {}
    with PUBLISHED.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            assert revisions.setdefault(row["repository"], row["commit"]) == row["commit"]
            definitions[row["repository"], row["file"]] = frozenset(row["defines"].split())
    return revisions, definitions


# The commits that were read, and the definitions in each file.
REVISIONS, DEFINITIONS = _published()


class Kind(StrEnum):
    """The kind of a row's source."""

    CODE = "published source"
    DOCUMENT = "document"
    INFERENCE = "inference"
    DEVICE = "measured on a device"
    OWN = "own rule"


class Source(NamedTuple):
    """A kind, and the location: repository, file and function, the name of a document, or that of a report."""

    kind: Kind
    where: str


def code(repository: str, file: str, *functions: str) -> Source:
    """Functions of a published file."""
    return Source(Kind.CODE, ", ".join((repository, file, *functions)))


def ops_nn(file: str, *functions: str) -> Source:
    """The same for the operators' repository."""
    return code("hicann/ops-nn", file, *functions)


def document(name: str) -> Source:
    """A page of ops-nn's documents, by its file."""
    return Source(Kind.DOCUMENT, f"hicann/ops-nn, {name}")


def own(section: str) -> Source:
    """The project's own rule, by a page below docs and its section."""
    return Source(Kind.OWN, section)


def unknown(source: Source) -> str:
    """The parts of a source that the published files lack; empty if none."""
    if source.kind not in (Kind.CODE, Kind.DOCUMENT):
        return ""
    repository, file, *functions = source.where.split(", ")
    if (repository, file) not in DEFINITIONS:
        return f"{repository} has no file {file}"
    if source.kind == Kind.CODE and not functions:
        return f"{file}: no function is named"
    defined = DEFINITIONS[repository, file]
    names = defined | {name.rpartition("::")[2] for name in defined}
    return ", ".join(f"{file} does not define {function}" for function in functions if function not in names)


UNNUMBERED = "-"  # the number of a row without a check


class Sources(NamedTuple):
    """The sources of a table's rows: by check number and, for rows without one, by condition."""

    checks: dict[str, Source]
    rest: Source  # of all other numbers
    unnumbered: Mapping[str, Source] = MappingProxyType({})  # by a regular expression of the conditions

    def of(self, number: str, condition: str) -> Source:
        """The source of a row."""
        if number != UNNUMBERED:
            return self.checks.get(number, self.rest)
        for pattern, source in self.unnumbered.items():
            if re.fullmatch(pattern, condition):
                return source
        raise LookupError(f"no source for a row without a number: {condition}")


# ---- Shared by the operators of a family

# executor and workspaceSize of the handwritten operators.
RESULTS = code("hicann/opbase", "include/nnopbase/opdev/op_dfx.h", "L2_DFX_PHASE_1")
# Generated checks: first the tensors, then executor, last workspaceSize.
GENERATED_NULLS = code(
    "hicann/opbase",
    "tests/nnopbase/common/depends/op/aclnn_bninference_d_kernel_stub.cpp",
    "aclnnBninferenceDKernelGetWorkspaceSize",
)
GENERATED_RESULTS = code(
    "hicann/opbase", "src/nnopbase/individual_op/api/individual_op_api.cpp", "NnopbaseRunForWorkspace"
)
_EXECUTOR = "src/nnopbase/individual_op/executor/indv_executor.cpp"
GENERATED_DTYPES = code("hicann/opbase", _EXECUTOR, "CheckSocVersionAndParam")
NO_LAUNCH = code("hicann/opbase", _EXECUTOR, "NnopbaseExecutorMatchCache", "NnopbaseExecutorDoTiling")


# Checks that several operators share.
NULLS_OF_2 = ops_nn("common/inc/op_api/level2_base.h", "CheckNotNull2Tensor")
NULLS_OF_3 = ops_nn("common/inc/op_api/level2_base.h", "CheckNotNull3Tensor")
DTYPES_OF_2 = ops_nn("common/inc/op_api/level2_base_caculation.h", "CheckDtypeValidActivation")
SHAPES_OF_2 = ops_nn("common/inc/op_api/level2_base.h", "CheckSameShapeNotlimit1In1Out")


def by_hand(
    file: str,
    checks: dict[str, str | Source],
    unnumbered: dict[str, str | Source],
    rest: str = "CheckParams",
    nulls: str | Source = "CheckNotNull",
) -> Sources:
    """For an operator whose checker is one file: the function that makes each check, and the one that decides about
    rows without a number. A property without a check rests on the function that calls all of them."""

    def place(function: str | Source) -> Source:
        return ops_nn(file, function) if isinstance(function, str) else function

    return Sources(
        {"1": RESULTS, **{number: place(function) for number, function in {"2": nulls, **checks}.items()}},
        place(rest),
        {pattern: place(function) for pattern, function in unnumbered.items()},
    )


def generated(tiling: str, checks: dict[str, Source], *functions: str) -> Sources:
    """For an operator that CANN generates, whose tiling is one file."""
    shared = {"1": GENERATED_NULLS, "2": GENERATED_RESULTS}
    return Sources({**shared, **checks}, ops_nn(tiling, *functions))

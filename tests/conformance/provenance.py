"""Where the rows of the tables come from: each names a source, and `make conformance` counts the kinds.

A table says for the number of a check which function of the published sources makes it; a row may name a source of its
own. A row in which the host differs from CANN on purpose is the project's own rule, whatever CANN's source says: its
reason stands in docs/emulation.md (report.DEVIATIONS).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

# The commits that were read.
REVISIONS = {"hicann/ops-nn": "e5c3fa93", "hicann/opbase": "0e247b8c"}


class Kind(StrEnum):
    """What a row rests on."""

    CODE = "published source"
    DOCUMENT = "document"
    INFERENCE = "inference"
    DEVICE = "measured on a device"
    OWN = "own rule"


class Source(NamedTuple):
    """A kind, and where to look: repository, file and function, the name of a document, or that of a report."""

    kind: Kind
    where: str


def code(repository: str, file: str, *functions: str) -> Source:
    """Functions of a published file."""
    assert repository in REVISIONS
    return Source(Kind.CODE, ", ".join((repository, file, *functions)))


def ops_nn(file: str, *functions: str) -> Source:
    """The same of the operators' repository."""
    return code("hicann/ops-nn", file, *functions)


def document(name: str) -> Source:
    """A page of ops-nn's documents, by its file's name."""
    return Source(Kind.DOCUMENT, f"hicann/ops-nn, {name}")


def own(section: str) -> Source:
    """The project's own rule, by its section of docs/emulation.md."""
    return Source(Kind.OWN, f"emulation.md#{section}")


class Sources(NamedTuple):
    """Of a table's rows, by the numbers of its checks."""

    checks: dict[str, Source]
    rest: Source  # of all other numbers

    def of(self, number: str) -> Source:
        """The source of a check."""
        return self.checks.get(number, self.rest)


# ---- what the operators of a family share

# executor and workspaceSize of the operators that are written by hand.
RESULTS = code("hicann/opbase", "include/nnopbase/opdev/op_dfx.h", "L2_DFX_PHASE_1")
# What the generator makes: first the tensors are looked at, then executor, last workspaceSize.
GENERATED_NULLS = code(
    "hicann/opbase",
    "tests/nnopbase/common/depends/op/aclnn_bninference_d_kernel_stub.cpp",
    "NNOPBASE_ASSERT_NOTNULL_RETVAL",
)
GENERATED_RESULTS = code(
    "hicann/opbase", "src/nnopbase/individual_op/api/individual_op_api.cpp", "NnopbaseRunForWorkspace"
)
_EXECUTOR = "src/nnopbase/individual_op/executor/indv_executor.cpp"
GENERATED_DTYPES = code("hicann/opbase", _EXECUTOR, "CheckSocVersionAndParam")
NO_LAUNCH = code("hicann/opbase", _EXECUTOR, "NnopbaseExecutorMatchCache", "NnopbaseExecutorDoTiling")


def by_hand(file: str, checks: dict[str, str], rest: str = "CheckParams", nulls: str = "CheckNotNull") -> Sources:
    """Of an operator whose checker is one file: which of its functions makes which check."""
    return Sources(
        {
            "1": RESULTS,
            "2": ops_nn(file, nulls),
            **{number: ops_nn(file, function) for number, function in checks.items()},
        },
        ops_nn(file, rest),
    )


def generated(tiling: str, checks: dict[str, Source], *functions: str) -> Sources:
    """Of an operator that CANN generates, whose tiling is one file."""
    shared = {"1": GENERATED_NULLS, "2": GENERATED_RESULTS}
    return Sources({**shared, **checks}, ops_nn(tiling, *functions))

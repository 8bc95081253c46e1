"""The published interface of CANN's operator libraries as facts, and the signatures of the host CANN's rows.

`csrc/cann/prefix/functions.tsv` lists the two-stage functions of the public repositories with the parameters of stage 1
and, if the document has a table of them, the dtypes of each tensor (on any product). Headers are generated from it,
too. The signatures of the rows are in a section of libopapi.so, written by the macro that declares a row.
"""

from __future__ import annotations

import csv
import functools
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).parents[1] / "csrc" / "cann" / "prefix" / "functions.tsv"

# The C types of the kinds of arguments in csrc/cann/rows/engine/kinds.h, by suffix of their names.
KINDS = {
    "InOuts": "aclTensorList*",
    "InOut": "aclTensor*",
    "Outs": "aclTensorList*",
    "Out": "aclTensor*",
    "Ins": "const aclTensorList*",
    "In": "const aclTensor*",
    "Numbers": "const aclScalarList*",
    "Number": "const aclScalar*",
    "Ints": "const aclIntArray*",
    "Floats": "const aclFloatArray*",
    "Bools": "const aclBoolArray*",
    "Dtype": "aclDataType",
}


def c_type(kind: str) -> str:
    """The C type of a kind of argument; C types are returned unchanged."""
    return next((found for end, found in KINDS.items() if kind.endswith(end)), kind)


# Public sources begin with CANN 8.5, so that older functions are of 8.5, too. "later" is for what no release has (as of
# August 2026), "" for what the operator repositories do not have.
SINCE = ("8.5", "9.0", "9.1", "later", "")


@dataclass(frozen=True)
class Function:
    """One published function: its header, and the C type and name of each parameter except the last two."""

    header: str
    repository: str
    since: str  # the first CANN whose public sources have it: of SINCE
    parameters: tuple[tuple[str, str], ...]
    dtypes: dict[str, tuple[str, ...]]  # by parameter; only for tensors with documented dtypes
    computes: str
    refused: str  # the host CANN's reason for not having it, if given


def _parameter(text: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.*?)\s*(\w+)", text)
    assert match, text
    return match[1].strip(), match[2]


@functools.cache
def functions() -> dict[str, Function]:
    """Every published function by name."""
    with TABLE.open(newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))[1:]
    found = {}
    for name, header, repository, since, parameters, dtypes, computes, *refused in rows:
        by_tensor = dict(part.split(": ") for part in dtypes.split("; ") if part)
        found[name] = Function(
            header,
            repository,
            since,
            tuple(_parameter(text) for text in parameters.split(", ")),
            {tensor: tuple(names.split()) for tensor, names in by_tensor.items()},
            computes,
            *(refused or [""]),
        )
    return found


def is_extension(name: str) -> bool:
    """True if a function is the host CANN's own extension: its name says so."""
    return name.startswith("aclnnHost")


# Functions that change the aclTensor that they are given, and therefore are not rows.
OF_FORMATS = {"aclnnTransMatmulWeight", "aclnnTransConvolutionWeight"}


def refused() -> set[str]:
    """The functions that the host CANN defines only to report why it does not compute them."""
    return {name for name, function in functions().items() if function.refused}


def refused_to_torch_npu() -> dict[str, str]:
    """The reasons for functions that torch_npu looks up, and whose parameters need not be known.

    A name that ends with GetMaxWorkspaceSize is another form of stage 1.
    """
    lines = TABLE.with_name("refusals.tsv").read_text().splitlines()[1:]
    return dict(line.split("\t") for line in lines)


def _signatures(library: Path, section: str) -> dict[str, str]:
    """The contents of a library's section: names, and their arguments as the macro recorded them."""
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "section"
        subprocess.run(
            ["objcopy", "--dump-section", f"{section}={dump}", str(library), str(Path(folder) / "copy")], check=True
        )
        texts = [text.decode() for text in dump.read_bytes().split(b"\0") if text]
    return dict(text.split(" ", 1) for text in texts)


@functools.cache
def rows(library: Path) -> dict[str, tuple[tuple[str, str], ...]]:
    """The kind and the name of each argument of every row of a library, by function.

    For a composed kind, the innermost: In for Optional<Stored<In>>.
    """
    return {
        name: tuple((re.sub(r"^.*<(.*?)>+$", r"\1", kind), argument) for kind, argument in _pairs(arguments))
        for name, arguments in _signatures(library, "aclnn_rows").items()
    }


def images(library: Path) -> dict[str, tuple[str, ...]]:
    """The image arguments of every row, whose channels are dimension 1, by function."""
    found = {
        name: tuple(argument for kind, argument in _pairs(arguments) if "Image<" in kind and "Unused<" not in kind)
        for name, arguments in _signatures(library, "aclnn_rows").items()
    }
    return {name: arguments for name, arguments in found.items() if arguments}


def _pairs(arguments: str) -> list[tuple[str, str]]:
    """Each kind and name, without a trailing reason, which may be a constant."""
    return re.findall(r'\(([^(),"]+), (\w+)(?:, (?:(?:"(?:[^"\\]|\\.)*"|k\w+)\s*)+)?\)', arguments)


# Their arguments are views of memory, or none, so they are defined without the macro that lists the others.
_UNLISTED = {"AsStrided", "ViewCopy", "NPUClearFloatStatusV2", "NPUClearFloatDebugStatus"}


def named_operators(library: Path) -> set[str]:
    """The operators that a library computes by name (aclop)."""
    return _signatures(library, "named_operators").keys() | _UNLISTED

"""Formulas of functions on ATen, in float64 by NumPy, from CANN's documents: what `test_aten_formulas.py` compares.

The formulas of the rows in csrc/cann/rows/<folder>/<file>.cpp are in <folder>/<file>.py here::

    @formula("aclnnAdd", "aclnnInplaceAdd")
    def add(self, other, alpha):
        return self + alpha * other

A formula gets the arguments that a call reads, in the order of the signature: tensors as arrays of float64 (integers as
int64, complex numbers as complex128), lists of them, and other arguments as Python's. One with a keyword argument
`outputs` also gets the outputs by name, those that are read among them, of which it may use the dtype and the shape,
and whether they are None. It returns the outputs that are not None in the order of the signature, as a tuple if there
are several. It calls no function of torch, which would compare a kernel with itself. The calls are the function's
samples (samples.txt) and those given with `calls`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Formula:
    """A formula, the further calls to try it on, and the relative error allowed beside the rounding of the output."""

    function: Callable[..., Any]
    calls: Sequence[str]
    error: float

    @property
    def reads_outputs(self) -> bool:
        return "outputs" in inspect.signature(self.function).parameters

    @property
    def file(self) -> str:
        """The folder and the file of the function's row, such as "elementwise/arithmetic"."""
        return self.function.__module__.removeprefix(f"{__name__}.").replace(".", "/")


FORMULAS: dict[str, Formula] = {}
# In-place forms that calls name and no formula does, because an operator does not have one.
ABSENT: set[str] = set()

# Functions whose results no formula states; the tests named here do.
WITHOUT_FORMULA = {
    "draws random numbers: test_aten_random.py": (
        *("Dropout", "DropoutV3", "DropoutV3Tensor", "DropoutGenMask", "DropoutGenMaskV2", "DropoutGenMaskV2Tensor"),
        *("InplaceUniform", "InplaceUniformTensor", "InplaceNormal", "InplaceNormalTensor", "NormalFloatFloat"),
        *("NormalFloatTensor", "NormalTensorFloat", "NormalTensorTensor", "InplaceRandom", "InplaceRandomTensor"),
        *("InplaceRandomWithoutFromTo", "InplaceRandomWithoutFromToTensor", "InplaceBernoulli"),
        *("InplaceBernoulliTensor", "SimThreadExponential", "StatelessExponentialTensor", "Multinomial"),
        *("MultinomialTensor", "Randperm", "RReluWithNoise"),
    ),
    "has no output: test_aten_values.py": ("Sleep",),
    "encodes what aclnnHansDecode reads: test_aten_coding.py": ("HansEncode",),
    "is compared with the function on what its inputs encode: test_aten_attention.py": (
        *("KvQuantSparseFlashAttention", "QuantLightningIndexer"),
    ),
    "the signs of its vectors are open: test_aten_svd.py": ("Svd",),
}


def formula(*names: str, calls: Sequence[str] = (), error: float = 1e-6) -> Callable[[Any], Any]:
    """Declares the formula of functions.

    `calls` are further calls, in the syntax of samples.txt: where the sample does not show all branches. `error` is for
    sums and functions in FLOAT, relative to the result; state in a comment why it is more than 1e-6.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        others = {call.partition(" ")[0] for call in calls} - {*names}
        assert all(name.startswith("aclnnInplace") for name in others), others
        ABSENT.update(others)
        for name in names:
            assert name not in FORMULAS, name
            own = [call for call in calls if call.partition(" ")[0] == name]
            FORMULAS[name] = Formula(function, own, error)
        return function

    return declare


FILES = sorted(path.relative_to(Path(__file__).parent) for path in Path(__file__).parent.glob("*/*.py"))
for path in FILES:
    importlib.import_module(f"{__name__}.{'.'.join(path.with_suffix('').parts)}")

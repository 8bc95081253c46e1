from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formulas import formula


def as_reals(x):
    return np.stack([x.real, x.imag], -1)


def waves(size, count):
    """exp(-2 pi i w k / size) for the frequencies w below a count and all k."""
    return np.exp(-2j * np.pi * np.outer(np.arange(count), np.arange(size)) / size)


# ops-math: aclRfft1D.md. n truncates the signal or pads it with zeros; -1 keeps its size.
@formula(
    "aclRfft1D",
    calls=[
        *(
            f"aclRfft1D self={signed('2,8', 1)} n={n} dim=-1 norm={norm} out=FLOAT[2,{n // 2 + 1 if n > 0 else 5},2]"
            for n, norm in ((-1, 1), (1, 1), (6, 1), (11, 1), (8, 1), (8, 2), (8, 3))
        ),
        "aclRfft1D self=FLOAT[4]:1,2,3,4 n=4 dim=0 norm=1 out=FLOAT[3,2]",
        f"aclRfft1D self={signed('8,2', 2)} n=8 dim=0 norm=1 out=FLOAT[5,2,2]",
    ],
    error=2e-6,  # sums of terms of both signs
)
def rfft(x, n, dim, norm):
    x = np.moveaxis(x, dim, -1)
    n = x.shape[-1] if n == -1 else n
    signal = np.zeros((*x.shape[:-1], n))
    signal[..., : x.shape[-1]] = x[..., :n]
    result = signal @ waves(n, n // 2 + 1).T / {1: 1, 2: n, 3: np.sqrt(n)}[norm]
    return as_reals(np.moveaxis(result, -1, dim))


# ops-math: aclStft.md. A window shorter than nFft stands in the middle of the frame. With returnComplex, results are
# complex.
@formula(
    "aclStft",
    calls=[
        *(
            f"aclStft self={signed(shape, 1)} windowOptional={window} out=FLOAT[{out},2] nFft=4 hopLength={hop} "
            f"winLength={length} normalized={normalized} onesided={onesided} returnComplex=false"
            for shape, window, out, hop, length, normalized, onesided in (
                ("8", "FLOAT[4]:1,0.5,2,1", "3,2", 3, 4, "true", "true"),
                ("8", "FLOAT[4]:1,0.5,2,1", "3,3", 2, 4, "false", "true"),
                ("2,8", "FLOAT[2]:1.5,0.5", "2,4,3", 2, 2, "false", "false"),
                ("2,8", "null", "2,3,3", 2, 3, "false", "true"),
            )
        ),
        f"aclStft self={signed('2,8', 3)} windowOptional=null out=COMPLEX64[2,3,3] nFft=4 hopLength=2 winLength=4 "
        "normalized=false onesided=true returnComplex=true",
    ],
    error=2e-6,  # sums of terms of both signs
)
def stft(x, window, size, hop, length, normalized, onesided, returns_complex):
    before = (size - length) // 2
    frame = np.zeros(size, complex if np.iscomplexobj(window) else float)
    frame[before : before + length] = 1 if window is None else window
    starts = range(0, x.shape[-1] - size + 1, hop)
    frames = np.stack([x[..., start : start + size] * frame for start in starts], -1)
    result = waves(size, size // 2 + 1 if onesided else size) @ frames
    result = result / np.sqrt(size) if normalized else result
    return result if returns_complex else as_reals(result)

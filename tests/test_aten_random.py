"""The random number functions of the host CANN: csrc/cann/rows/random/draws.h.

Each number is determined by the seed and the offset through Philox4x32-10 and its distribution, on any machine. Both
are reimplemented here: the generator from its paper, the distributions with scipy's quantiles.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from scipy import stats

from tests.aten_ops.sweep import LIBRARY, run_call, run_calls
from tests.cabi import PARAM_INVALID, SUCCESS

MASK = 0xFFFFFFFF


def philox(counter: Sequence[int], key: Sequence[int]) -> tuple[int, ...]:
    """One block of Philox4x32-10."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        first, second = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (second >> 32) ^ c1 ^ k0, second & MASK, (first >> 32) ^ c3 ^ k1, first & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def test_philox_itself() -> None:
    """The known answers published with the generator."""
    assert philox([0] * 4, [0] * 2) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert philox([MASK] * 4, [MASK] * 2) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
    assert philox(*pi) == (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)


def words(seed: int, offset: int) -> Iterator[int]:
    """The infinite sequence of 32-bit words for a seed and an offset."""
    block = 0
    while True:
        counter = [block & MASK, block >> 32, offset & MASK, offset >> 32]
        yield from philox(counter, [seed & MASK, seed >> 32])
        block += 1


def units(seed: int, offset: int, count: int) -> np.ndarray:
    """Numbers in (0, 1) from 32 bits each."""
    source = words(seed, offset)
    return np.array([(next(source) + 0.5) / 2**32 for _ in range(count)])


def wide_words(seed: int, offset: int, count: int) -> list[int]:
    """Words of 64 bits, the low half first."""
    source = words(seed, offset)
    return [next(source) | next(source) << 32 for _ in range(count)]


N = 301
SEED, OFFSET = 0x123456789ABCDEF, 0x300000007


def of_words(function: Callable[[list[int]], list[int]]) -> np.ndarray:
    return np.array(function(wide_words(SEED, OFFSET, N)))


def fisher_yates(count: int) -> list[int]:
    order, draws = list(range(count)), wide_words(SEED, OFFSET, count)
    for i in range(count - 1):
        j = i + draws[i] % (count - i)
        order[i], order[j] = order[j], order[i]
    return order


def wide_units() -> np.ndarray:
    """Numbers in (0, 1) from 52 bits each."""
    return np.array([((word >> 12) + 0.5) / 2**52 for word in wide_words(SEED, OFFSET, N)])


# A call without its seed and offset, and its expected result.
EXPECTED = {
    f"aclnnInplaceUniform selfRef=FLOAT[{N}] from=-1 to=3": lambda: (
        -1 + 4 * np.floor(units(SEED, OFFSET, N) * 2**24) / 2**24
    ),
    f"aclnnInplaceUniform selfRef=BFLOAT16[{N}] from=0 to=1": lambda: np.floor(units(SEED, OFFSET, N) * 2**8) / 2**8,
    f"aclnnInplaceUniform selfRef=FLOAT16[{N}] from=0 to=1": lambda: np.floor(units(SEED, OFFSET, N) * 2**11) / 2**11,
    f"aclnnInplaceUniform selfRef=DOUBLE[{N}] from=0 to=1": lambda: np.floor(wide_units() * 2**52) / 2**52,
    f"aclnnInplaceNormal selfRef=FLOAT[{N}] mean=0 std=1": lambda: stats.norm.ppf(units(SEED, OFFSET, N)),
    f"aclnnInplaceNormal selfRef=DOUBLE[{N}] mean=0.5 std=2": lambda: 0.5 + 2 * stats.norm.ppf(wide_units()),
    f"aclnnInplaceUniform selfRef=FLOAT[{N}] from=0.5 to=0.5": lambda: np.full(N, 0.5),
    f"aclnnInplaceNormal selfRef=FLOAT[{N}] mean=2.5 std=0": lambda: np.full(N, 2.5),
    f"aclnnNormalFloatFloat mean=2 std=3 out=FLOAT[{N}]": lambda: 2 + 3 * stats.norm.ppf(units(SEED, OFFSET, N)),
    f"aclnnNormalFloatTensor mean=2 std=FLOAT[{N}]:3,0.5 out=FLOAT[{N}]": lambda: (
        2 + np.where(np.arange(N) % 2, 0.5, 3) * stats.norm.ppf(units(SEED, OFFSET, N))
    ),
    f"aclnnNormalTensorFloat mean=FLOAT[{N}]:2,-1 std=3 out=FLOAT[{N}]": lambda: (
        np.where(np.arange(N) % 2, -1, 2) + 3 * stats.norm.ppf(units(SEED, OFFSET, N))
    ),
    f"aclnnNormalTensorTensor mean=FLOAT[{N}]:2,-1 std=FLOAT[{N}]:3,0.5 out=FLOAT[{N}]": lambda: (
        np.where(np.arange(N) % 2, -1, 2) + np.where(np.arange(N) % 2, 0.5, 3) * stats.norm.ppf(units(SEED, OFFSET, N))
    ),
    f"aclnnSimThreadExponential selfRef=FLOAT[{N}] count={N} lambda=0.5": lambda: -2 * np.log(units(SEED, OFFSET, N)),
    f"aclnnInplaceBernoulli selfRef=FLOAT[{N}] prob=DOUBLE(0.25)": lambda: units(SEED, OFFSET, N) < 0.25,
    f"aclnnInplaceBernoulliTensor selfRef=FLOAT[{N}] prob=FLOAT[{N}]:0.25,0.75": lambda: (
        units(SEED, OFFSET, N) < np.where(np.arange(N) % 2, 0.75, 0.25)
    ),
    f"aclnnInplaceRandom selfRef=INT64[{N}] from=-5 to=900": lambda: of_words(lambda w: [x % 905 - 5 for x in w]),
    # CANN draws real numbers, casts them to INT64 and then to the complex type (aclnn_random.cpp).
    f"aclnnInplaceRandom selfRef=COMPLEX64[{N}] from=-5 to=900": lambda: of_words(
        lambda w: [(x % 905 - 5, 0) for x in w]
    ),
    # 32751 would round to 32752: the largest number that may be drawn is 16 below.
    f"aclnnInplaceRandom selfRef=FLOAT16[{N}] from=0 to=32752": lambda: of_words(
        lambda w: [float(np.float16(x % 32736)) for x in w]
    ),
    f"aclnnInplaceRandomWithoutFromTo selfRef=INT64[{N}]": lambda: of_words(lambda w: [x % 2**63 for x in w]),
    f"aclnnInplaceRandomWithoutFromTo selfRef=INT8[{N}]": lambda: of_words(lambda w: [x % 2**7 for x in w]),
    f"aclnnInplaceRandomWithoutFromTo selfRef=FLOAT[{N}]": lambda: of_words(lambda w: [x % (2**24 + 1) for x in w]),
    f"aclnnRandperm n={N} out=INT64[{N}]": lambda: np.array(fisher_yates(N)),
}


def call(text: str, seed: int = SEED, offset: int = OFFSET) -> str:
    """The call with its seed and offset, which precede the outputs."""
    before, out, after = text.partition(" out=")
    return f"{before} seed={seed} offset={offset}{out}{after}"


@pytest.mark.parametrize("text", EXPECTED)
def test_every_number(text: str) -> None:
    """Normal and exponential distributions agree within a rounding error, all others to the bit."""
    *statuses, error, outputs = run_call(call(text))
    assert statuses == [SUCCESS, SUCCESS], error
    found, expected = np.array(outputs[0], dtype=float), EXPECTED[text]()
    if "Normal" in text or "Exponential" in text:
        # The sum of a mean and a deviation, which may cancel, rounds numbers below 16.
        atol = 16 * 2.0**-24 if "Normal" in text and "Inplace" not in text else 0
        rtol = 1e-13 if "DOUBLE" in text else 2.0**-23
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    else:
        np.testing.assert_array_equal(found, np.asarray(expected, dtype=float))


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_threads_do_not_matter(threads: str) -> None:
    """The numbers are enough to occupy all threads."""
    text = call("aclnnInplaceNormal selfRef=FLOAT[100001] mean=0 std=1", 5, 0)
    *statuses, _, (numbers,) = run_call(text)
    assert run_call(text, environment={"OMP_NUM_THREADS": threads})[3] == [numbers]
    assert statuses == [SUCCESS, SUCCESS]
    np.testing.assert_allclose(numbers[-5:], stats.norm.ppf(units(5, 0, 100_001)[-5:]), rtol=2.0**-23)


@pytest.mark.parametrize("capability", ["default", "avx2"])
def test_processors_do_not_matter(capability: str) -> None:
    calls = [call(text) for text in (*EXPECTED, MULTINOMIAL.format(replacement="true", count=50))]
    assert run_calls(calls, environment={"ATEN_CPU_CAPABILITY": capability}) == run_calls(calls)


LARGE = 50_000
# The drawn numbers, and their distribution.
DISTRIBUTIONS = {
    f"aclnnInplaceUniform selfRef=FLOAT[{LARGE}] from=-1 to=3": stats.uniform(-1, 4),
    f"aclnnInplaceNormal selfRef=FLOAT[{LARGE}] mean=2 std=3": stats.norm(2, 3),
    f"aclnnInplaceNormal selfRef=DOUBLE[{LARGE}] mean=2 std=3": stats.norm(2, 3),
    f"aclnnSimThreadExponential selfRef=FLOAT[{LARGE}] count={LARGE} lambda=0.5": stats.expon(scale=2),
}


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_distributions(seed: int) -> None:
    """The Kolmogorov-Smirnov test, with fixed seeds and therefore a fixed outcome."""
    calls = [call(text, seed, 40) for text in DISTRIBUTIONS]
    for (text, distribution), outcome in zip(DISTRIBUTIONS.items(), run_calls(calls), strict=True):
        assert stats.kstest(outcome[3][0], distribution.cdf).pvalue > 0.01, text


MULTINOMIAL = "aclnnMultinomial self=FLOAT[4]:1,0,3,4 numsamples={count} replacement={replacement} out=INT64[{count}]"


def test_categories() -> None:
    """The frequencies match the weights; without replacement, the first two are as likely as the rule says."""
    pairs = [call(MULTINOMIAL.format(count=2, replacement="false"), seed, 0) for seed in range(2000)]
    ((*_, (drawn,)), *firsts) = run_calls([call(MULTINOMIAL.format(count=20_000, replacement="true")), *pairs])
    counts = np.bincount(np.array(drawn, dtype=int), minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], 20_000 * np.array([1, 3, 4]) / 8).pvalue > 0.01
    weights = {0: 1, 2: 3, 3: 4}
    found: dict[tuple[int, ...], int] = {}
    for outcome in firsts:
        found[tuple(outcome[3][0])] = found.get(tuple(outcome[3][0]), 0) + 1
    expected = {(a, b): 2000 * x / 8 * y / (8 - x) for a, x in weights.items() for b, y in weights.items() if a != b}
    assert found.keys() == expected.keys()
    assert stats.chisquare([found[pair] for pair in expected], list(expected.values())).pvalue > 0.01


def test_each_row_has_its_own_categories() -> None:
    text = call("aclnnMultinomial self=FLOAT[2,3]:0,1,0,0,0,2 numsamples=2 replacement=true out=INT64[2,2]")
    assert run_call(text)[3] == [[[1, 1], [2, 2]]]


def test_dropout_masks() -> None:
    """A bit is 1 with the probability of keeping, and the bits of a byte are independent."""
    outcomes = run_calls(
        [
            "aclnnDropoutGenMask shape=[64000] prob=0.3 seed=3 offset=8 out=UINT8[8000]",
            "aclnnDropoutGenMaskV2 shape=[64000] prob=0.3 seed=3 offset=8 probDataType=0 out=UINT8[8000]",
            "aclnnDropoutGenMaskV2Tensor shape=[64000] prob=0.3 seedTensor=INT64[1]:3 offsetTensor=INT64[1]:6 offset=2"
            " probDataType=0 out=UINT8[8000]",
        ]
    )
    assert outcomes[0] == outcomes[1] == outcomes[2]
    ((*_, (mask,)), *_) = outcomes
    bits = np.unpackbits(np.array(mask, dtype=np.uint8)[:, None], axis=1).astype(float)
    assert abs(bits.mean() - 0.7) < 5 * (0.21 / bits.size) ** 0.5
    assert np.abs(np.corrcoef(bits.T) - np.eye(8)).max() < 5 / 8000**0.5


@pytest.mark.parametrize(("prob", "byte"), [(0, 255), (1, 0)])
def test_dropout_masks_of_all_or_no_elements(prob: int, byte: int) -> None:
    """The bits after the last element, too."""
    seed = "seedTensor=INT64[1]:3 offsetTensor=INT64[1]:8 offset=4"
    calls = [
        f"aclnnDropoutGenMask shape=[130] prob={prob} seed=1 offset=0 out=UINT8[32]",
        f"aclnnDropoutGenMaskV2Tensor shape=[2,65] prob={prob} {seed} probDataType=0 out=UINT8[32]",
    ]
    assert [outcome[3] for outcome in run_calls(calls)] == [[[byte] * 32]] * 2


IN_TENSORS = "seedTensor=INT64[1]:7 offsetTensor=INT64[1]:6 offset=2"
DROPOUT = {
    "aclnnDropout": "input={} p={} train={} seed=7 offset=8",
    "aclnnDropoutV3": "input={} optionalNoiseShape=null p={} seed=7 offset=8",
    "aclnnDropoutV3Tensor": f"input={{}} optionalNoiseShape=null p={{}} {IN_TENSORS}",
}


@pytest.mark.parametrize("function", DROPOUT)
@pytest.mark.parametrize("p", [0, 0.25, 1])
def test_dropout_of_the_written_mask(function: str, p: float) -> None:
    """aclnnDropout does not write the mask of all or no elements."""
    given = DROPOUT[function].format("FLOAT[77,3]:1,-2.5,3,0.75", p, "true")
    *statuses, _, (out, mask) = run_call(f"{function} {given} out=FLOAT[77,3] maskOut=UINT8[32]")
    assert statuses == [SUCCESS, SUCCESS]
    bits = np.unpackbits(np.array(mask, np.uint8), bitorder="little")[:231].reshape(77, 3)
    if p in (0, 1):
        assert mask == [{0: 255, 1: 0}[p] if "V3" in function else 165] * 32
        bits = np.full((77, 3), 1 - p)
    elements = np.resize([1, -2.5, 3, 0.75], (77, 3))
    np.testing.assert_allclose(out, elements * bits / (1 - p) if p < 1 else elements * 0, rtol=2.0**-23)


def test_the_last_byte_of_a_mask() -> None:
    given = DROPOUT["aclnnDropout"].format("FLOAT[64,4]:1,-2.5,3,0.75", 0.5, "true")
    *statuses, _, (out, mask) = run_call(f"aclnnDropout {given} out=FLOAT[64,4] maskOut=UINT8[32]")
    assert statuses == [SUCCESS, SUCCESS]
    bits = np.unpackbits(np.array(mask, np.uint8), bitorder="little").reshape(64, 4)
    np.testing.assert_array_equal(np.array(out) != 0, bits == 1)


def test_dropout_without_training() -> None:
    call = f"aclnnDropout {DROPOUT['aclnnDropout'].format('FLOAT[2,2]:1,2,3,4', 0.5, 'false')}"
    assert run_call(f"{call} out=FLOAT[2,2] maskOut=UINT8[16]")[3] == [[[1, 2], [3, 4]], [165] * 16]


def test_leaky_relu_of_noise() -> None:
    """The noise is the slope; in training it is drawn for elements up to 0, and 1 for others.

    Otherwise the slope is the mean of the bounds, and the noise is not written. Its elements after those of self are
    not, either.
    """
    text = "aclnnRReluWithNoise self=FLOAT[40]:1,-2,0,-3 noise=FLOAT[42]:4,3 lower=FLOAT(0.25) upper=FLOAT({}) "
    text += "training={} seed=3 offset=0 out=FLOAT[40]"
    calls = [text.format(0.75, "true"), text.format(0.25, "true"), text.format(0.75, "false")]
    elements = np.resize([1, -2, 0, -3], 40)
    (_, _, _, trained), (_, _, _, of_one), (_, _, _, applied) = run_calls(calls)
    noise, out = map(np.array, trained)
    np.testing.assert_allclose(out, noise[:40] * elements, rtol=2.0**-23)
    assert (noise[:40][elements > 0] == 1).all()
    drawn = noise[:40][elements <= 0]
    assert drawn.min() >= 0.25
    assert drawn.max() < 0.75
    assert len(set(drawn)) == 30
    assert noise[40:].tolist() == [4, 3]
    np.testing.assert_array_equal(of_one[0][:40], np.where(elements > 0, 1, 0.25))
    np.testing.assert_array_equal(of_one[1], np.where(elements > 0, elements, 0.25 * elements))
    np.testing.assert_array_equal(applied[0], np.resize([4, 3], 42))
    np.testing.assert_array_equal(applied[1], np.where(elements > 0, elements, 0.5 * elements))
    assert run_call(calls[1].replace("[40]", "[4]").replace("[42]", "[4]"))[3][0] == [1, 0.25, 0.25, 0.25]


def test_calls_and_seeds_have_nothing_in_common() -> None:
    text = "aclnnInplaceNormal selfRef=FLOAT[20000] mean=0 std=1"
    sources = [(0, 0), (0, 1), (1, 0), (0, 4), (2**32, 0), (0, 2**32)]
    rows = [outcome[3][0] for outcome in run_calls([call(text, *source) for source in sources])]
    assert np.abs(np.corrcoef(rows) - np.eye(len(sources))).max() < 5 / 20_000**0.5


# The function with numbers, its arguments besides seed and offset, and the version with tensors.
PAIRS = {
    "aclnnInplaceNormal": ("selfRef=FLOAT[50] mean=1.5 std=2", "aclnnInplaceNormalTensor", ""),
    "aclnnInplaceUniform": ("selfRef=FLOAT[50] from=-1 to=3", "aclnnInplaceUniformTensor", ""),
    "aclnnInplaceRandom": ("selfRef=FLOAT[50] from=3 to=900", "aclnnInplaceRandomTensor", ""),
    "aclnnInplaceRandomWithoutFromTo": ("selfRef=FLOAT[50]", "aclnnInplaceRandomWithoutFromToTensor", ""),
    "aclnnMultinomial": (
        "self=FLOAT[2,3]:1,2,3,4,5,6 numsamples=25 replacement=true",
        "aclnnMultinomialTensor",
        " out=INT64[2,25]",
    ),
    "aclnnDropoutV3": (
        "input=FLOAT[50] optionalNoiseShape=null p=0.25",
        "aclnnDropoutV3Tensor",
        " out=FLOAT[50] maskOut=UINT8[16]",
    ),
}


@pytest.mark.parametrize("function", PAIRS)
def test_the_same_numbers(function: str) -> None:
    """The version with tensors for seed and offset gives the same numbers."""
    arguments, by_tensors, out = PAIRS[function]
    first, second, other = run_calls(
        [
            f"{function} {arguments} seed=5 offset=12{out}",
            f"{by_tensors} {arguments} seedTensor=INT64[1]:5 offsetTensor=INT64[1]:8 offset=4{out}",
            f"{by_tensors} {arguments} seedTensor=INT64[1]:6 offsetTensor=INT64[1]:8 offset=4{out}",
        ]
    )
    assert (first[:2], second[:2], other[:2]) == ((SUCCESS, SUCCESS),) * 3
    assert first[3] == second[3] != other[3]


def test_exponential_numbers_of_a_seed_in_a_tensor() -> None:
    """This function has no version with numbers and the same parameters."""
    name, seed = "aclnnStatelessExponentialTensor", "seedTensor=INT64[1]:5 offsetTensor=INT64[1]:8 offset=4"
    text = f"{name} self=FLOAT[{N}] {seed} lambd="
    ((*statuses, _, (drawn,)), refused) = run_calls([text + "0.5", text + "0"])
    assert statuses == [SUCCESS, SUCCESS]
    np.testing.assert_allclose(drawn, -2 * np.log(units(5, 12, N)), rtol=2.0**-23)
    assert refused[0] == 161002
    assert "lambda is 0" in refused[2]


def test_what_is_refused() -> None:
    refused = {
        "aclnnInplaceUniform selfRef=FLOAT[3] from=2 to=1": "from is 2, expected at most to, 1",
        "aclnnInplaceNormal selfRef=FLOAT[3] mean=0 std=-1": "std is -1",
        "aclnnSimThreadExponential selfRef=FLOAT[3] count=3 lambda=0": "lambda is 0",
        "aclnnSimThreadExponential selfRef=INT32[3] count=3 lambda=1": "INT32",
        "aclnnInplaceBernoulli selfRef=FLOAT[3] prob=DOUBLE(1.5)": "1.5, expected 0 to 1",
        "aclnnInplaceRandom selfRef=INT8[3] from=0 to=200": "to - 1 is 199, expected -128 to 127",
    }
    for text, outcome in zip(refused, run_calls([call(text) for text in refused]), strict=True):
        assert outcome[0] == 161002, text
        assert refused[text] in outcome[2]
    weights = ["1,-1", "0,0", "1,NaN"]
    text = "aclnnMultinomial self=FLOAT[2]:{} numsamples=1 replacement=true out=INT64[1]"
    for outcome in run_calls([call(text.format(each)) for each in weights]):
        assert outcome[:2] == (SUCCESS, 507015)
        assert "self has a" in outcome[2]


def test_the_mode_is_kept() -> None:
    """One of two, and 0 at first; another one is refused and changes nothing."""
    library = ctypes.CDLL(str(LIBRARY))
    library.aclGetRecentErrMsg.restype = ctypes.c_char_p
    before = library.aclnnGetPytorchRandom()
    for mode in (1, 0):
        assert library.aclnnSetPytorchRandom(mode) == SUCCESS
        assert library.aclnnGetPytorchRandom() == mode
    for mode in (2, -1):
        assert library.aclnnSetPytorchRandom(mode) == PARAM_INVALID
        assert library.aclGetRecentErrMsg() == b"aclnnSetPytorchRandom: pytorchRandom is %d, expected 0 or 1" % mode
    assert library.aclnnGetPytorchRandom() == before == 0

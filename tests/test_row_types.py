"""A number argument of a row has no implicit conversion: code that would select a wrong overload must not compile."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from torch.utils import cpp_extension

from tests.builds import CXX

ROOT = Path(__file__).resolve().parent.parent
HOST = ROOT / "csrc" / "host_cann"

SOURCE = """
#include <ATen/ops/add.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/var.h>
#include "cann/rows/row.h"
using aclnn_host::Exact;
using Integer = Exact<int64_t>;
using Real = Exact<double>;
using Flag = Exact<bool>;

// What compiles with a plain number and means something else.
template <class N> concept PicksUnbiased = requires(at::Tensor x, at::OptionalIntArrayRef dims, N n, Flag flag) {
  at::var(x, dims, n, flag);
};
template <class N> concept IsScalar = requires(at::Tensor x, N n) { at::add(x, n); };
template <class N> concept IsOptionalScalar = requires(at::Tensor x, N n) { at::clamp(x, n); };
template <class N> concept IsList = requires(at::Tensor x, N n, Flag flag) { at::sum(x, n, flag); };
template <class N> concept IsFill = requires(N n) { at::full({1}, n); };

static_assert(PicksUnbiased<int64_t> && IsScalar<int64_t> && IsList<int64_t> && IsFill<int64_t>);
static_assert(PicksUnbiased<Flag>);  // a bool for a bool
static_assert(!PicksUnbiased<Integer> && !PicksUnbiased<Real>);
static_assert(!IsScalar<Integer> && !IsScalar<Real> && !IsScalar<Flag>);
static_assert(!IsOptionalScalar<Integer> && !IsOptionalScalar<Real>);
static_assert(!IsList<Integer> && !IsFill<Integer> && !IsFill<Flag>);
static_assert(!std::is_convertible_v<Integer, bool> && !std::is_convertible_v<Integer, double>);
static_assert(!std::is_convertible_v<Real, int64_t> && !std::is_convertible_v<Flag, int64_t>);

// What is meant: the type itself, an optional of it, and a Scalar by name.
static_assert(std::is_convertible_v<Integer, int64_t> && std::is_convertible_v<Integer, std::optional<int64_t>>);
static_assert(requires(at::Tensor x, at::OptionalIntArrayRef dims, Integer n, Flag flag) {
  at::var(x, dims, c10::Scalar(n.value()), flag);
});

// The numbers of a row are such numbers.
template <class T> using ValueOf = typename aclnn_host::Kind<T>::Value;
static_assert(std::is_same_v<ValueOf<int64_t>, Integer> && std::is_same_v<ValueOf<int>, Integer>);
static_assert(std::is_same_v<ValueOf<int8_t>, Integer> && std::is_same_v<ValueOf<float>, Real>);
static_assert(std::is_same_v<ValueOf<double>, Real> && std::is_same_v<ValueOf<bool>, Flag>);
"""


@pytest.mark.test_all
def test_numbers_convert_to_their_own_type_alone(tmp_path: Path) -> None:
    source = tmp_path / "row_types.cpp"
    source.write_text(SOURCE)
    command = [*CXX, "-std=c++20", "-fsyntax-only", "-fopenmp"]
    command += [
        f"-I{HOST / 'include'}",
        f"-I{ROOT / 'csrc'}",
        *(f"-isystem{path}" for path in cpp_extension.include_paths()),
    ]
    result = subprocess.run([*command, str(source)], capture_output=True, text=True)
    if result.returncode != 0:
        pytest.fail(result.stderr[:4000], pytrace=False)

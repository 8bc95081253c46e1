// The reference for the matrix product kernels, with sums in double.

#include "host_cann/kernels/matmul.h"

#include <c10/util/BFloat16.h>

#include <algorithm>

namespace aclnn_host {
namespace {

double value_of(float element) {
  return element;
}
double value_of(double element) {
  return element;
}
double value_of(BFloat16 element) {
  return c10::BFloat16(element.bits, c10::BFloat16::from_bits());
}

void store(double value, float& to) {
  to = static_cast<float>(value);
}
void store(double value, double& to) {
  to = value;
}
void store(double value, BFloat16& to) {
  to = {c10::BFloat16(static_cast<float>(value)).x};
}

// Products summed before they are added to the rest: the error of a sum in double grows with the
// number of its terms.
constexpr int64_t kSegment = 256;

template <class T, class Result>
void multiply(const MatrixProduct<T, Result>& p, void*) {
  for (int64_t i = 0; i < p.rows; ++i) {
    for (int64_t j = 0; j < p.columns; ++j) {
      Result& out = p.out[i * p.out_stride + j];
      double sum = p.adds ? value_of(out) : 0;
      for (int64_t term = 0; term < p.terms; ++term) {
        for (int64_t first = 0; first < p.depth; first += kSegment) {
          double segment = 0;
          for (int64_t k = first; k < std::min(first + kSegment, p.depth); ++k) {
            segment += value_of(p.left.from(i, k).data[term * p.left_term]) *
                       value_of(p.right.from(k, j).data[term * p.right_term]);
          }
          sum += segment;
        }
      }
      store(p.bias.data != nullptr ? sum + value_of(*p.bias.from(i, j).data) : sum, out);
    }
  }
}

}  // namespace

template <>
const MatmulKernels& matmul_kernels<Capability::kReference>() noexcept {
  static constexpr MatmulKernels kKernels = {1,
                                             1,
                                             {0, multiply<float, float>},
                                             {0, multiply<double, double>},
                                             {0, multiply<BFloat16, BFloat16>},
                                             {0, multiply<BFloat16, float>}};
  return kKernels;
}

const MatmulKernels& matmul_kernels() noexcept {
  return select_kernels([]<Capability kVersion>() -> auto& { return matmul_kernels<kVersion>(); });
}

}  // namespace aclnn_host

// Fault tolerance of a matrix product by checksums of its rows (ABFT).

#include <cmath>

#include "cann/rows/bits.h"
#include "cann/rows/row.h"

namespace aclnn_host::matmul_abft_verify_rows {

namespace {

constexpr int64_t kColumns = 256;  // of a segment of b and c
constexpr int64_t kBits = 8;       // of a byte

int64_t parts(int64_t size, int64_t of) {
  return (size + of - 1) / of;
}

void check_verify(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c,
                  const at::Tensor& weight, double e_max, const Output& comp_row) {
  expect_dtype("a", a, {at::kFloat, at::kHalf, at::kBFloat16});
  expect_dims("a", a, 2);
  expect_dims("b", b, 2);
  expect_elements("a", a);
  expect_elements("b", b);
  EXPECT(a.size(1) == b.size(0), "b has shape ", b.sizes(), ", expected ", a.size(1),
         " rows, as a has shape ", a.sizes());
  expect_float("c", c, {a.size(0), b.size(1)});
  expect_shape("checksumWeight", weight, {b.size(1)});
  EXPECT(!(e_max < 0), "eMax is ", e_max, ", expected 0 or more");
  expect_tensor("compRow", comp_row, at::kByte,
                {parts(a.size(0), kBits) * parts(b.size(1), kColumns)});
}

// The largest variance of numbers between least and most (Bhatia and Davis).
at::Tensor largest_variance(const at::Tensor& mean, const at::Tensor& least,
                            const at::Tensor& most) {
  return (most - mean) * (mean - least);
}

// True for each row whose checksum in a segment of c differs from that of A (B r) by no more than
// rounding explains.
at::Tensor is_right(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c,
                    const at::Tensor& weight, double e_max) {
  const at::Tensor numbers = wide(a), columns = wide(b), r = wide(weight);
  const auto count = static_cast<double>(b.size(1));
  const at::Tensor sums = (columns * r).sum(1);
  const at::Tensor rounded = wide(sums.to(a.scalar_type()));

  // 1 / K has the dtype of a.
  const at::Tensor share = wide(at::full({}, 1.0 / static_cast<double>(a.size(1)), a.options()));
  const at::Tensor mean_a = (numbers * share).sum(1);
  const at::Tensor deviation_a =
      largest_variance(mean_a, numbers.amin(1), numbers.amax(1)).abs().sqrt();
  const at::Tensor mean_b = (a.scalar_type() == at::kHalf ? rounded : sums) / count;
  const at::Tensor variance_b =
      largest_variance(mean_b, columns.amin(1), columns.amax(1)).sum().abs();

  const at::Tensor of_means = count * mean_b.abs().sum() * mean_a.abs();
  const at::Tensor of_squares = 16 * count * variance_b * mean_a.square() +
                                16 * count * count * mean_b.square().sum() * deviation_a.square();
  const at::Tensor of_deviations = std::sqrt(count) * variance_b.sqrt() * deviation_a;
  const double scale = 6 * e_max * std::sqrt(static_cast<double>(a.size(1)) / 1024);
  const at::Tensor threshold = scale * (of_means + of_squares.sqrt() + of_deviations);
  return ((c * r).sum(1) - at::mv(numbers, rounded)).abs() - threshold <= 0;
}

}  // namespace

// Behaviour of MatmulAbftVerify: The threshold is the kernel's, computed in FLOAT. Bits of rows
// beyond those of a are 1.
// Deviation of MatmulAbftVerify: checksumWeight multiplies the columns of b and of c, as in the
// document. CANN's kernel adds up the columns of c without it.
ACLNN(MatmulAbftVerify, (In, a), (SameDtype<In>, b, "a"), (In, c),
      (SameDtype<In>, checksumWeight, "a"), (double, eMax), (Out, compRow)) {
  check_verify(a, b, c, checksumWeight, eMax, compRow);
  std::vector<at::Tensor> segments;
  for (int64_t first = 0; first < b.size(1); first += kColumns) {
    const int64_t count = std::min(kColumns, b.size(1) - first);
    segments.push_back(is_right(a, b.narrow(1, first, count), c.narrow(1, first, count),
                                checksumWeight.narrow(0, first, count), eMax));
  }
  const int64_t spare = parts(a.size(0), kBits) * kBits - a.size(0);
  compRow = packed_bits(at::constant_pad_nd(at::stack(segments), {0, spare}, 1)).flatten();
}

}  // namespace aclnn_host::matmul_abft_verify_rows

// Splits floating-point numbers into their exponent bytes and their other bytes, and joins them
// again.
//
// The vendor's coding of the exponents is not published. Here fixedOut has a header of 512 zeros
// followed by the uncompressed exponent bytes, which continue in varOut.

#include "cann/rows/row.h"

namespace aclnn_host::compression_exponent_coding_rows {

namespace {

constexpr int64_t kHeader = 512, kCodes = 256;

at::Tensor bytes_of(const at::Tensor& tensor) {
  return tensor.contiguous().flatten().view(at::kByte);
}
int64_t byte_count(const at::Tensor& tensor) {
  return tensor.numel() * static_cast<int64_t>(tensor.element_size());
}
// Bytes in the shape and the type of an output, padded with zeros.
at::Tensor as_output(const at::Tensor& bytes, const Output& like) {
  return at::constant_pad_nd(bytes, {0, byte_count(like) - bytes.numel()})
      .view(like->scalar_type())
      .view(like->sizes());
}

void expect_numbers(const char* name, const at::Tensor& numbers) {
  EXPECT(numbers.scalar_type() != at::kDouble && numbers.is_floating_point(), name, " has dtype ",
         dtype_text(numbers.scalar_type()), ", expected FLOAT16, BFLOAT16 or FLOAT");
}
void expect_counts(const char* name, const at::Tensor& counts) {
  expect_dtype(name, counts, at::kInt);
  EXPECT(counts.numel() == kCodes, name, " has shape ", counts.sizes(), ", expected [1, ", kCodes,
         "]");
}
// The mantissas have all bytes of each number but one.
void expect_mantissas(const char* name, const at::Tensor& mantissas, const at::Tensor& numbers) {
  const int64_t expected = byte_count(numbers) - numbers.numel();
  EXPECT(byte_count(mantissas) == expected, name, " has ", byte_count(mantissas),
         " bytes, expected ", expected);
}

// The largest size of the codes, on the vendor's device with the fewest cores.
int64_t bound_of(int64_t count) {
  constexpr int64_t kOfCore = 32768, kTailOfCore = 8448, kCores = 40;
  return count + count / 64 + kTailOfCore * std::min(count / kOfCore, kCores) + kHeader;
}

}  // namespace

// Writes the histogram of the exponent bytes to pdfRef.
// Deviation of HansEncode, HansDecode: The codes of the exponents have a layout of the host CANN's
// own: fixedOut begins with 512 zeros, then come the exponents' bytes as they are, and varOut
// continues them. Nothing is compressed. The mantissas and the counts in pdf are as documented.
ACLNN(HansEncode, (Floating<In>, inputTensor), (InOut, pdfRef), (bool, statistic), (bool, reshuff),
      (Out, mantissaOut), (Out, fixedOut), (Out, varOut)) {
  expect_numbers("inputTensor", inputTensor);
  expect_counts("pdfRef", pdfRef);
  const int64_t count = inputTensor.numel();
  constexpr int64_t kLeast = 32768, kMultiple = 64;
  EXPECT(count >= kLeast && count % kMultiple == 0, "inputTensor has ", count,
         " elements, expected a multiple of ", kMultiple, " from ", kLeast, " on");
  expect_mantissas("mantissaOut", mantissaOut, inputTensor);
  for (const Output* out : {&mantissaOut, &fixedOut, &varOut}) expect_dtype(*out, inputTensor);
  const int64_t room = byte_count(fixedOut), all = room + byte_count(varOut);
  EXPECT(room >= kHeader && all >= bound_of(count), "fixedOut and varOut have ", room, " and ",
         all - room, " bytes, expected ", kHeader, " or more of fixedOut and ", bound_of(count),
         " together");
  EXPECT(!reshuff || room >= bound_of(count), "fixedOut has ", room, " bytes, expected ",
         bound_of(count), " as reshuff is true");
  const auto size = static_cast<int64_t>(inputTensor.element_size());
  const at::Tensor bytes = bytes_of(inputTensor).view({count, size});
  const at::Tensor exponents = bytes.select(1, size - 1).contiguous();
  const int64_t first = std::min(count, room - kHeader);
  mantissaOut = as_output(bytes.narrow(1, 0, size - 1).flatten(), mantissaOut);
  fixedOut = as_output(at::constant_pad_nd(exponents.narrow(0, 0, first), {kHeader, 0}), fixedOut);
  varOut = as_output(exponents.narrow(0, first, count - first), varOut);
  // Tensors without memory have nothing to count.
  if (statistic && exponents.is_cpu()) {
    pdfRef = at::bincount(exponents, {}, kCodes).to(at::kInt).view(pdfRef->sizes());
  }
}

ACLNN(HansDecode, (In, mantissa), (In, fixed), (In, var), (In, pdf),
      (Unused<bool>, reshuff, "says where the cores' codes lie; the host has one layout"),
      (Out, out)) {
  expect_numbers("out", out);
  expect_counts("pdf", pdf);
  const int64_t count = out->numel();
  expect_mantissas("mantissa", mantissa, out);
  const int64_t room = byte_count(fixed), all = room + byte_count(var);
  EXPECT(room >= kHeader && all - kHeader >= count, "fixed and var have ", room, " and ",
         all - room, " bytes, expected ", kHeader, " or more of fixed and ", count,
         " more together");
  const int64_t first = std::min(count, room - kHeader);
  const at::Tensor parts[] = {bytes_of(fixed).narrow(0, kHeader, first),
                              bytes_of(var).narrow(0, 0, count - first)};
  const at::Tensor exponents = at::cat(at::TensorList(parts)).unsqueeze(1);
  const int64_t others = static_cast<int64_t>(out->element_size()) - 1;
  const at::Tensor columns[] = {bytes_of(mantissa).view({count, others}), exponents};
  out = at::cat(at::TensorList(columns), 1).flatten().view(out->scalar_type()).view(out->sizes());
}

}  // namespace aclnn_host::compression_exponent_coding_rows

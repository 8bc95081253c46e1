// Connectionist temporal classification.

#include "cann/rows/row.h"

namespace aclnn_host::loss_ctc_loss_rows {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t largest(at::IntArrayRef lengths) {
  return lengths.empty() ? 0 : std::ranges::max(lengths);
}

// Checks that ATen omits in a CTC loss of (T, N, C) log probabilities.
void check_ctc(const at::Tensor& log_probs, const at::Tensor& targets,
               at::IntArrayRef input_lengths, at::IntArrayRef target_lengths,
               const char* target_lengths_name, int64_t blank) {
  const int64_t times = log_probs.size(0);
  const int64_t batch = log_probs.size(1);
  const int64_t classes = log_probs.size(2);
  EXPECT(classes > 0 && blank >= 0 && blank < classes, "blank is ", blank, " with ", classes,
         " classes, expected one of the classes");
  EXPECT(times > 0, "logProbs has shape ", log_probs.sizes(),
         " as (T, N, C), expected a T of 1 or more");
  const auto count = static_cast<size_t>(batch);
  EXPECT(input_lengths.size() == count && target_lengths.size() == count, "inputLengths has ",
         input_lengths.size(), " values and ", target_lengths_name, " ", target_lengths.size(),
         ", expected ", batch, " each, one per sample");
  EXPECT(targets.dim() == 1 || (targets.dim() == 2 && targets.size(0) == batch),
         "targets has shape ", targets.sizes(), ", expected (", batch, ", S) or one dimension");
  const int64_t longest = targets.size(-1);
  int64_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    EXPECT(input_lengths[i] >= 0 && input_lengths[i] <= times, "inputLengths has the value ",
           input_lengths[i], ", expected 0 to ", times);
    EXPECT(target_lengths[i] >= 0 && target_lengths[i] <= longest, target_lengths_name,
           " has the value ", target_lengths[i], ", expected 0 to ", longest);
    if (targets.dim() == 1) sum += target_lengths[i];
    EXPECT(sum <= longest, target_lengths_name, " adds up to ", sum, ", expected at most ", longest,
           ", the number of targets");
  }
  if (!targets.is_cpu()) return;
  // Elements after the end of a target are ignored.
  const at::Tensor positions = at::arange(c10::Scalar(longest), targets.options());
  const at::Tensor is_target =
      targets.dim() == 1 ? positions < c10::Scalar(sum)
                         : positions < at::tensor(target_lengths, targets.options()).unsqueeze(1);
  check_bounds("targets", targets.masked_select(is_target), classes);
}

// The targets as INT64. CANN's documents and checks differ in their dtypes; it casts them, too.
at::Tensor classes_of(const at::Tensor& targets) {
  EXPECT(!targets.is_complex(), "targets has dtype ", dtype_text(targets.scalar_type()),
         ", expected an integer type");
  return targets.to(at::kLong).contiguous();
}

// Adds a batch dimension to the log probabilities of a single sample.
at::Tensor batched(const at::Tensor& log_probs) {
  EXPECT(log_probs.dim() == 2 || log_probs.dim() == 3, "logProbs has shape ", log_probs.sizes(),
         ", expected (T, N, C) or (T, C)");
  return wide(log_probs.dim() == 2 ? log_probs.unsqueeze(1) : log_probs).contiguous();
}

// Fills the elements after the end of an input or a target, which ATen does not write, with -inf.
void clear_unused(const at::Tensor& log_alpha, at::IntArrayRef input_lengths,
                  at::IntArrayRef target_lengths) {
  for (size_t i = 0; i < input_lengths.size(); ++i) {
    const at::Tensor sample = log_alpha.select(0, static_cast<int64_t>(i));
    sample.slice(0, input_lengths[i]).fill_(-kInfinity);
    sample.slice(1, 2 * target_lengths[i] + 1).fill_(-kInfinity);
  }
}

// Restores infinite losses, which the forward pass replaced by 0, from the last row of logAlpha.
at::Tensor with_infinities(const at::Tensor& losses, const at::Tensor& log_alpha,
                           at::IntArrayRef input_lengths, at::IntArrayRef target_lengths) {
  if (losses.numel() == 0) return losses;
  std::vector<at::Tensor> last;
  for (size_t i = 0; i < input_lengths.size(); ++i) {
    const int64_t end = std::max<int64_t>(input_lengths[i] - 1, 0);
    const int64_t first = std::max<int64_t>(2 * target_lengths[i] - 1, 0);
    last.push_back(log_alpha.select(0, static_cast<int64_t>(i))
                       .select(0, end)
                       .slice(0, first, 2 * target_lengths[i] + 1)
                       .amax());
  }
  const at::Tensor is_impossible = at::stack(last) == -kInfinity;
  return losses.masked_fill(is_impossible.reshape(losses.sizes()), kInfinity);
}

}  // namespace

// logAlphaOut may be wider than the result, because some products require it; the rest is -inf.
// Behaviour of CtcLoss*: The part of logAlpha that is not used is -inf. With zeroInfinity the
// gradient of an impossible sample is 0.
ACLNN(CtcLoss, (Floating<In>, logProbs), (In, targets), (Ints, inputLengths), (Ints, targetlengths),
      (int64_t, blank), (bool, zeroInfinity), (SameDtype<Out>, negLogLikelihoodOut, "logProbs"),
      (SameDtype<Out>, logAlphaOut, "logProbs")) {
  const at::Tensor classes = classes_of(targets);
  const at::Tensor probabilities = batched(logProbs);
  check_ctc(probabilities, classes, inputLengths, targetlengths, "targetlengths", blank);
  const int64_t width = 2 * largest(targetlengths) + 1;
  EXPECT(logAlphaOut->dim() == 3 && logAlphaOut->size(2) >= width, "logAlphaOut has shape ",
         logAlphaOut->sizes(), ", expected three dimensions, the last one at least ", width);
  const auto [losses, log_alpha] =
      at::_ctc_loss(probabilities, classes, inputLengths, targetlengths, blank, zeroInfinity);
  clear_unused(log_alpha, inputLengths, targetlengths);
  const at::Tensor finite = zeroInfinity ? losses.masked_fill(losses.isinf(), 0) : losses;
  negLogLikelihoodOut = logProbs.dim() == 2 ? finite.squeeze(0) : finite;
  logAlphaOut = at::constant_pad_nd(log_alpha, {0, logAlphaOut->size(2) - width}, -kInfinity);
}
ACLNN(CtcLossBackward, (SameDtype<Floating<In>>, gradOut, "logProbs"), (Floating<In>, logProbs),
      (In, targets), (Ints, inputLengths), (Ints, targetLengths),
      (SameDtype<Floating<In>>, negLogLikelihood, "logProbs"),
      (SameDtype<Floating<In>>, logAlpha, "logProbs"), (int64_t, blank), (bool, zeroInfinity),
      (SameDtype<Out>, out, "logProbs")) {
  const at::Tensor classes = classes_of(targets);
  const at::Tensor probabilities = batched(logProbs);
  check_ctc(probabilities, classes, inputLengths, targetLengths, "targetLengths", blank);
  const int64_t batch = probabilities.size(1);
  const int64_t width = 2 * largest(targetLengths) + 1;
  EXPECT(gradOut.numel() == batch && negLogLikelihood.numel() == batch, "gradOut has shape ",
         gradOut.sizes(), " and negLogLikelihood has shape ", negLogLikelihood.sizes(),
         ", expected ", batch, " elements each");
  EXPECT(logAlpha.dim() == 3 && logAlpha.size(0) == batch &&
             logAlpha.size(1) == probabilities.size(0) && logAlpha.size(2) >= width,
         "logAlpha has shape ", logAlpha.sizes(), ", expected (", batch, ", ",
         probabilities.size(0), ", ", width, " or more)");
  const at::Tensor log_alpha = wide(logAlpha).narrow(2, 0, width).contiguous();
  at::Tensor losses = wide(negLogLikelihood).reshape({batch}).contiguous();
  if (zeroInfinity) losses = with_infinities(losses, log_alpha, inputLengths, targetLengths);
  out = at::_ctc_loss_backward(wide(gradOut).reshape({batch}).contiguous(), probabilities, classes,
                               inputLengths, targetLengths, losses, log_alpha, blank, zeroInfinity)
            .view(logProbs.sizes());
}

}  // namespace aclnn_host::loss_ctc_loss_rows

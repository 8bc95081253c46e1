// The gradient of the mean squared error, with the reduction as a text.

#include <ATen/TensorOperators.h>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::mse_loss_gradient_rows {

// The order of the operator and of the vendor's sample: another one than in the document.
ACLNN(MseLossGrad, (FloatIn, predict), (FloatIn, label), (FloatIn, dout),
      (char*, reductionOptional), (Out, yOut)) {
  EXPECT(reductionOptional.empty() || reductionOptional == "none" || reductionOptional == "mean" ||
             reductionOptional == "sum",
         "reductionOptional is \"", reductionOptional,
         "\", expected \"none\", \"mean\" or \"sum\"");
  expect_dtype("label", label, predict);
  expect_dtype("dout", dout, predict);
  expect_dims("predict", predict, 0, 8);
  expect_dims("label", label, 0, 8);
  expect_dims("dout", dout, 0, 8);
  const bool is_mean = reductionOptional.empty() || reductionOptional == "mean";
  const at::Tensor gradient = wide(dout) * (wide(predict) - wide(label)) * 2;
  yOut = is_mean ? gradient / static_cast<double>(predict.numel()) : gradient;
}

}  // namespace aclnn_host::mse_loss_gradient_rows

// RmsNorm: normalisation by the root mean square, alone or after the sum with a residual.
#include "cann/atb/atb_operation.h"

namespace aclnn_host {
namespace {

using atb::infer::RmsNormParam;

struct RmsNormTensors {
  std::vector<AtbTensor> inputs;
  std::vector<const char*> outputs;
};

bool is_quantised(const RmsNormParam& param) {
  switch (param.layerType) {
    case RmsNormParam::RMS_NORM_NORM: return param.normParam.quantType == atb::infer::QUANT_INT8;
    case RmsNormParam::RMS_NORM_PRENORM:
      return param.preNormParam.quantType == atb::infer::QUANT_INT8;
    default: return param.postNormParam.quantType == atb::infer::QUANT_INT8;
  }
}

bool has_bias(const RmsNormParam& param) {
  return param.layerType == RmsNormParam::RMS_NORM_PRENORM ? param.preNormParam.hasBias
                                                           : param.postNormParam.hasBias;
}

RmsNormTensors tensors_of(const RmsNormParam& param) {
  if (param.layerType == RmsNormParam::RMS_NORM_NORM) {
    if (is_quantised(param)) {
      return {{{"x"}, {"gamma"}, {"beta"}, {"scale"}, {"offset"}}, {"output"}};
    }
    if (param.normParam.rstd) return {{{"x"}, {"gamma"}}, {"output", "rstd"}};
    return {{{"x"}, {"gamma"}}, {"output"}};
  }
  std::vector<AtbTensor> inputs = {{"x"}};
  if (has_bias(param)) inputs.push_back({"bias"});
  inputs.insert(inputs.end(), {{"resIn"}, {"gamma"}});
  if (param.layerType == RmsNormParam::RMS_NORM_POSTNORM) return {inputs, {"output"}};
  return {inputs, {"output", "resOut"}};
}

class RmsNorm final : public AtbKernel {
 public:
  explicit RmsNorm(const RmsNormParam& param) : RmsNorm(param, tensors_of(param)) {}

  std::vector<AtbDesc> infer(const AtbInputs& in) const override {
    const c10::IntArrayRef x = in.shape("x"), gamma = in.shape("gamma");
    if (with_rstd()) {
      EXPECT_OR(ERROR_INVALID_TENSOR_DIM,
                gamma.size() <= x.size() && gamma == x.slice(x.size() - gamma.size()),
                "gamma has shape ", gamma, ", expected the last sizes of x, ", x);
    } else {
      check_last(in, "gamma");
    }
    for (const char* const other : {"beta", "bias"}) {
      if (has(in, other)) check_last(in, other);
    }
    if (has(in, "resIn")) {
      EXPECT_OR(ERROR_INVALID_TENSOR_DIM, in.shape("resIn") == x, "resIn has shape ",
                in.shape("resIn"), ", expected the shape of x, ", x);
    }
    if (is_quantised(param_)) {
      for (const char* const other : {"scale", "offset"}) {
        EXPECT_OR(ERROR_INVALID_TENSOR_DIM, in.shape(other) == c10::IntArrayRef{1}, other,
                  " has shape ", in.shape(other), ", expected one number");
      }
      expect_dtypes(in, {{ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT16, ACL_INT8},
                         {ACL_BF16, ACL_BF16, ACL_BF16, ACL_BF16, ACL_INT8}});
      return {described(ACL_INT8, x)};
    }
    if (with_rstd()) {
      expect_dtypes(in, {AtbDtypes(2, ACL_FLOAT)});
      std::vector<int64_t> rows(x.begin(), x.end());
      std::fill_n(rows.rbegin(), gamma.size(), 1);
      return {in["x"], described(ACL_FLOAT, rows)};
    }
    expect_dtypes(in, {AtbDtypes(inputs.size(), ACL_FLOAT16), AtbDtypes(inputs.size(), ACL_BF16)});
    return std::vector<AtbDesc>(outputs.size(), in["x"]);
  }

  // Everything is computed in FLOAT, and each result is rounded once.
  void compute(const AtbTensors& tensors) const override {
    at::Tensor x = wide(tensors["x"]);
    if (has(tensors.in, "bias")) x = x + wide(tensors["bias"]);
    if (has(tensors.in, "resIn")) x = x + wide(tensors["resIn"]);
    const at::Tensor& gamma = tensors["gamma"];
    const int64_t dims = with_rstd() ? gamma.dim() : 1;
    std::vector<int64_t> last;
    for (int64_t i = 1; i <= dims; ++i) last.push_back(-i);
    const at::Tensor rstd = (x.square().mean(last, /*keepdim=*/true) + epsilon()).rsqrt();
    const bool is_gemma = param_.layerType == RmsNormParam::RMS_NORM_NORM &&
                          param_.normParam.modelType == RmsNormParam::GEMMA_MODEL;
    at::Tensor result = x * rstd * (is_gemma ? wide(gamma) + 1 : wide(gamma));
    if (is_quantised(param_)) {
      result = (result + wide(tensors["beta"])) / wide(tensors["scale"]) + tensors["offset"];
      result = result.round().clamp(-128, 127);
    }
    tensors.outputs[0].copy_(result);
    if (outputs.size() > 1) tensors.outputs[1].copy_(with_rstd() ? rstd : x);
  }

 private:
  RmsNorm(const RmsNormParam& param, RmsNormTensors tensors)
      : AtbKernel("RmsNormOperation", std::move(tensors.inputs), std::move(tensors.outputs)),
        param_(param) {
    const auto type = param.layerType;
    EXPECT_OR(ERROR_INVALID_PARAM,
              type > RmsNormParam::RMS_NORM_UNDEFINED && type <= RmsNormParam::RMS_NORM_POSTNORM,
              "layerType is ", type, ", expected 1 to 3");
    const auto& norm = param.normParam;
    const bool is_quantised_norm = is_quantised(param);
    if (type == RmsNormParam::RMS_NORM_NORM) {
      EXPECT_OR(ERROR_INVALID_PARAM, !norm.rstd || !is_quantised_norm,
                "rstd is true and quantType is ", norm.quantType, ", expected one of them");
      if (norm.dynamicQuantType != atb::infer::DYNAMIC_QUANT_UNDEFINED) {
        refuse_parameters(name, {"dynamicQuantType is ", norm.dynamicQuantType});
      }
    } else if (is_quantised_norm) {
      refuse_parameters(name, {"layerType is ", type, " and quantType is 2"});
    }
  }

  bool with_rstd() const {
    return param_.layerType == RmsNormParam::RMS_NORM_NORM && param_.normParam.rstd;
  }
  double epsilon() const {
    switch (param_.layerType) {
      case RmsNormParam::RMS_NORM_NORM: return param_.normParam.epsilon;
      case RmsNormParam::RMS_NORM_PRENORM: return param_.preNormParam.epsilon;
      default: return param_.postNormParam.epsilon;
    }
  }
  static bool has(const AtbInputs& in, const char* name) {
    return in.index(name) < in.tensors.size();
  }

  // Requires the elements of the last dimension of x, in any number of dimensions of 1 before it.
  static void check_last(const AtbInputs& in, const char* name) {
    const c10::IntArrayRef x = in.shape("x"), other = in.shape(name);
    const bool is_row =
        std::all_of(other.begin(), other.end() - 1, [](int64_t size) { return size == 1; });
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, is_row && other.back() == x.back(), name, " has shape ",
              other, ", expected ", x.back(), " elements, as x has in the last dimension");
  }

  RmsNormParam param_;
};

}  // namespace
}  // namespace aclnn_host

ATB_OPERATION(atb::infer::RmsNormParam, aclnn_host::RmsNorm, "RmsNormOperation")

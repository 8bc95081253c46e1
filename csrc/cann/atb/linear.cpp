// Linear: a product of matrices, with a bias, or added to the output.
#include "cann/atb/atb_operation.h"

namespace aclnn_host {
namespace {

using atb::infer::LinearParam;

const char* third_of(const LinearParam& param) {
  return param.enAccum ? "accum" : "bias";
}

class Linear final : public AtbKernel {
 public:
  explicit Linear(const LinearParam& param)
      : AtbKernel("LinearOperation",
                  param.enAccum || param.hasBias
                      ? std::vector<AtbTensor>{{"x"}, {"weight"}, {third_of(param)}}
                      : std::vector<AtbTensor>{{"x"}, {"weight"}},
                  {"output"}),
        param_(param) {
    EXPECT_OR(ERROR_INVALID_PARAM, !param.enAccum || !param.hasBias,
              "enAccum and hasBias are true, expected one of them");
    if (param.matmulType != LinearParam::MATMUL_UNDEFINED) {
      refuse_parameters(name, {"matmulType is ", param.matmulType});
    }
    if (param.outDataType != ACL_DT_UNDEFINED || param.quantMode != LinearParam::QUANT_UNDEFINED) {
      refuse_parameters(name, {"outDataType is ", param.outDataType, " and quantMode is ",
                               param.quantMode, ", a product of quantised matrices"});
    }
  }

  std::vector<AtbDesc> infer(const AtbInputs& in) const override {
    expect_rank(in, "x", {2, 3});
    expect_rank(in, "weight", {2, 3});
    EXPECT_OR(ERROR_INVALID_TENSOR_FORMAT, in["weight"].format != ACL_FORMAT_FRACTAL_NZ,
              "weight has the format FRACTAL_NZ, which the host CANN does not compute here; cast "
              "the tensor to ND");
    const c10::IntArrayRef x = in.shape("x"), weight = in.shape("weight");
    const size_t rank = x.size();
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM_NUM, weight.size() <= rank, "weight has ", weight.size(),
              " dimensions, expected at most those of x, ", rank);
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, weight.size() == 2 || weight[0] == x[0],
              "weight has shape ", weight, ", expected the batch of x, ", x);
    const auto [rows, depth] = sides_of(x, param_.transposeA);
    const auto [weight_depth, columns] = sides_of(weight, param_.transposeB);
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, weight_depth == depth, "weight has shape ", weight,
              ", expected a depth of ", depth, " as x has, whose shape is ", x);
    std::vector<int64_t> shape(x.begin(), x.end());
    shape[rank - 2] = rows;
    shape[rank - 1] = columns;
    if (param_.enAccum) {
      const c10::IntArrayRef accum = in.shape("accum");
      EXPECT_OR(ERROR_INVALID_TENSOR_DIM, accum == shape, "accum has shape ", accum, ", expected ",
                shape);
      expect_dtypes(in, {{ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT}, {ACL_BF16, ACL_BF16, ACL_FLOAT}});
      return {described(ACL_FLOAT, shape)};
    }
    if (param_.hasBias) {
      expect_rank(in, "bias", {1, 2});
      const c10::IntArrayRef bias = in.shape("bias");
      const int64_t batch = weight.size() == 3 ? weight[0] : 1;
      EXPECT_OR(ERROR_INVALID_TENSOR_DIM,
                bias.back() == columns && (bias.size() == 1 ? batch == 1 : bias[0] == batch),
                "bias has shape ", bias, ", expected ", batch, " rows of ", columns);
      expect_dtypes(in, {{ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT16},
                         {ACL_BF16, ACL_BF16, ACL_BF16},
                         {ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT},
                         {ACL_BF16, ACL_BF16, ACL_FLOAT}});
    } else {
      expect_dtypes(in, {{ACL_FLOAT16, ACL_FLOAT16}, {ACL_BF16, ACL_BF16}, {ACL_FLOAT, ACL_FLOAT}});
    }
    return {described(in["x"].dtype, shape)};
  }

  // Everything is computed in FLOAT, and the result is rounded once.
  void compute(const AtbTensors& tensors) const override {
    const auto side = [&](const char* of, bool is_transposed) {
      const at::Tensor matrix = wide(tensors[of]);
      return is_transposed ? matrix.transpose(-2, -1) : matrix;
    };
    at::Tensor product =
        at::matmul(side("x", param_.transposeA), side("weight", param_.transposeB));
    if (param_.hasBias) {
      const at::Tensor bias = wide(tensors["bias"]);
      product = product + (bias.dim() == 2 && product.dim() == 3 ? bias.unsqueeze(1) : bias);
    }
    if (param_.enAccum) product = product + tensors["accum"];
    tensors.outputs[0].copy_(product);
  }

 private:
  struct Sides {
    int64_t first;
    int64_t second;
  };
  // The last two sizes, as the product sees them.
  static Sides sides_of(c10::IntArrayRef shape, bool is_transposed) {
    const int64_t first = shape[shape.size() - 2], second = shape.back();
    return is_transposed ? Sides{second, first} : Sides{first, second};
  }

  LinearParam param_;
};

}  // namespace
}  // namespace aclnn_host

ATB_OPERATION(atb::infer::LinearParam, aclnn_host::Linear, "LinearOperation")

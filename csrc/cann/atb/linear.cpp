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
    if (is_blocked(in["weight"])) {
      expect_rank(in, "weight", {2, 3, 4});
    } else {
      expect_rank(in, "weight", {2, 3});
    }
    const std::vector<int64_t> of_weight = weight_shape(in["weight"]);
    const c10::IntArrayRef x = in.shape("x"), weight = of_weight;
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
    const auto side = [&](const at::Tensor& matrix, bool is_transposed) {
      return wide(is_transposed ? matrix.transpose(-2, -1) : matrix);
    };
    at::Tensor product = at::matmul(side(tensors["x"], param_.transposeA),
                                    side(matrix_of(tensors), param_.transposeB));
    if (param_.hasBias) {
      const at::Tensor bias = wide(tensors["bias"]);
      product = product + (bias.dim() == 2 && product.dim() == 3 ? bias.unsqueeze(1) : bias);
    }
    if (param_.enAccum) product = product + tensors["accum"];
    tensors.outputs[0].copy_(product);
  }

 private:
  // In FRACTAL_NZ, blocks of 16 columns: (columns / 16, rows, 16) for a matrix (rows, columns).
  static constexpr int64_t kColumns = 16;
  static bool is_blocked(const AtbDesc& desc) { return desc.format == ACL_FORMAT_FRACTAL_NZ; }

  // The shape of the weight as a matrix, or as a batch of them. A weight in FRACTAL_NZ has it, or
  // the shape of its blocks, with four dimensions.
  static std::vector<int64_t> weight_shape(const AtbDesc& desc) {
    const c10::IntArrayRef shape = shape_of(desc);
    if (!is_blocked(desc)) return shape.vec();
    if (shape.size() < 4) {
      EXPECT_OR(ERROR_INVALID_TENSOR_DIM,
                shape.back() % kColumns == 0 && shape[shape.size() - 2] % kColumns == 0,
                "weight has shape ", shape, " in FRACTAL_NZ, expected multiples of ", kColumns);
      return shape.vec();
    }
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, shape[3] == kColumns, "weight has shape ", shape,
              " in FRACTAL_NZ, expected ", kColumns, " in dimension 3");
    if (shape[0] == 1) return {shape[2], shape[1] * kColumns};
    return {shape[0], shape[2], shape[1] * kColumns};
  }
  static at::Tensor matrix_of(const AtbTensors& tensors) {
    const AtbDesc& desc = tensors.in["weight"];
    const at::Tensor& weight = tensors["weight"];
    if (!is_blocked(desc)) return weight;
    const std::vector<int64_t> shape = weight_shape(desc);
    const int64_t rows = shape[shape.size() - 2], columns = shape.back();
    return weight.view({-1, columns / kColumns, rows, kColumns}).transpose(1, 2).reshape(shape);
  }

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

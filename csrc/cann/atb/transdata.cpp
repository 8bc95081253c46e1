// Transdata: a matrix as the blocks of FRACTAL_NZ, and back.
#include "cann/atb/atb_operation.h"

namespace aclnn_host {
namespace {

using atb::infer::TransdataParam;

constexpr int64_t kBlockRows = 16;

int64_t rounded_up(int64_t size, int64_t factor) {
  return (size + factor - 1) / factor * factor;
}

// Blocks (batch, columns / width, rows, width) of a matrix (batch, rows, columns), whose rows and
// columns are padded with zeros. The width of a block is 32 bytes.
class Transdata final : public AtbKernel {
 public:
  explicit Transdata(const TransdataParam& param)
      : AtbKernel("TransdataOperation", {{"x"}}, {"output"}), param_(param) {}

  std::vector<AtbDesc> infer(const AtbInputs& in) const override {
    const c10::IntArrayRef x = in.shape("x");
    if (param_.transdataType == TransdataParam::ND_TO_FRACTAL_NZ) {
      expect_rank(in, "x", {2, 3});
      expect_dtypes(in, {{ACL_FLOAT16}, {ACL_INT8}, {ACL_BF16}});
      const int64_t width = in["x"].dtype == ACL_INT8 ? 32 : 16;
      AtbDesc out =
          described(in["x"].dtype, {x.size() == 3 ? x[0] : 1, rounded_up(x.back(), width) / width,
                                    rounded_up(x[x.size() - 2], kBlockRows), width});
      out.format = ACL_FORMAT_FRACTAL_NZ;
      return {out};
    }
    EXPECT_OR(ERROR_INVALID_PARAM, param_.transdataType == TransdataParam::FRACTAL_NZ_TO_ND,
              "transdataType is ", param_.transdataType, ", expected 1 or 2");
    expect_rank(in, "x", {4});
    expect_dtypes(in, {{ACL_FLOAT16}, {ACL_BF16}});
    const atb::SVector<int64_t>& crops = param_.outCrops;
    EXPECT_OR(ERROR_INVALID_PARAM, crops.size() == 2, "outCrops has ", crops.size(),
              " numbers, expected rows and columns");
    const int64_t rows = x[2], columns = x[1] * x[3];
    EXPECT_OR(ERROR_INVALID_PARAM,
              rounded_up(crops[0], kBlockRows) == rows && rounded_up(crops[1], 16) == columns,
              "outCrops is [", crops[0], ", ", crops[1], "], expected numbers that fill blocks of ",
              rows, " rows and ", columns, " columns");
    return {described(in["x"].dtype, {x[0], crops[0], crops[1]})};
  }

  void compute(const AtbTensors& tensors) const override {
    const at::Tensor& x = tensors["x"];
    const at::Tensor& out = tensors.outputs[0];
    if (param_.transdataType == TransdataParam::ND_TO_FRACTAL_NZ) {
      const at::Tensor matrix = x.dim() == 2 ? x.unsqueeze(0) : x;
      // The blocks as a padded matrix.
      const at::Tensor padded =
          at::zeros({out.size(0), out.size(2), out.size(1) * out.size(3)}, x.options());
      padded.narrow(1, 0, matrix.size(1)).narrow(2, 0, matrix.size(2)).copy_(matrix);
      out.copy_(padded.unflatten(2, {out.size(1), out.size(3)}).transpose(1, 2));
    } else {
      const at::Tensor padded = x.transpose(1, 2).flatten(2);
      out.copy_(padded.narrow(1, 0, out.size(1)).narrow(2, 0, out.size(2)));
    }
  }

 private:
  TransdataParam param_;
};

}  // namespace
}  // namespace aclnn_host

ATB_OPERATION(atb::infer::TransdataParam, aclnn_host::Transdata, "TransdataOperation")

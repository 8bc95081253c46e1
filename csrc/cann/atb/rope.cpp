// Rope: rotary position embedding of queries and keys.
#include "cann/atb/atb_operation.h"
#include "cann/rows/attention/turns.h"

namespace aclnn_host {
namespace {

using atb::infer::RopeParam;

// Each head has rotaryCoeff / 2 parts, and in each part the elements of the first half pair with
// those of the second: 2 pairs the halves of a head, the size of a head pairs neighbours. A pair
// (a, b) becomes (a cos - b sin, b cos + a sin), with the cos and sin of each element's place.
class Rope final : public AtbKernel {
 public:
  explicit Rope(const RopeParam& param)
      : AtbKernel("RopeOperation", {{"query"}, {"key"}, {"cos"}, {"sin"}, {"seqLen"}},
                  {"queryOut", "keyOut"}),
        param_(param) {
    if (param.cosFormat == 1) refuse_parameters(name, {"cosFormat is 1"});
  }

  std::vector<AtbDesc> infer(const AtbInputs& in) const override {
    for (const char* const name : {"query", "key"}) expect_rank(in, name, {2, 4});
    for (const char* const name : {"cos", "sin"}) expect_rank(in, name, {2});
    expect_rank(in, "seqLen", {1});
    const auto [tokens, size] = rows_of(in, "query");
    const auto [key_tokens, key_size] = rows_of(in, "key");
    EXPECT_OR(ERROR_INVALID_TENSOR_SIZE, key_tokens == tokens, "key has ", key_tokens,
              " tokens, expected ", tokens, ", as query has");
    const c10::IntArrayRef cos = in.shape("cos");
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, cos[1] >= 16 && cos[1] <= 4096, "cos has shape ", cos,
              ", expected 16 to 4096 in dimension 1");
    EXPECT_OR(ERROR_INVALID_TENSOR_SIZE, in.shape("sin") == cos, "sin has shape ", in.shape("sin"),
              ", expected the shape of cos, ", cos);
    EXPECT_OR(ERROR_INVALID_TENSOR_SIZE, cos[0] >= tokens, "cos has shape ", cos, ", expected ",
              tokens, " rows, one for each token");
    EXPECT_OR(ERROR_INVALID_TENSOR_SIZE, size % key_size == 0, "a token of query has ", size,
              " elements, expected a multiple of those of key, ", key_size);
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, key_size % cos[1] == 0, "a token of key has ", key_size,
              " elements, expected a multiple of the size of a head, ", cos[1]);
    const int64_t parts = param_.rotaryCoeff;
    EXPECT_OR(ERROR_INVALID_PARAM, parts == 2 || parts == 4 || parts == cos[1], "rotaryCoeff is ",
              parts, ", expected 2, 4 or the size of a head, ", cos[1]);
    EXPECT_OR(ERROR_INVALID_PARAM, cos[1] % parts == 0, "a head has ", cos[1],
              " elements, expected a multiple of rotaryCoeff, ", parts);
    EXPECT_OR(ERROR_INVALID_PARAM, param_.cosFormat == 0, "cosFormat is ", param_.cosFormat,
              ", expected 0 or 1");
    expect_dtypes(in, {{ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT16, ACL_INT32},
                       {ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT16, ACL_UINT32},
                       {ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT, ACL_FLOAT, ACL_INT32},
                       {ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT, ACL_FLOAT, ACL_UINT32},
                       {ACL_BF16, ACL_BF16, ACL_BF16, ACL_BF16, ACL_INT32},
                       {ACL_BF16, ACL_BF16, ACL_BF16, ACL_BF16, ACL_UINT32}});
    return {in["query"], in["key"]};
  }

  void compute(const AtbTensors& tensors) const override {
    size_t output = 0;
    for (const char* const name : {"query", "key"}) {
      const at::Tensor& out = tensors.outputs[output++];
      out.copy_(rotated(tensors[name], tensors["cos"], tensors["sin"]).view(out.sizes()));
    }
  }

 private:
  struct Rows {
    int64_t tokens;
    int64_t size;
  };
  static Rows rows_of(const AtbInputs& in, const char* name) {
    const c10::IntArrayRef shape = in.shape(name);
    if (shape.size() == 2) return {shape[0], shape[1]};
    return {shape[0] * shape[1], shape[2] * shape[3]};
  }

  at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) const {
    const int64_t head = cos.size(1),
                  heads = x.dim() == 4 ? x.size(2) * x.size(3) / head : x.size(1) / head;
    const at::Tensor by_head = wide(x).view({-1, heads, head});
    const int64_t tokens = by_head.size(0);
    const auto angles = [&](const at::Tensor& of) {
      return wide(of).narrow(0, 0, tokens).unsqueeze(1);
    };
    const at::Tensor turned = turned_halves(by_head.unflatten(-1, {param_.rotaryCoeff / 2,
                                                                   2 * head / param_.rotaryCoeff}))
                                  .flatten(-2);
    return by_head * angles(cos) + turned * angles(sin);
  }

  RopeParam param_;
};

}  // namespace
}  // namespace aclnn_host

ATB_OPERATION(atb::infer::RopeParam, aclnn_host::Rope, "RopeOperation")

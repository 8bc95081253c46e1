// GroupTopk: the k best groups of experts keep their values, and the others become 0.
#include "cann/atb/atb_operation.h"

namespace aclnn_host {
namespace {

using atb::infer::GroupTopkParam;

// A group is as good as its best value, or the sum of its n best. Of equal groups, the first wins.
class GroupTopk final : public AtbKernel {
 public:
  explicit GroupTopk(const GroupTopkParam& param)
      : AtbKernel("GroupTopkOperation", {{"token"}, {"idxArr"}}, {"output"}), param_(param) {
    EXPECT_OR(ERROR_INVALID_PARAM, param.groupMultiFlag <= GroupTopkParam::SUM_MULTI_MAX,
              "groupMultiFlag is ", param.groupMultiFlag, ", expected 0 or 1");
    EXPECT_OR(ERROR_INVALID_PARAM, !adds() || param.n >= 1, "n is ", param.n,
              ", expected 1 or more");
  }

  std::vector<AtbDesc> infer(const AtbInputs& in) const override {
    expect_rank(in, "token", {2});
    expect_rank(in, "idxArr", {1});
    expect_dtypes(in, {{ACL_FLOAT16, ACL_INT32}, {ACL_BF16, ACL_INT32}});
    const int64_t experts = in.shape("token")[1], groups = param_.groupNum;
    EXPECT_OR(ERROR_INVALID_PARAM, groups >= 1 && groups <= experts, "groupNum is ", groups,
              ", expected 1 to the number of experts, ", experts);
    EXPECT_OR(ERROR_INVALID_PARAM, param_.k >= 1 && param_.k <= groups, "k is ", param_.k,
              ", expected 1 to groupNum, ", groups);
    EXPECT_OR(ERROR_INVALID_PARAM, !adds() || param_.n <= experts / groups, "n is ", param_.n,
              ", expected at most the experts of a group, ", experts / groups);
    EXPECT_OR(ERROR_INVALID_PARAM, experts % groups == 0, "token has ", experts,
              " experts, expected a multiple of groupNum, ", groups);
    expect_size(in, "idxArr", 0, 1024, "the most experts");
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, experts <= 1024, "token has ", experts,
              " experts, expected at most 1024");
    return {in["token"]};
  }

  void compute(const AtbTensors& tensors) const override {
    const at::Tensor& token = tensors["token"];
    const int64_t groups = param_.groupNum;
    const at::Tensor by_group = token.view({token.size(0), groups, token.size(1) / groups});
    const at::Tensor values = wide(by_group);
    const at::Tensor score =
        adds() ? std::get<0>(values.topk(param_.n, -1)).sum(-1) : values.amax(-1);
    constexpr std::optional<bool> kStable = true;
    const at::Tensor order = std::get<1>(at::sort(score, kStable, /*dim=*/-1, /*descending=*/true));
    const at::Tensor is_left =
        at::ones_like(score, at::kBool).scatter(-1, order.narrow(-1, 0, param_.k), 0);
    tensors.outputs[0].copy_(by_group.masked_fill(is_left.unsqueeze(-1), 0).view(token.sizes()));
  }

 private:
  bool adds() const { return param_.groupMultiFlag == GroupTopkParam::SUM_MULTI_MAX; }

  GroupTopkParam param_;
};

}  // namespace
}  // namespace aclnn_host

ATB_OPERATION(atb::infer::GroupTopkParam, aclnn_host::GroupTopk, "GroupTopkOperation")

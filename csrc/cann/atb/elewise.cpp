// Elewise: functions of the elements of one or two tensors.
#include "cann/atb/atb_operation.h"

namespace aclnn_host {
namespace {

using atb::infer::ElewiseParam;
using enum ElewiseParam::ElewiseType;

std::vector<AtbTensor> elewise_inputs(const ElewiseParam& param) {
  switch (param.elewiseType) {
    case ELEWISE_QUANT_PER_CHANNEL: return {{"x"}, {"scale"}, optional("offset")};
    case ELEWISE_ADD:
    case ELEWISE_MUL:
    case ELEWISE_REALDIV:
    case ELEWISE_LOGICAL_AND:
    case ELEWISE_LOGICAL_OR:
    case ELEWISE_LESS:
    case ELEWISE_GREATER:
    case ELEWISE_SUB:
    case ELEWISE_EQUAL: return {{"x"}, {"y"}};
    default: return {{"x"}};
  }
}

// Rounds to INT8, to nearest, ties to even.
at::Tensor as_int8(const at::Tensor& x) {
  return x.round().clamp(-128, 127).to(at::kChar);
}

class Elewise final : public AtbKernel {
 public:
  explicit Elewise(const ElewiseParam& param)
      : AtbKernel("ElewiseOperation", elewise_inputs(param), {"output"}), param_(param) {
    const auto type = param.elewiseType;
    EXPECT_OR(ERROR_INVALID_PARAM, type > ELEWISE_UNDEFINED && type < ELEWISE_TYPE_MAX,
              "elewiseType is ", type, ", expected 1 to 20");
    if (type == ELEWISE_DEQUANT_PER_CHANNEL || type == ELEWISE_DYNAMIC_QUANT) {
      refuse_parameters(name, {"elewiseType is ", type});
    }
  }

  std::vector<AtbDesc> infer(const AtbInputs& in) const override {
    AtbDesc out = in["x"];
    switch (param_.elewiseType) {
      case ELEWISE_CAST:
        out.dtype = cast_type(out.dtype);
        expect_dtypes(in, {{ACL_FLOAT16}, {ACL_FLOAT}, {ACL_INT32}, {ACL_INT64}, {ACL_BF16}});
        break;
      case ELEWISE_QUANT:
        EXPECT_OR(ERROR_INVALID_TENSOR_DIM, in.shape("x").back() % 32 == 0, "x has shape ",
                  in.shape("x"), ", expected a multiple of 32 in the last dimension");
        expect_dtypes(in, {{ACL_FLOAT16}});
        out.dtype = ACL_INT8;
        break;
      case ELEWISE_QUANT_PER_CHANNEL:
        expect_dtypes(in, {{ACL_FLOAT16, ACL_FLOAT16, ACL_INT8}, {ACL_BF16, ACL_BF16, ACL_INT8}});
        for (const char* const other : {"scale", "offset"}) {
          if (in.has(other)) expect_broadcast(in, other);
        }
        out.dtype = ACL_INT8;
        break;
      case ELEWISE_LOGICAL_NOT: expect_dtypes(in, {{ACL_BOOL}, {ACL_INT8}}); break;
      case ELEWISE_LOGICAL_AND:
      case ELEWISE_LOGICAL_OR:
        expect_dtypes(in, {{ACL_BOOL, ACL_BOOL}, {ACL_INT8, ACL_INT8}});
        out = described(ACL_INT8, both(in));
        break;
      case ELEWISE_LESS:
      case ELEWISE_GREATER:
      case ELEWISE_EQUAL:
        expect_numbers(in);
        out = described(ACL_INT8, both(in));
        break;
      case ELEWISE_ADD:
      case ELEWISE_MUL:
      case ELEWISE_REALDIV:
      case ELEWISE_SUB:
        expect_numbers(in);
        out = described(out.dtype, both(in));
        break;
      default: expect_dtypes(in, {{ACL_FLOAT16}, {ACL_FLOAT}, {ACL_BF16}}); break;
    }
    return {out};
  }

  void compute(const AtbTensors& tensors) const override {
    const at::Tensor& out = tensors.outputs[0];
    const at::Tensor x = wide(tensors["x"]);
    const at::Tensor y =
        param_.elewiseType != ELEWISE_QUANT_PER_CHANNEL && tensors.inputs.size() > 1
            ? wide(tensors["y"])
            : at::Tensor();
    switch (param_.elewiseType) {
      case ELEWISE_MULS: out.copy_(x * c10::Scalar(param_.mulsParam.varAttr)); break;
      case ELEWISE_COS: out.copy_(x.cos()); break;
      case ELEWISE_SIN: out.copy_(x.sin()); break;
      case ELEWISE_NEG: out.copy_(-x); break;
      case ELEWISE_TANH: out.copy_(x.tanh()); break;
      case ELEWISE_QUANT:
        out.copy_(as_int8(x / param_.quantParam.inputScale + param_.quantParam.inputOffset));
        break;
      case ELEWISE_QUANT_PER_CHANNEL: {
        const at::Tensor steps = (x / wide(tensors["scale"])).round();
        out.copy_(as_int8(tensors.has("offset") ? steps + tensors["offset"] : steps));
        break;
      }
      case ELEWISE_LOGICAL_NOT: out.copy_(x.logical_not()); break;
      case ELEWISE_ADD: out.copy_(x + y); break;
      case ELEWISE_MUL: out.copy_(x * y); break;
      case ELEWISE_REALDIV: out.copy_(x / y); break;
      case ELEWISE_SUB: out.copy_(x - y); break;
      case ELEWISE_LOGICAL_AND: out.copy_(x.logical_and(y)); break;
      case ELEWISE_LOGICAL_OR: out.copy_(x.logical_or(y)); break;
      case ELEWISE_LESS: out.copy_(x < y); break;
      case ELEWISE_GREATER: out.copy_(x > y); break;
      case ELEWISE_EQUAL: out.copy_(x == y); break;
      default: out.copy_(tensors["x"]); break;  // ELEWISE_CAST
    }
  }

 private:
  aclDataType cast_type(aclDataType from) const {
    const aclDataType to = param_.outTensorType;
    if (to == ACL_DT_UNDEFINED) return from == ACL_FLOAT ? ACL_FLOAT16 : ACL_FLOAT;
    EXPECT_OR(ERROR_INVALID_PARAM,
              to == ACL_FLOAT16 || to == ACL_FLOAT || to == ACL_INT32 || to == ACL_INT64 ||
                  to == ACL_BF16,
              "outTensorType is ", to, ", expected FLOAT, FLOAT16, BFLOAT16, INT32 or INT64");
    return to;
  }

  static void expect_numbers(const AtbInputs& in) {
    expect_dtypes(in, {{ACL_FLOAT16, ACL_FLOAT16},
                       {ACL_FLOAT, ACL_FLOAT},
                       {ACL_BF16, ACL_BF16},
                       {ACL_INT32, ACL_INT32},
                       {ACL_INT64, ACL_INT64}});
  }

  // The shape to which both inputs are broadcast.
  static std::vector<int64_t> both(const AtbInputs& in) {
    const c10::IntArrayRef x = in.shape("x"), y = in.shape("y");
    std::vector<int64_t> shape(std::max(x.size(), y.size()));
    for (size_t i = 1; i <= shape.size(); ++i) {
      const int64_t a = i <= x.size() ? x[x.size() - i] : 1;
      const int64_t b = i <= y.size() ? y[y.size() - i] : 1;
      EXPECT_OR(ERROR_INVALID_TENSOR_DIM, a == b || a == 1 || b == 1, "y has shape ", y,
                ", which does not broadcast with that of x, ", x);
      shape[shape.size() - i] = std::max(a, b);
    }
    return shape;
  }

  // Requires a tensor that broadcasts to x.
  static void expect_broadcast(const AtbInputs& in, const char* name) {
    const c10::IntArrayRef x = in.shape("x"), other = in.shape(name);
    bool fits = other.size() <= x.size();
    for (size_t i = 1; fits && i <= other.size(); ++i) {
      const int64_t size = other[other.size() - i];
      fits = size == 1 || size == x[x.size() - i];
    }
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, fits, name, " has shape ", other,
              ", which does not broadcast to that of x, ", x);
  }

  ElewiseParam param_;
};

}  // namespace
}  // namespace aclnn_host

ATB_OPERATION(atb::infer::ElewiseParam, aclnn_host::Elewise, "ElewiseOperation")

// ATB as C++ programs call it: its statuses, the texts of refusals, shapes, contexts, and values of
// what torch_npu does not reach (tests/npu/test_atb.py tests the rest).
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "atb/atb_infer.h"
#include "runtime_support.h"

// Operations that the host CANN's headers do not declare.
namespace atb {
struct GraphParam {};
namespace infer {
struct SoftmaxParam {};
}  // namespace infer
namespace train {
struct LaserAttentionParam {};
}  // namespace train
namespace common {
struct EventParam {};
}  // namespace common
}  // namespace atb

namespace {

using namespace atb::infer;

// Runs the body on device 0, and checks that it destroys its objects.
void on_device(const std::function<void()>& body) {
  CHECK_EQ(aclInit(nullptr), ACL_SUCCESS);
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  leaves_nothing(body);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  CHECK_EQ(aclFinalize(), ACL_SUCCESS);
}

atb::TensorDesc desc_of(aclDataType dtype, const std::vector<int64_t>& shape) {
  atb::TensorDesc desc;
  desc.dtype = dtype;
  desc.format = ACL_FORMAT_ND;
  desc.shape.dimNum = shape.size();
  for (size_t i = 0; i < shape.size() && i < atb::MAX_DIM; ++i) desc.shape.dims[i] = shape[i];
  return desc;
}

// The tensors of a test, in device memory, or in host memory for lists.
class Tensors {
 public:
  ~Tensors() {
    for (void* memory : memory_) aclrtFree(memory);
  }
  template <class T>
  atb::Tensor on_device(aclDataType dtype, const std::vector<int64_t>& shape,
                        const std::vector<T>& values) {
    atb::Tensor tensor;
    tensor.desc = desc_of(dtype, shape);
    tensor.dataSize = atb::Utils::GetTensorSize(tensor);
    const size_t size = values.size() * sizeof(T);
    CHECK_EQ(size, tensor.dataSize);
    CHECK_EQ(aclrtMalloc(&tensor.deviceData, size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    memory_.push_back(tensor.deviceData);
    CHECK_EQ(aclrtMemcpy(tensor.deviceData, size, values.data(), size, ACL_MEMCPY_HOST_TO_DEVICE),
             ACL_SUCCESS);
    return tensor;
  }
  // Values of FLOAT16 that it holds exactly.
  atb::Tensor halves(const std::vector<int64_t>& shape, const std::vector<float>& values) {
    std::vector<aclFloat16> bits;
    for (const float value : values) bits.push_back(aclFloatToFloat16(value));
    return on_device(ACL_FLOAT16, shape, bits);
  }
  atb::Tensor floats(const std::vector<int64_t>& shape, const std::vector<float>& values) {
    return on_device(ACL_FLOAT, shape, values);
  }
  atb::Tensor integers(const std::vector<int32_t>& values) {
    return on_device(ACL_INT32, {static_cast<int64_t>(values.size())}, values);
  }
  atb::Tensor list(const std::vector<int32_t>& values) {
    atb::Tensor tensor;
    tensor.desc = desc_of(ACL_INT32, {static_cast<int64_t>(values.size())});
    tensor.dataSize = values.size() * sizeof(int32_t);
    tensor.hostData = lists_.emplace_back(values).data();
    return tensor;
  }

 private:
  std::vector<void*> memory_;
  std::deque<std::vector<int32_t>> lists_;
};

template <class T>
std::vector<T> values_of(const atb::Tensor& tensor) {
  std::vector<T> values(tensor.dataSize / sizeof(T));
  CHECK_EQ(aclrtMemcpy(values.data(), tensor.dataSize, tensor.deviceData, tensor.dataSize,
                       ACL_MEMCPY_DEVICE_TO_HOST),
           ACL_SUCCESS);
  return values;
}
std::vector<float> numbers_of(const atb::Tensor& tensor) {
  if (tensor.desc.dtype == ACL_FLOAT) return values_of<float>(tensor);
  std::vector<float> numbers;
  for (const aclFloat16 bits : values_of<aclFloat16>(tensor)) {
    numbers.push_back(aclFloat16ToFloat(bits));
  }
  return numbers;
}
void check_numbers(const atb::Tensor& tensor, const std::vector<float>& expected) {
  const std::vector<float> got = numbers_of(tensor);
  CHECK_EQ(got.size(), expected.size());
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    CHECK(std::abs(got[i] - expected[i]) <= 0x1p-10f * std::max(1.0f, std::abs(expected[i])));
  }
}

using Pack = std::vector<atb::Tensor>;

atb::VariantPack pack_of(const Pack& inputs, const Pack& outputs) {
  atb::VariantPack pack;
  for (const atb::Tensor& each : inputs) pack.inTensors.push_back(each);
  for (const atb::Tensor& each : outputs) pack.outTensors.push_back(each);
  return pack;
}

// An operation with a context on a stream of its own.
class Call {
 public:
  template <class Parameters>
  explicit Call(const Parameters& parameters) {
    CHECK_EQ(atb::CreateOperation(parameters, &operation), atb::NO_ERROR);
    CHECK_EQ(atb::CreateContext(&context), atb::NO_ERROR);
    CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK_EQ(context->SetExecuteStream(stream), atb::NO_ERROR);
  }
  ~Call() {
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK_EQ(atb::DestroyOperation(operation), atb::NO_ERROR);
    CHECK_EQ(atb::DestroyContext(context), atb::NO_ERROR);
  }

  // The first status that is not 0, of both stages.
  atb::Status operator()(const Pack& inputs, const Pack& outputs) const {
    const atb::VariantPack pack = pack_of(inputs, outputs);
    uint64_t size = 1;
    if (const atb::Status status = operation->Setup(pack, size, context)) return status;
    CHECK_EQ(size, 0u);
    return operation->Execute(pack, nullptr, size, context);
  }
  void runs(const Pack& inputs, const Pack& outputs) const {
    CHECK_EQ((*this)(inputs, outputs), atb::NO_ERROR);
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  }
  void refuses(const Pack& inputs, const Pack& outputs, atb::Status status,
               const std::string& text) const {
    messages();
    CHECK_EQ((*this)(inputs, outputs), status);
    const std::string found = messages();
    if (!CHECK(contains(found, text))) std::fprintf(stderr, "%s\n", found.c_str());
  }

  atb::Operation* operation = nullptr;
  atb::Context* context = nullptr;
  aclrtStream stream = nullptr;
};

// The status of CreateOperation, with its text.
template <class Parameters>
void check_refused(const Parameters& parameters, const std::string& text) {
  atb::Operation* operation = nullptr;
  messages();
  CHECK_EQ(atb::CreateOperation(parameters, &operation), atb::ERROR_INVALID_PARAM);
  CHECK(operation == nullptr);
  const std::string found = messages();
  if (!CHECK(contains(found, text))) std::fprintf(stderr, "%s\n", found.c_str());
}

// What the host CANN does not compute: an exception with the text.
template <class Parameters>
void check_not_computed(const Parameters& parameters, const std::string& text) {
  atb::Operation* operation = nullptr;
  std::string found;
  try {
    atb::CreateOperation(parameters, &operation);
  } catch (const std::runtime_error& error) {
    found = error.what();
  }
  CHECK(operation == nullptr);
  CHECK_EQ(found,
           text +
               ", which the host CANN does not compute; call an operator of CANN instead, or "
               "run this on an NPU with NNAL");
}

ElewiseParam elewise(ElewiseParam::ElewiseType type) {
  ElewiseParam param;
  param.elewiseType = type;
  return param;
}

}  // namespace

TEST(sizes_of_tensors) {
  CHECK_EQ(atb::Utils::GetTensorNumel(desc_of(ACL_FLOAT16, {2, 3})), 6u);
  CHECK_EQ(atb::Utils::GetTensorSize(desc_of(ACL_FLOAT16, {2, 3})), 12u);
  CHECK_EQ(atb::Utils::GetTensorSize(desc_of(ACL_DT_UNDEFINED, {2, 3})), 6u);
  // 0 for what has no size: a dimension of 0, too many, a product that overflows.
  CHECK_EQ(atb::Utils::GetTensorSize(desc_of(ACL_FLOAT, {2, 0})), 0u);
  CHECK_EQ(atb::Utils::GetTensorSize(desc_of(ACL_FLOAT, {})), 0u);
  CHECK_EQ(atb::Utils::GetTensorSize(desc_of(ACL_FLOAT, std::vector<int64_t>(9, 1))), 0u);
  CHECK_EQ(atb::Utils::GetTensorSize(desc_of(ACL_FLOAT, {INT64_MAX, 4})), 0u);
  CHECK_EQ(atb::Utils::GetTensorNumel(desc_of(ACL_FLOAT, {INT64_MAX, 4})), 0u);
  const float scales[] = {1.0f, -2.0f};
  uint64_t converted[2];
  atb::Utils::QuantParamConvert(scales, converted, 2);
  CHECK_EQ(converted[0], 0x3f800000u);
  CHECK_EQ(converted[1], 0xc0000000u);
}

TEST(a_vector_grows_to_256_elements) {
  atb::SVector<int64_t> vector = {1, 2};
  for (int64_t i = 3; i <= 256; ++i) vector.push_back(i);
  const atb::SVector<int64_t> copy = vector;
  CHECK_EQ(copy.size(), 256u);
  CHECK_EQ(copy.at(255), 256);
  CHECK(copy == vector);
  bool is_full = false;
  try {
    vector.push_back(257);
  } catch (const atb::MaxSizeExceeded&) {
    is_full = true;
  }
  CHECK(is_full);
  bool is_outside = false;
  try {
    vector.at(256);
  } catch (const std::out_of_range&) {
    is_outside = true;
  }
  CHECK(is_outside);
  atb::SVector<int64_t> small = {1, 3};
  small.insert(1, 2);
  CHECK(small == atb::SVector<int64_t>({1, 2, 3}));
  small = copy;
  CHECK(small == vector);
}

TEST(a_context_has_one_stream) {
  atb::Context* context = nullptr;
  CHECK_EQ(atb::CreateContext(nullptr), atb::ERROR_INVALID_PARAM);
  CHECK(contains(messages(), "CreateContext: context is null"));
  CHECK_EQ(atb::CreateContext(&context, 127, 32), atb::ERROR_INVALID_PARAM);
  CHECK(contains(messages(), "hostTilingBlockNum is not in [128, 1024]"));
  CHECK_EQ(atb::CreateContext(&context, 128, 1025), atb::ERROR_INVALID_PARAM);
  CHECK(contains(messages(), "deviceTilingBlockNum is not in [32, 1024]"));
  CHECK_EQ(atb::CreateContext(&context, 128, 32), atb::NO_ERROR);
  CHECK(context->GetExecuteStream() == nullptr);
  CHECK_EQ(context->SetExecuteStreams({nullptr, nullptr}), atb::ERROR_INVALID_PARAM);
  CHECK(contains(messages(), "runs an operation on one stream"));
  CHECK_EQ(context->SetExecuteType(atb::EXECUTE_PRELAUNCH), atb::ERROR_INVALID_PARAM);
  CHECK(contains(messages(), "submits a call in one step"));
  CHECK_EQ(context->SetExecuteType(atb::EXECUTE_NORMAL), atb::NO_ERROR);
  CHECK_EQ(atb::DestroyContext(context), atb::NO_ERROR);
  CHECK_EQ(atb::DestroyContext(nullptr), atb::NO_ERROR);
  CHECK_EQ(atb::DestroyOperation(nullptr), atb::NO_ERROR);
}

TEST(operations_that_are_not_computed_are_named) {
  check_not_computed(SoftmaxParam(), "atb::CreateOperation: the operation is Softmax");
  check_not_computed(atb::GraphParam(), "atb::CreateOperation: the operation is a graph");
  check_not_computed(atb::train::LaserAttentionParam(),
                     "atb::CreateOperation: the operation is LaserAttention");
  check_not_computed(atb::common::EventParam(), "atb::CreateOperation: the operation is Event");
}

TEST(parameters_that_are_not_computed_are_named) {
  ReshapeAndCacheParam cache;
  cache.compressType = ReshapeAndCacheParam::COMPRESS_TYPE_KVHEAD;
  check_not_computed(cache, "ReshapeAndCacheOperation: compressType is 1");
  RopeParam rope;
  rope.cosFormat = 1;
  check_not_computed(rope, "RopeOperation: cosFormat is 1");
  LinearParam linear;
  linear.matmulType = LinearParam::MATMUL_EIN_SUM;
  check_not_computed(linear, "LinearOperation: matmulType is 1");
  linear = {};
  linear.outDataType = ACL_FLOAT16;
  check_not_computed(linear,
                     "LinearOperation: outDataType is 1 and quantMode is 0, a product of quantised "
                     "matrices");
  check_not_computed(elewise(ElewiseParam::ELEWISE_DYNAMIC_QUANT),
                     "ElewiseOperation: elewiseType is 19");
  RmsNormParam norm;
  norm.layerType = RmsNormParam::RMS_NORM_PRENORM;
  norm.preNormParam.quantType = QUANT_INT8;
  check_not_computed(norm, "RmsNormOperation: layerType is 2 and quantType is 2");
  norm = {};
  norm.layerType = RmsNormParam::RMS_NORM_NORM;
  norm.normParam.quantType = QUANT_INT8;
  norm.normParam.dynamicQuantType = DYNAMIC_QUANT_SYMMETRIC;
  check_not_computed(norm, "RmsNormOperation: dynamicQuantType is 1");
  PagedAttentionParam paged;
  paged.headNum = 2;
  const auto paged_with = [&](auto set) {
    PagedAttentionParam changed = paged;
    set(changed);
    return changed;
  };
  check_not_computed(
      paged_with([](auto& p) { p.compressType = PagedAttentionParam::COMPRESS_TYPE_KVHEAD; }),
      "PagedAttentionOperation: compressType is 1");
  check_not_computed(
      paged_with([](auto& p) { p.scaleType = PagedAttentionParam::SCALE_TYPE_LOGN; }),
      "PagedAttentionOperation: scaleType is 1");
  check_not_computed(paged_with([](auto& p) { p.batchRunStatusEnable = true; }),
                     "PagedAttentionOperation: batchRunStatusEnable is true");
  check_not_computed(
      paged_with([](auto& p) { p.quantType = PagedAttentionParam::TYPE_QUANT_QKV_ONLINE; }),
      "PagedAttentionOperation: quantType is 3");
  SelfAttentionParam self;
  self.headNum = 2;
  check_not_computed(self, "SelfAttentionOperation: calcType is 0");
  self.calcType = SelfAttentionParam::PA_ENCODER;
  const auto self_with = [&](auto set) {
    SelfAttentionParam changed = self;
    set(changed);
    return changed;
  };
  check_not_computed(
      self_with([](auto& p) { p.quantType = SelfAttentionParam::TYPE_QUANT_QKV_ONLINE; }),
      "SelfAttentionOperation: quantType is 3");
  check_not_computed(self_with([](auto& p) { p.scaleType = SelfAttentionParam::SCALE_TYPE_LOGN; }),
                     "SelfAttentionOperation: scaleType is 1");
  check_not_computed(self_with([](auto& p) { p.inputLayout = TYPE_BNSD; }),
                     "SelfAttentionOperation: inputLayout is 1");
  check_not_computed(self_with([](auto& p) {
                       p.windowSize = 4;
                       p.maskType = SelfAttentionParam::MASK_TYPE_SLIDING_WINDOW_NORM;
                     }),
                     "SelfAttentionOperation: windowSize is 4 and maskType is 7");
  check_not_computed(self_with([](auto& p) { p.batchRunStatusEnable = true; }),
                     "SelfAttentionOperation: batchRunStatusEnable is true");
}

TEST(parameters_that_atb_refuses_have_its_status) {
  ReshapeAndCacheParam cache;
  cache.rsv[3] = 1;
  check_refused(cache, "reserved bytes of the parameters are not 0");
  cache = {};
  cache.kvCacheCfg = static_cast<ReshapeAndCacheParam::KvCacheCfg>(3);
  check_refused(cache, "kvCacheCfg is 3, expected 0 to 2");
  check_refused(elewise(ElewiseParam::ELEWISE_UNDEFINED), "elewiseType is 0, expected 1 to 20");
  check_refused(RmsNormParam(), "layerType is 0, expected 1 to 3");
  LinearParam linear;
  linear.enAccum = true;
  check_refused(linear, "enAccum and hasBias are true, expected one of them");
  check_refused(PagedAttentionParam(), "headNum is 0, expected 1 or more");
  PagedAttentionParam paged;
  paged.headNum = 3;
  paged.kvHeadNum = 2;
  check_refused(paged, "headNum is 3, expected a multiple of kvHeadNum, 2");
  paged.headNum = 2;
  paged.calcType = PagedAttentionParam::CALC_TYPE_SPEC;
  check_refused(paged, "maskType is 0 and calcType is 1, expected a maskType of 1 or 3");
  paged.maskType = PagedAttentionParam::MASK_TYPE_NORM_COMPRESS;
  check_refused(paged, "expected a maskType of 1 or 3");
  paged.calcType = PagedAttentionParam::CALC_TYPE_UNDEFINED;
  check_refused(paged, "maskType is 5, which only Atlas inference products have");
  paged.maskType = PagedAttentionParam::UNDEFINED;
  paged.mlaVHeadSize = 16;
  check_refused(paged, "mlaVHeadSize is 16 and kvHeadNum is 2, expected a kvHeadNum of 1");
  paged.kvHeadNum = 1;
  paged.mlaVHeadSize = 577;
  check_refused(paged, "mlaVHeadSize is 577, expected at most 576");
  SelfAttentionParam self;
  self.headNum = 2;
  self.calcType = SelfAttentionParam::PA_ENCODER;
  self.isTriuMask = 1;
  check_refused(self, "isTriuMask is 1, expected 0 without a mask");
  self.isTriuMask = 0;
  self.kvcacheCfg = SelfAttentionParam::K_BYPASS_V_BYPASS;
  check_refused(self, "kvcacheCfg is 1, expected 0 for PA_ENCODER");
  self.kvcacheCfg = SelfAttentionParam::K_CACHE_V_CACHE;
  self.kernelType = SelfAttentionParam::KERNELTYPE_EXP_M8V2;
  check_refused(self, "kernelType is KERNELTYPE_EXP_M8V2, which only Atlas inference products");
  self.kernelType = SelfAttentionParam::KERNELTYPE_DEFAULT;
  self.maskType = SelfAttentionParam::MASK_TYPE_CAUSAL_MASK;
  check_refused(self, "expected it with PREFIX_ENCODER only");
  self.calcType = SelfAttentionParam::PREFIX_ENCODER;
  check_refused(self, "isTriuMask is 0, expected 1 for PREFIX_ENCODER");
  self.isTriuMask = 1;
  check_refused(self, "kernelType is 0, expected 1 for PREFIX_ENCODER");
  self.kernelType = SelfAttentionParam::KERNELTYPE_HIGH_PRECISION;
  self.maskType = SelfAttentionParam::MASK_TYPE_ALIBI;
  check_refused(self, "maskType is 2, expected 3, 4, 5 or 9 for PREFIX_ENCODER");
  GroupTopkParam groups;
  groups.groupMultiFlag = GroupTopkParam::SUM_MULTI_MAX;
  groups.n = 0;
  check_refused(groups, "n is 0, expected 1 or more");
  CHECK_EQ(atb::CreateOperation(RopeParam(), nullptr), atb::ERROR_INVALID_PARAM);
  CHECK(contains(messages(), "RopeOperation: operation is null"));
}

TEST(a_wrong_call_has_the_status_of_its_first_error) {
  on_device([] {
    Tensors tensors;
    const Call call(elewise(ElewiseParam::ELEWISE_ADD));
    const atb::Tensor x = tensors.floats({2, 2}, {1, 2, 3, 4}), y = tensors.floats({2}, {10, 20});
    const atb::Tensor out = tensors.floats({2, 2}, {0, 0, 0, 0});
    call.refuses({x}, {out}, atb::ERROR_INVALID_IN_TENSOR_NUM, "the call has 1 inputs, expected 2");
    call.refuses({x, y}, {}, atb::ERROR_INVALID_IN_TENSOR_NUM,
                 "the call has 0 outputs, expected 1");
    atb::Tensor wrong = y;
    wrong.desc.shape.dims[0] = 3;
    call.refuses({x, wrong}, {out}, atb::ERROR_INVALID_TENSOR_DIM,
                 "y has shape [3], which does not broadcast with that of x, [2, 2]");
    wrong.desc.shape.dims[0] = 0;
    call.refuses({x, wrong}, {out}, atb::ERROR_INVALID_TENSOR_DIM,
                 "y has shape [0], expected sizes of 1 or more");
    wrong.desc.shape.dimNum = 9;
    call.refuses({x, wrong}, {out}, atb::ERROR_INVALID_TENSOR_DIM_NUM,
                 "y has 9 dimensions, expected 1 to 8");
    wrong = y;
    wrong.desc.dtype = ACL_FLOAT16;
    call.refuses({x, wrong}, {out}, atb::ERROR_INVALID_TENSOR_INI_MATCH,
                 "the dtypes are x FLOAT, y FLOAT16, expected one of: FLOAT16, FLOAT16; FLOAT, "
                 "FLOAT; BFLOAT16, BFLOAT16;");
    call.refuses({x, y}, {y}, atb::ERROR_INVALID_TENSOR_DIM,
                 "output has shape [2], expected [2, 2]");
    wrong = out;
    wrong.desc.dtype = ACL_INT32;
    call.refuses({x, y}, {wrong}, atb::ERROR_INVALID_TENSOR_INI_MATCH,
                 "output has dtype INT32, expected FLOAT");
    wrong = y;
    wrong.dataSize = 4;
    call.refuses({x, wrong}, {out}, atb::ERROR_INVALID_PARAM, "y has a dataSize of 4, expected 8");
    wrong = y;
    wrong.deviceData = nullptr;
    call.refuses({x, wrong}, {out}, atb::ERROR_INVALID_PARAM,
                 "y has no deviceData, expected an address of the device");
    uint64_t size = 0;
    CHECK_EQ(call.operation->Setup(pack_of({x, y}, {out}), size, nullptr),
             atb::ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "ElewiseOperation: context is null"));
    CHECK_EQ(call.operation->Execute(pack_of({x, y}, {out}), nullptr, 0, nullptr),
             atb::ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "ElewiseOperation: context is null"));
    // The operation is as good as before.
    call.runs({x, y}, {out});
    check_numbers(out, {11, 22, 13, 24});

    const Call fresh(elewise(ElewiseParam::ELEWISE_COS));
    CHECK_EQ(fresh.operation->Execute(pack_of({x}, {out}), nullptr, 0, fresh.context),
             atb::ERROR_OPERATION_NULL_RUNNER);
    CHECK(contains(messages(), "Execute comes before Setup; call Setup first"));
  });
}

TEST(outputs_are_described_before_a_call) {
  on_device([] {
    RopeParam rope;
    rope.rotaryCoeff = 2;
    const Call call(rope);
    CHECK_EQ(call.operation->GetName(), "RopeOperation");
    CHECK_EQ(call.operation->GetInputNum(), 5u);
    CHECK_EQ(call.operation->GetOutputNum(), 2u);
    const auto half = [](const std::vector<int64_t>& shape) { return desc_of(ACL_FLOAT16, shape); };
    atb::SVector<atb::TensorDesc> in = {half({3, 64}), half({3, 32}), half({3, 32}), half({3, 32}),
                                        desc_of(ACL_INT32, {1})};
    atb::SVector<atb::TensorDesc> out;
    CHECK_EQ(call.operation->InferShape(in, out), atb::NO_ERROR);
    CHECK_EQ(out.size(), 2u);
    CHECK_EQ(out.at(1).shape.dims[1], 32);
    const auto refuses = [&](size_t i, const atb::TensorDesc& desc, atb::Status status,
                             const char* text) {
      atb::SVector<atb::TensorDesc> changed = in;
      changed.at(i) = desc;
      messages();
      CHECK_EQ(call.operation->InferShape(changed, out), status);
      const std::string found = messages();
      if (!CHECK(contains(found, text))) std::fprintf(stderr, "%s\n", found.c_str());
    };
    refuses(0, half({3, 4, 16}), atb::ERROR_INVALID_TENSOR_DIM_NUM,
            "query has 3 dimensions, expected 2 or 4");
    refuses(1, half({2, 32}), atb::ERROR_INVALID_TENSOR_SIZE, "key has 2 tokens, expected 3");
    refuses(2, half({3, 8}), atb::ERROR_INVALID_TENSOR_DIM, "cos has shape [3, 8], expected 16 to");
    refuses(3, half({2, 32}), atb::ERROR_INVALID_TENSOR_SIZE,
            "sin has shape [2, 32], expected the shape of cos, [3, 32]");
    refuses(0, half({3, 80}), atb::ERROR_INVALID_TENSOR_SIZE,
            "a token of query has 80 elements, expected a multiple of those of key, 32");
    refuses(4, desc_of(ACL_INT64, {1}), atb::ERROR_INVALID_TENSOR_INI_MATCH, "seqLen INT64");
    refuses(1, half({3, 16}), atb::ERROR_INVALID_TENSOR_DIM,
            "a token of key has 16 elements, expected a multiple of the size of a head, 32");
    in.at(4) = desc_of(ACL_UINT32, {2});
    CHECK_EQ(call.operation->InferShape(in, out), atb::NO_ERROR);
  });
}

TEST(paged_attention_checks_its_tensors) {
  on_device([] {
    Tensors tensors;
    PagedAttentionParam param;
    param.headNum = 1;
    param.qkScale = 1;
    const Call call(param);
    const std::vector<float> zeros(32, 0);
    const atb::Tensor query = tensors.halves({1, 1, 16}, std::vector<float>(16, 0));
    const atb::Tensor cache = tensors.halves({1, 2, 1, 16}, zeros);
    const atb::Tensor table = tensors.on_device<int32_t>(ACL_INT32, {1, 1}, {0});
    const auto with_length = [&](const atb::Tensor& length) {
      return Pack{query, cache, cache, table, length};
    };
    call.runs(with_length(tensors.list({2})), {query});
    call.refuses(with_length(tensors.integers({2})), {query}, atb::ERROR_INVALID_PARAM,
                 "contextLens has no hostData, expected its values in host memory; pass a tensor");
    call.refuses(with_length(tensors.list({3})), {query}, atb::ERROR_INVALID_PARAM,
                 "contextLens has 3, expected 0 to 2");
    call.refuses(with_length(tensors.list({1, 1})), {query}, atb::ERROR_INVALID_TENSOR_DIM,
                 "blockTables has shape [1, 1], expected 2 rows, one for each of contextLens");
    atb::Tensor wide = query;
    wide.desc.shape.dims[1] = 2;
    wide.desc.shape.dims[2] = 8;
    call.refuses({wide, cache, cache, table, tensors.list({2})}, {query},
                 atb::ERROR_INVALID_TENSOR_DIM,
                 "query has shape [1, 2, 8], expected 1 in dimension 1, headNum");
  });
}

// Each of these ends the work of its stream, where a device accesses other memory.
TEST(indices_outside_a_cache_are_refused) {
  on_device([] {
    Tensors tensors;
    const atb::Tensor cache = tensors.halves({1, 2, 1, 1}, {0, 0});
    const atb::Tensor token = tensors.halves({1, 1, 1}, {1});
    const Call write{ReshapeAndCacheParam()};
    CHECK_EQ(write({token, token, cache, cache, tensors.integers({2})}, {cache, cache}),
             atb::NO_ERROR);
    CHECK(aclrtSynchronizeStream(write.stream) != ACL_SUCCESS);
    CHECK(contains(messages(),
                   "ReshapeAndCacheOperation: the computation failed: slotMapping has 2, expected "
                   "less than 2, or a negative number for a token that is not written"));
  });
  on_device([] {
    Tensors tensors;
    PagedAttentionParam param;
    param.headNum = 1;
    const Call call(param);
    const atb::Tensor cache = tensors.halves({1, 2, 1, 1}, {0, 0});
    const atb::Tensor query = tensors.halves({1, 1, 1}, {1});
    const atb::Tensor table = tensors.on_device<int32_t>(ACL_INT32, {1, 1}, {1});
    CHECK_EQ(call({query, cache, cache, table, tensors.list({1})}, {query}), atb::NO_ERROR);
    CHECK(aclrtSynchronizeStream(call.stream) != ACL_SUCCESS);
    CHECK(contains(messages(), "blockTables has values from 1 to 1, expected 0 to 0"));
  });
}

// The cache (blocks, pieces of a token, block, size of a piece).
TEST(a_cache_in_pieces) {
  on_device([] {
    Tensors tensors;
    ReshapeAndCacheParam param;
    param.kvCacheCfg = ReshapeAndCacheParam::K_CACHE_V_CACHE_NZ;
    const Call call(param);
    std::vector<float> token(32);
    for (size_t i = 0; i < token.size(); ++i) token[i] = static_cast<float>(i + 1);
    const atb::Tensor key = tensors.halves({1, 2, 16}, token);
    atb::Tensor cache = tensors.halves({1, 2, 16, 16}, std::vector<float>(512, 0));
    cache.desc.format = ACL_FORMAT_FRACTAL_NZ;
    call.runs({key, key, cache, cache, tensors.integers({3})}, {cache, cache});
    std::vector<float> expected(512, 0);
    for (size_t i = 0; i < 32; ++i) expected[i / 16 * 256 + 3 * 16 + i % 16] = token[i];
    check_numbers(cache, expected);
    atb::Tensor thin = cache;
    thin.desc.shape.dims[2] = 8;
    thin.desc.shape.dims[3] = 32;
    call.refuses({key, key, thin, thin, tensors.integers({3})}, {thin, thin},
                 atb::ERROR_INVALID_TENSOR_DIM, "expected 16 in dimension 3, the elements of a");
  });
}

// Two sequences of 1 and 2 tokens from blocks 1 and 0 of a cache in pieces.
TEST(tokens_are_loaded_from_a_cache_in_pieces) {
  on_device([] {
    Tensors tensors;
    const Call call{PagedCacheLoadParam()};
    std::vector<float> elements(2 * 2 * 16 * 16);
    for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i);
    const atb::Tensor cache = tensors.halves({2, 2, 16, 16}, elements);
    const atb::Tensor table = tensors.on_device<int32_t>(ACL_INT32, {2, 1}, {1, 0});
    const atb::Tensor key = tensors.halves({3, 32}, std::vector<float>(96, -1));
    const atb::Tensor value = tensors.halves({3, 32}, std::vector<float>(96, -1));
    call.runs({cache, cache, table, tensors.integers({1, 2}), key, value}, {key, value});
    std::vector<float> expected;
    for (const size_t token : {512, 0, 16}) {  // the first element of each
      for (size_t i = 0; i < 32; ++i) {
        expected.push_back(static_cast<float>(token + i / 16 * 256 + i % 16));
      }
    }
    check_numbers(key, expected);
    check_numbers(value, expected);
  });
}

// Caches of two blocks, each of two tokens of 16 elements.
TEST(what_is_loaded_is_checked) {
  on_device([] {
    Tensors tensors;
    PagedCacheLoadParam param;
    param.kvCacheCfg = PagedCacheLoadParam::K_CACHE_V_CACHE_ND;
    const Call call(param);
    const atb::Tensor cache = tensors.halves({2, 2, 1, 16}, std::vector<float>(64, 1));
    const atb::Tensor table = tensors.on_device<int32_t>(ACL_INT32, {1, 2}, {1, 2});
    const atb::Tensor token = tensors.halves({2, 1, 16}, std::vector<float>(32, 0));
    const atb::Tensor thin = tensors.halves({4, 1, 8}, std::vector<float>(32, 0));
    const auto fails = [&](const std::vector<int32_t>& lengths, const std::string& text) {
      const Call failing(param);
      messages();
      CHECK_EQ(failing({cache, cache, table, tensors.integers(lengths), token, token, {}},
                       {token, token}),
               atb::NO_ERROR);
      CHECK(aclrtSynchronizeStream(failing.stream) != ACL_SUCCESS);
      const std::string found = messages();
      if (!CHECK(contains(found, text))) std::fprintf(stderr, "%s\n", found.c_str());
    };
    const auto refuses = [&](const Pack& inputs, atb::Status status, const std::string& text) {
      call.refuses(inputs, {inputs[4], inputs[5]}, status, text);
    };
    const atb::Tensor one = tensors.integers({1}), two = tensors.integers({1, 1});
    refuses({cache, cache, table, two, token, token, {}}, atb::ERROR_INVALID_TENSOR_DIM,
            "contextLens has shape [2], expected 1 in dimension 0, one for each row of");
    refuses({cache, cache, table, one, thin, token, {}}, atb::ERROR_INVALID_TENSOR_DIM,
            "key has shape [4, 1, 8], expected 16 in dimension 2, the size of a head in the cache");
    refuses({cache, cache, one, one, token, token, {}}, atb::ERROR_INVALID_TENSOR_DIM_NUM,
            "blockTables has 1 dimensions, expected 2");
    fails({3}, "contextLens ends at token 3, expected at most 2, the tokens of key");
    fails({-1}, "sequence 0 has -1 tokens after 0 and begins at token 0, expected 0 or more");
    CHECK_EQ(call({cache, cache, table, one, token, token, {}}, {token, token}), atb::NO_ERROR);
    CHECK_EQ(aclrtSynchronizeStream(call.stream), ACL_SUCCESS);
  });
}

// An output apart from the cache gets the cache's values, too.
TEST(a_cache_may_have_an_output_of_its_own) {
  on_device([] {
    Tensors tensors;
    ReshapeAndCacheParam param;
    param.kvCacheCfg = ReshapeAndCacheParam::K_CACHE_V_BYPASS;
    const Call call(param);
    const atb::Tensor cache = tensors.halves({1, 3, 1, 1}, {5, 6, 7});
    const atb::Tensor out = tensors.halves({1, 3, 1, 1}, {0, 0, 0});
    call.runs({tensors.halves({1, 1, 1}, {9}), cache, tensors.integers({1})}, {out});
    check_numbers(out, {5, 9, 7});
    check_numbers(cache, {5, 6, 7});
  });
}

// With rotaryCoeff 4, each half of a head is rotated as a head of its own. cos is 0 and sin is 1,
// so that a pair (a, b) becomes (-b, a).
TEST(rope_of_half_heads) {
  on_device([] {
    Tensors tensors;
    const Call call{RopeParam()};
    std::vector<float> x(16), expected(16);
    for (size_t i = 0; i < 16; ++i) x[i] = static_cast<float>(i + 1);
    for (size_t half = 0; half < 16; half += 8) {
      for (size_t i = 0; i < 4; ++i) {
        expected[half + i] = -x[half + 4 + i];
        expected[half + 4 + i] = x[half + i];
      }
    }
    const atb::Tensor query = tensors.halves({1, 1, 1, 16}, x), key = tensors.halves({1, 16}, x);
    const atb::Tensor cos = tensors.floats({1, 16}, std::vector<float>(16, 0));
    const atb::Tensor sin = tensors.floats({1, 16}, std::vector<float>(16, 1));
    call.runs({query, key, cos, sin, tensors.integers({1})}, {query, key});
    check_numbers(query, expected);
    check_numbers(key, expected);
  });
}

// One head, two keys with scores of 0 and log 3: the weights are 1/4 and 3/4.
TEST(attention_of_layouts_that_torch_npu_does_not_use) {
  on_device([] {
    Tensors tensors;
    const float log3 = std::log(3.0f);
    const atb::Tensor query = tensors.halves({1, 1, 1}, {1});
    const atb::Tensor out = tensors.halves({1, 1, 1}, {0});
    const atb::Tensor table = tensors.on_device<int32_t>(ACL_INT32, {1, 1}, {0});
    PagedAttentionParam paged;
    paged.headNum = 1;
    paged.inputLayout = TYPE_BNSD;
    const atb::Tensor keys = tensors.halves({1, 1, 2, 1}, {0, log3});
    const atb::Tensor values = tensors.halves({1, 1, 2, 1}, {4, 8});
    Call(paged).runs({query, keys, values, table, tensors.list({2})}, {out});
    check_numbers(out, {7});

    // MASK_TYPE_NORM: the rows of the last queries of a mask of all positions.
    paged.inputLayout = TYPE_BSND;
    paged.maskType = PagedAttentionParam::MASK_TYPE_NORM;
    paged.calcType = PagedAttentionParam::CALC_TYPE_SPEC;
    const atb::Tensor block = tensors.halves({1, 2, 1, 1}, {0, log3});
    const atb::Tensor block_values = tensors.halves({1, 2, 1, 1}, {4, 8});
    const atb::Tensor mask = tensors.halves({2, 2}, {7, 7, 0, -10000});
    Call(paged).runs(
        {query, block, block_values, table, tensors.list({2}), mask, tensors.list({1})}, {out});
    check_numbers(out, {4});

    // Heads and elements in one dimension, lengths of queries and keys, clamped scores.
    SelfAttentionParam self;
    self.calcType = SelfAttentionParam::PA_ENCODER;
    self.headNum = 1;
    self.clampType = SelfAttentionParam::CLAMP_TYPE_MIN_MAX;
    self.clampMax = 0;
    self.clampMin = -1;
    atb::Tensor lengths = tensors.list({1, 2});
    lengths.desc = desc_of(ACL_INT32, {2, 1});
    const atb::Tensor flat_query = tensors.halves({1, 1}, {1}), flat = tensors.halves({1, 1}, {0});
    const atb::Tensor flat_keys = tensors.halves({2, 1}, {0, log3});
    const atb::Tensor flat_values = tensors.halves({2, 1}, {4, 8});
    Call(self).runs({flat_query, flat_keys, flat_values, lengths}, {flat});
    check_numbers(flat, {6});  // both scores are 0
    self.clampType = SelfAttentionParam::CLAMP_TYPE_UNDEFINED;
    self.qScale = 2;
    self.qkScale = 0.5;
    Call(self).runs({flat_query, flat_keys, flat_values, lengths}, {flat});
    check_numbers(flat, {7});

    // Queries at the end of a sequence, without a mask tensor; blocks that join the heads.
    SelfAttentionParam prefix;
    prefix.calcType = SelfAttentionParam::PREFIX_ENCODER;
    prefix.headNum = 1;
    prefix.isTriuMask = 1;
    prefix.kernelType = SelfAttentionParam::KERNELTYPE_HIGH_PRECISION;
    prefix.maskType = SelfAttentionParam::MASK_TYPE_CAUSAL_MASK;
    const atb::Tensor queries = tensors.halves({2, 1, 1}, {1, 1});
    const atb::Tensor both = tensors.halves({2, 1, 1}, {0, 0});
    const atb::Tensor joined = tensors.halves({1, 2, 1}, {0, log3});
    const atb::Tensor joined_values = tensors.halves({1, 2, 1}, {4, 8});
    const Call causal(prefix);
    causal.runs({queries, joined, joined_values, table, tensors.list({2}), tensors.list({2})},
                {both});
    check_numbers(both, {4, 7});
    causal.refuses({queries, joined, joined_values, table, tensors.list({2}), tensors.list({1})},
                   {both}, atb::ERROR_INVALID_PARAM,
                   "seqLen has 2, expected at most the number of keys, 1");
  });
}

TEST(elementwise_functions) {
  on_device([] {
    Tensors tensors;
    const atb::Tensor x = tensors.floats({2}, {1, -2}), y = tensors.floats({2}, {4, -2});
    const atb::Tensor out = tensors.floats({2}, {0, 0});
    ElewiseParam muls = elewise(ElewiseParam::ELEWISE_MULS);
    muls.mulsParam.varAttr = 3;
    Call(muls).runs({x}, {out});
    check_numbers(out, {3, -6});
    const auto unary = [&](ElewiseParam::ElewiseType type, const std::vector<float>& expected) {
      Call(elewise(type)).runs({x}, {out});
      check_numbers(out, expected);
    };
    unary(ElewiseParam::ELEWISE_COS, {std::cos(1.0f), std::cos(2.0f)});
    unary(ElewiseParam::ELEWISE_SIN, {std::sin(1.0f), -std::sin(2.0f)});
    unary(ElewiseParam::ELEWISE_NEG, {-1, 2});
    unary(ElewiseParam::ELEWISE_TANH, {std::tanh(1.0f), -std::tanh(2.0f)});
    const auto binary = [&](ElewiseParam::ElewiseType type, const std::vector<float>& expected) {
      Call(elewise(type)).runs({x, y}, {out});
      check_numbers(out, expected);
    };
    binary(ElewiseParam::ELEWISE_ADD, {5, -4});
    binary(ElewiseParam::ELEWISE_MUL, {4, 4});
    binary(ElewiseParam::ELEWISE_REALDIV, {0.25, 1});
    binary(ElewiseParam::ELEWISE_SUB, {-3, 0});
    const atb::Tensor flags = tensors.on_device<int8_t>(ACL_INT8, {2}, {0, 0});
    const auto compared = [&](ElewiseParam::ElewiseType type, const std::vector<int8_t>& expected) {
      Call(elewise(type)).runs({x, y}, {flags});
      CHECK(values_of<int8_t>(flags) == expected);
    };
    compared(ElewiseParam::ELEWISE_LESS, {1, 0});
    compared(ElewiseParam::ELEWISE_GREATER, {0, 0});
    compared(ElewiseParam::ELEWISE_EQUAL, {0, 1});
    const atb::Tensor a = tensors.on_device<int8_t>(ACL_INT8, {2}, {1, 0});
    const atb::Tensor b = tensors.on_device<int8_t>(ACL_INT8, {2}, {1, 1});
    Call(elewise(ElewiseParam::ELEWISE_LOGICAL_AND)).runs({a, b}, {flags});
    CHECK(values_of<int8_t>(flags) == std::vector<int8_t>({1, 0}));
    Call(elewise(ElewiseParam::ELEWISE_LOGICAL_OR)).runs({a, b}, {flags});
    CHECK(values_of<int8_t>(flags) == std::vector<int8_t>({1, 1}));
    Call(elewise(ElewiseParam::ELEWISE_LOGICAL_NOT)).runs({a}, {flags});
    CHECK(values_of<int8_t>(flags) == std::vector<int8_t>({0, 1}));
    const atb::Tensor half = tensors.halves({2}, {0, 0});
    Call(elewise(ElewiseParam::ELEWISE_CAST)).runs({x}, {half});
    check_numbers(half, {1, -2});
    // x / inputScale + inputOffset, within INT8.
    ElewiseParam quant = elewise(ElewiseParam::ELEWISE_QUANT);
    quant.quantParam.inputScale = 0.5f;
    quant.quantParam.inputOffset = 1;
    std::vector<float> steps(32, 0.25f);  // 0.5 + 1, a tie, goes to 2
    steps[1] = 100;
    const atb::Tensor codes = tensors.on_device(ACL_INT8, {32}, std::vector<int8_t>(32, 0));
    Call(quant).runs({tensors.halves({32}, steps)}, {codes});
    CHECK_EQ(int{values_of<int8_t>(codes)[0]}, 2);
    CHECK_EQ(int{values_of<int8_t>(codes)[1]}, 127);
    // Without an offset.
    Call(elewise(ElewiseParam::ELEWISE_QUANT_PER_CHANNEL))
        .runs({tensors.halves({32}, steps), tensors.halves({1}, {0.5f}), atb::Tensor()}, {codes});
    CHECK_EQ(int{values_of<int8_t>(codes)[0]}, 0);
  });
}

// The root mean square of (3, 4) is sqrt(12.5).
TEST(norms) {
  on_device([] {
    Tensors tensors;
    const float rms = std::sqrt(12.5f + 1e-5f);
    const atb::Tensor x = tensors.halves({1, 2}, {1, 2}), rest = tensors.halves({1, 2}, {2, 2});
    const atb::Tensor gamma = tensors.halves({2}, {1, 2});
    const atb::Tensor out = tensors.halves({1, 2}, {0, 0}), sum = tensors.halves({1, 2}, {0, 0});
    RmsNormParam param;
    param.layerType = RmsNormParam::RMS_NORM_PRENORM;
    Call(param).runs({x, rest, gamma}, {out, sum});
    check_numbers(out, {3 / rms, 8 / rms});
    check_numbers(sum, {3, 4});
    param.layerType = RmsNormParam::RMS_NORM_POSTNORM;
    param.postNormParam.hasBias = true;
    Call(param).runs({x, tensors.halves({1, 2}, {1, 1}), tensors.halves({1, 2}, {1, 1}), gamma},
                     {out});
    check_numbers(out, {3 / rms, 8 / rms});
    param = {};
    param.layerType = RmsNormParam::RMS_NORM_NORM;
    Call(param).runs({sum, gamma}, {out});
    check_numbers(out, {3 / rms, 8 / rms});
    param.normParam.modelType = RmsNormParam::GEMMA_MODEL;
    Call(param).runs({sum, gamma}, {out});
    check_numbers(out, {6 / rms, 12 / rms});
    param.normParam.modelType = RmsNormParam::LLAMA_MODEL;
    param.normParam.rstd = true;
    const atb::Tensor wide = tensors.floats({1, 2}, {3, 4}), scale = tensors.floats({2}, {1, 2});
    const atb::Tensor result = tensors.floats({1, 2}, {0, 0}), rstd = tensors.floats({1, 1}, {0});
    Call(param).runs({wide, scale}, {result, rstd});
    check_numbers(result, {3 / rms, 8 / rms});
    check_numbers(rstd, {1 / rms});
    Call(param).refuses({wide, tensors.floats({3}, {1, 2, 3})}, {result, rstd},
                        atb::ERROR_INVALID_TENSOR_DIM,
                        "gamma has shape [3], expected the last sizes of x, [1, 2]");
  });
}

TEST(products_of_matrices) {
  on_device([] {
    Tensors tensors;
    const atb::Tensor x = tensors.halves({1, 2}, {1, 2});
    const atb::Tensor weight = tensors.halves({3, 2}, {1, 0, 0, 1, 1, 1});
    const atb::Tensor out = tensors.halves({1, 3}, {0, 0, 0});
    const Call with_bias{LinearParam()};
    with_bias.runs({x, weight, tensors.floats({3}, {10, 20, 30})}, {out});
    check_numbers(out, {11, 22, 33});
    with_bias.refuses({x, weight, tensors.floats({2}, {1, 2})}, {out},
                      atb::ERROR_INVALID_TENSOR_DIM, "bias has shape [2], expected 1 rows of 3");
    LinearParam param;
    param.hasBias = false;
    param.transposeB = false;
    const Call plain(param);
    plain.runs({x, tensors.halves({2, 3}, {1, 0, 1, 0, 1, 1})}, {out});
    check_numbers(out, {1, 2, 3});
    plain.refuses({x, weight}, {out}, atb::ERROR_INVALID_TENSOR_DIM,
                  "weight has shape [3, 2], expected a depth of 2 as x has, whose shape is [1, 2]");
    // A weight of 16 rows and 32 columns in FRACTAL_NZ: blocks of 16 columns.
    std::vector<float> blocks(512);
    for (size_t i = 0; i < 512; ++i) blocks[i] = static_cast<float>(i);
    std::vector<float> one(16, 0), row(32);
    one[2] = 1;
    for (size_t i = 0; i < 32; ++i) row[i] = blocks[i / 16 * 256 + 2 * 16 + i % 16];
    const atb::Tensor picked = tensors.halves({1, 32}, std::vector<float>(32, 0));
    atb::Tensor blocked = tensors.halves({16, 32}, blocks);
    blocked.desc.format = ACL_FORMAT_FRACTAL_NZ;
    plain.runs({tensors.halves({1, 16}, one), blocked}, {picked});
    check_numbers(picked, row);
    blocked = tensors.halves({1, 2, 16, 16}, blocks);
    blocked.desc.format = ACL_FORMAT_FRACTAL_NZ;
    const atb::Tensor again = tensors.halves({1, 32}, std::vector<float>(32, 0));
    plain.runs({tensors.halves({1, 16}, one), blocked}, {again});
    check_numbers(again, row);
    blocked = tensors.halves({2, 3}, {1, 0, 1, 0, 1, 1});
    blocked.desc.format = ACL_FORMAT_FRACTAL_NZ;
    plain.refuses({x, blocked}, {out}, atb::ERROR_INVALID_TENSOR_DIM,
                  "weight has shape [2, 3] in FRACTAL_NZ, expected multiples of 16");
    // A bias for each matrix of a batch.
    const atb::Tensor batch = tensors.halves({2, 1, 1}, {0, 0});
    with_bias.runs({tensors.halves({2, 1, 1}, {1, 2}), tensors.halves({2, 1, 1}, {3, 4}),
                    tensors.floats({2, 1}, {10, 20})},
                   {batch});
    check_numbers(batch, {13, 28});
  });
}

// Blocks of 16 rows and 16 columns, padded with zeros.
TEST(matrices_in_blocks) {
  on_device([] {
    Tensors tensors;
    TransdataParam param;
    param.transdataType = TransdataParam::ND_TO_FRACTAL_NZ;
    std::vector<float> matrix(2 * 18), blocks(2 * 16 * 16, 0);
    for (size_t row = 0; row < 2; ++row) {
      for (size_t column = 0; column < 18; ++column) {
        const auto value = static_cast<float>(row * 18 + column + 1);
        matrix[row * 18 + column] = value;
        blocks[column / 16 * 256 + row * 16 + column % 16] = value;
      }
    }
    const atb::Tensor in = tensors.halves({2, 18}, matrix);
    const atb::Tensor out = tensors.halves({1, 2, 16, 16}, std::vector<float>(512, 7));
    Call(param).runs({in}, {out});
    check_numbers(out, blocks);
    param.transdataType = TransdataParam::FRACTAL_NZ_TO_ND;
    param.outCrops = {2, 18};
    const atb::Tensor back = tensors.halves({1, 2, 18}, std::vector<float>(36, 0));
    Call(param).runs({out}, {back});
    check_numbers(back, matrix);
    param.outCrops = {17, 18};
    Call(param).refuses(
        {out}, {back}, atb::ERROR_INVALID_PARAM,
        "outCrops is [17, 18], expected numbers that fill blocks of 16 rows and 32");
    param.outCrops = {2};
    Call(param).refuses({out}, {back}, atb::ERROR_INVALID_PARAM,
                        "outCrops has 1 numbers, expected rows and columns");
    param.transdataType = TransdataParam::UNDEFINED;
    Call(param).refuses({out}, {back}, atb::ERROR_INVALID_PARAM,
                        "transdataType is 0, expected 1 or 2");
  });
}

TEST(groups_of_experts_are_checked) {
  on_device([] {
    Tensors tensors;
    GroupTopkParam param;
    param.groupNum = 3;
    param.k = 1;
    const atb::Tensor token = tensors.halves({1, 4}, {1, 2, 3, 4});
    const atb::Tensor places = tensors.integers(std::vector<int32_t>(1024, 0));
    Call(param).refuses({token, places}, {token}, atb::ERROR_INVALID_PARAM,
                        "token has 4 experts, expected a multiple of groupNum, 3");
    param.groupNum = 2;
    param.k = 3;
    Call(param).refuses({token, places}, {token}, atb::ERROR_INVALID_PARAM,
                        "k is 3, expected 1 to groupNum, 2");
    param.k = 1;
    Call(param).refuses({token, tensors.integers({0})}, {token}, atb::ERROR_INVALID_TENSOR_DIM,
                        "idxArr has shape [1], expected 1024 in dimension 0, the most experts");
    // Equal groups: the first one wins.
    const atb::Tensor equal = tensors.halves({1, 4}, {4, 1, 4, 1});
    Call(param).runs({equal, places}, {equal});
    check_numbers(equal, {4, 1, 0, 0});
  });
}

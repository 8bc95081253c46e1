// The context of ATB, which has the stream of the calls, and the sizes of tensors.
#include <atomic>
#include <cstring>
#include <memory>
#include <new>

#include "atb/atb_infer.h"
#include "host_cann/runtime/error_messages.h"

namespace aclnn_host {
namespace {

int invalid(const char* function, const char* text) {
  return fail(atb::ERROR_INVALID_PARAM, "%s: %s", function, text);
}

// Only the stream counts. The host CANN has no tilings to copy, and submits each call in Execute.
class HostContext final : public atb::Context {
 public:
  atb::Status SetExecuteStream(aclrtStream stream) override {
    stream_ = stream;
    return atb::NO_ERROR;
  }
  aclrtStream GetExecuteStream() const override { return stream_; }
  atb::Status SetAsyncTilingCopyStatus(bool enable) override {
    copies_tilings_ = enable;
    return atb::NO_ERROR;
  }
  bool GetAsyncTilingCopyStatus() const override { return copies_tilings_; }
  atb::Status SetExecuteStreams(const std::vector<aclrtStream>& streams) override {
    if (streams.size() != 1) {
      return invalid("SetExecuteStreams",
                     "the host CANN runs an operation on one stream, expected a list of one");
    }
    return SetExecuteStream(streams[0]);
  }
  std::vector<aclrtStream> GetExecuteStreams() override { return {stream_}; }
  atb::Status SetExecuteType(atb::ExecuteType type) override {
    if (type != atb::EXECUTE_NORMAL) {
      return invalid("SetExecuteType",
                     "the host CANN submits a call in one step, expected EXECUTE_NORMAL");
    }
    return atb::NO_ERROR;
  }
  atb::ExecuteType GetExecuteType() override { return atb::EXECUTE_NORMAL; }
  atb::Status SetLaunchMode(atb::LaunchMode mode) override {
    mode_ = mode;
    return atb::NO_ERROR;
  }
  atb::LaunchMode GetLaunchMode() override { return mode_; }

 private:
  std::atomic<aclrtStream> stream_ = nullptr;  // clients share a context between threads
  std::atomic<bool> copies_tilings_ = false;
  std::atomic<atb::LaunchMode> mode_ = atb::KERNEL_LAUNCH_MODE;
};

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

namespace atb {

Status CreateContext(Context** context) {
  if (context == nullptr) return invalid("CreateContext", "context is null");
  *context = new (std::nothrow) HostContext;
  return *context == nullptr ? ERROR_OUT_OF_HOST_MEMORY : NO_ERROR;
}

Status CreateContext(Context** context, const std::function<void*(size_t)>& /*alloc*/,
                     const std::function<void(void*)>& /*dealloc*/) {
  return CreateContext(context);
}

Status CreateContext(Context** context, uint32_t host_blocks, uint32_t device_blocks) {
  if (host_blocks < 128 || host_blocks > 1024) {
    return invalid("CreateContext", "hostTilingBlockNum is not in [128, 1024]");
  }
  if (device_blocks < 32 || device_blocks > 1024) {
    return invalid("CreateContext", "deviceTilingBlockNum is not in [32, 1024]");
  }
  return CreateContext(context);
}

Status DestroyContext(Context* context) {
  delete context;
  return NO_ERROR;
}

// The release whose interface the headers have.
std::string Utils::GetAtbVersion() {
  return "8.5.0";
}

uint64_t Utils::GetTensorNumel(const TensorDesc& desc) {
  const uint64_t rank = desc.shape.dimNum;
  if (rank == 0 || rank > MAX_DIM) return 0;
  uint64_t count = 1;
  for (uint64_t i = 0; i < rank; ++i) {
    const int64_t size = desc.shape.dims[i];
    if (size <= 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(size), &count)) return 0;
  }
  return count;
}

uint64_t Utils::GetTensorSize(const TensorDesc& desc) {
  // A tensor without a dtype has bytes as elements.
  const uint64_t bytes = desc.dtype == ACL_DT_UNDEFINED ? 1 : aclDataTypeSize(desc.dtype);
  uint64_t size;
  return __builtin_mul_overflow(GetTensorNumel(desc), bytes, &size) ? 0 : size;
}

uint64_t Utils::GetTensorNumel(const Tensor& tensor) {
  return GetTensorNumel(tensor.desc);
}
uint64_t Utils::GetTensorSize(const Tensor& tensor) {
  return GetTensorSize(tensor.desc);
}

void Utils::QuantParamConvert(const float* src, uint64_t* dest, uint64_t count) {
  if (src == nullptr || dest == nullptr) return;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, &src[i], sizeof bits);
    dest[i] = bits;
  }
}

Status Utils::SetLogLevel(LogLevel /*level*/) {
  return NO_ERROR;  // the host CANN's messages are those of aclGetRecentErrMsg
}
Status Utils::ResetLogLevel() {
  return NO_ERROR;
}

}  // namespace atb

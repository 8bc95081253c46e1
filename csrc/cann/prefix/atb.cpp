// libatb.so, the library of Ascend's transformer operators, which comes with another package than
// CANN (NNAL). The host CANN has none of its operators; this has what torch_npu takes from it, so
// that a call says so. Without it torch_npu's own error has no text. ATB's is a C++ interface, in
// which an exception is an error that arrives as it is. Functions that torch_npu looks for by name
// (Atb...) are left out: that none is found is an error with the name, in the call.
#include <cstdint>
#include <stdexcept>

// Declarations of the published interface, as far as names of functions need them.
namespace atb __attribute__((visibility("default"))) {

  using Status = int32_t;
  class Context;
  class Operation;
  struct Tensor;
  namespace infer __attribute__((visibility("default"))) {
    struct ElewiseParam;
    struct GroupTopkParam;
    struct LinearParam;
    struct PagedAttentionParam;
    struct ReshapeAndCacheParam;
    struct RmsNormParam;
    struct RopeParam;
    struct SelfAttentionParam;
  }  // namespace infer

  namespace {

  [[noreturn]] void refuse() {
    throw std::runtime_error(
        "the host CANN has no libatb.so, the operators of ATB, which the package NNAL brings; call "
        "one of CANN's instead, which torch_npu has for most of them, or run this on an NPU with "
        "NNAL");
  }

  }  // namespace

  Status CreateContext(Context**) {
    refuse();
  }
  Status DestroyContext(Context*) {
    return 0;  // there is none
  }
  Status DestroyOperation(Operation*) {
    return 0;
  }

  template <class Parameters>
  Status CreateOperation(const Parameters&, Operation**) {
    refuse();
  }
  template Status CreateOperation(const infer::ElewiseParam&, Operation**);
  template Status CreateOperation(const infer::GroupTopkParam&, Operation**);
  template Status CreateOperation(const infer::LinearParam&, Operation**);
  template Status CreateOperation(const infer::PagedAttentionParam&, Operation**);
  template Status CreateOperation(const infer::ReshapeAndCacheParam&, Operation**);
  template Status CreateOperation(const infer::RmsNormParam&, Operation**);
  template Status CreateOperation(const infer::RopeParam&, Operation**);
  template Status CreateOperation(const infer::SelfAttentionParam&, Operation**);

  class Utils {
   public:
    static uint64_t GetTensorSize(const Tensor&);
  };

  // Asked for first, for the tensors of a call.
  uint64_t Utils::GetTensorSize(const Tensor&) {
    refuse();
  }

}  // namespace atb

// libatb.so, the library of Ascend's transformer operators, which comes with another package than
// CANN (NNAL). The host CANN has none of its operators. This library defines the symbols that
// torch_npu links, so that a call reports the missing operator; without the library, torch_npu's
// own error has no text. ATB is a C++ interface, so an exception reaches the caller unchanged.
// Functions that torch_npu looks up by name (Atb...) are not defined: a failed look-up is an error
// with the name, in the call.
#include <cstdint>
#include <stdexcept>

// The parts of the published interface that the names of the functions depend on.
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
    return 0;  // no operator
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

  // The first call for the tensors of an operator.
  uint64_t Utils::GetTensorSize(const Tensor&) {
    refuse();
  }

}  // namespace atb

// libaclnn_npu.so: the operators' access to torch_npu. Built against torch_npu's headers, which
// include CANN's, so no header of csrc/host_cann/include may be included here.

#include <atomic>

#include <ATen/Context.h>
#include <pybind11/pybind11.h>

#include "torch_npu/csrc/core/NPUStorageImpl.h"
#include "torch_npu/csrc/framework/OpCommand.h"
#include "torch_npu/csrc/framework/utils/OpPreparation.h"
#include "torch_npu/torch_npu_versions.h"
#include "torch_ops/npu_backend.h"

// torch_npu exports these two functions for external operators, but op-plugin's header that
// declares them does not compile with this version of torch. They return the current stream without
// waiting for the task queue, and set up the state of the thread that launches on it.
TORCH_NPU_API aclrtStream GetAclStream();
TORCH_NPU_API void InitExecSubTheadCtx(aclrtStream stream);

namespace aclnn_torch {
namespace {

class Backend final : public NpuBackend {
 public:
  at::Tensor empty(at::IntArrayRef sizes, const at::TensorOptions& options) const override {
    return at_npu::native::OpPreparation::apply_tensor_without_format(sizes, options);
  }

  void* begin() const override {
    const Determinism requested{determinism_level(), at::globalContext().deterministicAlgorithms()};
    const uint64_t wanted = requested.level << 1 | static_cast<uint64_t>(requested.algorithms);
    // Nothing to forward until determinism was first requested; the call is not free.
    if (wanted != 0 || determinism_.load(std::memory_order_relaxed) != 0) {
      apply_determinism(requested);
      determinism_.store(wanted, std::memory_order_relaxed);
    }
    return GetAclStream();
  }

  void launch(const std::string& api, const std::function<int()>& task) const override {
    at_npu::native::OpCommand::RunOpApiV2(api, task);
  }

  void enter(void* stream) const override { InitExecSubTheadCtx(stream); }

  int32_t format(const at::Tensor& tensor) const override {
    const auto* storage =
        static_cast<const torch_npu::NPUStorageImpl*>(tensor.storage().unsafeGetStorageImpl());
    return storage->npu_desc_.npu_format_;
  }

  // As in torch_npu: HFLOAT32 by its option for convolutions, FLOAT16 by its process-wide option,
  // which old products enable by default. No C++ function returns these options.
  int8_t convolution_math_type() const override {
    constexpr int kAscend910B1 = 220;
    bool hf32 = true;
    bool fp16 = false;
    if (Py_IsInitialized()) {
      const pybind11::gil_scoped_acquire gil;
      const auto torch_npu = pybind11::module_::import("torch_npu");
      hf32 = torch_npu.attr("npu").attr("conv").attr("allow_hf32").cast<bool>();
      const auto mode = torch_npu.attr("_C").attr("_npu_getOption")("ACL_PRECISION_MODE");
      const std::string precision = mode.is_none() ? "" : mode.cast<std::string>();
      fp16 = precision.empty()
                 ? torch_npu.attr("_C").attr("_npu_get_soc_version")().cast<int>() < kAscend910B1
                 : precision == "allow_fp32_to_fp16";
    }
    if (hf32) return fp16 ? 1 : 3;  // ALLOW_FP32_DOWN_PRECISION, USE_HF32
    return fp16 ? 2 : 0;            // USE_FP16, KEEP_DTYPE
  }

 private:
  mutable std::atomic<uint64_t> determinism_{0};  // the value that was forwarded last
};

}  // namespace
}  // namespace aclnn_torch

// `python -m aclnn_torch doctor` reads this string from the file.
extern "C" C10_NPU_EXPORT const char aclnn_torch_npu_built_for[] =
    "built for torch_npu " ACLNN_TORCH_NPU_VERSION;

extern "C" C10_NPU_EXPORT const aclnn_torch::NpuBackend* aclnn_torch_npu_backend() {
  static const aclnn_torch::Backend backend;
  return &backend;
}

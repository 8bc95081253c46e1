// Differences in ATen between the versions of torch that pyproject.toml supports;
// torch_ops/torch_versions.h has those in autograd.
#pragma once

#include <cstddef>

#include <ATen/Context.h>
#include <c10/core/impl/PyInterpreter.h>
#include <torch/version.h>

#define ACLNN_TORCH_SINCE(minor) (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= (minor))

namespace aclnn_host {

// True if torch.backends.mkldnn.conv.fp32_precision allows oneDNN to shorten the factors of a FLOAT
// convolution. The setting is process-wide and belongs to the user, so it is left unchanged.
inline bool shortens_convolution_factors() {
#if ACLNN_TORCH_SINCE(10)
  using at::Float32Precision;
  const Float32Precision precision =
      at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::CONV);
  return precision == Float32Precision::BF16 || precision == Float32Precision::TF32;
#elif ACLNN_TORCH_SINCE(9)
  const auto precision = at::globalContext().float32Precision("mkldnn", "conv");
  return precision == "bf16" || precision == "tf32";
#else
  return false;  // the setting came with torch 2.9
#endif
}

// The functions of torch's interface to an interpreter that some versions declare differently, or
// not at all, for an interpreter that has no objects.
class InterpreterOfAnyVersion : public c10::impl::PyInterpreterVTable {
 public:
#if ACLNN_TORCH_SINCE(10)
  void decref(PyObject*) const override {}
  bool try_incref(const c10::impl::PyObjectSlot&) const override { return false; }
  size_t refcnt(PyObject*) const override { return 1; }
#else
  void decref(PyObject*, bool) const override {}
#endif
#if ACLNN_TORCH_SINCE(9)
  c10::SymBool sym_is_contiguous(const c10::TensorImpl* tensor,
                                 at::MemoryFormat format) const override {
    return is_contiguous(tensor, format);
  }
#endif
};

}  // namespace aclnn_host

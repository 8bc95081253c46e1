#include "torch_ops/npu_backend.h"

#include <dlfcn.h>

#include "client/error.h"
#include "client/library.h"
#include "torch_ops/error_translation.h"

namespace aclnn_torch {
namespace {

const NpuBackend& load() {
  const std::string path = aclnn::bundled_library("libaclnn_npu.so");
  void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* function = object ? dlsym(object, kGetNpuBackend) : nullptr;
  if (function == nullptr) {
    const char* reason = dlerror();
    raise_error(
        aclnn::Error("dlopen", ACL_ERROR_INVALID_FILE,
                     std::string(reason ? reason : path) +
                         "; operators on NPU tensors are in this library, which is built where "
                         "torch_npu is installed and needs the torch_npu it was built for: build "
                         "aclnn_torch again there; `python -m aclnn_torch doctor` tells more"));
  }
  return *reinterpret_cast<GetNpuBackend*>(function)();
}

}  // namespace

const NpuBackend& npu_backend() {
  static const NpuBackend& backend = load();
  return backend;
}

}  // namespace aclnn_torch

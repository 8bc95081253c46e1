// An NpuBackend that launches immediately, bypassing torch_npu's task queue:
// tests/npu/test_order.py must detect it. It forwards everything else to the real backend,
// libaclnn_npu_real.so in the same folder.

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "torch_ops/npu_backend.h"

namespace {

using namespace aclnn_torch;

const NpuBackend& real() {
  static const NpuBackend* const backend = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<const void*>(&real), &info);
    const std::string self = info.dli_fname;
    const std::string path = self.substr(0, self.rfind('/') + 1) + "libaclnn_npu_real.so";
    void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<GetNpuBackend*>(dlsym(object, kGetNpuBackend))();
  }();
  return *backend;
}

class Misordered final : public NpuBackend {
 public:
  at::Tensor empty(at::IntArrayRef sizes, const at::TensorOptions& options) const override {
    return real().empty(sizes, options);
  }
  void* begin() const override { return real().begin(); }
  void launch(const std::string&, const std::function<int()>& task) const override { task(); }
  void enter(void* stream) const override { real().enter(stream); }
  int32_t format(const at::Tensor& tensor) const override { return real().format(tensor); }
  int8_t convolution_math_type() const override { return real().convolution_math_type(); }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const NpuBackend* aclnn_torch_npu_backend() {
  static const Misordered backend;
  return &backend;
}

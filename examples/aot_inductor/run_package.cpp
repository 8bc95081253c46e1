// Runs the package that make_package.py wrote. No Python: torch.ops.aclnn comes from
// libaclnn_torch.so.

#include <cstdio>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s PACKAGE.pt2\n", argv[0]);
    return 2;
  }
  const c10::InferenceMode no_gradients;
  torch::inductor::AOTIModelPackageLoader network(argv[1]);
  const int rows = 4;
  const at::Tensor input = at::linspace(-1, 1, 16 * rows).reshape({rows, 1, 16});
  const at::Tensor output = network.run({input})[0].flatten();
  for (int i = 0; i < output.numel(); ++i) std::printf("%.5f\n", output[i].item<float>());
}

#include "host_cann/ops/convolution/direct.h"

#include <ATen/Parallel.h>

#include "host_cann/kernels/sizes.h"
#include "host_cann/ops/convolution/convolution_parts.h"

namespace aclnn_host {

Form Direct::form(const Problem&, Layout layout, aclDataType dtype) {
  return {.layout = layout,
          .weight_layout = Layout::kChannelsFirst,
          .dtype = dtype,
          .image_dtype = dtype,
          .weight_dtype = sum_type(dtype)};
}

Direct::Direct(const Problem& problem, const Form& form, const Passes& passes, Workspace& workspace)
    : Direct(problem, convolution_direct_kernels().find(form.dtype), passes, workspace) {}

Direct::Direct(const Problem& problem, const DirectKernels& kernels, const Passes& passes,
               Workspace& workspace)
    : kernels_(&kernels),
      sizes_(problem.sizes),
      passes_(passes),
      parts_(part_count(problem.sizes)),
      scratch_size_(round_up(kernels.scratch_size(problem.sizes), 64)),
      offset_(workspace.reserve(static_cast<uint64_t>(parts_ * scratch_size_))) {}

void Direct::run(const Operands& operands, Results& results) const {
  const int64_t images = sizes_.batch * sizes_.groups;
  if (passes_.weight) {
    run_kernel(kernels_->backward_weight, sizes_.groups, operands, results.weight.view.data());
  }
  if (passes_.image == Pass::kForward) {
    run_kernel(kernels_->forward, images, operands, results.image.view.data());
  } else if (passes_.image == Pass::kBackwardData) {
    run_kernel(kernels_->backward_data, images, operands, results.image.view.data());
  }
}

void Direct::run_kernel(Kernel kernel, int64_t items, const Operands& operands,
                        void* result) const {
  const ConvolutionTensors from = operands.data();
  char* const scratch = static_cast<char*>(operands.workspace) + offset_;
  at::parallel_for(0, parts_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      kernel(sizes_, from, items * i / parts_, items * (i + 1) / parts_, result,
             scratch + i * scratch_size_);
    }
  });
}

}  // namespace aclnn_host

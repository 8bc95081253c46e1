#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cann/rows/engine/frame.h"
#include "cann/rows/engine/stored.h"
#include "host_cann/arguments/aten.h"
#include "host_cann/descriptors/executor.h"

namespace aclnn_host {

// The tensors of one call, and what a row needs beside them.
struct Call {
  std::vector<Slot> slots;
  std::vector<const char*> names;  // of the slots
  std::vector<TensorView> views;
  std::vector<TensorArgument> arguments;          // whose views are set by point_at_views()
  std::vector<std::shared_ptr<Dims>> shapes;      // of the SizedOutputs, by tensor
  std::vector<std::shared_ptr<const void>> kept;  // memory of tensors that only the call has

  void point_at_views() {
    for (size_t i = 0; i < views.size(); ++i) arguments[i].view = &views[i];
  }

  // Runs a row on tensors that `tensor_of` makes of the views; `writes` to the outputs, or not.
  template <class TensorOf>
  void run(RowFunction row, TensorOf tensor_of, bool writes) const {
    const AtenScope scope;
    std::vector<at::Tensor> tensors;
    tensors.reserve(views.size());
    for (const TensorView& view : views) tensors.push_back(tensor_of(view));
    row({slots, names, tensors, views, shapes, writes});
    if (writes) store_outputs(tensors);
  }

 private:
  void store_outputs(const std::vector<at::Tensor>& tensors) const {
    for (size_t i = 0; i < views.size(); ++i) {
      if (arguments[i].is_output && is_stored_apart(views[i])) store(tensors[i], views[i]);
    }
  }
};

// The tensors that a row may get for a view. The caller's elements; an output that is stored apart
// is loaded, too, because a row may leave it alone.
at::Tensor with_memory(const TensorView& view);
// A tensor of the view's layout without memory.
at::Tensor without_memory(const TensorView& view);
// Scratch memory of the view's layout, all zeros. The pages that a kernel only reads cost nothing.
at::Tensor zeros(const TensorView& view);
// The same, all ones.
at::Tensor ones(const TensorView& view);

// The number of elements of memory that a view spans; 0 for an empty one.
int64_t span_of(const TensorView& view);

// A view of the same rank and dtype with sizes of at most 8.
TensorView shrunken(const TensorView& view);

}  // namespace aclnn_host

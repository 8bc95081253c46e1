#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cann/rows/engine/frame.h"
#include "cann/rows/engine/stored.h"
#include "host_cann/arguments/aten.h"
#include "host_cann/arguments/one_thread.h"
#include "host_cann/descriptors/executor.h"

namespace aclnn_host {

// The tensors and other arguments of one call.
struct Call {
  std::vector<Slot> slots;
  std::vector<const char*> names;  // one for each slot
  std::vector<TensorView> views;
  std::vector<TensorArgument> arguments;          // point_at_views() sets their views
  std::vector<std::shared_ptr<Dims>> shapes;      // of the SizedOutputs, by tensor
  std::vector<size_t> in_bytes;                   // the tensors that the row sees as bytes
  std::vector<std::shared_ptr<const void>> kept;  // memory of tensors that nothing else keeps alive

  void point_at_views() {
    for (size_t i = 0; i < views.size(); ++i) arguments[i].view = &views[i];
  }

  // Runs a row on the tensors that `tensor_of` makes of the views. With `writes` false, outputs are
  // not written.
  template <class TensorOf>
  void run(RowFunction row, TensorOf tensor_of, bool writes) const {
    const AtenScope scope;
    std::optional<OneThread> alone;
    if (computes_alone()) alone.emplace();
    std::vector<at::Tensor> tensors;
    tensors.reserve(views.size());
    for (size_t i = 0; i < views.size(); ++i) {
      tensors.push_back(is_in_bytes(i) ? tensor_of(view_of_bytes(views[i])) : tensor_of(views[i]));
    }
    row({slots, names, tensors, views, shapes, writes});
    if (writes) store_outputs(tensors);
  }

 private:
  // Whether little work is left to one thread of two: the program's thread wants a processor, too,
  // so that a second thread comes late. A mask of BOOL beside other inputs may be large, as in
  // attention, which reads a part of it.
  bool computes_alone() const;
  bool is_in_bytes(size_t i) const { return std::ranges::find(in_bytes, i) != in_bytes.end(); }
  void store_outputs(const std::vector<at::Tensor>& tensors) const {
    for (size_t i = 0; i < views.size(); ++i) {
      if (arguments[i].is_output && is_stored_apart(views[i]) && !is_in_bytes(i)) {
        store(tensors[i], views[i]);
      }
    }
  }
};

// A tensor of the caller's elements. An output that is stored apart (see stored.h) is loaded, too,
// because a row may leave elements unchanged.
at::Tensor with_memory(const TensorView& view);
// A tensor of the view's layout without memory.
at::Tensor without_memory(const TensorView& view);
// Scratch memory of the view's layout, all zeros. Pages that a kernel only reads cost nothing.
at::Tensor zeros(const TensorView& view);
// Scratch memory of the view's layout, all ones.
at::Tensor ones(const TensorView& view);

// The number of elements from a view's first to its last in memory; 0 for an empty one.
int64_t span_of(const TensorView& view);

// A view of the same rank and dtype with sizes of at most 8.
TensorView shrunken(const TensorView& view);

}  // namespace aclnn_host

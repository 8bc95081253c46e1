#include "cann/rows/engine/frame.h"

#include <algorithm>

#include "cann/rows/engine/memory_range.h"

namespace aclnn_host {

bool tensors_are_apart(const Frame& frame) {
  struct Item {
    MemoryRange memory;
    size_t position;
    const at::Tensor* tensor;
  };
  std::vector<Item> all;
  all.reserve(frame.tensors.size());
  size_t of_its_own = frame.tensors.size();  // an index that no list has
  for (size_t slot = 0; slot < frame.slots.size(); ++slot) {
    const TensorRange* const range = frame.range(slot);
    if (range == nullptr) continue;
    for (size_t i = 0; i < range->count; ++i) {
      const at::Tensor& tensor = frame.tensors[range->first + i];
      const MemoryRange memory = memory_range_of(tensor);
      if (!memory.is_empty()) all.push_back({memory, range->is_list ? i : of_its_own++, &tensor});
    }
  }
  std::ranges::sort(all, {}, [](const Item& each) { return each.memory.begin; });
  const Item* last = nullptr;
  for (const Item& next : all) {
    const bool is_apart = last == nullptr || next.memory.begin >= last->memory.end;
    const bool is_same =
        !is_apart && next.position == last->position && is_same_view(*next.tensor, *last->tensor);
    if (!is_apart && !is_same) return false;
    last = &next;
  }
  return true;
}

}  // namespace aclnn_host

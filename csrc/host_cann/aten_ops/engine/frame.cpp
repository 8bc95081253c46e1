#include "host_cann/aten_ops/engine/frame.h"

#include <algorithm>

#include "host_cann/aten_ops/engine/stretch.h"

namespace aclnn_host {

bool places_are_apart(const Frame& frame) {
  struct Placed {
    Stretch memory;
    size_t place;
  };
  std::vector<Placed> all;
  all.reserve(frame.tensors.size());
  size_t of_its_own = frame.tensors.size();  // a place that no list has
  for (size_t slot = 0; slot < frame.slots.size(); ++slot) {
    const TensorRange* const range = frame.range(slot);
    if (range == nullptr) continue;
    for (size_t i = 0; i < range->count; ++i) {
      const Stretch memory = stretch_of(frame.tensors[range->first + i]);
      if (!memory.is_empty()) all.push_back({memory, range->is_list ? i : of_its_own++});
    }
  }
  std::ranges::sort(all, {}, [](const Placed& each) { return each.memory.begin; });
  // What ends after the next one begins has its place, or there is an overlap.
  const Placed* furthest = nullptr;
  for (const Placed& next : all) {
    if (furthest != nullptr && next.memory.begin < furthest->memory.end &&
        next.place != furthest->place) {
      return false;
    }
    if (furthest == nullptr || next.memory.end > furthest->memory.end) furthest = &next;
  }
  return true;
}

}  // namespace aclnn_host

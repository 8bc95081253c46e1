#pragma once

#include <atomic>
#include <optional>

#include <ATen/record_function.h>

namespace aclnn_torch {

// Whether each stage of a call is a range in torch.profiler, beside the operator around it.
extern std::atomic<bool> profile_stages;

// Such a range, if they are wanted.
class StageSpan {
 public:
  explicit StageSpan(const char* name) {
    if (!profile_stages.load(std::memory_order_relaxed)) [[likely]]
      return;
    record_.emplace(at::RecordScope::FUNCTION);
    if (record_->isActive()) record_->before(name);
  }

 private:
  std::optional<at::RecordFunction> record_;
};

}  // namespace aclnn_torch

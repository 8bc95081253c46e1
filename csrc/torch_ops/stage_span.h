#pragma once

#include <atomic>
#include <optional>

#include <ATen/record_function.h>

namespace aclnn_torch {

// If true, each stage of a call is a range in torch.profiler, beside the operator's own range.
extern std::atomic<bool> profile_stages;

// The range of one stage, if ranges are enabled.
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

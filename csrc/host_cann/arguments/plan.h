#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include "host_cann/descriptors/executor.h"

namespace aclnn_host {

// Counts in stage 1 the scratch memory that stage 2 receives. Every part begins on a cache line if
// the workspace does.
class Workspace {
 public:
  // Reserves `bytes` and returns their offset. Broadcast views can have more elements than fit into
  // memory, so the sum may overflow; stage1() turns that into a status.
  uint64_t reserve(uint64_t bytes) {
    constexpr uint64_t kMost = INT64_MAX;
    if (bytes > kMost - 63 || (bytes + 63) / 64 * 64 > kMost - size_) {
      throw std::length_error("workspace");
    }
    const uint64_t begin = size_;
    size_ += (bytes + 63) / 64 * 64;
    return begin;
  }
  uint64_t size() const { return size_; }

 private:
  uint64_t size_ = 0;
};

// The end of the body of stage1(), after the checks: `make` gets a Workspace to reserve from and
// returns the Plan (see ExecutorOf for its members).
template <class Make>
aclnnStatus make_executor(const char* api, uint64_t* workspace_size, aclOpExecutor** executor,
                          Make make) {
  Workspace workspace;
  auto plan = make(workspace);
  using Executor = ExecutorOf<decltype(plan)>;
  *executor = hand_out(std::make_unique<Executor>(api, workspace.size(), std::move(plan)));
  *workspace_size = workspace.size();
  return OK;
}

}  // namespace aclnn_host

// Stage 2 of an operator; only the name differs.
#define ACLNN_STAGE2(Name)                                                                  \
  aclnnStatus aclnn##Name(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, \
                          aclrtStream stream) {                                             \
    return launch("aclnn" #Name, workspace, workspaceSize, executor, stream);               \
  }

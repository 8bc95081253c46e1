// Matrix products of FLOAT, of DOUBLE, and of BFLOAT16 into FLOAT.
#pragma once

#include <atomic>
#include <cstdint>

#include <ATen/Parallel.h>

#include "host_cann/arguments/plan.h"
#include "host_cann/kernels/matmul.h"

namespace aclnn_host::linear_cross_entropy {

// Work on so many parts at a time, of which each has memory to pack matrices in. Who does what
// changes no bit. Results and sums are Real, what is multiplied has type Element.
template <class Real, class Element = Real>
class Products {
 public:
  Products(int64_t parts, Workspace& workspace);

  int64_t parts() const { return parts_; }
  void place(void* workspace) { scratch_ = static_cast<char*>(workspace) + offset_; }

  // The product, whose depth may be 0, within a part of the work.
  void multiply(const MatrixProduct<Element, Real>& product, int64_t part) const;
  // By all parts.
  void multiply_together(const MatrixProduct<Element, Real>& product) const;

  // Calls body(part, task) for so many tasks.
  template <class Body>
  void for_each(int64_t tasks, Body body) const {
    std::atomic<int64_t> next = 0;
    at::parallel_for(0, parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        for (int64_t task; (task = next++) < tasks;) body(part, task);
      }
    });
  }

 private:
  int64_t parts_;
  uint64_t offset_;
  char* scratch_ = nullptr;
};

}  // namespace aclnn_host::linear_cross_entropy

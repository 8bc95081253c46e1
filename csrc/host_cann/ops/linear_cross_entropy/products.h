// Matrix products in FLOAT, in DOUBLE, and from BFLOAT16 to FLOAT.
#pragma once

#include <atomic>
#include <cstdint>

#include <ATen/Parallel.h>

#include "host_cann/arguments/plan.h"
#include "host_cann/kernels/matmul.h"

namespace aclnn_host::linear_cross_entropy {

// Runs this many parts of the work concurrently, each with memory for packing matrices. The
// assignment of work to parts does not affect any bit. Results and sums are Real, factors have type
// Element.
template <class Real, class Element = Real>
class Products {
 public:
  Products(int64_t parts, Workspace& workspace);

  int64_t parts() const { return parts_; }
  void place(void* workspace) { scratch_ = static_cast<char*>(workspace) + offset_; }

  // Computes the product, whose depth may be 0, within one part of the work.
  void multiply(const MatrixProduct<Element, Real>& product, int64_t part) const;
  // Computes the product with all parts.
  void multiply_together(const MatrixProduct<Element, Real>& product) const;

  // Calls body(part, task) for this many tasks.
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

#pragma once

#include <omp.h>

#include <ATen/Parallel.h>

// A function of MKL, which PyTorch contains on x86-64; null elsewhere.
extern "C" __attribute__((weak)) int MKL_Set_Num_Threads_Local(int count);

namespace aclnn_host {

// While it exists, the calling thread computes alone.
class OneThread {
 public:
  OneThread() {
    // The first parallel_for of a thread in this library would set the number again.
    at::internal::lazy_init_num_threads();
    omp_set_num_threads(1);
    if (MKL_Set_Num_Threads_Local != nullptr) mkl_threads_ = MKL_Set_Num_Threads_Local(1);
  }
  ~OneThread() {
    if (MKL_Set_Num_Threads_Local != nullptr) MKL_Set_Num_Threads_Local(mkl_threads_);
    omp_set_num_threads(threads_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int threads_ = at::get_num_threads();
  int mkl_threads_ = 0;
};

}  // namespace aclnn_host

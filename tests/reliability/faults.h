// The interface of libfaults.so: makes the n-th allocation, or the n-th call of the client into a
// CANN, fail. Preload it, or link it first.
#pragma once

#include <cstdint>

extern "C" {

enum FaultKind {
  // malloc and its variants, operator new, mmap, pthread_create: by any thread, including the
  // memory of ATen's tensors. Excluded are allocations of the C library and OpenMP, which end the
  // process if they fail, and of libtorch_cpu.so, whose oneDNN dereferences the null pointer.
  kFaultAllocation = 0,
  // The same, only for allocations by this project's code.
  kFaultOwnAllocation = 1,
  // Functions of a CANN that were found by dlsym: descriptors, stage 1, stage 2, synchronisation.
  // Excluded are destroying functions, whose failure cannot be handled.
  kFaultCall = 2
};

// From now on events of the kind are counted, and the n-th fails; none if n is 0.
void faults_arm(int kind, int64_t n);

// The number of events since faults_arm().
int64_t faults_disarm(void);
}

// What libfaults.so offers: it makes the n-th allocation, or the n-th call of the client into a
// CANN, fail. It is preloaded, or linked before anything else.
#pragma once

#include <cstdint>

extern "C" {

enum FaultKind {
  // malloc and its kin, operator new, mmap, pthread_create: by any thread, the memory of ATen's
  // tensors too. But not what the C library and OpenMP's ask for, which end the process when they
  // lack it, nor what libtorch_cpu.so does: its oneDNN reads from the null pointer.
  kFaultAllocation = 0,
  // The same, asked for by the code of this project alone.
  kFaultOwnAllocation = 1,
  // Functions of a CANN that were found by dlsym: descriptors, stage 1, stage 2, synchronisation.
  // Not those that destroy: nobody can do anything about them.
  kFaultCall = 2
};

// From now on events of the kind are counted, and the n-th fails; with 0, none does.
void faults_arm(int kind, int64_t n);

// How many there were since faults_arm().
int64_t faults_disarm(void);
}

// Faults on demand; see faults.h.
#include "faults.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "aclnnop/aclnn_cross_entropy_loss.h"
#include "aclnnop/aclnn_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_fused_cross_entropy_loss_with_max_sum.h"
#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_fused_linear_online_max_sum.h"
#include "aclnnop/aclnn_host_linear_cross_entropy.h"
#include "aclnnop/aclnn_layer_norm.h"
#include "aclnnop/aclnn_layer_norm_backward.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_rms_norm_grad.h"
#include "elementwise_functions.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

std::atomic<int> armed{-1};  // a FaultKind
std::atomic<int64_t> target{0};
std::atomic<int64_t> seen{0};

// The code of a loaded file.
struct Range {
  uintptr_t begin, end;
};
struct Ranges {
  Range values[64];
  size_t count = 0;

  bool contain(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    return std::any_of(values, values + count,
                       [&](const Range& range) { return range.begin <= at && at < range.end; });
  }
};
Ranges own;        // this project's code
Ranges merciless;  // code that ends the process if an allocation fails

bool is_own(std::string_view path) {
  return path.find("libaclnn") != path.npos || path.find("/cann/lib64/") != path.npos ||
         path.find("aclnn_torch/_C") != path.npos;
}

bool is_merciless(std::string_view path) {
  return path.find("/libc.so") != path.npos || path.find("/ld-linux") != path.npos ||
         path.find("/libgomp") != path.npos || path.find("/libtorch_cpu.so") != path.npos ||
         path.find("/libarm_compute") != path.npos;  // used by oneDNN on aarch64
}

int add_ranges(dl_phdr_info* info, size_t, void*) {
  const std::string_view path = info->dlpi_name;
  Ranges* const ranges = is_own(path) ? &own : is_merciless(path) ? &merciless : nullptr;
  for (int i = 0; ranges != nullptr && i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    if (ranges->count == std::size(ranges->values)) return 1;
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    ranges->values[ranges->count++] = {begin, begin + segment.p_memsz};
  }
  return 0;
}

// Reads the ranges of the loaded code, if it has changed.
void read_ranges() {
  static std::atomic<unsigned long long> known{0};
  unsigned long long changes = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds + info->dlpi_subs;
        return 1;
      },
      &changes);
  if (known.exchange(changes) == changes) return;
  own.count = merciless.count = 0;
  dl_iterate_phdr(add_ranges, nullptr);
}

// Counts an event; returns true if it is the one to fail.
bool strikes() {
  return seen.fetch_add(1, std::memory_order_relaxed) + 1 == target.load(std::memory_order_relaxed);
}

bool call_strikes() {
  return armed.load(std::memory_order_acquire) == kFaultCall && strikes();
}

// ---- Calls into a CANN --------------------------------------------------------------------------

// The common type of the second stages.
using Stage2 = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);

// A function that fails when selected, and otherwise calls the real one. Tag distinguishes
// functions of the same type.
template <class Function, class Tag>
struct Faulty;
template <class R, class... P, class Tag>
struct Faulty<R (*)(P...), Tag> {
  static inline R (*real)(P...) = nullptr;

  static R call(P... arguments) {
    if (!call_strikes()) return real(arguments...);
    if constexpr (std::is_pointer_v<R>) {
      return nullptr;
    } else if constexpr (std::is_same_v<R (*)(P...), Stage2>) {
      return refuse(arguments...);
    } else {
      return ACLNN_ERR_RUNTIME_ERROR;
    }
  }

 private:
  // A failing stage 2 has consumed its executor, like one without a workspace.
  static aclnnStatus refuse(void*, uint64_t size, aclOpExecutor* executor, aclrtStream stream) {
    return real(nullptr, std::max<uint64_t>(size, 1), executor, stream);
  }
};

struct Entry {
  const char* name;
  void* faulty;
  void** real;
};

template <class Function, class Tag>
Entry entry(const char* name, Tag) {
  using Made = Faulty<Function, Tag>;
  return {name, reinterpret_cast<void*>(&Made::call), reinterpret_cast<void**>(&Made::real)};
}

#define FAULTY(function) entry<decltype(&function)>(#function, [] {})
#define FAULTY_OPERATOR(name) FAULTY(aclnn##name##GetWorkspaceSize), FAULTY(aclnn##name)
#define FAULTY_ELEMENTWISE(name) FAULTY_OPERATOR(name),

// For one library in the process: the function of the last library searched is called.
const Entry* find_entry(std::string_view name) {
  static const Entry entries[] = {FAULTY(aclCreateTensor),
                                  FAULTY(aclCreateScalar),
                                  FAULTY(aclCreateIntArray),
                                  FAULTY(aclCreateFloatArray),
                                  FAULTY(aclCreateBoolArray),
                                  FAULTY(aclCreateTensorList),
                                  FAULTY(aclCreateScalarList),
                                  FAULTY(aclSetAclOpExecutorRepeatable),
                                  FAULTY(aclGetRecentErrMsg),
                                  FAULTY(aclrtSynchronizeStream),
                                  FAULTY_OPERATOR(Convolution),
                                  FAULTY_OPERATOR(ConvolutionBackward),
                                  FAULTY_OPERATOR(CrossEntropyLoss),
                                  FAULTY_OPERATOR(CrossEntropyLossGrad),
                                  FAULTY_OPERATOR(FusedCrossEntropyLossWithMaxSum),
                                  FAULTY_OPERATOR(FusedLinearCrossEntropyLossGrad),
                                  FAULTY_OPERATOR(FusedLinearOnlineMaxSum),
                                  FAULTY_OPERATOR(HostLinearCrossEntropy),
                                  FAULTY_OPERATOR(LayerNorm),
                                  FAULTY_OPERATOR(LayerNormBackward),
                                  FAULTY_OPERATOR(RmsNorm),
                                  ELEMENTWISE_FUNCTIONS(FAULTY_ELEMENTWISE)
                                      FAULTY_OPERATOR(RmsNormGrad)};
  for (const Entry& entry : entries) {
    if (name == entry.name) return &entry;
  }
  return nullptr;
}

// The C library's own dlsym, whose version depends on architecture and release.
auto real_dlsym() {
  void* found = nullptr;
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"}) {
    if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", version);
  }
  return reinterpret_cast<void* (*)(void*, const char*)>(found);
}

}  // namespace

// The client finds all functions of a library with it.
EXPORTED void* dlsym(void* object, const char* name) noexcept {
  static const auto real = real_dlsym();
  // A tail call: with RTLD_NEXT, the result depends on the caller.
  const Entry* const entry = std::strncmp(name, "acl", 3) == 0 ? find_entry(name) : nullptr;
  if (entry == nullptr) return real(object, name);
  *entry->real = real(object, name);
  return *entry->real == nullptr ? nullptr : entry->faulty;
}

EXPORTED void faults_arm(int kind, int64_t n) {
  read_ranges();
  target = n;
  seen = 0;
  armed.store(kind, std::memory_order_release);
}

EXPORTED int64_t faults_disarm(void) {
  armed = -1;
  return seen;
}

// ---- Allocations --------------------------------------------------------------------------------

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

bool allocation_strikes(const void* caller) {
  switch (armed.load(std::memory_order_acquire)) {
    case kFaultAllocation: return !merciless.contain(caller) && strikes();
    case kFaultOwnAllocation: return own.contain(caller) && strikes();
    default: return false;
  }
}

void* make(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

EXPORTED void* malloc(size_t size) {
  if (!allocation_strikes(CALLER)) return __libc_malloc(size);
  errno = ENOMEM;
  return nullptr;
}

EXPORTED void* calloc(size_t count, size_t size) {
  if (!allocation_strikes(CALLER)) return __libc_calloc(count, size);
  errno = ENOMEM;
  return nullptr;
}

EXPORTED void* realloc(void* memory, size_t size) {
  if (!allocation_strikes(CALLER)) return __libc_realloc(memory, size);
  errno = ENOMEM;
  return nullptr;
}

EXPORTED void* aligned_alloc(size_t alignment, size_t size) {
  if (!allocation_strikes(CALLER)) return __libc_memalign(alignment, size);
  errno = ENOMEM;
  return nullptr;
}

EXPORTED int posix_memalign(void** memory, size_t alignment, size_t size) {
  if (allocation_strikes(CALLER)) return ENOMEM;
  void* const made = __libc_memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *memory = made;
  return 0;
}

EXPORTED void* mmap(void* address, size_t size, int protection, int flags, int file,
                    off_t offset) noexcept {
  static const auto real = reinterpret_cast<decltype(&mmap)>(dlsym(RTLD_NEXT, "mmap"));
  if (!allocation_strikes(CALLER)) return real(address, size, protection, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

EXPORTED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                            void* (*body)(void*), void* argument) noexcept {
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return allocation_strikes(CALLER) ? EAGAIN : real(thread, attributes, body, argument);
}

// std::thread calls it from the C++ library, so it is not counted as this project's; operator new
// is called by the code that allocates.
#pragma GCC visibility push(default)
void* operator new(size_t size) {
  return make(allocation_strikes(CALLER) ? nullptr : __libc_malloc(std::max<size_t>(size, 1)));
}
void* operator new[](size_t size) {
  return make(allocation_strikes(CALLER) ? nullptr : __libc_malloc(std::max<size_t>(size, 1)));
}
void* operator new(size_t size, std::align_val_t alignment) {
  return make(allocation_strikes(CALLER)
                  ? nullptr
                  : __libc_memalign(static_cast<size_t>(alignment), std::max<size_t>(size, 1)));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return make(allocation_strikes(CALLER)
                  ? nullptr
                  : __libc_memalign(static_cast<size_t>(alignment), std::max<size_t>(size, 1)));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
#pragma GCC visibility pop

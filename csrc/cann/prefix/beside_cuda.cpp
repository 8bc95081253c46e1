// Lets torch_npu run with torch's CUDA build, which pip installs on most machines. When their
// libraries are loaded, both register the keys of their allocator settings with torch, and torch
// ends the process when a key is registered twice. This library is loaded after torch and before
// torch_npu's library, which depends on it, and removes CUDA's keys. CUDA's own settings cannot be
// read afterwards, so their defaults apply. Without torch, or without its CUDA build, the library
// does nothing.
#include <dlfcn.h>

#include <string>
#include <unordered_set>

namespace {

using Keys = std::unordered_set<std::string>;

// A symbol of a library that is already loaded; otherwise null.
void* find_loaded(const char* library, const char* symbol) {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* const address = dlsym(handle, symbol);
  dlclose(handle);  // it stays loaded
  return address;
}

// c10::CachingAllocator::AcceleratorAllocatorConfig::getMutableKeys(), or the object that it
// returns where the function is inline, as in torch 2.11. torch's CUDA build has registered its
// keys there by now.
Keys* registered_keys() {
  constexpr const char* kLibrary = "libc10.so";
  using GetKeys = Keys& (*)();
  if (const auto get = reinterpret_cast<GetKeys>(find_loaded(
          kLibrary,
          "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig14getMutableKeysB5cxx11Ev"))) {
    return &get();
  }
  return static_cast<Keys*>(find_loaded(
      kLibrary,
      "_ZZN3c1016CachingAllocator26AcceleratorAllocatorConfig14getMutableKeysB5cxx11EvE4keys"));
}

__attribute__((constructor)) void take_back_keys_of_cuda() {
  // The object that c10::cuda::CUDACachingAllocator::CUDAAllocatorConfig::getKeys() returns.
  const auto* const of_cuda = static_cast<const Keys*>(find_loaded(
      "libc10_cuda.so",
      "_ZZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig7getKeysB5cxx11EvE4keys"));
  if (of_cuda == nullptr) return;
  Keys* const registered = registered_keys();
  if (registered == nullptr) return;
  for (const std::string& key : *of_cuda) registered->erase(key);
}

}  // namespace

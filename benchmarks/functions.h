// Functions of a library loaded at run time, and the clock, for these programs.
#pragma once

#include <dlfcn.h>

#include <chrono>

using Clock = std::chrono::steady_clock;

template <class Function>
Function* find(void* library, Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// Defines name_ as the library's function `name`.
#define FIND(name) const auto name##_ = find(library, &name, #name)

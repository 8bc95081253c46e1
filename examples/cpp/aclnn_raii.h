// Shared by these programs: owners of AscendCL's objects, calls that throw on failure, and the
// comparison of a result with its formula. C++14, for the host CANN and for an Ascend machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

using Shape = std::vector<int64_t>;

// Throws an error with the failed function, the status and AscendCL's message.
inline void check(int status, const std::string& what) {
  if (status == ACL_SUCCESS) return;
  const char* const text = aclGetRecentErrMsg();
  throw std::runtime_error(what + ": status " + std::to_string(status) + ", " +
                           (text != nullptr ? text : "without a text"));
}

inline size_t elements(const Shape& shape) {
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  return count;
}

// A device in use by this process, with its own context.
class Device {
 public:
  explicit Device(int32_t number = 0) : number_(number) {
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(number_), "aclrtSetDevice");
    check(aclrtCreateContext(&context_, number_), "aclrtCreateContext");  // also makes it current
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() {
    aclrtDestroyContext(context_);
    aclrtResetDevice(number_);
    aclFinalize();
  }

 private:
  int32_t number_;
  aclrtContext context_ = nullptr;
};

// Memory of the device.
class Memory {
 public:
  explicit Memory(size_t bytes) : bytes_(bytes) {
    check(aclrtMalloc(&address_, bytes_, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  }
  template <class T>
  explicit Memory(const std::vector<T>& values) : Memory(values.size() * sizeof(T)) {
    check(aclrtMemcpy(address_, bytes_, values.data(), bytes_, ACL_MEMCPY_HOST_TO_DEVICE),
          "aclrtMemcpy");
  }
  Memory(Memory&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(other.bytes_) {}
  Memory& operator=(Memory&&) = delete;
  ~Memory() {
    if (address_ != nullptr) aclrtFree(address_);
  }

  // All of it as values; synchronise a stream that writes it first.
  template <class T>
  std::vector<T> read() const {
    std::vector<T> values(bytes_ / sizeof(T));
    check(aclrtMemcpy(values.data(), bytes_, address_, bytes_, ACL_MEMCPY_DEVICE_TO_HOST),
          "aclrtMemcpy");
    return values;
  }
  void* address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  void* address_ = nullptr;
  size_t bytes_;
};

// Owns an object that a function of AscendCL destroys. Converts to a pointer to the object for
// calls.
template <class T, aclnnStatus (*destroy)(const T*)>
class Handle {
 public:
  Handle(T* object, const char* what) : object_(object) {
    if (object_ == nullptr) check(ACL_ERROR_INVALID_PARAM, what);
  }
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (object_ != nullptr) destroy(object_);
  }
  operator T*() const { return object_; }

 private:
  T* object_;
};

using Scalar = Handle<aclScalar, aclDestroyScalar>;
using IntArray = Handle<aclIntArray, aclDestroyIntArray>;
using BoolArray = Handle<aclBoolArray, aclDestroyBoolArray>;
using View = Handle<aclTensor, aclDestroyTensor>;

inline Scalar scalar(float value) {
  return {aclCreateScalar(&value, ACL_FLOAT), "aclCreateScalar"};
}

inline IntArray int_array(const Shape& values) {
  return {aclCreateIntArray(values.data(), values.size()), "aclCreateIntArray"};
}

template <size_t size>
BoolArray bool_array(const bool (&values)[size]) {
  return {aclCreateBoolArray(values, size), "aclCreateBoolArray"};
}

// Memory viewed as a contiguous tensor, the last dimension fastest.
inline View view(const Memory& memory, const Shape& shape, aclDataType type = ACL_FLOAT) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
  return {aclCreateTensor(shape.data(), shape.size(), type, strides.data(), 0, ACL_FORMAT_ND,
                          shape.data(), shape.size(), memory.address()),
          "aclCreateTensor"};
}

// A stream, with the workspaces of its pending calls.
class Stream {
 public:
  Stream() { check(aclrtCreateStream(&stream_), "aclrtCreateStream"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { aclrtDestroyStream(stream_); }
  operator aclrtStream() const { return stream_; }

  // Both stages of a function of aclnn; the macro ACLNN supplies the first three arguments.
  template <class... Parameters, class... Arguments>
  void call(const char* name, aclnnStatus (*prepare)(Parameters...),
            aclnnStatus (*launch)(void*, uint64_t, aclOpExecutor*, aclrtStream),
            Arguments&&... arguments) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    check(prepare(std::forward<Arguments>(arguments)..., &size, &executor), name);
    void* workspace = nullptr;
    if (size > 0) {
      workspaces_.emplace_back(size);
      workspace = workspaces_.back().address();
    }
    check(launch(workspace, size, executor, stream_), name);
    ++calls_;
  }

  // Waits for all calls.
  void synchronize() {
    check(aclrtSynchronizeStream(stream_), "aclrtSynchronizeStream");
    workspaces_.clear();
  }
  int calls() const { return calls_; }

 private:
  aclrtStream stream_ = nullptr;
  std::list<Memory> workspaces_;
  int calls_ = 0;
};
#define ACLNN(function) #function, function##GetWorkspaceSize, function

inline aclDataType type_of(float) {
  return ACL_FLOAT;
}
inline aclDataType type_of(int64_t) {
  return ACL_INT64;
}

// A tensor that owns its memory.
class Tensor {
 public:
  template <class T>
  Tensor(const Shape& shape, const std::vector<T>& values)
      : memory_(values), view_(view(memory_, shape, type_of(T()))) {
    if (values.size() != elements(shape))
      throw std::invalid_argument("a tensor needs a value for each element");
  }
  // An output. It is filled with NaN, so that elements the operator does not write fail the
  // comparison.
  explicit Tensor(const Shape& shape) : Tensor(shape, std::vector<float>(elements(shape), NAN)) {}
  operator aclTensor*() const { return view_; }
  std::vector<float> read() const { return memory_.read<float>(); }

 private:
  Memory memory_;
  View view_;
};

// Prints each element with its value by the formula; returns true if each differs by at most
// `tolerance` times that value.
inline bool agree(const char* name, const std::vector<float>& found,
                  const std::vector<double>& formula, double tolerance) {
  bool is_right = found.size() == formula.size();
  for (size_t i = 0; i < found.size() && i < formula.size(); ++i) {
    const bool is_near = std::abs(found[i] - formula[i]) <= tolerance * std::abs(formula[i]);
    std::printf("%s[%zu] = %g, formula %g%s\n", name, i, found[i], formula[i],
                is_near ? "" : ": wrong");
    is_right = is_right && is_near;
  }
  return is_right;
}

// Runs a program on device 0 and a stream; returns the process's exit status: 0 if the result is
// right.
inline int run(bool (*program)(Stream&)) {
  try {
    const Device device;
    Stream stream;
    const bool is_right = program(stream);
    std::printf("%s\n", is_right ? "right" : "wrong");
    return is_right ? 0 : 1;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}

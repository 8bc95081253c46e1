#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "acl/acl_base.h"
#include "host_cann/runtime/memory.h"

namespace aclnn_host::triton {

// The kinds of elements. kI1 is a byte that is 0 or 1; addresses are kI64.
enum Kind : int64_t { kI1, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };

inline bool is_float(int64_t kind) {
  return kind >= kF16;
}

inline int64_t bytes_of(int64_t kind) {
  constexpr int64_t kBytes[] = {1, 1, 2, 4, 8, 2, 2, 4, 8};
  return kBytes[kind];
}

// A kernel as a list of operations on registers. aclnn_triton's lowering.py makes it from Triton's
// intermediate representation; nothing else may, because its registers are not checked.
struct Program {
  std::string name;
  std::vector<int64_t> code;
  std::vector<std::string> places;  // lines of the source, which the code refers to
  std::vector<std::byte> image;     // the first registers: arguments, then constants
  size_t bytes = 0;                 // of all registers
  bool is_ordered = false;          // whether its programs must run one after another
  int64_t work = 0;                 // of a program: the bytes of its operations' results
};

// Runs all programs of a grid, on several threads if they need no order. Returns a status, after
// fail(), which names the kernel, the first program that fails, and the source's line.
aclError run_grid(const Program& program, std::span<const int64_t> arguments,
                  const int64_t (&grid)[3]);

// The device memory that a thread's programs of a kernel have touched. It stays in use until the
// last of them ends.
class Memory {
 public:
  explicit Memory(int32_t device) : device_(device) {}

  // True if the kernel may access the range; otherwise problem() says why not.
  bool reaches(uintptr_t address, size_t count) {
    return (address >= begin_ && address <= end_ && count <= end_ - address) ||
           find(address, count);
  }
  const std::string& problem() const { return problem_; }

 private:
  // A part of memory that the kernel may access.
  struct Window {
    uintptr_t begin;
    uintptr_t end;
  };

  bool find(uintptr_t address, size_t count);

  const int32_t device_;
  uintptr_t begin_ = 0;  // the window of the last access
  uintptr_t end_ = 0;
  std::vector<Window> windows_;
  MemoryInUse in_use_;
  std::string problem_;
};

// Runs programs of a kernel one after another. An operand is the offset of a register, doubled,
// plus one if the register has a single element that stands for all.
class Machine {
 public:
  Machine(const Program& program, std::span<const int64_t> arguments, const int64_t (&grid)[3],
          int32_t device);

  // Runs a program of the grid, counted with the first axis fastest. False if it fails; problem()
  // then has kernel, line, program and reason.
  bool run(int64_t number);
  const std::string& problem() const { return problem_; }

  template <class T>
  T* at(int64_t offset) {
    return reinterpret_cast<T*>(registers_.get() + offset);
  }
  // The single element of a register.
  template <class T>
  T scalar(int64_t offset) {
    return *at<T>(offset);
  }

  int64_t program_id(int64_t axis) const { return id_[axis]; }
  int64_t programs(int64_t axis) const { return grid_[axis]; }
  const int64_t* begin() const { return program_.code.data(); }
  const std::string& text(int64_t place) const {
    return program_.places[static_cast<size_t>(place)];
  }

  // Ends the program with an error of the operation; returns what the operation returns.
  const int64_t* stop(const int64_t* words, const std::string& problem);

  Memory memory;

 private:
  const Program& program_;
  const int64_t grid_[3];
  int64_t id_[3] = {0, 0, 0};
  const std::unique_ptr<std::byte[]> registers_;
  std::string problem_;
};

// An operation: its words are its number, the place in the source, and its operands. It returns the
// next operation's words, or null at the program's end.
struct Operation {
  const char* name;
  const int64_t* (*run)(Machine& machine, const int64_t* words);
};

// All operations; an operation's number is its position. elementwise_operations() and
// block_operations() are parts.
const std::vector<Operation>& operations();
std::span<const Operation> elementwise_operations();
std::span<const Operation> block_operations();
std::span<const Operation> memory_operations();

}  // namespace aclnn_host::triton

// The functions that the Python package aclnn_triton calls. They are not CANN's.
#include <cstdint>
#include <memory>
#include <optional>

#include "cann/triton/machine.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/task.h"

#define ACLNN_TRITON_API extern "C" __attribute__((visibility("default")))

namespace aclnn_host::triton {
namespace {

// A launch of a kernel, in the order of the stream.
class KernelTask final : public Task {
 public:
  KernelTask(const Program& program, const int64_t* grid, std::vector<int64_t> arguments)
      : program_(program), grid_{grid[0], grid[1], grid[2]}, arguments_(std::move(arguments)) {}

  aclError run() noexcept override {
    return guarded(program_.name.c_str(), [&] { return run_grid(program_, arguments_, grid_); });
  }

 private:
  const Program& program_;
  const int64_t grid_[3];
  const std::vector<int64_t> arguments_;
};

// The number of programs of a grid; nothing if a size is negative or they are too many.
std::optional<int64_t> programs_of(const int64_t* grid) {
  int64_t programs = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (grid[axis] < 0 || __builtin_mul_overflow(programs, grid[axis], &programs)) return {};
  }
  if (programs > INT32_MAX) return {};
  return programs;
}

}  // namespace
}  // namespace aclnn_host::triton

using namespace aclnn_host;
using namespace aclnn_host::triton;

// The names of the operations, in the order of their numbers, with a blank behind each.
ACLNN_TRITON_API const char* aclHostTritonOperations() {
  static const std::string names = [] {
    std::string text;
    for (const Operation& operation : operations()) text.append(operation.name).append(" ");
    return text;
  }();
  return names.c_str();
}

// Makes a program, which lives to the end of the process, because captured models may keep it. Null
// if there is no memory.
ACLNN_TRITON_API const void* aclHostTritonLoad(const char* name, const int64_t* code, size_t words,
                                               const char* const* places, size_t place_count,
                                               const void* image, size_t image_bytes, size_t bytes,
                                               bool is_ordered, int64_t work) {
  const Program* result = nullptr;
  guarded(name, [&] {
    auto program = std::make_unique<Program>();
    program->name = name;
    program->code.assign(code, code + words);
    program->places.assign(places, places + place_count);
    const auto* const begin = static_cast<const std::byte*>(image);
    program->image.assign(begin, begin + image_bytes);
    program->bytes = bytes;
    program->is_ordered = is_ordered;
    program->work = work;
    result = program.release();
    return ACL_SUCCESS;
  });
  return result;
}

// Launches a program's grid on a stream as one task; an empty grid is none. An argument is a word,
// whose first bytes are its value.
ACLNN_TRITON_API aclError aclHostTritonLaunch(const void* program, const int64_t* grid,
                                              const int64_t* arguments, size_t count,
                                              aclrtStream stream) {
  const auto& kernel = *static_cast<const Program*>(program);
  const char* const name = kernel.name.c_str();
  return guarded(name, [&] {
    const std::optional<int64_t> programs = programs_of(grid);
    if (!programs) {
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: the grid is (%lld, %lld, %lld), expected sizes of 0 or more, and at most %d "
                  "programs",
                  name, static_cast<long long>(grid[0]), static_cast<long long>(grid[1]),
                  static_cast<long long>(grid[2]), INT32_MAX);
    }
    if (*programs == 0) return ACL_SUCCESS;
    auto task = std::make_unique<KernelTask>(kernel, grid,
                                             std::vector<int64_t>(arguments, arguments + count));
    return submit(name, stream, std::move(task), TaskKind::kOperator);
  });
}

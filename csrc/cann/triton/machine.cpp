#include "cann/triton/machine.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>

#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/registration.h"
#include "host_cann/runtime/settings.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host::triton {

bool Memory::find(uintptr_t address, size_t count) {
  for (const Window& window : windows_) {
    if (address >= window.begin && address <= window.end && count <= window.end - address) {
      begin_ = window.begin;
      end_ = window.end;
      return true;
    }
  }
  const auto* const pointer = reinterpret_cast<const void*>(address);
  Block block;
  const bool is_found = find_block(pointer, count, &block) && block.contains(address, count);
  const bool is_host = !is_found || block.side == Side::kHost;
  if (is_host && is_registered(pointer, count)) return true;
  if (!is_found || (is_host && settings().strict)) {
    problem_ = "which is not device memory; check the mask and the sizes that the kernel gets";
    return false;
  }
  if (!is_host && device_ >= 0 && block.device != device_) {
    problem_ = "which is memory of device " + std::to_string(block.device) +
               ", but the stream belongs to device " + std::to_string(device_);
    return false;
  }
  in_use_.add(pointer, count);
  begin_ = block.begin;
  end_ = block.begin + block.size;
  windows_.push_back({begin_, end_});
  return true;
}

Machine::Machine(const Program& program, std::span<const int64_t> arguments,
                 const int64_t (&grid)[3], int32_t device)
    : memory(device),
      program_(program),
      grid_{grid[0], grid[1], grid[2]},
      registers_(new std::byte[program.bytes]) {
  std::copy(program.image.begin(), program.image.end(), registers_.get());
  if (!arguments.empty()) {
    std::memcpy(registers_.get(), arguments.data(), arguments.size_bytes());
  }
}

bool Machine::run(int64_t number) {
  id_[0] = number % grid_[0];
  id_[1] = number / grid_[0] % grid_[1];
  id_[2] = number / grid_[0] / grid_[1];
  const std::vector<Operation>& all = operations();
  const int64_t* words = begin();
  while (words != nullptr) words = all[static_cast<size_t>(words[0])].run(*this, words);
  return problem_.empty();
}

const int64_t* Machine::stop(const int64_t* words, const std::string& problem) {
  const auto id = [&](int axis) { return std::to_string(id_[axis]); };
  problem_ = program_.name + ": " + text(words[1]) + ", program (" + id(0) + ", " + id(1) + ", " +
             id(2) + "): " + problem;
  return nullptr;
}

namespace {

// The threads for a grid; a team costs more than little work.
int threads_for(const Program& program, int64_t programs) {
  constexpr int64_t kLeastWork = int64_t{1} << 18;  // takes about a tenth of a millisecond
  if (program.is_ordered || programs < 2) return 1;
  if (programs < kLeastWork / std::max(program.work, int64_t{1})) return 1;
  return static_cast<int>(std::min<int64_t>(omp_get_max_threads(), programs));
}

}  // namespace

aclError run_grid(const Program& program, std::span<const int64_t> arguments,
                  const int64_t (&grid)[3]) {
  const int64_t programs = grid[0] * grid[1] * grid[2];
  const int32_t device = current_device();
  const int threads = threads_for(program, programs);
  const int64_t taken_at_once = std::max<int64_t>(programs / (16 * threads), 1);
  // Programs are taken in their order, so that all before one that fails have been taken.
  std::atomic<int64_t> next = 0;
  std::atomic<bool> has_failed = false;
  std::mutex mutex;
  int64_t first = programs;  // the first program that failed
  std::string problem;
  std::exception_ptr exception;
  const auto work = [&] {
    Machine machine(program, arguments, grid, device);
    while (!has_failed) {
      const int64_t begin = next.fetch_add(taken_at_once);
      const int64_t end = std::min(begin + taken_at_once, programs);
      for (int64_t number = begin; number < end; ++number) {
        if (machine.run(number)) continue;
        has_failed = true;
        const std::lock_guard lock(mutex);
        if (number < first) {
          first = number;
          problem = machine.problem();
        }
        return;
      }
      if (end == programs) return;
    }
  };
#pragma omp parallel num_threads(threads)
  try {
    work();
  } catch (...) {
    has_failed = true;
    const std::lock_guard lock(mutex);
    exception = std::current_exception();
  }
  if (exception) std::rethrow_exception(exception);
  if (first == programs) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_AICORE_EXCEPTION, "%s", problem.c_str());
}

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> list;
    for (const auto part : {elementwise_operations(), block_operations(), memory_operations()}) {
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }();
  return all;
}

}  // namespace aclnn_host::triton

#include "cann/triton/machine.h"

#include <algorithm>
#include <cstring>

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
  const int32_t device = current_device();
  if (!is_host && device >= 0 && block.device != device) {
    problem_ = "which is memory of device " + std::to_string(block.device) +
               ", but the stream belongs to device " + std::to_string(device);
    return false;
  }
  in_use_.add(pointer, count);
  begin_ = block.begin;
  end_ = block.begin + block.size;
  windows_.push_back({begin_, end_});
  return true;
}

Machine::Machine(const Program& program, std::span<const int64_t> arguments,
                 const int64_t (&grid)[3])
    : program_(program),
      grid_{grid[0], grid[1], grid[2]},
      registers_(new std::byte[program.bytes]) {
  std::copy(program.image.begin(), program.image.end(), registers_.get());
  if (!arguments.empty()) {
    std::memcpy(registers_.get(), arguments.data(), arguments.size_bytes());
  }
}

aclError Machine::run() {
  const std::vector<Operation>& all = operations();
  for (id_[2] = 0; id_[2] < grid_[2]; ++id_[2]) {
    for (id_[1] = 0; id_[1] < grid_[1]; ++id_[1]) {
      for (id_[0] = 0; id_[0] < grid_[0]; ++id_[0]) {
        const int64_t* words = begin();
        while (words != nullptr) words = all[static_cast<size_t>(words[0])].run(*this, words);
        if (status_ != ACL_SUCCESS) return status_;
      }
    }
  }
  return ACL_SUCCESS;
}

const int64_t* Machine::stop(const int64_t* words, const std::string& problem) {
  status_ = fail(ACL_ERROR_RT_AICORE_EXCEPTION, "%s: %s, program (%lld, %lld, %lld): %s",
                 program_.name.c_str(), text(words[1]).c_str(), static_cast<long long>(id_[0]),
                 static_cast<long long>(id_[1]), static_cast<long long>(id_[2]), problem.c_str());
  return nullptr;
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

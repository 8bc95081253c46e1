#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "hccl/hccl_types.h"
#include "host_cann/hccl/transport.h"

namespace aclnn_host::hccl {

// Where the ranks of a communicator, and later those of its parts, find one another: torch's
// TCPStore, whose server lives in the process that made the root information.
struct Meeting {
  // Held by a pointer of the standard library: a weak one of c10's would keep the port open.
  using Server = c10::intrusive_ptr<c10d::Store>;
  std::shared_ptr<Server> server;  // null in other processes
  c10::intrusive_ptr<c10d::Store> store;
  std::string name;  // the same for all ranks, and for no other communicator's
};

// Opens a server and says where it is.
HcclRootInfo open_root();

// Comes to the place that the first root information names. Of several the others only have to be
// the same for all ranks: one place is enough.
Meeting come_to(std::span<const HcclRootInfo> roots);

// Meets the other ranks and makes the way to them. `name` is the communicator's.
std::unique_ptr<Transport> meet(c10d::Store& store, const std::string& name, uint32_t rank,
                                uint32_t ranks);

}  // namespace aclnn_host::hccl

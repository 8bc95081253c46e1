#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cann/hccl/meeting_place.h"
#include "cann/hccl/transport.h"
#include "hccl/hccl_types.h"

namespace aclnn_host::hccl {

// What stands in HcclRootInfo.
struct Root {
  char magic[8];
  uint16_t port;  // 0: processes of the host alone can come
  char address[256];
  char host[512];  // which one it is, as host_identity() says
  char local_name[64];
  char name[64];
  Secret secret;
};
static_assert(sizeof(Root) <= sizeof(HcclRootInfo));

// What two processes have in common if they can share memory and see each other end: the running
// system, its numbers of processes and of users, the network and the user. A process that is asked
// to use the network (ACLNN_TORCH_HCCL_NETWORK) shares it with none, nor does one to which the
// system does not tell all of that.
std::string host_identity();

// Where the ranks of a communicator, and later those of its parts, find one another.
struct Meeting {
  std::shared_ptr<MeetingPlace> place;  // null in other processes than that of the place
  Invitation invitation;
  std::string roots;  // what the ranks agree on
};

// Opens a place and says where it is.
HcclRootInfo open_root();

// The meeting in the place that the first root information names. Of several the others only have
// to be the same for all ranks: one place is enough.
Meeting meeting_of(std::span<const HcclRootInfo> roots);

// Meets the other ranks and makes the way to them. `key` is the communicator's.
std::unique_ptr<Transport> meet(const Meeting& meeting, const std::string& key, uint32_t rank,
                                uint32_t ranks);

}  // namespace aclnn_host::hccl

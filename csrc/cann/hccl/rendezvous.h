#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cann/hccl/rendezvous_server.h"
#include "cann/hccl/transport.h"
#include "hccl/hccl_types.h"

namespace aclnn_host::hccl {

// The contents of HcclRootInfo.
struct Root {
  char magic[8];
  uint16_t port;  // 0: only processes of the host can join
  char address[256];
  char host[512];  // the result of host_identity()
  char local_name[64];
  char name[64];
  Secret secret;
};
static_assert(sizeof(Root) <= sizeof(HcclRootInfo));

// Identifies what two processes must share to use shared memory and to notice each other's end: the
// running system, the namespaces of processes, users and network, and the user. With
// ACLNN_TORCH_HCCL_NETWORK, and if the system does not report all of these, the identity is unique
// to the process.
std::string host_identity();

// The rendezvous of the ranks of a communicator, and later of its sub-communicators.
struct Rendezvous {
  std::shared_ptr<RendezvousServer> server;  // null in the processes that do not run it
  ServerAddress server_address;
  std::string roots;  // the ranks must agree on it
};

// Starts a rendezvous server and returns its address.
HcclRootInfo open_root();

// The rendezvous at the server of the first root information. If there are several, the others only
// have to be equal for all ranks: one server is enough.
Rendezvous rendezvous_of(std::span<const HcclRootInfo> roots);

// Joins the other ranks and returns the transport to them. `key` is the communicator's.
std::unique_ptr<Transport> join(const Rendezvous& rendezvous, const std::string& key, uint32_t rank,
                                uint32_t ranks);

}  // namespace aclnn_host::hccl

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace aclnn_host::hccl {

// Torch's stores: tables of bytes in one process, which others read and write over TCP.
using StorePointer = c10::intrusive_ptr<c10d::TCPStore>;

// Where a store is reached.
struct Address {
  std::string host;
  uint16_t port = 0;

  std::string text() const { return host + ':' + std::to_string(port); }
  static Address of(const std::string& text);
};

// The text of a variable of the environment, empty if it is not set.
std::string environment(const char* name);

// How long ranks wait for one another to come: HCCL_CONNECT_TIMEOUT.
std::chrono::milliseconds connect_timeout();

// The address under which other hosts find this one: HCCL_IF_IP, or that of an interface, of those
// that HCCL_SOCKET_IFNAME names if it is set.
std::string own_host();

// Opens a store in this process, at the host's address and at a port of
// HCCL_HOST_SOCKET_PORT_RANGE, or any that is free.
StorePointer open_store(const std::string& host, std::chrono::milliseconds timeout);

// Connects to a store. Throws if there is none.
StorePointer connect_to_store(const Address& address, std::chrono::milliseconds timeout);

}  // namespace aclnn_host::hccl

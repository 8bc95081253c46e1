#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace aclnn_host::hccl {

// The host and port of a listening socket.
struct Address {
  std::string host;
  uint16_t port = 0;

  std::string text() const { return host + ':' + std::to_string(port); }
  // Throws a Failure if the text is no address.
  static Address of(const std::string& text);
};

// The value of an environment variable, empty if it is not set.
std::string environment(const char* name);

// The number of seconds in an environment variable, or `otherwise` if it is not set. Throws a
// Failure if it is not an integer of at least `least`.
std::chrono::seconds seconds_of(const char* name, std::chrono::seconds otherwise, int64_t least);

// A timeout in milliseconds, limited to the largest that a Deadline can represent.
int32_t milliseconds_of(std::chrono::seconds timeout) noexcept;

// The time that ranks wait for one another to join: HCCL_CONNECT_TIMEOUT.
std::chrono::seconds connect_timeout();

// The address at which other hosts reach this one: HCCL_IF_IP, or the address of an interface,
// among those that HCCL_SOCKET_IFNAME selects.
std::string own_host();

// The port ranges of HCCL_HOST_SOCKET_PORT_RANGE, such as "60000,60050-60100"; empty if any port
// may be used.
std::vector<std::pair<uint16_t, uint16_t>> port_ranges();

}  // namespace aclnn_host::hccl

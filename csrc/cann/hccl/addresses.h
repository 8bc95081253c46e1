#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace aclnn_host::hccl {

// Where a process listens.
struct Address {
  std::string host;
  uint16_t port = 0;

  std::string text() const { return host + ':' + std::to_string(port); }
  // Throws a Failure if the text is none.
  static Address of(const std::string& text);
};

// The text of a variable of the environment, empty if it is not set.
std::string environment(const char* name);

// The seconds that a variable of the environment says, or so many if it is not set. Throws a
// Failure if it says anything but a whole number from `least` on.
std::chrono::seconds seconds_of(const char* name, std::chrono::seconds otherwise, int64_t least);

// The milliseconds of a timeout, the most that a Deadline can have of a longer one.
int32_t milliseconds_of(std::chrono::seconds timeout) noexcept;

// How long ranks wait for one another to come: HCCL_CONNECT_TIMEOUT.
std::chrono::seconds connect_timeout();

// The address under which other hosts find this one: HCCL_IF_IP, or that of an interface, of those
// that HCCL_SOCKET_IFNAME names if it is set.
std::string own_host();

// The ports of HCCL_HOST_SOCKET_PORT_RANGE, such as "60000,60050-60100", from and to; empty if any
// will do.
std::vector<std::pair<uint16_t, uint16_t>> port_ranges();

}  // namespace aclnn_host::hccl

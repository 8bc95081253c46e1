#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cann/hccl/addresses.h"
#include "cann/hccl/file.h"
#include "host_cann/runtime/deadline.h"

namespace aclnn_host::hccl {

// All sockets are non-blocking.

// Listens at this one address of the host, at a port of HCCL_HOST_SOCKET_PORT_RANGE or any free
// port. Throws a Failure.
File listen_at(const std::string& host);
uint16_t port_of(const File& listener);

// Listens under an abstract name, to which processes of this host can connect (unix(7)).
File listen_as(const std::string& name);

// Connects to a listening process. Throws a std::system_error: at once if nobody listens there, at
// the deadline if the host cannot be reached.
File connect_to(const Address& address, const Deadline& deadline);
// Connects by name to a process of the same user.
File connect_to(const std::string& name, const Deadline& deadline);

// Sends, or receives, exactly these bytes. Throws a std::system_error if the other side closes the
// connection or the deadline passes.
void send_all(const File& to, std::span<const char> bytes, const Deadline& deadline);
void receive_all(const File& from, std::span<char> bytes, const Deadline& deadline);

// Waits for one of poll's events of a file. Throws a std::system_error if the deadline passes.
void wait_for(int file, short events, const Deadline& deadline);

}  // namespace aclnn_host::hccl

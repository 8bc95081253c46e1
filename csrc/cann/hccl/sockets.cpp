#include "cann/hccl/sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <c10/util/StringUtil.h>

#include "cann/hccl/proof.h"
#include "cann/hccl/transport.h"

namespace aclnn_host::hccl {
namespace {

constexpr int kLongestWait = 1000;  // milliseconds of one call of poll
constexpr std::chrono::milliseconds kBetweenTries{50};

[[noreturn]] void throw_system_error(int error) {
  throw std::system_error(error, std::generic_category());
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// The addresses of a host, at least one.
Addresses addresses_of(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) throw std::runtime_error(gai_strerror(error));
  return {found, &freeaddrinfo};
}

File stream_socket(int family) {
  File file(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!file) throw_system_error(errno);
  return file;
}

// True if an address stands for all addresses of the host.
bool is_any(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == htonl(INADDR_ANY);
  }
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

void set_port(sockaddr* address, uint16_t port) {
  if (address->sa_family == AF_INET) reinterpret_cast<sockaddr_in*>(address)->sin_port = port;
  if (address->sa_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(address)->sin6_port = port;
}

// A socket that listens at an address and a port; empty if the port is taken.
File bound_socket(const addrinfo& at, uint16_t port) {
  File file = stream_socket(at.ai_family);
  const int yes = 1;
  setsockopt(file.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (at.ai_family == AF_INET6) {
    setsockopt(file.number(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
  }
  set_port(at.ai_addr, htons(port));
  // If another program uses the port, listen() may report it, not bind().
  if (bind(file.number(), at.ai_addr, at.ai_addrlen) == 0 && listen(file.number(), SOMAXCONN) == 0)
    return file;
  if (errno != EADDRINUSE) throw_system_error(errno);
  return {};
}

sockaddr_un address_of(const std::string& name, socklen_t* size) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  *size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

// Connects a non-blocking socket. Returns the error.
int connect_by(const File& file, const sockaddr* to, socklen_t size, const Deadline& deadline) {
  if (connect(file.number(), to, size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  try {
    wait_for(file.number(), POLLOUT, deadline);
  } catch (const std::system_error& timeout) {
    return timeout.code().value();
  }
  int error = 0;
  socklen_t bytes = sizeof(error);
  getsockopt(file.number(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  return error;
}

// Retries a failed connection, unless it is refused: a process listens before it announces its
// address.
template <class Attempt>
File connected(Attempt&& attempt, const Deadline& deadline) {
  for (;;) {
    File file;
    const int error = attempt(file);
    if (error == 0) return file;
    if (error == ECONNREFUSED || deadline.is_past()) throw_system_error(error);
    std::this_thread::sleep_for(kBetweenTries);
  }
}

}  // namespace

File listen_at(const std::string& host) {
  try {
    const Addresses addresses = addresses_of(host, 0);
    if (is_any(addresses->ai_addr)) {
      throw Failure(HCCL_E_PARA, c10::str("HCCL_IF_IP is ", host,
                                          ", which stands for all addresses of this host, expected "
                                          "the one under which other hosts find it"));
    }
    auto ranges = port_ranges();
    const bool has_range = !ranges.empty();
    if (!has_range) ranges.emplace_back(0, 0);
    for (const auto& [first, last] : ranges) {
      for (uint32_t port = first; port <= last; ++port) {
        if (File file = bound_socket(*addresses, static_cast<uint16_t>(port))) return file;
      }
    }
    throw std::runtime_error(has_range ? "all ports of HCCL_HOST_SOCKET_PORT_RANGE are taken"
                                       : "all ports are taken");
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Failure&) {
    throw;
  } catch (const std::exception& error) {
    throw Failure(HCCL_E_TCP_CONNECT,
                  c10::str("cannot open a TCP port at ", host,
                           " (HCCL_IF_IP or HCCL_SOCKET_IFNAME choose another): ", error.what()));
  }
}

uint16_t port_of(const File& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(listener.number(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
}

File listen_as(const std::string& name) {
  File file = stream_socket(AF_UNIX);
  socklen_t size = 0;
  const sockaddr_un address = address_of(name, &size);
  if (bind(file.number(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(file.number(), SOMAXCONN) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot open a Unix socket");
  }
  return file;
}

File connect_to(const Address& address, const Deadline& deadline) {
  const Addresses addresses = addresses_of(address.host, address.port);
  return connected(
      [&](File& file) {
        int error = 0;
        for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
          file = stream_socket(one->ai_family);
          error = connect_by(file, one->ai_addr, one->ai_addrlen, deadline);
          if (error == 0) break;
        }
        return error;
      },
      deadline);
}

File connect_to(const std::string& name, const Deadline& deadline) {
  socklen_t size = 0;
  const sockaddr_un address = address_of(name, &size);
  File file = connected(
      [&](File& file) {
        file = stream_socket(AF_UNIX);
        return connect_by(file, reinterpret_cast<const sockaddr*>(&address), size, deadline);
      },
      deadline);
  if (!is_same_user(file.number())) throw_system_error(EACCES);
  return file;
}

void wait_for(int file, short events, const Deadline& deadline) {
  pollfd state{file, events, 0};
  for (;;) {
    const int count = poll(&state, 1, deadline.left(kLongestWait));
    if (count > 0) return;
    if (count < 0 && errno != EINTR) throw_system_error(errno);
    if (deadline.is_past()) throw_system_error(ETIMEDOUT);
  }
}

void send_all(const File& to, std::span<const char> bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t count = send(to.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      wait_for(to.number(), POLLOUT, deadline);
    } else if (errno != EINTR) {
      throw_system_error(errno);
    }
  }
}

void receive_all(const File& from, std::span<char> bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t count = recv(from.number(), bytes.data(), bytes.size(), 0);
    if (count > 0) {
      bytes = bytes.subspan(static_cast<size_t>(count));
    } else if (count == 0) {
      throw_system_error(ECONNRESET);
    } else if (errno == EAGAIN) {
      wait_for(from.number(), POLLIN, deadline);
    } else if (errno != EINTR) {
      throw_system_error(errno);
    }
  }
}

}  // namespace aclnn_host::hccl

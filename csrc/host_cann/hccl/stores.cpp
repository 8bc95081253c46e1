#include "host_cann/hccl/stores.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <c10/util/StringUtil.h>

#include "host_cann/hccl/transport.h"

namespace aclnn_host::hccl {
namespace {

constexpr std::chrono::seconds kConnectTimeout{120};

// Whether HCCL_SOCKET_IFNAME names the interface: prefixes, or after "=" whole names, that commas
// divide; after "^" those that are not meant. Without it all are meant.
bool is_meant(const std::string& interface) {
  std::string wanted = environment("HCCL_SOCKET_IFNAME");
  if (wanted.empty()) return true;
  const bool excludes = wanted.front() == '^';
  if (excludes) wanted.erase(0, 1);
  const bool is_exact = !wanted.empty() && wanted.front() == '=';
  if (is_exact) wanted.erase(0, 1);
  std::istringstream names(wanted);
  for (std::string name; std::getline(names, name, ',');) {
    if (is_exact ? interface == name : interface.starts_with(name)) return !excludes;
  }
  return excludes;
}

// The family of addresses that HCCL_SOCKET_FAMILY asks for.
int address_family() {
  const std::string family = environment("HCCL_SOCKET_FAMILY");
  if (family.empty() || family == "AF_INET") return AF_INET;
  if (family == "AF_INET6") return AF_INET6;
  throw Failure(HCCL_E_PARA,
                c10::str("HCCL_SOCKET_FAMILY is ", family, ", expected AF_INET or AF_INET6"));
}

// An interface that is up, with an address.
struct Interface {
  std::string name;
  std::string address;
  bool is_loopback;

  // As HCCL chooses: those of containers' networks and of the host itself last, by their names.
  auto order() const { return std::tuple(is_loopback, name.starts_with("docker"), name); }
};

std::vector<Interface> interfaces(int family) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::vector<Interface> found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const bool is_up = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_RUNNING) != 0;
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family || !is_up) continue;
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(one->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
      continue;
    std::string address = text.data();
    if (address.find('%') != std::string::npos) continue;  // of one link, unknown to other hosts
    found.push_back({one->ifa_name, std::move(address), (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  std::ranges::stable_sort(found, {}, &Interface::order);
  return found;
}

// Why a host has no address; empty if it has. Asked first, because torch's store asks again and
// again, and writes to stderr what it finds.
std::string why_unknown(const std::string& host) {
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  if (error != 0) return gai_strerror(error);
  freeaddrinfo(found);
  return "";
}

// The ports of HCCL_HOST_SOCKET_PORT_RANGE, such as "60000,60050-60100", from and to; empty if any
// will do.
std::vector<std::pair<uint16_t, uint16_t>> port_ranges() {
  const std::string text = environment("HCCL_HOST_SOCKET_PORT_RANGE");
  std::vector<std::pair<uint16_t, uint16_t>> ranges;
  if (text.empty() || text == "auto") return ranges;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const char* const end = part.data() + part.size();
    uint16_t first = 0;
    auto parsed = std::from_chars(part.data(), end, first);
    uint16_t last = first;
    if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
    }
    if (parsed.ec != std::errc() || parsed.ptr != end || first == 0 || last < first) {
      throw Failure(HCCL_E_PARA, c10::str("HCCL_HOST_SOCKET_PORT_RANGE is ", text,
                                          ", expected auto, or ports such as 60000,60050-60100"));
    }
    ranges.emplace_back(first, last);
  }
  return ranges;
}

// A socket at a port, of IPv6 and IPv4 where the system has both; none if the port is taken.
std::optional<int> bound_socket(uint16_t port) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  for (const int family : {AF_INET6, AF_INET}) {
    const int file = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file < 0) continue;
    const int yes = 1, no = 0;
    setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (family == AF_INET6) setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    const auto* const address = family == AF_INET6 ? reinterpret_cast<const sockaddr*>(&six)
                                                   : reinterpret_cast<const sockaddr*>(&four);
    // Whether another program listens there shows only now.
    const bool is_free =
        bind(file, address, family == AF_INET6 ? sizeof(six) : sizeof(four)) == 0 &&
        listen(file, SOMAXCONN) == 0;
    if (is_free) return file;
    close(file);
  }
  return std::nullopt;
}

}  // namespace

Address Address::of(const std::string& text) {
  const size_t colon = text.rfind(':');
  return {text.substr(0, colon),
          static_cast<uint16_t>(std::strtoul(text.c_str() + colon + 1, nullptr, 10))};
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::chrono::milliseconds connect_timeout() {
  const std::string text = environment("HCCL_CONNECT_TIMEOUT");
  const long seconds = std::strtol(text.c_str(), nullptr, 10);
  return seconds > 0 ? std::chrono::seconds(seconds) : kConnectTimeout;
}

std::string own_host() {
  if (const std::string address = environment("HCCL_IF_IP"); !address.empty()) return address;
  const std::vector<Interface> all = interfaces(address_family());
  for (const Interface& one : all) {
    if (is_meant(one.name)) return one.address;
  }
  if (environment("HCCL_SOCKET_IFNAME").empty()) return "127.0.0.1";
  std::string names;
  for (const Interface& one : all) names += (names.empty() ? "" : ", ") + one.name;
  throw Failure(HCCL_E_PARA, c10::str("HCCL_SOCKET_IFNAME is ", environment("HCCL_SOCKET_IFNAME"),
                                      ", which means none of the interfaces that are up: ", names));
}

StorePointer open_store(const std::string& host, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  options.timeout = timeout;
  try {
    if (const auto reason = why_unknown(host); !reason.empty()) throw std::runtime_error(reason);
    const auto ranges = port_ranges();
    for (const auto& [first, last] : ranges) {
      for (uint32_t port = first; port <= last && !options.masterListenFd; ++port) {
        options.masterListenFd = bound_socket(static_cast<uint16_t>(port));
      }
    }
    if (!ranges.empty() && !options.masterListenFd) {
      throw std::runtime_error("all ports of HCCL_HOST_SOCKET_PORT_RANGE are taken");
    }
    return c10::make_intrusive<c10d::TCPStore>(host, options);
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

StorePointer connect_to_store(const Address& address, std::chrono::milliseconds timeout) {
  if (const auto reason = why_unknown(address.host); !reason.empty()) {
    throw std::runtime_error(reason);
  }
  c10d::TCPStoreOptions options;
  options.port = address.port;
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(address.host, options);
}

}  // namespace aclnn_host::hccl

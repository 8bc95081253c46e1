#include "cann/hccl/addresses.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <memory>
#include <sstream>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <c10/util/StringUtil.h>

#include "cann/hccl/transport.h"

namespace aclnn_host::hccl {
namespace {

constexpr std::chrono::seconds kConnectTimeout{120};

// True if HCCL_SOCKET_IFNAME selects the interface. The variable lists prefixes, or whole names
// after "=", separated by commas; after "^" it lists the excluded ones. Without it all interfaces
// are selected.
bool is_meant(const std::string& interface) {
  std::string wanted = environment("HCCL_SOCKET_IFNAME");
  if (wanted.empty()) return true;
  const bool excludes = wanted.front() == '^';
  if (excludes) wanted.erase(0, 1);
  const bool is_exact = !wanted.empty() && wanted.front() == '=';
  if (is_exact) wanted.erase(0, 1);
  std::istringstream names(wanted);
  for (std::string name; std::getline(names, name, ',');) {
    if (name.empty()) continue;
    if (is_exact ? interface == name : interface.starts_with(name)) return !excludes;
  }
  return excludes;
}

// The address family that HCCL_SOCKET_FAMILY selects.
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

  // The order in which HCCL chooses: Docker interfaces after others, loopback last, each by name.
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
    if (address.find('%') != std::string::npos)
      continue;  // a link-local address, which other
                 // hosts cannot reach
    found.push_back({one->ifa_name, std::move(address), (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  std::ranges::stable_sort(found, {}, &Interface::order);
  return found;
}

}  // namespace

Address Address::of(const std::string& text) {
  const size_t colon = text.rfind(':');
  const char* const end = text.data() + text.size();
  Address address{text.substr(0, colon)};
  if (colon != std::string::npos) {
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, address.port);
    if (error == std::errc() && rest == end && address.port != 0) return address;
  }
  throw Failure(HCCL_E_PARA, c10::str(text, " is no address, expected host:port"));
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::chrono::seconds seconds_of(const char* name, std::chrono::seconds otherwise, int64_t least) {
  const std::string text = environment(name);
  if (text.empty()) return otherwise;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const char* const end = text.data() + text.size();
  int64_t seconds = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || rest != end || seconds < least || seconds > kMost) {
    throw Failure(HCCL_E_PARA,
                  c10::str(name, " is ", text, ", expected whole seconds, ", least, " to ", kMost));
  }
  return std::chrono::seconds(seconds);
}

int32_t milliseconds_of(std::chrono::seconds timeout) noexcept {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::min(timeout.count(), kMost / 1000) * 1000);
}

std::chrono::seconds connect_timeout() {
  return seconds_of("HCCL_CONNECT_TIMEOUT", kConnectTimeout, 1);
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

}  // namespace aclnn_host::hccl

#include "host_cann/runtime/settings.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

namespace aclnn_host {
namespace {

constexpr size_t kMaxDevices = 64;

// A number with an optional suffix K, M, G or T (powers of 1024); nullopt for anything else and for
// 0.
std::optional<size_t> parse_size(std::string_view text) {
  size_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || value == 0) return std::nullopt;
  const std::string_view suffix(rest, static_cast<size_t>(end - rest));
  if (suffix.empty()) return value;
  const size_t power = std::string_view("KMGT").find(suffix);
  if (suffix.size() != 1 || power == std::string_view::npos) return std::nullopt;
  const auto shift = 10 * (power + 1);
  if (value > std::numeric_limits<size_t>::max() >> shift) return std::nullopt;
  return value << shift;
}

// The variable's text; null if it is unset or empty.
const char* variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

Settings read() {
  Settings result;
  const auto complain = [&](const char* name, const char* text, const char* expected) {
    if (!result.problem.empty()) result.problem += "; ";
    result.problem += std::string(name) + '=' + text + " is not " + expected;
  };
  const auto read_switch = [&](const char* name) {
    const char* text = variable(name);
    const std::string_view value = text == nullptr ? "0" : text;
    if (value != "0" && value != "1") complain(name, text, "0 or 1");
    return value == "1";
  };
  result.device_memory =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (const char* text = variable("ACLNN_TORCH_DEVICES")) {
    const auto devices = parse_size(text);
    if (devices && *devices <= kMaxDevices) {
      result.devices = static_cast<int32_t>(*devices);
    } else {
      complain("ACLNN_TORCH_DEVICES", text, "a number from 1 to 64");
    }
  }
  if (const char* text = variable("ACLNN_TORCH_DEVICE_MEMORY")) {
    if (const auto bytes = parse_size(text)) {
      result.device_memory = *bytes;
    } else {
      complain("ACLNN_TORCH_DEVICE_MEMORY", text,
               "a number of bytes, with or without K, M, G or T");
    }
  }
  result.strict = read_switch("ACLNN_TORCH_STRICT");
  result.inline_streams = read_switch("ACLNN_TORCH_INLINE_STREAMS");
  result.padding = read_switch("ACLNN_TORCH_PADDING");
  result.hccl_network = read_switch("ACLNN_TORCH_HCCL_NETWORK");
  return result;
}

}  // namespace

const Settings& settings() {
  static const Settings* const value = new Settings(read());  // outlives static destructors
  return *value;
}

int32_t visible_devices() noexcept {
  const int32_t all = settings().devices;
  const char* next = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
  if (next == nullptr) return all;
  const char* const end = next + std::strlen(next);
  int32_t count = 0, last = -1;
  while (true) {
    int32_t device = 0;
    const auto [rest, error] = std::from_chars(next, end, device);
    if (error != std::errc() || device < 0) return count;
    if (device <= last) return 0;
    if (device >= all) return count;
    ++count;
    last = device;
    if (rest == end || *rest != ',') return count;
    next = rest + 1;
  }
}

}  // namespace aclnn_host

#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

// JSON writers; each appends a value to `out`.
namespace aclnn_host {

// A string in ASCII only: other bytes may not be valid UTF-8.
inline void add_text(std::string& out, std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += '"';
  for (const unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c >= 0x7f) {
      out += "\\u00";
      out += kDigits[c / 16];
      out += kDigits[c % 16];
    } else {
      out += static_cast<char>(c);
    }
  }
  out += '"';
}

template <class T>
void add_number(std::string& out, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) {  // JSON has no such number
      add_text(out, std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
      return;
    }
  }
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

template <class Range, class Add>
void add_list(std::string& out, const Range& range, uint64_t size, Add add) {
  out += '[';
  for (uint64_t i = 0; i < size; ++i) {
    if (i > 0) out += ',';
    add(out, range[i]);
  }
  out += ']';
}

}  // namespace aclnn_host

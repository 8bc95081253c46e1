#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "cann/rows/engine/refusal.h"

namespace aclnn_host {

// Refuses all texts but these, such as modes and layouts. `reason` ends the error text.
inline void expect_text(const char* name, const std::string& text,
                        std::initializer_list<std::string_view> accepted, const char* reason = "") {
  if (std::ranges::find(accepted, text) != accepted.end()) return;
  std::string expected;
  for (size_t i = 0; i < accepted.size(); ++i) {
    if (i > 0) expected += i + 1 == accepted.size() ? " or " : ", ";
    expected += '"' + std::string(accepted.begin()[i]) + '"';
  }
  refuse({name, " is \"", text, "\", expected ", expected, reason});
}

}  // namespace aclnn_host

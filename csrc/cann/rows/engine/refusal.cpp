#include "cann/rows/engine/refusal.h"

#include <sstream>
#include <utility>

#include "cann/rows/engine/element_types.h"

namespace aclnn_host {

Part::Part(const c10::Scalar& number) : value_(int64_t{0}) {
  if (number.type() == at::kUInt64) {
    value_ = number.toUInt64();
  } else if (number.isIntegral(/*includeBool=*/true)) {
    value_ = number.toLong();
  } else if (number.isFloatingPoint()) {
    value_ = number.toDouble();
  } else {
    value_ = std::string_view("a complex number");
  }
}

Part::Part(at::ScalarType type) : value_(std::string_view(dtype_text(type))) {}

void Part::append_to(std::string& text) const {
  std::ostringstream stream;
  std::visit([&stream](const auto& value) { stream << value; }, value_);
  text += stream.str();
}

std::string text_of(std::initializer_list<Part> parts) {
  std::string text;
  for (const Part& part : parts) part.append_to(text);
  return text;
}

#ifndef ACLNN_MUTANTS
void note_refusal(const std::source_location&, const std::string&) {}
#endif

void refuse(std::initializer_list<Part> parts, std::source_location location) {
  std::string text = text_of(parts);
  note_refusal(location, text);
  throw Refusal(std::move(text));
}

}  // namespace aclnn_host

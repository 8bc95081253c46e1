#include "cann/rows/checks.h"

#include "cann/rows/row.h"

namespace aclnn_host {
namespace {

template <class T>
bool contains(std::initializer_list<T> values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

std::string alternatives(const std::vector<std::string>& texts) {
  std::string result;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) result += i + 1 == texts.size() ? " or " : ", ";
    result += texts[i];
  }
  return result;
}

void expect_dtype(const char* name, const at::Tensor& tensor,
                  std::initializer_list<at::ScalarType> accepted, const char* reason) {
  if (contains(accepted, tensor.scalar_type())) return;
  std::vector<std::string> names;
  for (const at::ScalarType type : accepted) names.emplace_back(dtype_text(type));
  refuse({name, " has dtype ", tensor.scalar_type(), ", expected ", alternatives(names), reason});
}

void expect_text(const char* name, std::string_view text,
                 std::span<const std::string_view> accepted, const char* reason) {
  if (std::ranges::find(accepted, text) != accepted.end()) return;
  std::vector<std::string> quoted;
  for (const std::string_view each : accepted) quoted.push_back('"' + std::string(each) + '"');
  refuse({name, " is \"", text, "\", expected ", alternatives(quoted), reason});
}

void expect_one_of(const char* name, int64_t value, std::initializer_list<int64_t> accepted,
                   const char* reason) {
  if (contains(accepted, value)) return;
  std::vector<std::string> numbers;
  for (const int64_t number : accepted) numbers.push_back(std::to_string(number));
  refuse({name, " is ", value, ", expected ", alternatives(numbers), reason});
}

void expect_range(const char* name, int64_t value, int64_t low, int64_t high, const char* reason) {
  EXPECT(value >= low && value <= high, name, " is ", value, ", expected ", low, " to ", high,
         reason);
}

void expect_multiple(const char* name, int64_t value, int64_t factor, int64_t most,
                     const char* reason) {
  EXPECT(value > 0 && value % factor == 0 && value <= most, name, " is ", value,
         ", expected a multiple of ", factor, " up to ", most, reason);
}

void expect_at_least(const char* name, int64_t value, int64_t low, const char* reason) {
  EXPECT(value >= low, name, " is ", value, ", expected ", low, " or more", reason);
}

void expect_both_or_none(const char* first, bool has_first, const char* second, bool has_second) {
  EXPECT(has_first == has_second, has_first ? first : second, " is given and ",
         has_first ? second : first, " is null, expected both or none");
}

void expect_elements(const char* name, const at::Tensor& tensor, const char* reason) {
  EXPECT(tensor.numel() > 0, name, " has shape ", tensor.sizes(), ", expected elements", reason);
}

std::string Size::text() const {
  return std::to_string(size_) + (may_be_one_ && size_ != 1 ? " or 1" : "");
}

void expect_sizes(const char* name, const at::Tensor& tensor, std::initializer_list<Size> expected,
                  const char* reason) {
  const bool accepted =
      std::equal(expected.begin(), expected.end(), tensor.sizes().begin(), tensor.sizes().end(),
                 [](const Size& size, int64_t actual) { return size.accepts(actual); });
  if (accepted) return;
  std::string text;
  for (const Size& size : expected) text += (text.empty() ? "" : ", ") + size.text();
  refuse({name, " has shape ", tensor.sizes(), ", expected [", text, "]", reason});
}

}  // namespace aclnn_host

#include "cann/rows/quantized/type_checks.h"

#include <algorithm>
#include <vector>

namespace aclnn_host {
namespace {

// "FLOAT, FLOAT16 or BFLOAT16"
std::string joined(const std::vector<std::string>& texts) {
  std::string result;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) result += i + 1 == texts.size() ? " or " : ", ";
    result += texts[i];
  }
  return result;
}

}  // namespace

void expect_type(const char* name, aclDataType dtype, std::initializer_list<aclDataType> accepted,
                 const char* reason) {
  if (std::ranges::find(accepted, dtype) != accepted.end()) return;
  std::vector<std::string> names;
  for (const aclDataType each : accepted) names.emplace_back(dtype_name(each));
  refuse({name, " has dtype ", dtype_name(dtype), ", expected ", joined(names), reason});
}

void expect_type(const char* argument, int64_t dtype, const StoredOutput& out,
                 std::initializer_list<aclDataType> accepted) {
  expect_type(out, accepted);
  EXPECT(dtype == int64_t{out.dtype()}, argument, " is ", dtype, ", expected ",
         int64_t{out.dtype()}, " as ", out.name(), " is ", dtype_name(out.dtype()));
}

void expect_text(const char* name, const std::string& text,
                 std::initializer_list<const char*> accepted, const char* reason) {
  if (std::ranges::find(accepted, text) != accepted.end()) return;
  std::vector<std::string> quoted;
  for (const char* each : accepted) quoted.push_back("\"" + std::string(each) + "\"");
  refuse({name, " is \"", text, "\", expected ", joined(quoted), reason});
}

}  // namespace aclnn_host

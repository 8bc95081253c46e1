#include "cann/rows/quantized/type_checks.h"

#include <algorithm>
#include <vector>

namespace aclnn_host {

void expect_type(const char* name, aclDataType dtype, std::initializer_list<aclDataType> accepted,
                 const char* reason) {
  if (std::ranges::find(accepted, dtype) != accepted.end()) return;
  std::vector<std::string> names;
  for (const aclDataType each : accepted) names.emplace_back(dtype_name(each));
  refuse({name, " has dtype ", dtype_name(dtype), ", expected ", alternatives(names), reason});
}

void expect_type(const char* argument, int64_t dtype, const StoredOutput& out,
                 std::initializer_list<aclDataType> accepted) {
  expect_type(out, accepted);
  EXPECT(dtype == int64_t{out.dtype()}, argument, " is ", dtype, ", expected ",
         int64_t{out.dtype()}, " as ", out.name(), " is ", dtype_name(out.dtype()));
}

}  // namespace aclnn_host

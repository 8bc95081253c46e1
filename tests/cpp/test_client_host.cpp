// The client against the real host CANN: the prefix that this program is linked with, and the
// embedded library in the same process.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "acl/acl_host.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "check.h"
#include "client/call.h"

extern "C" {
aclnnStatus aclnnUnheardOfGetWorkspaceSize(uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnUnheardOf(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                           aclrtStream stream);
}

namespace {

ACLNN_DECLARE(EluBackward);
ACLNN_DECLARE(UnheardOf);

using namespace aclnn;
namespace fs = std::filesystem;

// The file that contains a function.
fs::path file_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? fs::path(info.dli_fname) : fs::path();
}

fs::path prefix_lib64() {
  return fs::canonical(file_of(reinterpret_cast<const void*>(&aclCreateTensor))).parent_path();
}

fs::path embedded_file() {
  return prefix_lib64() / "../../lib/libaclnn_host.so";
}

const Library& prefix() {
  static const Library library({(prefix_lib64() / "libopapi.so").string()});
  return library;
}

const Library& beside() {
  static const Library library({fs::canonical(embedded_file()).string()});
  return library;
}

// A float or double vector as a one-dimensional tensor.
template <class T>
TensorHandle tensor(const Library& library, std::vector<T>& data) {
  const int64_t dims[] = {static_cast<int64_t>(data.size())};
  return make_tensor(library, dims, kScalarType<T>, {}, 0, ACL_FORMAT_ND, dims, data.data());
}

// The gradient from results of which two are negative, computed through the client.
template <class T>
std::vector<T> elu_backward(const Library& library, aclrtStream stream) {
  std::vector<T> grad = {-2, -1, 0, 1};
  std::vector<T> result = grad;
  std::vector<T> out(4, T{7});
  std::vector<char> workspace;
  const ScalarHandle one = make_scalar(library, 1.0f);
  call<EluBackward>(
      library,
      [&](uint64_t size) -> void* {
        workspace.resize(size);
        return workspace.data();
      },
      stream, tensor(library, grad), one, one, one, true, tensor(library, result),
      tensor(library, out));
  return out;
}

void check_elu_backward(const Library& library) {
  const std::vector<float> out = elu_backward<float>(library, nullptr);
  CHECK_EQ(out[0], 2.0f);
  CHECK_EQ(out[1], 0.0f);
  CHECK(std::signbit(out[1]));
  CHECK_EQ(out[2], 0.0f);
  CHECK_EQ(out[3], 1.0f);
}

}  // namespace

TEST(both_libraries_compute_the_same) {
  check_elu_backward(prefix());
  check_elu_backward(beside());
}

TEST(two_libraries_share_nothing) {
  CHECK(prefix().meta().create_tensor == &aclCreateTensor);
  CHECK(beside().meta().create_tensor != &aclCreateTensor);
  const int64_t before = aclHostLiveObjects(nullptr);
  std::vector<float> data(4);
  const TensorHandle of_embedded = tensor(beside(), data);
  CHECK_EQ(aclHostLiveObjects(nullptr), before);
  const TensorHandle of_prefix = tensor(prefix(), data);
  CHECK_EQ(aclHostLiveObjects(nullptr), before + 1);
}

TEST(refused_calls_say_why_and_leave_nothing) {
  const int64_t before = aclHostLiveObjects(nullptr);
  aclHostSetProduct("Ascend910B");
  try {
    elu_backward<double>(prefix(), nullptr);
    CHECK(!"FLOAT64 was accepted on Ascend910B");
  } catch (const Error& error) {
    CHECK_EQ(error.api(), "aclnnEluBackwardGetWorkspaceSize");
    CHECK_EQ(error.status(), 161002);
    CHECK(std::strstr(error.what(), "gradOutput") != nullptr);
    CHECK(std::strstr(error.what(), "Ascend910B") != nullptr);
  }
  CHECK_EQ(aclHostLiveObjects(nullptr), before);
  CHECK(aclGetRecentErrMsg() == nullptr);
}

TEST(call_that_is_never_launched_leaves_nothing) {
  const int64_t before = aclHostLiveObjects(nullptr);
  std::vector<float> data(4);
  {
    const ScalarHandle one = make_scalar(prefix(), 1.0f);
    auto prepared = prepare<EluBackward>(prefix(), tensor(prefix(), data), one, one, one, false,
                                         tensor(prefix(), data), tensor(prefix(), data));
    CHECK_EQ(aclHostLiveObjects("executor"), int64_t{1});
  }
  CHECK_EQ(aclHostLiveObjects(nullptr), before);
  CHECK(aclGetRecentErrMsg() == nullptr);
}

TEST(operator_that_does_not_exist_is_named) {
  try {
    call<UnheardOf>(prefix(), [](uint64_t) -> void* { return nullptr; }, nullptr);
    CHECK(!"an Error was expected");
  } catch (const Error& error) {
    CHECK(std::strstr(error.what(), "aclnnUnheardOfGetWorkspaceSize") != nullptr);
    CHECK(std::strstr(error.what(), "libopapi.so") != nullptr);
  }
}

TEST(embedded_library_is_found_beside_the_client) {
  const fs::path self = file_of(reinterpret_cast<const void*>(&prefix_lib64));
  try {
    Library::embedded();
    CHECK(!"there is no lib/libaclnn_host.so beside this program");
  } catch (const Error& error) {
    CHECK(std::strstr(error.what(), "lib/libaclnn_host.so") != nullptr);
  }
  SKIP_IF(self.is_relative(), "started by a relative path, which the client refuses");
  const fs::path link = self.parent_path() / "lib";
  fs::create_directory_symlink(embedded_file().parent_path(), link);
  try {
    check_elu_backward(Library::embedded());
  } catch (const Error& error) {
    CHECK_EQ(std::string(error.what()), "");
  }
  fs::remove(link);
}

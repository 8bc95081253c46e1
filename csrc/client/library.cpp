#include "client/library.h"

#include <dlfcn.h>

#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "client/error.h"
#include "client/trust.h"

namespace aclnn {
namespace {

struct Close {
  void operator()(void* object) const noexcept { dlclose(object); }
};

// A set of shared objects opened together.
struct Objects {
  std::vector<std::unique_ptr<void, Close>> opened;
  std::string description;
};

// For a bare name that the process has already loaded, the loader returns that library, wherever it
// came from. A path is checked even then: another component, such as torch_npu, may have loaded it
// unchecked.
void* open_trusted(const std::string& path) {
  if (path.find('/') == path.npos) {
    if (void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return object;
  }
  check_trusted(path);
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

Objects open(const std::vector<std::string>& paths) {
  Objects objects;
  for (const std::string& path : paths) {
    void* object = open_trusted(path);
    if (!objects.description.empty()) objects.description += ", ";
    objects.description += path;
    if (object != nullptr) {
      objects.opened.emplace_back(object);
    } else {
      const char* reason = dlerror();
      objects.description.append(" (not opened: ").append(reason ? reason : "unknown").append(")");
    }
  }
  if (objects.opened.empty()) {
    throw Error("dlopen", ACL_ERROR_INVALID_FILE, "no library to open: " + objects.description);
  }
  return objects;
}

std::size_t next_number() {
  static std::atomic<std::size_t> next{0};
  return next++;
}

// Extracts the messages of a function that failed from the thread's messages, newest first. Older
// messages of earlier calls may follow, for example of conversions that torch_npu only tries. The
// host CANN's messages begin with the function's name.
std::string own_messages(std::string_view all, std::string_view api) {
  constexpr std::string_view kStage1 = "GetWorkspaceSize";
  if (api.ends_with(kStage1)) api.remove_suffix(kStage1.size());
  const std::string begin = std::string(api) + ":";
  if (!api.starts_with("aclnn") || !all.starts_with(begin)) return std::string(all);
  constexpr std::string_view kNextFunction = "\nacl";
  size_t end = all.find(kNextFunction);
  while (end != all.npos && all.substr(end + 1).starts_with(begin)) {
    end = all.find(kNextFunction, end + 1);
  }
  return std::string(all.substr(0, end));
}

}  // namespace

std::string bundled_library(const char* name) {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&next_number), &info);
  const std::string_view self = info.dli_fname ? info.dli_fname : "";
  return std::string(self.substr(0, self.rfind('/') + 1)) + "lib/" + name;
}

Library::Library(const std::vector<std::string>& paths) {
  Objects objects = open(paths);
  name_ = std::move(objects.description);
  for (auto& object : objects.opened) {
    // A std::function must be copyable, hence the shared ownership.
    objects_.emplace_back([shared = std::shared_ptr<void>(std::move(object))](const char* symbol) {
      return dlsym(shared.get(), symbol);
    });
  }
  load();
}

Library::Library(std::string name, Find find) : name_(std::move(name)) {
  objects_.push_back(std::move(find));
  load();
}

void Library::load() {
  const auto load = [this](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(require(symbol));
  };
  // Loaded first, because every error text is read through it.
  load(meta_.recent_error, "aclGetRecentErrMsg");
  load(meta_.create_tensor, "aclCreateTensor");
  load(meta_.create_scalar, "aclCreateScalar");
  load(meta_.create_int_array, "aclCreateIntArray");
  load(meta_.create_float_array, "aclCreateFloatArray");
  load(meta_.create_bool_array, "aclCreateBoolArray");
  load(meta_.create_tensor_list, "aclCreateTensorList");
  load(meta_.create_scalar_list, "aclCreateScalarList");
  load(meta_.destroy_tensor, "aclDestroyTensor");
  load(meta_.destroy_scalar, "aclDestroyScalar");
  load(meta_.destroy_int_array, "aclDestroyIntArray");
  load(meta_.destroy_float_array, "aclDestroyFloatArray");
  load(meta_.destroy_bool_array, "aclDestroyBoolArray");
  load(meta_.destroy_tensor_list, "aclDestroyTensorList");
  load(meta_.destroy_scalar_list, "aclDestroyScalarList");
  load(meta_.set_executor_repeatable, "aclSetAclOpExecutorRepeatable");
  load(meta_.destroy_executor, "aclDestroyAclOpExecutor");
  // Only the host CANN has this function.
  if (find("aclHostGetProduct") != nullptr) load(synchronize_host_, "aclrtSynchronizeStream");
  number_ = next_number();
}

const Library& Library::embedded() {
  static const Library* const library = [] {
    // Skips the checks of user-supplied paths: the library lies beside code that is running
    // already.
    const std::string path = bundled_library("libaclnn_host.so");
    void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) {
      const char* reason = dlerror();
      throw Error("dlopen", ACL_ERROR_INVALID_FILE, reason ? reason : path);
    }
    return new Library(path, [object](const char* symbol) { return dlsym(object, symbol); });
  }();
  return *library;
}

void Library::fail(const char* api, aclnnStatus status) const {
  const char* reason = meta_.recent_error();
  throw Error(api, status, reason ? own_messages(reason, api) : "");
}

void* Library::find(const char* symbol) const {
  for (const Find& find_in : objects_) {
    if (void* address = find_in(symbol)) return address;
  }
  return nullptr;
}

Library::Pair Library::require_pair(const char* stage1, const char* stage2) const {
  for (const Find& find_in : objects_) {
    const Pair pair{find_in(stage1), find_in(stage2)};
    if (pair.stage1 != nullptr && pair.stage2 != nullptr) return pair;
  }
  require(stage1);
  require(stage2);
  fail_missing(stage1,
               "no library has both " + std::string(stage1) + " and " + stage2 + " in " + name_);
}

void* Library::require(const char* symbol) const {
  if (void* address = find(symbol)) return address;
  fail_missing(symbol, "no such symbol in " + name_);
}

void Library::fail_missing(const char* symbol, const std::string& reason) const {
  if (meta_.recent_error != nullptr) meta_.recent_error();
  throw Error(symbol, ACL_ERROR_API_NOT_SUPPORT, reason);
}

}  // namespace aclnn

#include "client/installed.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace aclnn {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCustomLibrary = "/op_api/lib/libcust_opapi.so";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Splits a list, dropping empty parts and the spaces around each part.
std::vector<std::string> split(const std::string& list, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(separator, begin), list.size());
    const size_t first = list.find_first_not_of(" \t\r", begin);
    if (first < end) {
      parts.push_back(list.substr(first, list.find_last_not_of(" \t\r", end - 1) + 1 - first));
    }
    begin = end + 1;
  }
  return parts;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void add_if_exists(std::vector<std::string>& paths, std::string path) {
  if (exists(path)) paths.push_back(std::move(path));
}

// Folders of vendors/, from the line "load_priority=first,second" of its config.ini. Names that
// lead out of the folder are ignored.
std::vector<std::string> vendors(const std::string& folder) {
  constexpr std::string_view kKey = "load_priority=";
  const std::string path = folder + "/config.ini";
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};  // opening a pipe would block
  std::ifstream config(path);
  for (std::string line; std::getline(config, line);) {
    if (!line.starts_with(kKey)) continue;
    auto names = split(line.substr(kKey.size()), ',');
    std::erase_if(names, [](const std::string& name) {
      return name.find('/') != std::string::npos || name == "..";
    });
    return names;
  }
  return {};
}

// $ASCEND_HOME_PATH/lib64/libopapi_*.so, by name.
std::vector<std::string> pieces(const std::string& home) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator file(home + "/lib64", error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename();
    if (name.starts_with("libopapi_") && name.ends_with(".so")) paths.push_back(file->path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::vector<std::string> installed_paths() {
  std::vector<std::string> paths;
  for (const std::string& path : split(variable("ASCEND_CUSTOM_OPP_PATH"), ':')) {
    add_if_exists(paths, path + std::string(kCustomLibrary));
  }
  if (const std::string opp = variable("ASCEND_OPP_PATH"); !opp.empty()) {
    const std::string folder = opp + "/vendors";
    for (const std::string& vendor : vendors(folder)) {
      std::string path = folder;
      add_if_exists(paths, path.append("/").append(vendor).append(kCustomLibrary));
    }
  }
  paths.push_back("libopapi.so");
  if (const std::string home = variable("ASCEND_HOME_PATH"); !home.empty()) {
    for (std::string& path : pieces(home)) paths.push_back(std::move(path));
  }
  // Fallback for the descriptors and the runtime's errors, if libopapi.so does not depend on them.
  paths.insert(paths.end(), {"libnnopbase.so", "libascendcl.so"});
  return paths;
}

const Library& installed() {
  static const Library* const library = new Library(installed_paths());
  return *library;
}

}  // namespace aclnn

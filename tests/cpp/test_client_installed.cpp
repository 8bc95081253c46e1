// Where the operators of an installed CANN are looked for.
#include "aclnn/installed.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "aclnn/error.h"
#include "check.h"

namespace fs = std::filesystem;

namespace {

constexpr const char* kVariables[] = {"ASCEND_CUSTOM_OPP_PATH", "ASCEND_OPP_PATH",
                                      "ASCEND_HOME_PATH"};
constexpr const char* kCustom = "op_api/lib/libcust_opapi.so";

// A folder for one test, which none of the variables knows of yet.
class Folder {
 public:
  Folder() {
    char path[] = "/tmp/aclnn_installed_XXXXXX";
    path_ = mkdtemp(path);
    for (const char* variable : kVariables) unsetenv(variable);
  }
  ~Folder() {
    for (const char* variable : kVariables) unsetenv(variable);
    fs::remove_all(path_);
  }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  // Makes a file of this text, and returns its path.
  std::string write(const std::string& name, const std::string& text = "") const {
    const std::string path = *this / name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }

 private:
  std::string path_;
};

void set(const char* variable, const std::string& value) {
  setenv(variable, value.c_str(), 1);
}

std::string joined(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) text += path + "\n";
  return text;
}

const std::string kCannAlone = joined({"libopapi.so", "libnnopbase.so", "libascendcl.so"});

}  // namespace

TEST(without_variables_the_loader_decides) {
  const Folder folder;
  CHECK_EQ(joined(aclnn::installed_paths()), kCannAlone);
}

TEST(variables_that_lead_nowhere_change_nothing) {
  const Folder folder;
  set("ASCEND_CUSTOM_OPP_PATH", folder / "none" + "::" + (folder / "no more"));
  set("ASCEND_OPP_PATH", folder / "opp");
  set("ASCEND_HOME_PATH", folder / "home");
  CHECK_EQ(joined(aclnn::installed_paths()), kCannAlone);
}

TEST(custom_operators_come_first_then_vendors_by_priority_then_cann) {
  const Folder folder;
  const std::string first = folder.write(std::string("first/") + kCustom);
  const std::string second = folder.write(std::string("second/") + kCustom);
  const std::string mine = folder.write(std::string("opp/vendors/mine/") + kCustom);
  const std::string other = folder.write(std::string("opp/vendors/other/") + kCustom);
  folder.write(std::string("opp/vendors/not_listed/") + kCustom);
  folder.write(std::string("opp/outside/") + kCustom);
  folder.write("opp/vendors/config.ini",
               "# order\nload_priority=other, absent,../outside, mine\r\n");
  const std::string math = folder.write("home/lib64/libopapi_math.so");
  const std::string nn = folder.write("home/lib64/libopapi_nn.so");
  folder.write("home/lib64/libopapi_nn.so.old");
  folder.write("home/lib64/libops.so");
  set("ASCEND_CUSTOM_OPP_PATH", folder / "second" + ": " + (folder / "first"));
  set("ASCEND_OPP_PATH", folder / "opp");
  set("ASCEND_HOME_PATH", folder / "home");
  CHECK_EQ(joined(aclnn::installed_paths()),
           joined({second, first, other, mine, "libopapi.so", math, nn, "libnnopbase.so",
                   "libascendcl.so"}));
}

TEST(what_everyone_may_write_to_is_refused) {
  const Folder folder;
  const std::string path = folder.write(kCustom);
  fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  set("ASCEND_CUSTOM_OPP_PATH", folder / "");
  std::string text;
  try {
    aclnn::Library library(aclnn::installed_paths());
  } catch (const aclnn::Error& error) {
    text = error.what();
  }
  CHECK(text.find(kCustom) != std::string::npos);
  CHECK(text.find("may be written by everyone") != std::string::npos);
}

TEST(a_path_relative_to_the_working_directory_is_refused) {
  const Folder folder;
  folder.write(kCustom);
  const fs::path before = fs::current_path();
  fs::current_path(folder / "");
  set("ASCEND_CUSTOM_OPP_PATH", ".");
  std::string text;
  try {
    aclnn::Library library(aclnn::installed_paths());
  } catch (const aclnn::Error& error) {
    text = error.what();
  }
  fs::current_path(before);
  CHECK(text.find("is not an absolute path") != std::string::npos);
}

// The search for the operators of an installed CANN.
#include "client/installed.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "check.h"
#include "client/error.h"

namespace fs = std::filesystem;

namespace {

constexpr const char* kVariables[] = {"ASCEND_CUSTOM_OPP_PATH", "ASCEND_OPP_PATH",
                                      "ASCEND_HOME_PATH"};
constexpr const char* kCustom = "op_api/lib/libcust_opapi.so";

// A folder for one test, which no variable refers to yet.
class Folder {
 public:
  Folder() {
    umask(022);
    char path[] = "/tmp/aclnn_installed_XXXXXX";
    path_ = mkdtemp(path);
    for (const char* variable : kVariables) unsetenv(variable);
  }
  ~Folder() {
    for (const char* variable : kVariables) unsetenv(variable);
    fs::remove_all(path_);
  }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  // Creates a file with this text, and returns its path.
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

namespace {

// The error about the libraries that the variables lead to; empty if there is none.
std::string refusal() {
  try {
    aclnn::Library library(aclnn::installed_paths());
  } catch (const aclnn::Error& error) {
    return error.what();
  }
  return "";
}

void open_to_everyone(const std::string& path) {
  fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
}

bool names(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Sets LD_LIBRARY_PATH for the duration of a test.
class SearchPath {
 public:
  explicit SearchPath(const std::string& value) {
    if (const char* before = std::getenv("LD_LIBRARY_PATH")) before_ = before;
    set("LD_LIBRARY_PATH", value);
  }
  ~SearchPath() { set("LD_LIBRARY_PATH", before_); }

 private:
  std::string before_;
};

// The error of opening a library with this name. The file is no library, so there is always one.
std::string error_of_opening(const std::string& name) {
  try {
    aclnn::Library library({name});
  } catch (const aclnn::Error& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kName = "libaclnn_no_library.so";

}  // namespace

TEST(what_everyone_may_write_to_is_refused) {
  const Folder folder;
  const std::string path = folder.write(kCustom);
  open_to_everyone(path);
  set("ASCEND_CUSTOM_OPP_PATH", folder / "");
  const std::string text = refusal();
  CHECK(names(text, kCustom));
  CHECK(names(text, "may be written by everyone"));
}

TEST(a_library_that_everyone_may_replace_is_refused) {
  const Folder folder;
  for (const char* variable : kVariables) {
    const std::string home = folder / variable;
    for (const std::string place : {"/", "/vendors/v/"}) folder.write(variable + place + kCustom);
    folder.write(variable + std::string("/lib64/libopapi_x.so"));
    folder.write(variable + std::string("/vendors/config.ini"), "load_priority=v\n");
    open_to_everyone(home);
    set(variable, home);
    CHECK(names(refusal(), home + " may be written by everyone"));
    unsetenv(variable);
  }
}

TEST(what_a_group_may_write_to_is_refused) {
  const Folder folder;
  const std::string path = folder.write(kCustom);
  fs::permissions(path, fs::perms::group_write, fs::perm_options::add);
  set("ASCEND_CUSTOM_OPP_PATH", folder / "");
  SKIP_IF(geteuid() != 0, "only root can give a file to another group");
  CHECK(!names(refusal(), "may be written by"));  // root's own group
  CHECK_EQ(chown(path.c_str(), 0, 4242), 0);
  CHECK(names(refusal(), std::string(kCustom) + " may be written by its group, so "));
}

TEST(what_belongs_to_another_user_is_refused) {
  SKIP_IF(geteuid() != 0, "only root can give files away");
  for (const char* part : {kCustom, "op_api/lib", "op_api"}) {
    const Folder folder;
    folder.write(kCustom);
    set("ASCEND_CUSTOM_OPP_PATH", folder / "");
    CHECK(!names(refusal(), "belongs to user"));
    CHECK_EQ(chown((folder / part).c_str(), 4242, 4242), 0);
    CHECK(names(refusal(), std::string(part) + " belongs to user 4242, so "));
    CHECK(names(refusal(), "its owner must be root or the user of this process (chown)"));
  }
  const Folder folder;  // a symbolic link's own owner is checked
  folder.write(std::string("there/") + kCustom);
  fs::create_symlink(folder / "there", folder / "link");
  CHECK_EQ(lchown((folder / "link").c_str(), 4242, 4242), 0);
  set("ASCEND_CUSTOM_OPP_PATH", folder / "link");
  CHECK(names(refusal(), "link belongs to user 4242"));
}

TEST(a_list_of_vendors_that_is_a_pipe_is_not_waited_for) {
  const Folder folder;
  folder.write(std::string("opp/vendors/mine/") + kCustom);
  CHECK_EQ(mkfifo((folder / "opp/vendors/config.ini").c_str(), 0600), 0);
  set("ASCEND_OPP_PATH", folder / "opp");
  CHECK_EQ(joined(aclnn::installed_paths()), kCannAlone);
}

TEST(the_target_of_a_symbolic_link_counts) {
  const Folder folder;
  folder.write(std::string("open/") + kCustom);
  open_to_everyone(folder / "open");
  fs::create_symlink(folder / "open", folder / "link");
  set("ASCEND_CUSTOM_OPP_PATH", folder / "link");
  CHECK(names(refusal(), "may be written by everyone"));
}

TEST(a_folder_for_everyone_with_the_sticky_bit_holds_what_is_ours) {
  const Folder folder;
  const std::string path = folder.write(std::string("shared/") + kName);
  open_to_everyone(folder / "shared");
  CHECK(names(error_of_opening(path), "may be written by everyone"));
  fs::permissions(folder / "shared", fs::perms::sticky_bit, fs::perm_options::add);
  CHECK(names(error_of_opening(path), "not opened"));
}

TEST(the_loaders_search_path_is_held_to_the_same) {
  const Folder folder;
  folder.write(std::string("closed/") + kName);
  folder.write(std::string("open/") + kName);
  open_to_everyone(folder / "open");
  const fs::path before = fs::current_path();
  fs::current_path(folder / "closed");
  {
    const SearchPath path((folder / "none") + ":" + (folder / "closed") + ":" + (folder / "open"));
    CHECK(names(error_of_opening(kName), "not opened"));  // the first one decides
  }
  {
    const SearchPath path((folder / "none") + ";" + (folder / "open"));
    CHECK(names(error_of_opening(kName), "may be written by everyone"));
  }
  for (const char* relative : {".", ":/nowhere", "/nowhere:", "../closed"}) {
    const SearchPath path(relative);
    CHECK(names(error_of_opening(kName), "is not an absolute path"));
  }
  fs::current_path(before);
}

TEST(what_the_search_path_has_for_certain_processors_counts) {
  for (const char* below : {"glibc-hwcaps/x86-64-v3/", "tls/haswell/x86_64/", "atomics/"}) {
    const Folder folder;
    folder.write(std::string("closed/") + kName);
    const std::string path = folder.write(std::string("closed/") + below + kName);
    const SearchPath search((folder / "none") + ":" + (folder / "closed"));
    CHECK(names(error_of_opening(kName), "not opened"));
    open_to_everyone(path);
    CHECK(names(error_of_opening(kName), path + " may be written by everyone"));
  }
}

TEST(a_path_relative_to_the_working_directory_is_refused) {
  const Folder folder;
  folder.write(kCustom);
  const fs::path before = fs::current_path();
  fs::current_path(folder / "");
  set("ASCEND_CUSTOM_OPP_PATH", ".");
  const std::string text = refusal();
  fs::current_path(before);
  CHECK(names(text, "is not an absolute path"));
}

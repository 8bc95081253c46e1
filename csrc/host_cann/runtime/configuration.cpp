#include "host_cann/runtime/configuration.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "host_cann/runtime/error_messages.h"

namespace aclnn_host {
namespace {

constexpr off_t kMostBytes = 10 << 20;
constexpr int kMostNested = 10;

// Validates JSON (RFC 8259) and stores nothing. Each function skips one construct and returns
// whether it was found.
class Json {
 public:
  explicit Json(std::string_view text) : text_(text) {}

  bool read() {
    if (!value()) return false;
    skip_space();
    return at_ == text_.size();
  }

  // The line at which parsing stopped, counted from 1.
  size_t line() const {
    return 1 + static_cast<size_t>(
                   std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(at_), '\n'));
  }

 private:
  bool value() {
    skip_space();
    switch (peek()) {
      case '{': return nested('{', '}', objects_, [this] { return member(); });
      case '[': return nested('[', ']', arrays_, [this] { return value(); });
      case '"': return string();
      case 't': return word("true");
      case 'f': return word("false");
      case 'n': return word("null");
      default: return number();
    }
  }

  template <class Element>
  bool nested(char open, char close, int& depth, Element element) {
    if (!take(open) || ++depth > kMostNested) return false;
    skip_space();
    if (!take(close)) {
      do {
        if (!element()) return false;
        skip_space();
      } while (take(','));
      if (!take(close)) return false;
    }
    --depth;
    return true;
  }

  bool member() {
    skip_space();
    if (!string()) return false;
    skip_space();
    return take(':') && value();
  }

  bool string() {
    if (!take('"')) return false;
    while (at_ < text_.size()) {
      if (take('"')) return true;
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return false;
      if (text_[at_++] == '\\' && !escape()) return false;
    }
    return false;
  }

  bool escape() {
    if (take('u')) {
      for (int i = 0; i < 4; ++i) {
        if (!take_any("0123456789abcdefABCDEF")) return false;
      }
      return true;
    }
    return take_any("\"\\/bfnrt");
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (!take_any("eE")) return true;
    take_any("+-");
    return digits();
  }

  bool digits() {
    const size_t begin = at_;
    while (take_any("0123456789")) {
    }
    return at_ > begin;
  }

  bool word(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }

  void skip_space() {
    while (take_any(" \t\r\n")) {
    }
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char expected) { return take_any({&expected, 1}); }

  bool take_any(std::string_view expected) {
    if (at_ == text_.size() || expected.find(text_[at_]) == expected.npos) return false;
    ++at_;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  int objects_ = 0;  // nesting depth
  int arrays_ = 0;
};

}  // namespace

aclError check_configuration(const char* api, const char* path) {
  struct stat file{};
  if (stat(path, &file) != 0) {
    return fail(ACL_ERROR_INVALID_FILE, "%s: cannot read the configuration %s: %s", api, path,
                std::strerror(errno));
  }
  if (!S_ISREG(file.st_mode)) {
    return fail(ACL_ERROR_INVALID_FILE,
                "%s: the configuration %s is %s, expected a file of JSON; pass its path, or null",
                api, path, S_ISDIR(file.st_mode) ? "a folder" : "not a regular file");
  }
  if (file.st_size > kMostBytes) {
    return fail(ACL_ERROR_INVALID_FILE,
                "%s: the configuration %s has %lld bytes, expected at most %lld", api, path,
                static_cast<long long>(file.st_size), static_cast<long long>(kMostBytes));
  }
  std::ifstream stream(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  if (!stream) {
    return fail(ACL_ERROR_INVALID_FILE,
                "%s: cannot read the configuration %s; give this user the right to read it", api,
                path);
  }
  Json json(text);
  if (text.empty() || json.read()) return ACL_SUCCESS;
  return fail(ACL_ERROR_PARSE_FILE,
              "%s: the configuration %s is not JSON of at most %d nested objects and arrays: see "
              "line %zu",
              api, path, kMostNested, json.line());
}

}  // namespace aclnn_host

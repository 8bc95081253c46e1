#include "cann/hccl/proof.h"

#include <dlfcn.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <limits>
#include <system_error>

#include <c10/util/StringUtil.h>

#include "cann/hccl/transport.h"

namespace aclnn_host::hccl {
namespace {

// The functions of libcrypto, as OpenSSL documents them (HMAC(3), EVP_sha256(3)).
struct Crypto {
  using Sha256 = const void*();
  using Hmac = unsigned char*(const void* hash, const void* key, int key_bytes,
                              const unsigned char* data, size_t bytes, unsigned char* tag,
                              unsigned int* tag_bytes);
  Sha256* sha256 = nullptr;
  Hmac* hmac = nullptr;
  std::string problem;

  Crypto() {
    void* library = nullptr;
    for (const char* const name : {"libcrypto.so.3", "libcrypto.so.4", "libcrypto.so.1.1"}) {
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) break;
      const char* const reason = dlerror();
      problem += c10::str(problem.empty() ? "" : "; ", reason == nullptr ? name : reason);
    }
    if (library == nullptr) return;
    sha256 = reinterpret_cast<Sha256*>(dlsym(library, "EVP_sha256"));
    hmac = reinterpret_cast<Hmac*>(dlsym(library, "HMAC"));
    problem = sha256 == nullptr || hmac == nullptr ? "libcrypto lacks EVP_sha256 or HMAC" : "";
  }
};

const Crypto& crypto() {
  static const Crypto functions;
  return functions;
}

}  // namespace

Secret random_secret() {
  Secret secret;
  if (getentropy(secret.data(), secret.size()) != 0) {
    throw std::system_error(errno, std::generic_category(), "the system has no random bytes");
  }
  return secret;
}

std::string random_text() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : random_secret()) text += kDigits[byte & 15];
  return text;
}

const std::string& why_no_tags() {
  return crypto().problem;
}

void expect_tags() {
  if (why_no_tags().empty()) return;
  throw Failure(
      HCCL_E_NOT_SUPPORT,
      c10::str("ranks of several hosts prove that they belong together with HMAC-SHA256 "
               "of OpenSSL's libcrypto, which this process cannot load; install OpenSSL: ",
               why_no_tags()));
}

Tag tag_of(const Secret& key, std::span<const char> bytes) {
  expect_tags();
  Tag tag;
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (crypto().hmac(crypto().sha256(), key.data(), static_cast<int>(key.size()), data, bytes.size(),
                    reinterpret_cast<unsigned char*>(tag.data()), nullptr) == nullptr) {
    throw Failure(HCCL_E_INTERNAL, "libcrypto cannot compute HMAC-SHA256");
  }
  return tag;
}

bool are_equal(const Tag& one, const Tag& other) noexcept {
  unsigned difference = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(one[i] ^ other[i]));
  }
  return difference == 0;
}

bool is_user_known() {
  uid_t unknown = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> unknown;
  if (geteuid() != unknown) return true;
  uint64_t first = 0, outside = 0, count = 0;
  std::ifstream("/proc/self/uid_map") >> first >> outside >> count;
  return count == std::numeric_limits<uint32_t>::max();  // all users are mapped, as outside
                                                         // containers
}

bool is_same_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid() &&
         is_user_known();
}

}  // namespace aclnn_host::hccl

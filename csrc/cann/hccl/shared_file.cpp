#include "cann/hccl/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include <c10/util/StringUtil.h>

#include "cann/hccl/transport.h"

namespace aclnn_host::hccl {
namespace {

constexpr const char* kPurpose = "shared memory";
constexpr int kSizeStays = F_SEAL_SHRINK | F_SEAL_GROW;

[[noreturn]] void throw_system_error(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// A message of one byte and one file descriptor.
struct DescriptorMessage {
  char byte = 0;
  iovec words{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};

  DescriptorMessage() {
    message.msg_iov = &words;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
};

void send_file(const File& to, int file) noexcept {
  DescriptorMessage message;
  cmsghdr* const header = CMSG_FIRSTHDR(&message.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(file));
  std::memcpy(CMSG_DATA(header), &file, sizeof(file));
  sendmsg(to.number(), &message.message, MSG_NOSIGNAL);  // a receiver that has gone needs no file
}

// Returns an empty File if the message has no file, or several.
File receive_file(const File& from, const Deadline& deadline) {
  DescriptorMessage message;
  wait_for(from.number(), POLLIN, deadline);
  const ssize_t count = recvmsg(from.number(), &message.message, MSG_CMSG_CLOEXEC);
  if (count < 0) throw_system_error("cannot receive the memory that the ranks share");
  if (count == 0) {
    throw std::system_error(std::make_error_code(std::errc::connection_reset));
  }
  std::vector<File> files;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message.message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    for (size_t end = CMSG_LEN(sizeof(int)); end <= header->cmsg_len; end += sizeof(int)) {
      int file = -1;
      std::memcpy(&file, reinterpret_cast<const char*>(header) + end - sizeof(file), sizeof(file));
      files.emplace_back(file);
    }
  }
  return files.size() == 1 ? std::move(files.front()) : File();
}

// The reason why a file is not shared memory of `bytes` bytes; empty if it is.
std::string defect_of(const File& file, size_t bytes) {
  if (!file) return "no file";
  struct stat status;
  if (fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode)) return "no regular file";
  const int seals = fcntl(file.number(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeStays) != kSizeStays) return "a file whose size may change";
  if (status.st_uid != geteuid()) return c10::str("a file of user ", status.st_uid);
  if (static_cast<size_t>(status.st_size) != bytes) {
    return c10::str("a file of ", status.st_size, " bytes instead of ", bytes);
  }
  return "";
}

// Some systems require that memory files be declared as not executable (vm.memfd_noexec of sysctl),
// for which Linux before 6.3 has no flag.
File memory_file() {
  constexpr unsigned kNotExecuted = 8;  // MFD_NOEXEC_SEAL
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  File file(memfd_create("aclnn_torch HCCL", kFlags | kNotExecuted));
  return file || errno != EINVAL ? std::move(file) : File(memfd_create("aclnn_torch HCCL", kFlags));
}

}  // namespace

SharedFile::SharedFile(size_t bytes) : file_(memory_file()) {
  if (!file_) throw_system_error("cannot make a file in memory");
  // Allocated now, because a page that the system cannot provide later would kill the process.
  if (const int error = posix_fallocate(file_.number(), 0, static_cast<off_t>(bytes)); error != 0) {
    throw std::system_error(error, std::generic_category(),
                            "cannot take " + std::to_string(bytes) + " bytes of shared memory");
  }
  if (fcntl(file_.number(), F_ADD_SEALS, kSizeStays | F_SEAL_SEAL) != 0) {
    throw_system_error("cannot seal shared memory");
  }
  map(bytes);
}

SharedFile::SharedFile(File file, size_t bytes) : file_(std::move(file)) {
  if (const std::string defect = defect_of(file_, bytes); !defect.empty()) {
    throw Failure(HCCL_E_REMOTE, c10::str("rank 0 gave ", defect,
                                          " as the memory that the ranks "
                                          "share, which is refused"));
  }
  map(bytes);
}

SharedFile::SharedFile(SharedFile&& other) noexcept
    : file_(std::move(other.file_)),
      bytes_(other.bytes_),
      data_(std::exchange(other.data_, nullptr)) {}

SharedFile::~SharedFile() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

void SharedFile::map(size_t bytes) {
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
  if (data == MAP_FAILED) throw_system_error("cannot map shared memory");
  data_ = static_cast<char*>(data);
  bytes_ = bytes;
}

FileServer::FileServer(File listener, const SharedFile& file, const Secret& secret)
    : listener_(std::move(listener), secret, kPurpose),
      file_(fcntl(file.number(), F_DUPFD_CLOEXEC, 0)) {
  if (!file_) throw_system_error("cannot share a file in memory");
  thread_ = std::thread([this] { serve(); });
}

FileServer::~FileServer() {
  has_ended_ = true;
  waker_.wake();
  thread_.join();
}

void FileServer::serve() noexcept {
  std::vector<pollfd> files;
  while (!has_ended_) {
    try {
      files.clear();
      int timeout = 60'000;
      waker_.watch(files);
      listener_.watch(files, timeout);
      poll(files.data(), files.size(), timeout);
      for (const PeerSocket& peer_socket : listener_.admit())
        send_file(peer_socket.file, file_.number());
    } catch (...) {
      // Out of memory; the next iteration tries again.
    }
  }
}

SharedFile fetch_file(const std::string& listener, const Secret& secret, uint32_t rank,
                      size_t bytes, const Deadline& deadline) {
  const PeerSocket peer_socket = connect_authenticated(listener, secret, kPurpose, rank, deadline);
  return {receive_file(peer_socket.file, deadline), bytes};
}

}  // namespace aclnn_host::hccl

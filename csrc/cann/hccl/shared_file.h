#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>

#include "cann/hccl/connection.h"
#include "cann/hccl/file.h"

namespace aclnn_host::hccl {

// A file in memory without a name, mapped as a whole. It is freed with the last process that has
// it.
class SharedFile {
 public:
  // Creates a file of zeros with a fixed size.
  explicit SharedFile(size_t bytes);
  // Maps a file of another process. Throws a Failure unless it is a sealed file in memory of this
  // user and this size: a page that it loses would kill this process.
  SharedFile(File file, size_t bytes);
  SharedFile(SharedFile&& other) noexcept;
  SharedFile& operator=(SharedFile&&) = delete;
  ~SharedFile();

  char* data() const noexcept { return data_; }
  int number() const noexcept { return file_.number(); }

 private:
  void map(size_t bytes);

  File file_;
  size_t bytes_ = 0;
  char* data_ = nullptr;
};

// Gives the file to processes of this host that prove the secret, in a thread, during its lifetime.
class FileServer {
 public:
  FileServer(File listener, const SharedFile& file, const Secret& secret);
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;
  ~FileServer();

 private:
  void serve() noexcept;

  Listener listener_;
  const File file_;
  Waker waker_;
  std::atomic<bool> has_ended_ = false;
  std::thread thread_;
};

// Gets a file from a FileServer. Throws a Failure if the received file is not a valid SharedFile,
// and a std::system_error if none arrives.
SharedFile fetch_file(const std::string& listener, const Secret& secret, uint32_t rank,
                      size_t bytes, const Deadline& deadline);

}  // namespace aclnn_host::hccl

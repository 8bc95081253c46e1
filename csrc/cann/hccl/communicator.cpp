#include "cann/hccl/communicator.h"

#include <numeric>

#include <c10/util/StringUtil.h>

#include "cann/hccl/addresses.h"
#include "host_cann/runtime/error_messages.h"

namespace aclnn_host::hccl {
namespace {

constexpr std::chrono::seconds kExecutionTimeout{1836};

// The timeout in milliseconds, or kForever.
int32_t timeout_of(const Communicator::Options& options) {
  const std::chrono::seconds timeout =
      options.timeout ? *options.timeout : seconds_of("HCCL_EXEC_TIMEOUT", kExecutionTimeout, 0);
  return timeout.count() == 0 ? kForever : milliseconds_of(timeout);
}

}  // namespace

Communicator::Communicator(const Rendezvous& rendezvous, const std::string& key, uint32_t rank,
                           uint32_t ranks, int32_t device, const Options& options)
    : rendezvous_(rendezvous),
      key_(key),
      rank_(rank),
      ranks_(ranks),
      device_(device),
      name_(options.name.empty() ? key : options.name),
      timeout_(timeout_of(options)),
      transport_(join(rendezvous, key, rank, ranks)) {
  graph_.sizes = {ranks};
  graph_.ranks.resize(ranks);
  std::iota(graph_.ranks.begin(), graph_.ranks.end(), 0U);
}

std::string Communicator::key_of_part(const std::string& kind) {
  const std::lock_guard lock(mutex_);
  return key_ + "/" + kind + "/" + std::to_string(parts_[kind]++);
}

Communicator::Turn::Turn(std::shared_ptr<Communicator> of) : of_(std::move(of)) {
  const std::lock_guard lock(of_->mutex_);
  number_ = of_->next_turn_++;
  of_->turns_.insert(number_);
}

Communicator::Turn::~Turn() {
  {
    const std::lock_guard lock(of_->mutex_);
    of_->turns_.erase(number_);
  }
  of_->turned_.notify_all();
}

void Communicator::wait_for(const Turn& turn, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const bool in_time =
      deadline.wait(turned_, lock, [&] { return failure_ || *turns_.begin() == turn.number_; });
  if (failure_) throw *failure_;
  if (!in_time) {
    throw Failure(HCCL_E_TIMEOUT,
                  "an operation that was called before it, on another stream, did not end");
  }
}

void Communicator::exchange(std::span<const Message> outgoing, std::span<const Message> incoming,
                            const Deadline& deadline) {
  transport_->exchange(outgoing, incoming, deadline);
}

Deadline Communicator::deadline() const {
  return Deadline(timeout_);
}

void Communicator::fail(const Failure& failure) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
  }
  turned_.notify_all();
  transport_->fail(failure);
}

std::optional<Failure> Communicator::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

HcclComm publish(std::shared_ptr<Communicator> communicator) {
  HcclComm const handle = communicators().insert(communicator);
  communicator->handle_ = handle;
  return handle;
}

std::shared_ptr<Communicator> require_communicator(const char* api, HcclComm handle,
                                                   HcclResult* status) {
  if (handle == nullptr) {
    *status = HCCL_E_PTR;
    fail(*status, "%s: comm is a null pointer", api);
    return nullptr;
  }
  auto found = communicators().find(handle);
  if (found != nullptr) return found;
  *status = HCCL_E_PARA;
  fail(*status, "%s: %p is not a communicator of this process, or was destroyed", api, handle);
  return nullptr;
}

}  // namespace aclnn_host::hccl

#include "cann/hccl/operation_call.h"

#include <c10/util/StringUtil.h>

#include "cann/hccl/reduction.h"
#include "host_cann/runtime/json.h"
#include "host_cann/runtime/memory.h"
#include "host_cann/runtime/product.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host::hccl {
namespace {

// The status of a stream whose operation has failed.
aclError stream_status(HcclResult code) {
  switch (code) {
    case HCCL_E_TIMEOUT: return ACL_ERROR_RT_FFTS_PLUS_TIMEOUT;
    case HCCL_E_REMOTE: return ACL_ERROR_RT_SUSPECT_REMOTE_ERROR;
    default: return ACL_ERROR_RT_FFTS_PLUS_EXCEPTION;
  }
}

// The stream task of an operation.
class Operation final : public Task {
 public:
  // A captured operation takes its turn when it is executed.
  Operation(const char* api, std::shared_ptr<Communicator> of, const Description& what,
            std::vector<Buffer> buffers, std::function<void(Session&)> body, bool is_captured)
      : api_(api),
        of_(std::move(of)),
        what_(what),
        buffers_(std::move(buffers)),
        body_(std::move(body)) {
    if (!is_captured) turn_ = std::make_unique<Communicator::Turn>(of_);
  }

  aclError run() noexcept override {
    try {
      std::unique_ptr<Communicator::Turn> turn;  // kept until later operations know of a failure
      try {
        turn = turn_ ? std::move(turn_) : std::make_unique<Communicator::Turn>(of_);
        Session session(*of_, what_);
        of_->wait_for(*turn, session.deadline());
        MemoryInUse in_use;
        for (const Buffer& buffer : buffers_) {
          if (buffer.bytes == 0) continue;
          in_use.add(buffer.data, buffer.bytes);
          expect_alive(buffer);
        }
        body_(session);
        return ACL_SUCCESS;
      } catch (...) {
        return give_up(failure_of_exception());
      }
    } catch (...) {
      return ACL_ERROR_BAD_ALLOC;  // no memory for the text either
    }
  }

  void describe(std::string& record) override {
    record += R"(,"group":)";
    add_text(record, of_->name());
    record += R"(,"operation":)";
    add_text(record, text_of(what_, buffers_.empty() ? 0 : buffers_[0].bytes));
  }

  void abandon(aclError status, const std::string& message) noexcept override {
    try {
      give_up({HCCL_E_REMOTE,
               c10::str("rank ", of_->rank(),
                        " dropped the operation, because its stream had failed: ", message)});
    } catch (...) {
      of_->fail({HCCL_E_REMOTE, "a stream had failed"});
    }
  }

 private:
  static void expect_alive(const Buffer& buffer) {
    if (is_replayed() || block_number(buffer.data) == buffer.block) return;
    throw Failure(HCCL_E_PARA,
                  c10::str(buffer.argument,
                           " was freed before the stream ran the operation; free it after "
                           "the stream is synchronised"));
  }

  aclError give_up(const Failure& failure) {
    of_->fail(failure);
    turn_.reset();
    return fail(stream_status(failure.code()), "%s: communicator %s, rank %u of %u: %s", api_,
                of_->name().c_str(), of_->rank(), of_->ranks(), failure.what());
  }

  const char* const api_;
  const std::shared_ptr<Communicator> of_;
  const Description what_;
  const std::vector<Buffer> buffers_;
  const std::function<void(Session&)> body_;
  std::unique_ptr<Communicator::Turn> turn_;
};

}  // namespace

Call::Call(const char* api, HcclComm comm, aclrtStream stream, const Description& what)
    : api_(api), stream_(stream), what_(what) {
  HcclResult status = HCCL_SUCCESS;
  of_ = require_communicator(api, comm, &status);
  if (of_ == nullptr) throw Refused{status};
  if (const auto failure = of_->failure()) {
    throw Failure(failure->code(), c10::str("the communicator has failed: ", failure->what()));
  }
  if (what.root != kNoRoot) expect_rank("root", what.root);
  if (what.type != HCCL_DATA_TYPE_RESERVED) check_type();
}

void Call::expect_rank(const char* argument, uint32_t rank) const {
  if (rank < ranks()) return;
  throw Failure(HCCL_E_PARA, c10::str(argument, " is ", rank,
                                      ", expected less than the number of ranks, ", ranks()));
}

char* Call::use(const char* argument, const void* address, uint64_t count, uint64_t parts,
                size_t size_of_element) {
  constexpr uint64_t kMost = uint64_t{1} << 60;
  if (count > kMost / size_of_element / parts) {
    throw Failure(HCCL_E_PARA,
                  c10::str(argument, " would have ", count, " elements, which no memory has"));
  }
  Buffer buffer{argument, static_cast<char*>(const_cast<void*>(address)),
                count * parts * size_of_element};
  if (buffer.bytes == 0) return buffer.data;
  if (address == nullptr) throw Failure(HCCL_E_PTR, c10::str(argument, " is a null pointer"));
  Block block;
  if (!find_block(address, buffer.bytes, &block) || block.side != Side::kDevice ||
      block.device != of_->device() || !block.grants(address, buffer.bytes)) {
    throw Failure(HCCL_E_PARA, c10::str(argument, " has ", buffer.bytes,
                                        " bytes that do not all lie in one block of aclrtMalloc on "
                                        "device ",
                                        of_->device(), ", the communicator's"));
  }
  buffer.block = block_number(address);
  buffers_.push_back(buffer);
  return buffer.data;
}

HcclResult Call::submit(std::function<void(Session&)> body) {
  auto task = std::make_unique<Operation>(api_, of_, what_, std::move(buffers_), std::move(body),
                                          is_captured(stream_));
  const aclError status = aclnn_host::submit(api_, stream_, std::move(task));
  if (status == ACL_SUCCESS) return HCCL_SUCCESS;
  return status == ACL_ERROR_RT_INVALID_HANDLE ? HCCL_E_PARA : HCCL_E_RUNTIME;
}

void Call::check_type() const {
  const bool exists = element_size(what_.type) > 0 && what_.type != HCCL_DATA_TYPE_INT128;
  const bool reduces = what_.reduction != HCCL_REDUCE_RESERVED;
  if (exists && (!reduces || is_reduced(what_.type, what_.reduction))) return;
  std::string text = c10::str("dataType is ", name_of(what_.type));
  if (reduces) text += c10::str(" and op ", name_of(what_.reduction));
  throw Failure(HCCL_E_NOT_SUPPORT,
                c10::str(text, ", which ", product_name(current_product()), " does not have"));
}

}  // namespace aclnn_host::hccl

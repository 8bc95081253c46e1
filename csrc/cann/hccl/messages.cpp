// Sends and receives between two ranks.
#include <vector>

#include <c10/util/StringUtil.h>

#include "cann/hccl/operation_call.h"
#include "hccl/hccl.h"

namespace aclnn_host::hccl {
namespace {

// The description of sends and receives, which must be equal on both sides.
Description point_to_point(HcclDataType type) {
  return {HCCL_CMD_SEND, type, HCCL_REDUCE_RESERVED, kNoRoot};
}

// Starts sends and receives together.
HcclResult send_and_receive(const char* api, std::span<const HcclSendRecvItem> items, HcclComm comm,
                            aclrtStream stream) {
  Call call(api, comm, stream, {HCCL_CMD_BATCH_SEND_RECV});
  std::vector<Message> outgoing;
  std::vector<Message> incoming;
  for (const HcclSendRecvItem& item : items) {
    const bool sends = item.sendRecvType == HCCL_SEND;
    const char* const rank = sends ? "destRank" : "srcRank";
    if (!sends && item.sendRecvType != HCCL_RECV) {
      throw Failure(HCCL_E_PARA, c10::str("sendRecvType is ", item.sendRecvType,
                                          ", expected HCCL_SEND or HCCL_RECV"));
    }
    call.expect_rank(rank, item.remoteRank);
    if (item.remoteRank == call.rank()) {
      throw Failure(HCCL_E_PARA, c10::str(rank, " is ", call.rank(), ", the calling rank itself"));
    }
    const size_t element = element_size(item.dataType);
    if (element == 0 || item.dataType == HCCL_DATA_TYPE_INT128) {
      throw Failure(HCCL_E_NOT_SUPPORT,
                    c10::str("dataType is ", name_of(item.dataType), ", which there is not"));
    }
    char* const data = call.use(sends ? "sendBuf" : "recvBuf", item.buf, item.count, 1, element);
    (sends ? outgoing : incoming)
        .push_back({item.remoteRank, data, item.count * element, point_to_point(item.dataType)});
  }
  return call.submit([=](Session& session) { session.exchange(outgoing, incoming); });
}

// The calls of this thread between HcclGroupStart and HcclGroupEnd.
struct Group {
  int depth = 0;
  struct Item {
    HcclComm comm;
    aclrtStream stream;
    HcclSendRecvItem item;
  };
  std::vector<Item> items;
};

Group& group() {
  thread_local Group state;
  return state;
}

HcclResult send_or_receive(const char* api, const HcclSendRecvItem& item, HcclComm comm,
                           aclrtStream stream) {
  if (group().depth == 0) return send_and_receive(api, {&item, 1}, comm, stream);
  group().items.push_back({comm, stream, item});
  return HCCL_SUCCESS;
}

}  // namespace
}  // namespace aclnn_host::hccl

using namespace aclnn_host::hccl;

using aclnn_host::fail;

HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank,
                    HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclSend";
  return called(kApi, [&] {
    return send_or_receive(kApi, {HCCL_SEND, sendBuf, count, dataType, destRank}, comm, stream);
  });
}

HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank,
                    HcclComm comm, aclrtStream stream) {
  constexpr const char* kApi = "HcclRecv";
  return called(kApi, [&] {
    return send_or_receive(kApi, {HCCL_RECV, recvBuf, count, dataType, srcRank}, comm, stream);
  });
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm,
                             aclrtStream stream) {
  constexpr const char* kApi = "HcclBatchSendRecv";
  return called(kApi, [&] {
    if (sendRecvInfo == nullptr) return null_argument(kApi, "sendRecvInfo");
    return send_and_receive(kApi, {sendRecvInfo, itemNum}, comm, stream);
  });
}

HcclResult HcclGroupStart(void) {
  ++group().depth;
  return HCCL_SUCCESS;
}

HcclResult HcclGroupStatusGet(bool* isGroupEnabled) {
  if (isGroupEnabled == nullptr) return null_argument("HcclGroupStatusGet", "isGroupEnabled");
  *isGroupEnabled = group().depth > 0;
  return HCCL_SUCCESS;
}

HcclResult HcclGroupEnd(void) {
  constexpr const char* kApi = "HcclGroupEnd";
  return called(kApi, [&]() -> HcclResult {
    if (group().depth == 0) {
      fail(HCCL_E_PARA, "%s: there is no group; call HcclGroupStart first", kApi);
      return HCCL_E_PARA;
    }
    if (--group().depth > 0) return HCCL_SUCCESS;
    // Submits the items of each communicator and stream together, in the order of their first
    // items.
    std::vector<Group::Item> items;
    items.swap(group().items);
    HcclResult first = HCCL_SUCCESS;
    while (!items.empty()) {
      const auto [comm, stream, of] = items.front();
      std::vector<HcclSendRecvItem> together;
      std::erase_if(items, [&](const Group::Item& item) {
        if (item.comm != comm || item.stream != stream) return false;
        together.push_back(item.item);
        return true;
      });
      const HcclResult status =
          called(kApi, [&] { return send_and_receive(kApi, together, comm, stream); });
      if (first == HCCL_SUCCESS) first = status;
    }
    return first;
  });
}

#include "cann/hccl/names.h"

#include <algorithm>

#include <c10/util/StringUtil.h>

namespace aclnn_host::hccl {

const char* name_of(HcclDataType type) noexcept {
  switch (type) {
    case HCCL_DATA_TYPE_INT8: return "INT8";
    case HCCL_DATA_TYPE_INT16: return "INT16";
    case HCCL_DATA_TYPE_INT32: return "INT32";
    case HCCL_DATA_TYPE_FP16: return "FP16";
    case HCCL_DATA_TYPE_FP32: return "FP32";
    case HCCL_DATA_TYPE_INT64: return "INT64";
    case HCCL_DATA_TYPE_UINT64: return "UINT64";
    case HCCL_DATA_TYPE_UINT8: return "UINT8";
    case HCCL_DATA_TYPE_UINT16: return "UINT16";
    case HCCL_DATA_TYPE_UINT32: return "UINT32";
    case HCCL_DATA_TYPE_FP64: return "FP64";
    case HCCL_DATA_TYPE_BFP16: return "BFP16";
    case HCCL_DATA_TYPE_INT128: return "INT128";
    case HCCL_DATA_TYPE_HIF8: return "HIF8";
    case HCCL_DATA_TYPE_FP8E4M3: return "FP8E4M3";
    case HCCL_DATA_TYPE_FP8E5M2: return "FP8E5M2";
    case HCCL_DATA_TYPE_FP8E8M0: return "FP8E8M0";
    case HCCL_DATA_TYPE_RESERVED: break;
  }
  return "an unknown type";
}

const char* name_of(HcclReduceOp reduction) noexcept {
  switch (reduction) {
    case HCCL_REDUCE_SUM: return "SUM";
    case HCCL_REDUCE_PROD: return "PROD";
    case HCCL_REDUCE_MAX: return "MAX";
    case HCCL_REDUCE_MIN: return "MIN";
    case HCCL_REDUCE_RESERVED: break;
  }
  return "an unknown reduction";
}

const char* name_of(HcclCMDType operation) noexcept {
  switch (operation) {
    case HCCL_CMD_BROADCAST: return "HcclBroadcast";
    case HCCL_CMD_ALLREDUCE: return "HcclAllReduce";
    case HCCL_CMD_REDUCE: return "HcclReduce";
    case HCCL_CMD_SEND: return "HcclSend";
    case HCCL_CMD_RECEIVE: return "HcclRecv";
    case HCCL_CMD_ALLGATHER: return "HcclAllGather";
    case HCCL_CMD_ALLGATHER_V: return "HcclAllGatherV";
    case HCCL_CMD_REDUCE_SCATTER: return "HcclReduceScatter";
    case HCCL_CMD_REDUCE_SCATTER_V: return "HcclReduceScatterV";
    case HCCL_CMD_ALLTOALL: return "HcclAlltoAll";
    case HCCL_CMD_ALLTOALLV: return "HcclAlltoAllV";
    case HCCL_CMD_ALLTOALLVC: return "HcclAlltoAllVC";
    case HCCL_CMD_SCATTER: return "HcclScatter";
    case HCCL_CMD_BATCH_SEND_RECV: return "HcclBatchSendRecv";
    case HCCL_CMD_BARRIER: return "HcclBarrier";
    case HCCL_CMD_INIT: return "the making of a communicator";
    default: return "an unknown operation";
  }
}

std::string text_of(const Description& what, size_t bytes) {
  std::string text = name_of(what.operation);
  if (what.type != HCCL_DATA_TYPE_RESERVED) {
    text += c10::str(" (", name_of(what.type));
    if (what.reduction != HCCL_REDUCE_RESERVED) text += c10::str(", ", name_of(what.reduction));
    if (what.root != kNoRoot) text += c10::str(", root ", what.root);
    text += ")";
  }
  return c10::str(text, " of ", bytes, " bytes");
}

std::string text_of_ranks(std::vector<uint32_t> ranks) {
  constexpr size_t kMost = 32;
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
  const size_t named = ranks.size() > kMost + 1 ? kMost : ranks.size();
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < named; ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (named < ranks.size()) text += c10::str(" and ", ranks.size() - named, " others");
  return text;
}

size_t element_size(HcclDataType type) noexcept {
  switch (type) {
    case HCCL_DATA_TYPE_INT8:
    case HCCL_DATA_TYPE_UINT8:
    case HCCL_DATA_TYPE_HIF8:
    case HCCL_DATA_TYPE_FP8E4M3:
    case HCCL_DATA_TYPE_FP8E5M2:
    case HCCL_DATA_TYPE_FP8E8M0: return 1;
    case HCCL_DATA_TYPE_INT16:
    case HCCL_DATA_TYPE_UINT16:
    case HCCL_DATA_TYPE_FP16:
    case HCCL_DATA_TYPE_BFP16: return 2;
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_UINT32:
    case HCCL_DATA_TYPE_FP32: return 4;
    case HCCL_DATA_TYPE_INT64:
    case HCCL_DATA_TYPE_UINT64:
    case HCCL_DATA_TYPE_FP64: return 8;
    case HCCL_DATA_TYPE_INT128: return 16;
    case HCCL_DATA_TYPE_RESERVED: break;
  }
  return 0;
}

}  // namespace aclnn_host::hccl

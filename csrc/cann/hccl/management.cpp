// Creates, queries and destroys communicators.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include <c10/util/StringUtil.h>

#include "cann/hccl/communicator.h"
#include "cann/hccl/hccl_guard.h"
#include "cann/hccl/windows.h"
#include "hccl/hccl.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host::hccl {
namespace {

// The text in a field of HcclCommConfig.
std::string text_in(const char* field, size_t size) {
  return {field, strnlen(field, size)};
}

// The options in the configuration, up to its size: that of an older program is shorter.
Communicator::Options options_of(const HcclCommConfig* config) {
  Communicator::Options options;
  if (config == nullptr) return options;
  size_t size = 0;
  uint32_t magic = 0;
  std::memcpy(&size, config->reserved, sizeof(size));
  std::memcpy(&magic, config->reserved + sizeof(size), sizeof(magic));
  if (magic != HCCL_COMM_CONFIG_MAGIC_WORD) {
    throw Failure(HCCL_E_PARA, "config was not filled by HcclCommConfigInit");
  }
  const auto reaches = [&](size_t offset, size_t bytes) { return size >= offset + bytes; };
  if (reaches(offsetof(HcclCommConfig, hcclCommName), COMM_NAME_MAX_LENGTH)) {
    options.name = text_in(config->hcclCommName, COMM_NAME_MAX_LENGTH);
    if (options.name.size() >= COMM_NAME_MAX_LENGTH) {
      throw Failure(HCCL_E_PARA,
                    c10::str("hcclCommName has no end within ", COMM_NAME_MAX_LENGTH, " bytes"));
    }
  }
  if (reaches(offsetof(HcclCommConfig, hcclExecTimeOut), sizeof(int32_t)) &&
      config->hcclExecTimeOut != HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET) {
    if (config->hcclExecTimeOut < 0) {
      throw Failure(HCCL_E_PARA, c10::str("hcclExecTimeOut is ", config->hcclExecTimeOut,
                                          ", expected seconds, or 0 to wait without limit"));
    }
    options.timeout = std::chrono::seconds(config->hcclExecTimeOut);
  }
  return options;
}

void expect_rank(const char* argument, uint32_t rank, uint32_t ranks) {
  if (rank < ranks) return;
  throw Failure(HCCL_E_PARA, c10::str(argument, " is ", rank,
                                      ", expected less than the number of ranks, ", ranks));
}

void expect_ranks(const char* argument, uint32_t ranks) {
  if (ranks <= kMostRanks) return;
  throw Failure(HCCL_E_PARA, c10::str(argument, " is ", ranks, ", expected at most ", kMostRanks));
}

int32_t expect_device() {
  const int32_t device = current_device();
  if (device >= 0) return device;
  throw Failure(HCCL_E_RUNTIME, "the thread has no device; call aclrtSetDevice first");
}

HcclComm create(uint32_t ranks, std::span<const HcclRootInfo> roots, uint32_t rank, int32_t device,
                const Communicator::Options& options) {
  expect_ranks("nRanks", ranks);
  expect_rank("rank", rank, ranks);
  const Rendezvous rendezvous = rendezvous_of(roots);
  return publish(std::make_shared<Communicator>(rendezvous, rendezvous.server_address.name, rank,
                                                ranks, device, options));
}

// Creates all communicators of a process, each in its own thread, because each waits for the
// others.
std::vector<HcclComm> create_all(std::span<const int32_t> devices) {
  uint32_t there = 0;
  if (aclrtGetDeviceCount(&there) != ACL_SUCCESS) there = 0;
  for (const int32_t device : devices) {
    if (device >= 0 && static_cast<uint32_t>(device) < there) continue;
    throw Failure(HCCL_E_PARA, c10::str("devices has ", device, ", expected 0 to ", there - 1,
                                        "; ACLNN_TORCH_DEVICES sets how many there are"));
  }
  const HcclRootInfo root = open_root();
  const auto ranks = static_cast<uint32_t>(devices.size());
  std::vector<HcclComm> made(ranks, nullptr);
  std::vector<std::optional<Failure>> failures(ranks);
  {
    std::vector<std::jthread> threads;
    threads.reserve(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          made[rank] = create(ranks, {&root, 1}, rank, devices[rank], {});
        } catch (...) {
          failures[rank] = failure_of_exception();
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (!failure) continue;
    for (HcclComm one : made) communicators().remove(one);
    throw Failure(*failure);
  }
  return made;
}

// The options of the process.
struct Configuration {
  std::mutex mutex;
  std::map<HcclConfig, HcclConfigValue> values;
  static void after_fork() noexcept {}
};

Configuration& configuration() {
  return PerProcess<Configuration>::get();
}

// A C program can pass any number, and C++ must not read it as an enumeration whose range is
// smaller.
HcclResult check_option(const char* api, const HcclConfig& config) {
  std::underlying_type_t<HcclConfig> number;
  std::memcpy(&number, &config, sizeof(number));
  if (number == HCCL_DETERMINISTIC || number == HCCL_ACCELERATOR) return HCCL_SUCCESS;
  fail(HCCL_E_PARA, "%s: config is %d, expected 0 (HCCL_DETERMINISTIC) or 1 (HCCL_ACCELERATOR)",
       api, static_cast<int>(number));
  return HCCL_E_PARA;
}

// Functions that the host CANN has nothing to do for: they check the communicator.
HcclResult check_only(const char* api, HcclComm comm) noexcept {
  return guarded(api, [&] {
    HcclResult status = HCCL_SUCCESS;
    require_communicator(api, comm, &status);
    return status;
  });
}

HcclResult get_root_info(const char* api, HcclRootInfo* information) noexcept {
  return guarded(api, [&] {
    if (information == nullptr) return null_argument(api, "rootInfo");
    *information = open_root();
    return HCCL_SUCCESS;
  });
}

// The communicator of that name, or null. If several threads are ranks with this name, the one of
// the calling thread's device.
std::shared_ptr<Communicator> find_by_name(const char* name) {
  const auto found =
      communicators().select([&](const Communicator& one) { return one.name() == name; });
  if (found.empty()) return nullptr;
  const auto own = std::ranges::find(found, current_device(), &Communicator::device);
  return own == found.end() ? found.front() : *own;
}

HcclResult no_communicator(const char* api, const char* argument, const char* name) noexcept {
  fail(HCCL_E_NOT_FOUND, "%s: %s is %s, which no communicator of this process is called", api,
       argument, name);
  return HCCL_E_NOT_FOUND;
}

HcclResult no_rank_tables(const char* api) noexcept {
  fail(HCCL_E_NOT_SUPPORT,
       "%s: the host CANN reads no rank tables, which describe the network of devices; use "
       "HcclGetRootInfo and HcclCommInitRootInfo, and torch_npu without RANK_TABLE_FILE",
       api);
  return HCCL_E_NOT_SUPPORT;
}

}  // namespace
}  // namespace aclnn_host::hccl

using namespace aclnn_host::hccl;
using aclnn_host::fail;

HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo) {
  return get_root_info("HcclGetRootInfo", rootInfo);
}

HcclResult HcclGetRootInfoScalable(HcclRootInfo* rootInfo) {
  return get_root_info("HcclGetRootInfoScalable", rootInfo);
}

HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                HcclComm* comm) {
  constexpr const char* kApi = "HcclCommInitRootInfo";
  return guarded(kApi, [&] {
    if (rootInfo == nullptr) return null_argument(kApi, "rootInfo");
    if (comm == nullptr) return null_argument(kApi, "comm");
    *comm = create(nRanks, {rootInfo, 1}, rank, expect_device(), {});
    return HCCL_SUCCESS;
  });
}

HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                      const HcclCommConfig* config, HcclComm* comm) {
  constexpr const char* kApi = "HcclCommInitRootInfoConfig";
  return guarded(kApi, [&] {
    if (rootInfo == nullptr) return null_argument(kApi, "rootInfo");
    if (config == nullptr) return null_argument(kApi, "config");
    if (comm == nullptr) return null_argument(kApi, "comm");
    *comm = create(nRanks, {rootInfo, 1}, rank, expect_device(), options_of(config));
    return HCCL_SUCCESS;
  });
}

HcclResult HcclCommInitRootInfoScalable(uint32_t nRanks, uint32_t nRoot,
                                        const HcclRootInfo* rootInfoList, uint32_t rank,
                                        uint32_t nExtRoot, const HcclCommConfig* config,
                                        HcclComm* comm) {
  constexpr const char* kApi = "HcclCommInitRootInfoScalable";
  return guarded(kApi, [&] {
    if (rootInfoList == nullptr) return null_argument(kApi, "rootInfoList");
    if (config == nullptr) return null_argument(kApi, "config");
    if (comm == nullptr) return null_argument(kApi, "comm");
    if (nRoot == 0 || nRoot > nRanks) {
      throw Failure(HCCL_E_PARA,
                    c10::str("nRoot is ", nRoot, ", expected 1 to the number of ranks, ", nRanks));
    }
    if (nExtRoot != 0) {
      throw Failure(HCCL_E_PARA, c10::str("nExtRoot is ", nExtRoot, ", expected 0"));
    }
    *comm = create(nRanks, {rootInfoList, nRoot}, rank, expect_device(), options_of(config));
    return HCCL_SUCCESS;
  });
}

HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms) {
  constexpr const char* kApi = "HcclCommInitAll";
  return guarded(kApi, [&] {
    if (devices == nullptr) return null_argument(kApi, "devices");
    if (comms == nullptr) return null_argument(kApi, "comms");
    expect_ranks("ndev", ndev);
    std::ranges::copy(create_all({devices, ndev}), comms);
    return HCCL_SUCCESS;
  });
}

HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank, HcclComm* comm) {
  return no_rank_tables("HcclCommInitClusterInfo");
}

HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank,
                                         HcclCommConfig* config, HcclComm* comm) {
  return no_rank_tables("HcclCommInitClusterInfoConfig");
}

HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds,
                                   uint64_t subCommId, uint32_t subCommRankId,
                                   HcclCommConfig* config, HcclComm* subComm) {
  constexpr const char* kApi = "HcclCreateSubCommConfig";
  return guarded(kApi, [&] {
    if (comm == nullptr) return null_argument(kApi, "comm");
    if (subComm == nullptr) return null_argument(kApi, "subComm");
    HcclResult status = HCCL_SUCCESS;
    const auto whole = require_communicator(kApi, *comm, &status);
    if (whole == nullptr) return status;
    if (rankIds == nullptr) {
      *subComm = nullptr;
      return HCCL_SUCCESS;
    }
    expect_ranks("rankNum", rankNum);
    expect_rank("subCommRankId", subCommRankId, rankNum);
    std::string kind = c10::str("part ", subCommId, " of");
    for (uint32_t i = 0; i < rankNum; ++i) {
      expect_rank("rankIds", rankIds[i], whole->ranks());
      kind += c10::str(" ", rankIds[i]);
    }
    if (rankIds[subCommRankId] != whole->rank()) {
      throw Failure(HCCL_E_PARA,
                    c10::str("rankIds has ", rankIds[subCommRankId], " at subCommRankId, ",
                             subCommRankId, ", expected the calling rank, ", whole->rank()));
    }
    *subComm = publish(std::make_shared<Communicator>(whole->rendezvous(), whole->key_of_part(kind),
                                                      subCommRankId, rankNum, whole->device(),
                                                      options_of(config)));
    return HCCL_SUCCESS;
  });
}

HcclResult HcclCommDestroy(HcclComm comm) {
  constexpr const char* kApi = "HcclCommDestroy";
  return guarded(kApi, [&] {
    HcclResult status = HCCL_SUCCESS;
    const auto removed = communicators().remove(comm);
    if (removed == nullptr) {
      require_communicator(kApi, comm, &status);
    } else {
      end_windows(*removed);
    }
    return status;
  });
}

HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize) {
  constexpr const char* kApi = "HcclGetRankSize";
  return guarded(kApi, [&] {
    if (rankSize == nullptr) return null_argument(kApi, "rankSize");
    HcclResult status = HCCL_SUCCESS;
    if (const auto found = require_communicator(kApi, comm, &status)) *rankSize = found->ranks();
    return status;
  });
}

HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
  constexpr const char* kApi = "HcclGetRankId";
  return guarded(kApi, [&] {
    if (rank == nullptr) return null_argument(kApi, "rank");
    HcclResult status = HCCL_SUCCESS;
    if (const auto found = require_communicator(kApi, comm, &status)) *rank = found->rank();
    return status;
  });
}

HcclResult HcclGetCommName(HcclComm comm, char* commName) {
  constexpr const char* kApi = "HcclGetCommName";
  return guarded(kApi, [&] {
    if (commName == nullptr) return null_argument(kApi, "commName");
    HcclResult status = HCCL_SUCCESS;
    const auto found = require_communicator(kApi, comm, &status);
    if (found == nullptr) return status;
    const size_t length = found->name().copy(commName, COMM_NAME_MAX_LENGTH - 1);
    commName[length] = '\0';
    return HCCL_SUCCESS;
  });
}

HcclResult HcclCommGetHandleWithName(const char* commName, HcclComm* comm) {
  constexpr const char* kApi = "HcclCommGetHandleWithName";
  return guarded(kApi, [&] {
    if (commName == nullptr) return null_argument(kApi, "commName");
    if (comm == nullptr) return null_argument(kApi, "comm");
    const auto found = find_by_name(commName);
    if (found == nullptr) return no_communicator(kApi, "commName", commName);
    *comm = found->handle();
    return HCCL_SUCCESS;
  });
}

HcclResult HcclCommGetStatus(const char* commId, HcclCommStatus* status) {
  constexpr const char* kApi = "HcclCommGetStatus";
  return guarded(kApi, [&] {
    if (commId == nullptr) return null_argument(kApi, "commId");
    if (status == nullptr) return null_argument(kApi, "status");
    const auto found = find_by_name(commId);
    if (found == nullptr) return no_communicator(kApi, "commId", commId);
    *status = found->failure() ? HCCL_COMM_STATUS_INVALID : HCCL_COMM_STATUS_READY;
    return HCCL_SUCCESS;
  });
}

HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError) {
  constexpr const char* kApi = "HcclGetCommAsyncError";
  return guarded(kApi, [&] {
    if (asyncError == nullptr) return null_argument(kApi, "asyncError");
    HcclResult status = HCCL_SUCCESS;
    const auto found = require_communicator(kApi, comm, &status);
    if (found == nullptr) return status;
    const auto failure = found->failure();
    *asyncError = failure ? failure->code() : HCCL_SUCCESS;
    return HCCL_SUCCESS;
  });
}

const char* HcclGetErrorString(HcclResult code) {
  switch (code) {
    case HCCL_SUCCESS: return "no error";
    case HCCL_E_PARA: return "parameter error";
    case HCCL_E_PTR: return "null pointer";
    case HCCL_E_MEMORY: return "memory error";
    case HCCL_E_INTERNAL: return "internal error";
    case HCCL_E_NOT_SUPPORT: return "not supported";
    case HCCL_E_NOT_FOUND: return "not found";
    case HCCL_E_UNAVAIL: return "resource unavailable";
    case HCCL_E_SYSCALL: return "system call error";
    case HCCL_E_TIMEOUT: return "timeout";
    case HCCL_E_OPEN_FILE_FAILURE: return "a file cannot be opened";
    case HCCL_E_TCP_CONNECT: return "TCP connection error";
    case HCCL_E_ROCE_CONNECT: return "RoCE connection error";
    case HCCL_E_TCP_TRANSFER: return "TCP transfer error";
    case HCCL_E_ROCE_TRANSFER: return "RoCE transfer error";
    case HCCL_E_RUNTIME: return "runtime error";
    case HCCL_E_DRV: return "driver error";
    case HCCL_E_PROFILING: return "profiling error";
    case HCCL_E_CCE: return "CCE error";
    case HCCL_E_NETWORK: return "network error";
    case HCCL_E_AGAIN: return "try again";
    case HCCL_E_REMOTE: return "another rank failed";
    case HCCL_E_SUSPENDING: return "the communicator is suspended";
    case HCCL_E_OPRETRY_FAIL: return "a repetition failed";
    case HCCL_E_OOM: return "out of memory";
    case HCCL_E_RESERVED: break;
  }
  return "unknown error";
}

HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue) {
  constexpr const char* kApi = "HcclSetConfig";
  return guarded(kApi, [&] {
    if (const HcclResult status = check_option(kApi, config)) return status;
    const std::lock_guard lock(configuration().mutex);
    configuration().values[config] = configValue;
    return HCCL_SUCCESS;
  });
}

HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue) {
  constexpr const char* kApi = "HcclGetConfig";
  return guarded(kApi, [&] {
    if (configValue == nullptr) return null_argument(kApi, "configValue");
    if (const HcclResult status = check_option(kApi, config)) return status;
    const std::lock_guard lock(configuration().mutex);
    *configValue = configuration().values[config];
    return HCCL_SUCCESS;
  });
}

uint32_t HcclGetCommConfigCapability(void) {
  return HCCL_COMM_CONFIG_RESERVED;
}

HcclResult HcclCommSetMemoryRange(HcclComm comm, void* baseVirPtr, size_t size, size_t alignment,
                                  uint64_t flags) {
  return check_only("HcclCommSetMemoryRange", comm);
}

HcclResult HcclCommUnsetMemoryRange(HcclComm comm, void* baseVirPtr) {
  return check_only("HcclCommUnsetMemoryRange", comm);
}

HcclResult HcclCommActivateCommMemory(HcclComm comm, void* virPtr, size_t size, size_t offset,
                                      aclrtDrvMemHandle handle, uint64_t flags) {
  return check_only("HcclCommActivateCommMemory", comm);
}

HcclResult HcclCommDeactivateCommMemory(HcclComm comm, void* virPtr) {
  return check_only("HcclCommDeactivateCommMemory", comm);
}

HcclResult HcclCommRegister(HcclComm comm, void* addr, uint64_t size, void** handle,
                            uint32_t flag) {
  constexpr const char* kApi = "HcclCommRegister";
  if (handle == nullptr) return null_argument(kApi, "handle");
  if (const HcclResult status = check_only(kApi, comm)) return status;
  *handle = addr;
  return HCCL_SUCCESS;
}

HcclResult HcclCommDeregister(HcclComm comm, void* handle) {
  return check_only("HcclCommDeregister", comm);
}

HcclResult HcclCommExchangeMem(HcclComm comm, void* windowHandle, uint32_t* peerRanks,
                               uint32_t peerRankNum) {
  return check_only("HcclCommExchangeMem", comm);
}

HcclResult HcclCommSuspend(HcclComm comm) {
  return check_only("HcclCommSuspend", comm);
}

HcclResult HcclCommResume(HcclComm comm) {
  return check_only("HcclCommResume", comm);
}

HcclResult HcclCommWorkingDevNicSet(HcclComm comm, uint32_t* ranks, bool* useBackup,
                                    uint32_t nRanks) {
  return check_only("HcclCommWorkingDevNicSet", comm);
}

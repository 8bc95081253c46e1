// The topology: all ranks are connected to each other, in one layer, on one host and on several.
#include "hccl/hccl_rank_graph.h"

#include <c10/util/StringUtil.h>

#include "cann/hccl/communicator.h"
#include "cann/hccl/hccl_guard.h"

namespace aclnn_host::hccl {
namespace {

void expect_zero(const char* argument, uint32_t number) {
  if (number == 0) return;
  throw Failure(HCCL_E_PARA, c10::str(argument, " is ", number, ", expected 0, the only one"));
}

// Runs body(communicator).
template <class Body>
HcclResult ask(const char* api, HcclComm comm, Body&& body) noexcept {
  return guarded(api, [&] {
    HcclResult status = HCCL_SUCCESS;
    if (const auto of = require_communicator(api, comm, &status)) body(*of);
    return status;
  });
}

// Returns a pointer to a list, which lives as long as the communicator.
HcclResult give(const char* api, HcclComm comm, uint32_t layer, uint32_t instance,
                std::vector<uint32_t> Communicator::Graph::* list, const char* values_argument,
                uint32_t** values, const char* count_argument, uint32_t* count) noexcept {
  if (values == nullptr) return null_argument(api, values_argument);
  if (count == nullptr) return null_argument(api, count_argument);
  return ask(api, comm, [&](Communicator& of) {
    expect_zero("netLayer", layer);
    expect_zero("topoInstId", instance);
    *values = (of.graph().*list).data();
    *count = static_cast<uint32_t>((of.graph().*list).size());
  });
}

HcclResult tell_topology(const char* api, HcclComm comm, uint32_t layer, uint32_t instance,
                         CommTopo* topology) noexcept {
  if (topology == nullptr) return null_argument(api, "topoType");
  return ask(api, comm, [&](Communicator&) {
    expect_zero("netLayer", layer);
    expect_zero("topoInstId", instance);
    *topology = COMM_TOPO_1DMESH;
  });
}

}  // namespace
}  // namespace aclnn_host::hccl

using namespace aclnn_host::hccl;

using Graph = Communicator::Graph;

HcclResult HcclRankGraphGetLayers(HcclComm comm, uint32_t** netLayers, uint32_t* netLayerNum) {
  return give("HcclRankGraphGetLayers", comm, 0, 0, &Graph::layers, "netLayers", netLayers,
              "netLayerNum", netLayerNum);
}

HcclResult HcclRankGraphGetRanksByLayer(HcclComm comm, uint32_t netLayer, uint32_t** ranks,
                                        uint32_t* rankNum) {
  return give("HcclRankGraphGetRanksByLayer", comm, netLayer, 0, &Graph::ranks, "ranks", ranks,
              "rankNum", rankNum);
}

HcclResult HcclRankGraphGetRankSizeByLayer(HcclComm comm, uint32_t netLayer, uint32_t* rankNum) {
  constexpr const char* kApi = "HcclRankGraphGetRankSizeByLayer";
  if (rankNum == nullptr) return null_argument(kApi, "rankNum");
  return ask(kApi, comm, [&](Communicator& of) {
    expect_zero("netLayer", netLayer);
    *rankNum = of.ranks();
  });
}

HcclResult HcclRankGraphGetTopoTypeByLayer(HcclComm comm, uint32_t netLayer, CommTopo* topoType) {
  return tell_topology("HcclRankGraphGetTopoTypeByLayer", comm, netLayer, 0, topoType);
}

HcclResult HcclRankGraphGetInstSizeListByLayer(HcclComm comm, uint32_t netLayer,
                                               uint32_t** instSizeList, uint32_t* listSize) {
  return give("HcclRankGraphGetInstSizeListByLayer", comm, netLayer, 0, &Graph::sizes,
              "instSizeList", instSizeList, "listSize", listSize);
}

HcclResult HcclRankGraphGetTopoInstsByLayer(HcclComm comm, uint32_t netLayer, uint32_t** topoInsts,
                                            uint32_t* topoInstNum) {
  return give("HcclRankGraphGetTopoInstsByLayer", comm, netLayer, 0, &Graph::instances, "topoInsts",
              topoInsts, "topoInstNum", topoInstNum);
}

HcclResult HcclRankGraphGetTopoType(HcclComm comm, uint32_t netLayer, uint32_t topoInstId,
                                    CommTopo* topoType) {
  return tell_topology("HcclRankGraphGetTopoType", comm, netLayer, topoInstId, topoType);
}

HcclResult HcclRankGraphGetRanksByTopoInst(HcclComm comm, uint32_t netLayer, uint32_t topoInstId,
                                           uint32_t** ranks, uint32_t* rankNum) {
  return give("HcclRankGraphGetRanksByTopoInst", comm, netLayer, topoInstId, &Graph::ranks, "ranks",
              ranks, "rankNum", rankNum);
}

HcclResult HcclGetHeterogMode(HcclComm comm, HcclHeterogMode* mode) {
  constexpr const char* kApi = "HcclGetHeterogMode";
  if (mode == nullptr) return null_argument(kApi, "mode");
  return ask(kApi, comm, [&](Communicator&) { *mode = HCCL_HETEROG_MODE_HOMOGENEOUS; });
}

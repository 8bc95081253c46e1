// The operations of ATB that the host CANN does not compute. Their functions exist, so that a
// program starts, and a call says which operation is missing.
#include "cann/atb/atb_operation.h"

#pragma GCC visibility push(default)

#define ATB_REFUSED_OF(space, Name)                                                       \
  namespace atb {                                                                         \
  namespace space {                                                                       \
  struct Name##Param;                                                                     \
  }                                                                                       \
  template <>                                                                             \
  Status CreateOperation(const space::Name##Param&, Operation**) {                        \
    ::aclnn_host::refuse_parameters("atb::CreateOperation", {"the operation is " #Name}); \
  }                                                                                       \
  }
#define ATB_REFUSED(Name) ATB_REFUSED_OF(infer, Name)
#define ATB_REFUSED_TRAINING(Name) ATB_REFUSED_OF(train, Name)

ATB_REFUSED(Activation)
ATB_REFUSED(AllGather)
ATB_REFUSED(AllGatherV)
ATB_REFUSED(AllReduce)
ATB_REFUSED(AllToAll)
ATB_REFUSED(AllToAllV)
ATB_REFUSED(AllToAllVV2)
ATB_REFUSED(AsStrided)
ATB_REFUSED(BlockCopy)
ATB_REFUSED(Broadcast)
ATB_REFUSED(CohereLayerNorm)
ATB_REFUSED(Concat)
ATB_REFUSED(Cumsum)
ATB_REFUSED(DynamicNTK)
ATB_REFUSED(FaUpdate)
ATB_REFUSED(Fill)
ATB_REFUSED(FusedAddTopkDiv)
ATB_REFUSED(Gather)
ATB_REFUSED(GatherPreRmsNorm)
ATB_REFUSED(Gating)
ATB_REFUSED(GmmDeqSwigluQuantGmmDeq)
ATB_REFUSED(GroupedMatmulInplaceAdd)
ATB_REFUSED(GroupedMatmulWithRouting)
ATB_REFUSED(IndexAdd)
ATB_REFUSED(KvCache)
ATB_REFUSED(LayerNorm)
ATB_REFUSED(LayerNormWithStride)
ATB_REFUSED(LinearParallel)
ATB_REFUSED(LinearSparse)
ATB_REFUSED(MlaPreprocess)
ATB_REFUSED(MmDeqSwigluQuantMmDeq)
ATB_REFUSED(MultiLatentAttention)
ATB_REFUSED(Multinomial)
ATB_REFUSED(Nonzero)
ATB_REFUSED(NormRopeReshape)
ATB_REFUSED(Onehot)
ATB_REFUSED(Pad)
ATB_REFUSED(RazorFusionAttention)
ATB_REFUSED(Recv)
ATB_REFUSED(Reduce)
ATB_REFUSED(ReduceScatter)
ATB_REFUSED(ReduceScatterV)
ATB_REFUSED(RelayAttention)
ATB_REFUSED(Repeat)
ATB_REFUSED(ReshapeAndCacheOmni)
ATB_REFUSED(ReshapeAndCacheWithStride)
ATB_REFUSED(RingMLA)
ATB_REFUSED(RmsNormWithStride)
ATB_REFUSED(RopeQConcat)
ATB_REFUSED(ScatterElementsV2)
ATB_REFUSED(Send)
ATB_REFUSED(SetValue)
ATB_REFUSED(Slice)
ATB_REFUSED(Softmax)
ATB_REFUSED(Sort)
ATB_REFUSED(Split)
ATB_REFUSED(SwigluQuant)
ATB_REFUSED(TopkToppSampling)
ATB_REFUSED(Transpose)
ATB_REFUSED(Unpad)
ATB_REFUSED(Where)

ATB_REFUSED_OF(common, Event)
ATB_REFUSED_OF(common, IfCond)

ATB_REFUSED_TRAINING(FastSoftMax)
ATB_REFUSED_TRAINING(FastSoftMaxGrad)
ATB_REFUSED_TRAINING(GenAttentionMask)
ATB_REFUSED_TRAINING(LaserAttention)
ATB_REFUSED_TRAINING(LaserAttentionGrad)
ATB_REFUSED_TRAINING(PadWithHiddenState)
ATB_REFUSED_TRAINING(RmsNormBackward)
ATB_REFUSED_TRAINING(RopeGrad)
ATB_REFUSED_TRAINING(StridedBatchMatmul)
ATB_REFUSED_TRAINING(UnpadWithHiddenState)

namespace atb {

struct GraphParam;
template <>
Status CreateOperation(const GraphParam&, Operation**) {
  ::aclnn_host::refuse_parameters("atb::CreateOperation", {"the operation is a graph"});
}

}  // namespace atb

#pragma GCC visibility pop

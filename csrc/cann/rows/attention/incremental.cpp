// Attention of one query for each sequence, over the keys of all tokens so far.

#include "cann/rows/attention/inference.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_incremental_rows {

namespace {

constexpr std::string_view kLayouts[] = {"BSH", "BSND", "BNSD"};

template <class Version>
void attend(Version& row) {
  InferenceArguments arguments = inference_arguments(row, kLayouts);
  arguments.key_lengths = lengths_of(row.actualSeqLengths);
  arguments.key_lengths_name = "actualSeqLengths";
  arguments.single_query_sees_all = true;
  const at::Tensor& query = arguments.query;
  EXPECT(query.is_floating_point(), "query has dtype ", dtype_text(query.scalar_type()),
         ", expected FLOAT16, BFLOAT16 or FLOAT");
  const int64_t dimension = arguments.layout == "BNSD" ? 2 : 1;
  EXPECT(query.dim() < 3 || query.size(dimension) == 1, "query has shape ", query.sizes(),
         ", expected one query for each sequence");
  if constexpr (requires { row.dequantScale1; }) {
    arguments.dequant_scale1 = row.dequantScale1;
    arguments.dequant_scale2 = row.dequantScale2;
  }
  if constexpr (requires { row.blocktable; }) {
    arguments.block_table = row.blocktable;
    split_antiquant(arguments, row.antiquantScale, row.antiquantOffset, 0);
  }
  if constexpr (requires { row.kvPaddingSize; }) arguments.key_padding = row.kvPaddingSize;
  infer_attention(arguments, row.attentionOut, nullptr);
}

}  // namespace

// pseShift is reserved in the first two versions, which ignore it.
ACLNN_STRUCT(IncreFlashAttention, (In, query), (Ins, key), (Ins, value),
             (Unused<Optional<In>>, pseShift, "reserved"), (Optional<In>, attenMask),
             (Optional<Ints>, actualSeqLengths), (int64_t, numHeads), (double, scaleValue),
             (char*, inputLayout), (int64_t, numKeyValueHeads), (Out, attentionOut)) {
  attend(*this);
}
ACLNN_STRUCT(IncreFlashAttentionV2, (In, query), (Ins, key), (Ins, value),
             (Unused<Optional<In>>, pseShift, "reserved"), (Optional<In>, attenMask),
             (Optional<Ints>, actualSeqLengths), (Optional<In>, dequantScale1),
             (Optional<In>, quantScale1), (Optional<In>, dequantScale2),
             (Optional<In>, quantScale2), (Optional<In>, quantOffset2), (int64_t, numHeads),
             (double, scaleValue), (char*, inputLayout), (int64_t, numKeyValueHeads),
             (Out, attentionOut)) {
  attend(*this);
}
ACLNN_STRUCT(IncreFlashAttentionV3, (In, query), (Ins, key), (Ins, value), (Optional<In>, pseShift),
             (Optional<In>, attenMask), (Optional<Ints>, actualSeqLengths),
             (Optional<In>, dequantScale1), (Optional<In>, quantScale1),
             (Optional<In>, dequantScale2), (Optional<In>, quantScale2),
             (Optional<In>, quantOffset2), (Optional<In>, antiquantScale),
             (Optional<In>, antiquantOffset), (Optional<In>, blocktable), (int64_t, numHeads),
             (double, scaleValue), (char*, inputLayout), (int64_t, numKeyValueHeads),
             (int64_t, blockSize), (int64_t, innerPrecise), (Out, attentionOut)) {
  attend(*this);
}
ACLNN_STRUCT(IncreFlashAttentionV4, (In, query), (Ins, key), (Ins, value), (Optional<In>, pseShift),
             (Optional<In>, attenMask), (Optional<Ints>, actualSeqLengths),
             (Optional<In>, dequantScale1), (Optional<In>, quantScale1),
             (Optional<In>, dequantScale2), (Optional<In>, quantScale2),
             (Optional<In>, quantOffset2), (Optional<In>, antiquantScale),
             (Optional<In>, antiquantOffset), (Optional<In>, blocktable),
             (Optional<In>, kvPaddingSize), (int64_t, numHeads), (double, scaleValue),
             (char*, inputLayout), (int64_t, numKeyValueHeads), (int64_t, blockSize),
             (int64_t, innerPrecise), (Out, attentionOut)) {
  attend(*this);
}

}  // namespace aclnn_host::attention_incremental_rows

// The versions of the prolog of multi-head latent attention.
#include "cann/rows/attention/mla_prolog.h"

#include "cann/rows/row.h"

namespace aclnn_host::attention_mla_prolog_rows {

namespace {

constexpr const char* kQuantisedByTiles = "counts only with kvCacheQuantMode 3, which is refused";
constexpr const char* kNormIsNotWritten = "written only with queryNormFlag, which is refused";
constexpr const char* kNormIsRefused = "the normalised query is not written";

// Arguments that only the third version has: the modes of quantisation that the dtypes tell, too,
// and what is reserved.
template <class Version>
void check_third(const Version& row) {
  EXPECT(!row.actualSeqLenOptional || row.actualSeqLenOptional->numel() == 0,
         "actualSeqLenOptional is given, expected null");
  if constexpr (requires { row.queryNormFlag; }) {
    EXPECT(!row.queryNormFlag, "queryNormFlag is true, expected false");
  }
  const bool quantises_all = row.tokenX.scalar_type() == at::kChar;
  const bool quantises_some = row.weightUqQr.dtype == ACL_INT8;
  const bool quantises_cache = row.kvCacheRef->scalar_type() == at::kChar;
  const char* const reason = " for these dtypes";
  expect_one_of("weightQuantMode", row.weightQuantMode,
                {quantises_all    ? 2
                 : quantises_some ? 1
                                  : 0},
                reason);
  expect_one_of("kvCacheQuantMode", row.kvCacheQuantMode,
                {!quantises_cache ? 0
                 : quantises_all  ? 1
                                  : 2},
                reason);
  expect_one_of("queryQuantMode", row.queryQuantMode, {quantises_all && quantises_cache ? 1 : 0},
                reason);
  expect_one_of("ckvkrRepoMode", row.ckvkrRepoMode, {0});
  expect_one_of("quantScaleRepoMode", row.quantScaleRepoMode, {0});
}

template <class Version>
void write(Version& row, Weights weights) {
  MlaProlog arguments{.x = row.tokenX,
                      .weight_dq = row.weightDq,
                      .weight_uq_qr = row.weightUqQr,
                      .weight_uk = row.weightUk,
                      .weight_dkv_kr = row.weightDkvKr,
                      .gamma_cq = row.rmsnormGammaCq,
                      .gamma_ckv = row.rmsnormGammaCkv,
                      .sine = row.ropeSin,
                      .cosine = row.ropeCos,
                      .dequant_x = row.dequantScaleXOptional,
                      .dequant_dq = row.dequantScaleWDqOptional,
                      .dequant_uq_qr = row.dequantScaleWUqQrOptional,
                      .dequant_dkv_kr = row.dequantScaleWDkvKrOptional,
                      .quant_ckv = row.quantScaleCkvOptional,
                      .quant_ckr = row.quantScaleCkrOptional,
                      .smooth_cq = row.smoothScalesCqOptional,
                      .epsilon_cq = row.rmsnormEpsilonCq,
                      .epsilon_ckv = row.rmsnormEpsilonCkv,
                      .cache_mode = row.cacheModeOptional,
                      .weights = weights};
  MlaOutputs outputs{row.kvCacheRef, row.krCacheRef, row.queryOut, row.queryRopeOut};
  if constexpr (requires { row.cacheIndex; }) {
    arguments.cache_index = row.cacheIndex;
  } else {  // version 3
    check_third(row);
    arguments.cache_index = row.cacheIndexOptional;
    arguments.has_one_scale = row.kvCacheQuantMode == 1;
    arguments.scale_cq = row.qcQrScale;
    arguments.scale_ckv = row.kcScale;
  }
  if constexpr (requires { row.dequantScaleQNopeOutOptional; }) {
    outputs.query_scale = &row.dequantScaleQNopeOutOptional;
  } else if constexpr (requires { row.dequantScaleQNopeOut; }) {
    outputs.query_scale = &row.dequantScaleQNopeOut;
  }
  mla_prolog(arguments, outputs);
}

}  // namespace

ACLNN_STRUCT(MlaProlog, (In, tokenX), (Stored<In>, weightDq), (Stored<In>, weightUqQr),
             (In, weightUk), (Stored<In>, weightDkvKr), (In, rmsnormGammaCq), (In, rmsnormGammaCkv),
             (In, ropeSin), (In, ropeCos), (In, cacheIndex), (InOut, kvCacheRef),
             (InOut, krCacheRef), (Optional<In>, dequantScaleXOptional),
             (Optional<In>, dequantScaleWDqOptional), (Optional<In>, dequantScaleWUqQrOptional),
             (Optional<In>, dequantScaleWDkvKrOptional), (Optional<In>, quantScaleCkvOptional),
             (Optional<In>, quantScaleCkrOptional), (Optional<In>, smoothScalesCqOptional),
             (double, rmsnormEpsilonCq), (double, rmsnormEpsilonCkv), (char*, cacheModeOptional),
             (Out, queryOut), (Out, queryRopeOut)) {
  write(*this, Weights::kFractalNz);
}
ACLNN_STRUCT(MlaPrologV2, (In, tokenX), (Stored<In>, weightDq), (Stored<In>, weightUqQr),
             (In, weightUk), (Stored<In>, weightDkvKr), (In, rmsnormGammaCq), (In, rmsnormGammaCkv),
             (In, ropeSin), (In, ropeCos), (In, cacheIndex), (InOut, kvCacheRef),
             (InOut, krCacheRef), (Optional<In>, dequantScaleXOptional),
             (Optional<In>, dequantScaleWDqOptional), (Optional<In>, dequantScaleWUqQrOptional),
             (Optional<In>, dequantScaleWDkvKrOptional), (Optional<In>, quantScaleCkvOptional),
             (Optional<In>, quantScaleCkrOptional), (Optional<In>, smoothScalesCqOptional),
             (double, rmsnormEpsilonCq), (double, rmsnormEpsilonCkv), (char*, cacheModeOptional),
             (Out, queryOut), (Out, queryRopeOut), (Optional<Out>, dequantScaleQNopeOutOptional)) {
  write(*this, Weights::kAny);
}
ACLNN_STRUCT(MlaPrologV2WeightNz, (In, tokenX), (Stored<In>, weightDq), (Stored<In>, weightUqQr),
             (In, weightUk), (Stored<In>, weightDkvKr), (In, rmsnormGammaCq), (In, rmsnormGammaCkv),
             (In, ropeSin), (In, ropeCos), (In, cacheIndex), (InOut, kvCacheRef),
             (InOut, krCacheRef), (Optional<In>, dequantScaleXOptional),
             (Optional<In>, dequantScaleWDqOptional), (Optional<In>, dequantScaleWUqQrOptional),
             (Optional<In>, dequantScaleWDkvKrOptional), (Optional<In>, quantScaleCkvOptional),
             (Optional<In>, quantScaleCkrOptional), (Optional<In>, smoothScalesCqOptional),
             (double, rmsnormEpsilonCq), (double, rmsnormEpsilonCkv), (char*, cacheModeOptional),
             (Out, queryOut), (Out, queryRopeOut), (Optional<Out>, dequantScaleQNopeOutOptional)) {
  write(*this, Weights::kFractalNz);
}
ACLNN_STRUCT(MlaPrologV3, (In, tokenX), (Stored<In>, weightDq), (Stored<In>, weightUqQr),
             (In, weightUk), (Stored<In>, weightDkvKr), (In, rmsnormGammaCq), (In, rmsnormGammaCkv),
             (In, ropeSin), (In, ropeCos), (InOut, kvCacheRef), (InOut, krCacheRef),
             (Optional<In>, cacheIndexOptional), (Optional<In>, dequantScaleXOptional),
             (Optional<In>, dequantScaleWDqOptional), (Optional<In>, dequantScaleWUqQrOptional),
             (Optional<In>, dequantScaleWDkvKrOptional), (Optional<In>, quantScaleCkvOptional),
             (Optional<In>, quantScaleCkrOptional), (Optional<In>, smoothScalesCqOptional),
             (Optional<In>, actualSeqLenOptional),
             (Unused<Optional<In>>, kNopeClipAlphaOptional, kQuantisedByTiles),
             (double, rmsnormEpsilonCq), (double, rmsnormEpsilonCkv), (char*, cacheModeOptional),
             (bool, queryNormFlag), (int64_t, weightQuantMode), (int64_t, kvCacheQuantMode),
             (int64_t, queryQuantMode), (int64_t, ckvkrRepoMode), (int64_t, quantScaleRepoMode),
             (Unused<int64_t>, tileSize, kQuantisedByTiles), (double, qcQrScale), (double, kcScale),
             (Out, queryOut), (Out, queryRopeOut), (Optional<Out>, dequantScaleQNopeOut),
             (Unused<Optional<Out>>, queryNormOut, kNormIsNotWritten),
             (Unused<Optional<Out>>, dequantScaleQNormOut, kNormIsNotWritten)) {
  write(*this, Weights::kAny);
}
ACLNN_STRUCT(MlaPrologV3WeightNz, (In, tokenX), (Stored<In>, weightDq), (Stored<In>, weightUqQr),
             (In, weightUk), (Stored<In>, weightDkvKr), (In, rmsnormGammaCq), (In, rmsnormGammaCkv),
             (In, ropeSin), (In, ropeCos), (InOut, kvCacheRef), (InOut, krCacheRef),
             (Optional<In>, cacheIndexOptional), (Optional<In>, dequantScaleXOptional),
             (Optional<In>, dequantScaleWDqOptional), (Optional<In>, dequantScaleWUqQrOptional),
             (Optional<In>, dequantScaleWDkvKrOptional), (Optional<In>, quantScaleCkvOptional),
             (Optional<In>, quantScaleCkrOptional), (Optional<In>, smoothScalesCqOptional),
             (Optional<In>, actualSeqLenOptional),
             (Unused<Optional<In>>, kNopeClipAlphaOptional, kQuantisedByTiles),
             (double, rmsnormEpsilonCq), (double, rmsnormEpsilonCkv), (char*, cacheModeOptional),
             (int64_t, weightQuantMode), (int64_t, kvCacheQuantMode), (int64_t, queryQuantMode),
             (int64_t, ckvkrRepoMode), (int64_t, quantScaleRepoMode),
             (Unused<int64_t>, tileSize, kQuantisedByTiles), (double, qcQrScale), (double, kcScale),
             (Out, queryOut), (Out, queryRopeOut), (Optional<Out>, dequantScaleQNopeOutOptional),
             (Refused<Out>, queryNormOutOptional, kNormIsRefused),
             (Refused<Out>, dequantScaleQNormOutOptional, kNormIsRefused)) {
  write(*this, Weights::kFractalNz);
}

}  // namespace aclnn_host::attention_mla_prolog_rows

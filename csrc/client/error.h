#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace aclnn {

// A status code of aclnn or AscendCL, and its name as CANN's headers and documents spell it.
struct NamedStatus {
  int32_t status;
  const char* name;
};
// Numbers, not the headers' constants: CANN spreads those over headers that no operator includes.
inline constexpr NamedStatus kNamedStatuses[] = {
    {0, "ACLNN_SUCCESS"},
    {100042, "ACL_ERROR_PROF_ALREADY_RUN"},
    {100043, "ACL_ERROR_PROF_NOT_RUN"},
    {148046, "ACL_ERROR_PROF_REPEAT_SUBSCRIBE"},
    {148047, "ACL_ERROR_PROF_API_CONFLICT"},
    {161001, "ACLNN_ERR_PARAM_NULLPTR"},
    {161002, "ACLNN_ERR_PARAM_INVALID"},
    {200007, "ACL_ERROR_PROF_MODULES_UNSUPPORTED"},
    {361001, "ACLNN_ERR_RUNTIME_ERROR"},
    {561000, "ACLNN_ERR_INNER"},
    {561001, "ACLNN_ERR_INNER_INFERSHAPE_ERROR"},
    {561002, "ACLNN_ERR_INNER_TILING_ERROR"},
    {561003, "ACLNN_ERR_INNER_FIND_KERNEL_ERROR"},
    {561101, "ACLNN_ERR_INNER_CREATE_EXECUTOR"},
    {561102, "ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR"},
    {561103, "ACLNN_ERR_INNER_NULLPTR"},
    {561104, "ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE"},
    {561105, "ACLNN_ERR_INNER_KEY_CONFLICT"},
    {561106, "ACLNN_ERR_INNER_INVALID_IMPL_MODE"},
    {561107, "ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND"},
    {561108, "ACLNN_ERR_INNER_LOAD_JSON_FAILED"},
    {561109, "ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND"},
    {561110, "ACLNN_ERR_INNER_JSON_FORMAT_INVALID"},
    {561111, "ACLNN_ERR_INNER_JSON_DTYPE_INVALID"},
    {561112, "ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND"},
    {561113, "ACLNN_ERR_INNER_OP_FILE_INVALID"},
    {561114, "ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND"},
    {561115, "ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH"},
    {561116, "ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE"},
    {561117, "ACLNN_ERR_INNER_INPUT_JSON_IS_NULL"},
    {561118, "ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID"},
    {561119, "ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID"},
    {100000, "ACL_ERROR_INVALID_PARAM"},
    {100001, "ACL_ERROR_UNINITIALIZE"},
    {100002, "ACL_ERROR_REPEAT_INITIALIZE"},
    {100003, "ACL_ERROR_INVALID_FILE"},
    {100006, "ACL_ERROR_PARSE_FILE"},
    {100037, "ACL_ERROR_REPEAT_FINALIZE"},
    {107000, "ACL_ERROR_RT_PARAM_INVALID"},
    {107001, "ACL_ERROR_RT_INVALID_DEVICEID"},
    {107002, "ACL_ERROR_RT_CONTEXT_NULL"},
    {107003, "ACL_ERROR_RT_STREAM_CONTEXT"},
    {107006, "ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID"},
    {107007, "ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL"},
    {107011, "ACL_ERROR_RT_STREAM_SUBSCRIBE"},
    {107012, "ACL_ERROR_RT_THREAD_SUBSCRIBE"},
    {107015, "ACL_ERROR_RT_STREAM_NO_CB_REG"},
    {107017, "ACL_ERROR_RT_INVALID_HANDLE"},
    {107018, "ACL_ERROR_RT_INVALID_MALLOC_TYPE"},
    {107019, "ACL_ERROR_RT_WAIT_TIMEOUT"},
    {107021, "ACL_ERROR_RT_SYSPARAMOPT_NOT_SET"},
    {107023, "ACL_ERROR_RT_STREAM_ABORT"},
    {107024, "ACL_ERROR_RT_CAPTURE_DEPENDENCY"},
    {107025, "ACL_ERROR_RT_STREAM_UNJOINED"},
    {107026, "ACL_ERROR_RT_MODEL_CAPTURED"},
    {107027, "ACL_ERROR_RT_STREAM_CAPTURED"},
    {107028, "ACL_ERROR_RT_EVENT_CAPTURED"},
    {107029, "ACL_ERROR_RT_STREAM_NOT_CAPTURED"},
    {107030, "ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT"},
    {107031, "ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT"},
    {107032, "ACL_ERROR_STREAM_CAPTURE_CONFLICT"},
    {107033, "ACL_ERROR_STREAM_TASK_GROUP_STATUS"},
    {107034, "ACL_ERROR_STREAM_TASK_GROUP_INTR"},
    {107036, "ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED"},
    {107037, "ACL_ERROR_RT_MODEL_RUNNING"},
    {107038, "ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD"},
    {107041, "ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC"},
    {200000, "ACL_ERROR_BAD_ALLOC"},
    {200001, "ACL_ERROR_API_NOT_SUPPORT"},
    {200002, "ACL_ERROR_INVALID_DEVICE"},
    {200003, "ACL_ERROR_MEMORY_ADDRESS_UNALIGNED"},
    {200005, "ACL_ERROR_INVALID_RESOURCE_HANDLE"},
    {200006, "ACL_ERROR_FEATURE_UNSUPPORTED"},
    {207000, "ACL_ERROR_RT_FEATURE_NOT_SUPPORT"},
    {207001, "ACL_ERROR_RT_MEMORY_ALLOCATION"},
    {207005, "ACL_ERROR_RT_RESOURCE_ALLOC_FAIL"},
    {300000, "ACL_ERROR_STORAGE_OVER_LIMIT"},
    {500000, "ACL_ERROR_INTERNAL_ERROR"},
    {500001, "ACL_ERROR_FAILURE"},
    {500002, "ACL_ERROR_GE_FAILURE"},
    {500003, "ACL_ERROR_RT_FAILURE"},
    {500004, "ACL_ERROR_DRV_FAILURE"},
    {500005, "ACL_ERROR_PROFILING_FAILURE"},
    {507000, "ACL_ERROR_RT_INTERNAL_ERROR"},
    {507009, "ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT"},
    {507012, "ACL_ERROR_RT_REPORT_TIMEOUT"},
    {507015, "ACL_ERROR_RT_AICORE_EXCEPTION"},
    {507903, "ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED"},
    {507910, "ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    {507911, "ACL_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    {507046, "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT"},
    {507047, "ACL_ERROR_RT_EVENT_SYNC_TIMEOUT"},
    {507048, "ACL_ERROR_RT_FFTS_PLUS_TIMEOUT"},
    {507049, "ACL_ERROR_RT_FFTS_PLUS_EXCEPTION"},
    {507052, "ACL_ERROR_RT_COPY_DATA"},
    {507057, "ACL_ERROR_RT_SUSPECT_REMOTE_ERROR"},
};

// The name of a status code.
inline const char* status_name(int32_t status) noexcept {
  for (const NamedStatus& known : kNamedStatuses) {
    if (known.status == status) return known.name;
  }
  return "unknown status";
}

// Thrown when a C function returns a status other than success. what() reads "<api> failed with
// status <number> (<name>): <reason>".
class Error : public std::runtime_error {
 public:
  Error(std::string api, int32_t status, std::string_view reason)
      : std::runtime_error(text(api, status, reason)), api_(std::move(api)), status_(status) {}

  // The function's name, e.g. aclnnEluBackwardGetWorkspaceSize.
  const std::string& api() const noexcept { return api_; }
  int32_t status() const noexcept { return status_; }
  const char* status_name() const noexcept { return aclnn::status_name(status_); }

 private:
  static std::string text(const std::string& api, int32_t status, std::string_view reason) {
    std::string text = api + " failed with status " + std::to_string(status) + " (" +
                       aclnn::status_name(status) + ")";
    return reason.empty() ? text : text.append(": ").append(reason);
  }

  std::string api_;
  int32_t status_;
};

}  // namespace aclnn

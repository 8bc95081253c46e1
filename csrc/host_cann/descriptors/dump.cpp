#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <unistd.h>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "host_cann/descriptors/aclnn_guard.h"
#include "host_cann/descriptors/null_arguments.h"
#include "host_cann/descriptors/tensor.h"
#include "host_cann/runtime/memory.h"
#include "host_cann/runtime/named_file.h"

namespace {

using aclnn_host::fail;

// Writes the elements in row-major order, the format of numpy.fromfile.
bool write_elements(std::FILE* file, const aclnn_host::TensorView& view) {
  const aclnn_host::Region region = aclnn_host::region_of(view);
  aclnn_host::MemoryInUse in_use;
  in_use.add(region.begin, region.size);
  const size_t size = aclDataTypeSize(view.dtype);
  const int64_t count = aclnn_host::element_count(view.shape).value_or(0);
  for (int64_t linear = 0; linear < count; ++linear) {
    int64_t rest = linear;
    int64_t position = 0;
    for (uint64_t i = view.shape.size(); i-- > 0;) {
      position += rest % view.shape[i] * view.strides[i];
      rest /= view.shape[i];
    }
    if (std::fwrite(view.data() + position * static_cast<int64_t>(size), size, 1, file) != 1) {
      return false;
    }
  }
  return true;
}

}  // namespace

aclnnStatus aclDumpOpTensors(const char* opType, const char* opName, aclTensor** tensors,
                             size_t inputTensorNum, size_t outputTensorNum, aclrtStream stream) {
  constexpr const char* kApi = "aclDumpOpTensors";
  const aclnnStatus null =
      aclnn_host::refuse_null(kApi, {{"opType", opType}, {"opName", opName}, {"tensors", tensors}});
  if (null != OK) return null;
  const char* folder = std::getenv("ACLNN_TORCH_DUMP_DIR");
  if (folder == nullptr || *folder == '\0') return OK;
  if (const aclError status = aclrtSynchronizeStream(stream); status != ACL_SUCCESS) {
    return fail(ACLNN_ERR_RUNTIME_ERROR, "%s: the stream failed with %d", kApi, status);
  }
  return aclnn_host::guarded(
      kApi, aclnnStatus{ACLNN_ERR_INNER}, ACLNN_ERR_INNER, [&]() -> aclnnStatus {
        for (size_t i = 0; i < inputTensorNum + outputTensorNum; ++i) {
          const bool input = i < inputTensorNum;
          if (tensors[i] == nullptr) continue;
          if (aclnn_host::is_gone(kApi, "a tensor", tensors[i])) return ACLNN_ERR_PARAM_INVALID;
          if (tensors[i]->view.is_freed()) {
            return fail(ACLNN_ERR_PARAM_INVALID,
                        "%s: the memory of tensor %zu was freed before it was written; free it "
                        "after the call",
                        kApi, i);
          }
          const std::string path = std::string(folder) + "/" + aclnn_host::file_name_part(opType) +
                                   "." + aclnn_host::file_name_part(opName) +
                                   (input ? ".input." : ".output.") +
                                   std::to_string(input ? i : i - inputTensorNum) + ".bin";
          const aclnn_host::NamedFile opened =
              aclnn_host::open_named_file(path, aclnn_host::Existing::kEmptied);
          if (opened.error != 0) {
            return fail(ACLNN_ERR_INNER, "%s: cannot write %s: %s", kApi, path.c_str(),
                        opened.reason.c_str());
          }
          std::FILE* const file = fdopen(opened.descriptor, "w");
          if (file == nullptr) close(opened.descriptor);
          const bool written = file != nullptr && write_elements(file, tensors[i]->view);
          if (file == nullptr || std::fclose(file) != 0 || !written) {
            return fail(ACLNN_ERR_INNER, "%s: cannot write %s: %s", kApi, path.c_str(),
                        std::strerror(errno));
          }
        }
        return OK;
      });
}

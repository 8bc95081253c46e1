// npu-smi: lists the devices of the host CANN, in the format of the table that `npu-smi info`
// prints on an Ascend machine. Build scripts read the product from the third word of the seventh
// line.
#include <cstdio>
#include <cstring>

#include "acl/acl.h"

namespace {

constexpr char kLine[] =
    "+----------------------------------+------------------------------------------+";
constexpr char kRow[] = "| %-32s | %-40s |\n";

void print_row(const char* left, const char* right) {
  std::printf(kRow, left, right);
}

// Prints one device: its number, its product, and the memory used in this process. Devices of other
// processes have their own memory.
bool print_device(int32_t device, const char* name) {
  size_t free = 0, total = 0;
  if (aclrtSetDevice(device) != ACL_SUCCESS) return false;
  const bool known = aclrtGetMemInfo(ACL_HBM_MEM, &free, &total) == ACL_SUCCESS;
  if (aclrtResetDevice(device) != ACL_SUCCESS || !known) return false;
  char left[64], right[64];
  std::snprintf(left, sizeof(left), "%-5d %s", device, name);
  print_row(left, "OK");
  std::snprintf(right, sizeof(right), "%zu / %zu", (total - free) >> 20, total >> 20);
  print_row("0", right);
  std::puts(kLine);
  return true;
}

bool print_devices() {
  uint32_t count = 0;
  const char* name = aclrtGetSocName();
  if (name == nullptr || aclrtGetDeviceCount(&count) != ACL_SUCCESS) return false;
  if (std::strncmp(name, "Ascend", 6) == 0) name += 6;
  std::puts(kLine);
  print_row("npu-smi of the host CANN", "simulated devices, computed on the CPU");
  std::puts(kLine);
  print_row("NPU   Name", "Health");
  print_row("Chip", "Memory-Usage(MB)");
  std::puts(kLine);
  for (uint32_t i = 0; i < count; ++i) {
    if (!print_device(static_cast<int32_t>(i), name)) return false;
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 || std::strcmp(arguments[1], "info") != 0) {
    std::fputs("usage: npu-smi info\nThe host CANN's npu-smi prints the table of devices alone.\n",
               stderr);
    return 2;
  }
  if (aclInit(nullptr) == ACL_SUCCESS && print_devices())
    return aclFinalize() == ACL_SUCCESS ? 0 : 1;
  const char* const message = aclGetRecentErrMsg();
  std::fprintf(stderr, "npu-smi: %s\n",
               message != nullptr ? message : "the host CANN does not start");
  return 1;
}

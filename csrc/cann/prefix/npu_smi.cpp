// npu-smi: lists the devices of the host CANN, in the format of the table that `npu-smi info`
// prints on an Ascend machine. Build scripts read the product from the third word of the seventh
// line. `npu-smi info -t board -i 0` and `-t health` tell what programs ask about one device.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "acl/acl.h"

namespace {

constexpr char kLine[] =
    "+----------------------------------+------------------------------------------+";
constexpr char kRow[] = "| %-32s | %-40s |\n";
constexpr char kField[] = "        %-30s : %s\n";
// The version of the driver. From 25.3.RC1 on, programs share device memory between processes,
// which the host CANN refuses (aclrtIpcMemGetExportKey).
constexpr char kDriver[] = "25.2.0";

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

// Prints what is known of one device: a value after each name.
void print_fields(const char* type, const char* device) {
  std::printf(kField, "NPU ID", device);
  if (std::strcmp(type, "board") == 0) {
    std::printf(kField, "Software Version", kDriver);
    std::printf(kField, "Chip Count", "1");
  } else {
    std::printf(kField, "Health Status", "OK");
  }
}

// The arguments of `info`: none, or a type of information and a device, in any order.
struct Request {
  const char* type = nullptr;
  const char* device = nullptr;
  bool valid = false;
};

Request read_request(int count, char** arguments) {
  Request request;
  if ((count != 2 && count != 6) || std::strcmp(arguments[1], "info") != 0) return request;
  for (int i = 2; i < count; i += 2) {
    if (std::strcmp(arguments[i], "-t") == 0) request.type = arguments[i + 1];
    if (std::strcmp(arguments[i], "-i") == 0) request.device = arguments[i + 1];
  }
  request.valid =
      count == 2 ||
      (request.device != nullptr && request.type != nullptr &&
       (std::strcmp(request.type, "board") == 0 || std::strcmp(request.type, "health") == 0));
  return request;
}

bool has_device(const char* text) {
  uint32_t count = 0;
  char* end = nullptr;
  const unsigned long device = std::strtoul(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == '\0' &&
         aclrtGetDeviceCount(&count) == ACL_SUCCESS && device < count;
}

}  // namespace

int main(int count, char** arguments) {
  const Request request = read_request(count, arguments);
  if (!request.valid) {
    std::fputs(
        "usage: npu-smi info [-t board|health -i DEVICE]\n"
        "The host CANN's npu-smi prints the table of devices, and a board's version and health.\n",
        stderr);
    return 2;
  }
  // It shows what the machine has, whatever a process may see of it.
  unsetenv("ASCEND_RT_VISIBLE_DEVICES");
  bool done = aclInit(nullptr) == ACL_SUCCESS;
  if (done && request.device != nullptr) {
    if (!has_device(request.device)) {
      std::fprintf(stderr, "npu-smi: there is no device %s\n", request.device);
      return 1;
    }
    print_fields(request.type, request.device);
  } else if (done) {
    done = print_devices();
  }
  if (done) return aclFinalize() == ACL_SUCCESS ? 0 : 1;
  const char* const message = aclGetRecentErrMsg();
  std::fprintf(stderr, "npu-smi: %s\n",
               message != nullptr ? message : "the host CANN does not start");
  return 1;
}

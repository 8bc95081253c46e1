// Device and host memory, copies and fills.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "host_cann/runtime/memory.h"
#include "runtime_support.h"

// Set before anything reads it. Large enough for huge pages, small enough to exhaust.
static const int environment =
    setenv("ACLNN_TORCH_DEVICE_MEMORY", "64M", 1) + setenv("ACLNN_TORCH_DEVICES", "2", 1);
constexpr size_t kMiB = size_t{1} << 20;

static void* device_block(size_t size) {
  void* block = nullptr;
  CHECK_EQ(aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  return block;
}

static size_t free_memory() {
  size_t free = 0, total = 0;
  CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  CHECK_EQ(total, 64 * kMiB);
  return free;
}

// Runs the body on device 0 and checks that it leaves nothing behind.
static void on_device(const std::function<void()>& body) {
  leaves_nothing([&] {
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    body();
    CHECK_EQ(free_memory(), 64 * kMiB);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}

TEST(malloc_refuses_nothing_and_nowhere) {
  CHECK_EQ(environment, 0);
  on_device([] {
    void* block = nullptr;
    CHECK_EQ(aclrtMalloc(nullptr, 32, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMalloc(&block, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMalloc(&block, 32, static_cast<aclrtMemMallocPolicy>(8)),
             ACL_ERROR_INVALID_PARAM);
    CHECK(block == nullptr);
    CHECK_EQ(aclrtMallocHost(nullptr, 32), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMallocHost(&block, 0), ACL_ERROR_INVALID_PARAM);
    CHECK(block == nullptr);
  });
}

TEST(blocks_are_aligned_padded_and_counted) {
  on_device([] {
    for (size_t size : {size_t{1}, size_t{31}, size_t{32}, size_t{33}, size_t{4096}, 2 * kMiB - 32,
                        2 * kMiB, 5 * kMiB + 1}) {
      const size_t padded = (size + 31) / 32 * 32 + 32;
      for (aclrtMemMallocPolicy policy :
           {ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY,
            static_cast<aclrtMemMallocPolicy>(ACL_MEM_MALLOC_HUGE_FIRST_P2P |
                                              ACL_MEM_TYPE_HIGH_BAND_WIDTH)}) {
        void* block = nullptr;
        CHECK_EQ(aclrtMalloc(&block, size, policy), ACL_SUCCESS);
        CHECK_EQ(reinterpret_cast<uintptr_t>(block) % 512, uintptr_t{0});
        CHECK_EQ(free_memory(), 64 * kMiB - padded);
        CHECK_EQ(aclHostLiveObjects("device_block"), 1);
        std::memset(block, 0xA5, padded);  // the padding belongs to the caller, too
        CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
      }
    }
    void* block = nullptr;
    CHECK_EQ(aclrtMallocAlign32(&block, 33, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK_EQ(free_memory(), 64 * kMiB - 64);
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
  });
}

TEST(huge_blocks_begin_at_a_huge_page) {
  on_device([] {
    for (int i = 0; i < 4; ++i) {
      void* block = device_block(3 * kMiB);
      CHECK_EQ(reinterpret_cast<uintptr_t>(block) % (2 * kMiB), uintptr_t{0});
      CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
    }
  });
}

TEST(free_knows_what_it_gave) {
  on_device([] {
    int local = 0;
    void* host = nullptr;
    void* block = device_block(64);
    CHECK_EQ(aclrtMallocHost(&host, 64), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtFreeHost(nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtFree(&local), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFree(static_cast<char*>(block) + 32), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFree(host), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFreeHost(block), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFreeHost(host), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(contains(messages(), "aclrtFree"));
  });
}

TEST(a_device_runs_out_of_memory_alone) {
  on_device([] {
    void* first = device_block(40 * kMiB);
    void* second = nullptr;
    CHECK_EQ(aclrtMalloc(&second, 40 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST),
             ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(second == nullptr);
    CHECK(contains(messages(), "out of memory"));
    CHECK_EQ(aclrtMalloc(&second, SIZE_MAX, ACL_MEM_MALLOC_HUGE_FIRST),
             ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_EQ(aclrtMalloc(&second, SIZE_MAX - 40, ACL_MEM_MALLOC_HUGE_FIRST),
             ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_EQ(aclrtSetDevice(1), ACL_SUCCESS);
    CHECK_EQ(aclrtMalloc(&second, 40 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(second), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(first), ACL_SUCCESS);  // from a thread that is on another device
    CHECK_EQ(aclrtResetDevice(1), ACL_SUCCESS);
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}

TEST(memory_info_checks_its_arguments) {
  on_device([] {
    size_t value = 0;
    CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &value), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &value, nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtGetMemInfo(static_cast<aclrtMemAttr>(99), &value, &value),
             ACL_ERROR_INVALID_PARAM);
  });
}

TEST(a_copy_goes_round) {
  on_device([] {
    std::vector<int> in(1000), out(1000, 0);
    for (int i = 0; i < 1000; ++i) in[static_cast<size_t>(i)] = i * i;
    const size_t bytes = in.size() * sizeof(int);
    void* a = device_block(bytes);
    void* b = device_block(bytes);
    CHECK_EQ(aclrtMemcpy(a, bytes, in.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    CHECK_EQ(aclrtMemcpy(b, bytes, a, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_SUCCESS);
    CHECK_EQ(aclrtMemcpy(out.data(), bytes, b, bytes, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK(in == out);
    out.assign(1000, 0);
    CHECK_EQ(aclrtMemcpy(out.data(), bytes, in.data(), bytes, ACL_MEMCPY_HOST_TO_HOST),
             ACL_SUCCESS);
    CHECK(in == out);
    CHECK_EQ(aclrtMemcpy(a, bytes, in.data(), bytes, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE),
             ACL_SUCCESS);
    CHECK_EQ(aclrtMemcpy(out.data(), bytes, a, bytes, ACL_MEMCPY_DEFAULT), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(a), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(b), ACL_SUCCESS);
  });
}

TEST(copies_are_checked_in_order) {
  on_device([] {
    char host[64] = {};
    void* block = device_block(64);
    const auto kind = [](int value) { return static_cast<aclrtMemcpyKind>(value); };
    // A copy of 0 bytes succeeds, whatever its other arguments.
    CHECK_EQ(aclrtMemcpy(nullptr, 0, nullptr, 0, kind(99)), ACL_SUCCESS);
    CHECK_EQ(aclrtMemcpyAsync(nullptr, 0, nullptr, 0, kind(99), nullptr), ACL_SUCCESS);
    // Pointers are checked before the kind, and the kind before the size.
    CHECK_EQ(aclrtMemcpy(nullptr, 0, host, 8, kind(99)), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "dst"));
    CHECK_EQ(aclrtMemcpy(block, 0, nullptr, 8, kind(99)), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "src"));
    for (int wrong : {-1, 6, 7, 8}) {
      CHECK_EQ(aclrtMemcpy(block, 0, host, 8, kind(wrong)), ACL_ERROR_INVALID_PARAM);
      CHECK(contains(messages(), "kind"));
    }
    CHECK_EQ(aclrtMemcpyAsync(block, 64, host, 8, kind(8), nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemcpy(block, 7, host, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(contains(messages(), "destMax"));
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
  });
}

TEST(copies_know_the_sides) {
  on_device([] {
    char host[256] = {};
    void* block = device_block(64);  // 96 bytes with its padding
    void* pinned = nullptr;
    CHECK_EQ(aclrtMallocHost(&pinned, 64), ACL_SUCCESS);
    char* const device = static_cast<char*>(block);
    struct Row {
      void* dst;
      const void* src;
      size_t count;
      aclrtMemcpyKind kind;
      aclError status;
      // A synchronous copy determines its direction from the addresses.
      bool finds_direction = false;
    };
    const aclError bad = ACL_ERROR_RT_PARAM_INVALID;
    const Row rows[] = {
        {host, host + 128, 8, ACL_MEMCPY_HOST_TO_DEVICE, bad},
        {device, device + 32, 8, ACL_MEMCPY_HOST_TO_DEVICE, bad, true},
        {device, host, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, bad},
        {host, host + 128, 8, ACL_MEMCPY_DEVICE_TO_HOST, bad},
        {device, device + 32, 8, ACL_MEMCPY_DEVICE_TO_HOST, bad, true},
        {host, device, 8, ACL_MEMCPY_HOST_TO_HOST, bad, true},
        {device, host, 8, ACL_MEMCPY_HOST_TO_HOST, bad, true},
        {pinned, host, 8, ACL_MEMCPY_HOST_TO_DEVICE, bad},
        {device, host, 96, ACL_MEMCPY_HOST_TO_DEVICE, ACL_SUCCESS},
        {device, host, 97, ACL_MEMCPY_HOST_TO_DEVICE, bad},
        {device + 64, host, 33, ACL_MEMCPY_HOST_TO_DEVICE, bad},
        {device + 95, host, 1, ACL_MEMCPY_HOST_TO_DEVICE, ACL_SUCCESS},
        {device, host, 97, ACL_MEMCPY_DEFAULT, bad},
        {pinned, device, 64, ACL_MEMCPY_DEVICE_TO_HOST, ACL_SUCCESS},
        {pinned, device, 65, ACL_MEMCPY_DEVICE_TO_HOST, bad},
        {device, pinned, 64, ACL_MEMCPY_DEFAULT, ACL_SUCCESS},
        {device, device + 16, 32, ACL_MEMCPY_DEVICE_TO_DEVICE, ACL_SUCCESS},
    };
    for (const Row& row : rows) {
      CHECK_EQ(aclrtMemcpy(row.dst, row.count, row.src, row.count, row.kind),
               row.finds_direction ? ACL_SUCCESS : row.status);
      CHECK_EQ(aclrtMemcpyAsync(row.dst, row.count, row.src, row.count, row.kind, nullptr),
               row.status);
      if (row.status != ACL_SUCCESS) CHECK(contains(messages(), "aclrtMemcpy"));
    }
    CHECK_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    CHECK_EQ(aclrtFreeHost(pinned), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
    CHECK_EQ(aclrtMemcpy(block, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE), bad);
  });
}

TEST(copies_between_devices_are_named_so) {
  on_device([] {
    void* here = device_block(64);
    CHECK_EQ(aclrtSetDevice(1), ACL_SUCCESS);
    void* there = device_block(64);
    CHECK_EQ(aclrtMemcpyAsync(there, 64, here, 64, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, nullptr),
             ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemcpyAsync(there, 64, here, 64, ACL_MEMCPY_INTER_DEVICE_TO_DEVICE, nullptr),
             ACL_SUCCESS);
    CHECK_EQ(aclrtFree(there), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(1), ACL_SUCCESS);
    CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(here), ACL_SUCCESS);
  });
}

TEST(fills) {
  on_device([] {
    unsigned char out[40] = {};
    unsigned char local[8] = {};
    void* block = device_block(40);
    CHECK_EQ(aclrtMemset(block, 40, 0x11, 40), ACL_SUCCESS);
    CHECK_EQ(aclrtMemset(block, 40, 0x1AB, 20), ACL_SUCCESS);  // the value is a byte
    CHECK_EQ(aclrtMemcpy(out, 40, block, 40, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK_EQ(int{out[0]}, 0xAB);
    CHECK_EQ(int{out[19]}, 0xAB);
    CHECK_EQ(int{out[20]}, 0x11);
    CHECK_EQ(aclrtMemset(nullptr, 40, 0, 40), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclrtMemset(block, 39, 0, 40), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemset(block, 1000, 0, 1000), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemset(local, 8, 0, 8), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtMemsetAsync(block, 39, 0, 40, nullptr), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
  });
}

// True if a page of the address is in memory (mincore(2)).
static bool is_in_memory(const char* address) {
  unsigned char state = 0;
  const auto page = reinterpret_cast<uintptr_t>(address) / 4096 * 4096;
  CHECK_EQ(mincore(reinterpret_cast<void*>(page), 1, &state), 0);
  return (state & 1) != 0;
}

TEST(clearing_a_large_block_sets_what_was_written_and_leaves_the_rest_untouched) {
  on_device([] {
    const size_t size = 32 * kMiB;
    char* const block = static_cast<char*>(device_block(size));
    for (const size_t written : {size_t{5}, 9 * kMiB - 1, 9 * kMiB, size - 1}) block[written] = 'w';
    CHECK(is_in_memory(block + 9 * kMiB) && !is_in_memory(block + 20 * kMiB));
    CHECK_EQ(aclrtMemset(block + 1, size, 0, size - 2), ACL_SUCCESS);  // not whole pages
    CHECK_EQ(int{block[5]}, 0);
    CHECK_EQ(int{block[9 * kMiB - 1]}, 0);
    CHECK_EQ(int{block[9 * kMiB]}, 0);
    CHECK_EQ(int{block[size - 1]}, int{'w'});
    CHECK(!is_in_memory(block + 20 * kMiB));
    std::memset(block, 'w', size);
    CHECK_EQ(aclrtMemset(block, size, 0, size), ACL_SUCCESS);
    CHECK_EQ(std::count(block, block + size, 0), static_cast<std::ptrdiff_t>(size));
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
  });
}

TEST(asynchronous_copies_run_in_order_and_take_ordinary_sources_at_once) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    void* a = device_block(64);
    void* b = device_block(64);
    std::vector<char> out(64, 'x');
    {
      std::vector<char> in(64, 'i');
      CHECK_EQ(aclrtMemcpyAsync(a, 64, in.data(), 64, ACL_MEMCPY_HOST_TO_DEVICE, stream),
               ACL_SUCCESS);
      in.assign(64, 'z');
    }
    CHECK_EQ(aclrtMemcpyAsync(b, 64, a, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtMemsetAsync(b, 64, 's', 8, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtMemcpyAsync(out.data(), 64, b, 64, ACL_MEMCPY_DEVICE_TO_HOST, stream),
             ACL_SUCCESS);
    CHECK_EQ(out[0], 'x');
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_EQ(out[7], 's');
    CHECK_EQ(out[8], 'i');
    CHECK_EQ(out[63], 'i');
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(a), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(b), ACL_SUCCESS);
  });
}

TEST(memory_freed_before_its_copy_is_an_error_not_a_crash) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    void* block = device_block(3 * kMiB);
    CHECK_EQ(aclrtMemsetAsync(block, 3 * kMiB, 0, 3 * kMiB, stream), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_COPY_DATA);
    CHECK(contains(messages(), "freed"));
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(memory_in_use_is_freed_when_its_use_ends) {
  on_device([] {
    for (const auto free : {aclrtFree, aclrtFreeHost}) {
      void* block = nullptr;
      if (free == aclrtFree) {
        block = device_block(64);
      } else {
        CHECK_EQ(aclrtMallocHost(&block, 64), ACL_SUCCESS);
      }
      Gate held, gate, began;
      std::atomic<bool> done = false;
      aclrtStream stream = nullptr;
      CHECK_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
      const auto use = [&] {
        aclnn_host::MemoryInUse in_use;
        in_use.add(static_cast<char*>(block) + 8, 8);
        held.open();
        gate.wait();
        done = true;
        return ACL_SUCCESS;
      };
      CHECK_EQ(run_on(stream, use), ACL_SUCCESS);
      held.wait();
      std::thread other([&] {
        began.open();
        CHECK_EQ(free(block), ACL_SUCCESS);
        CHECK(done);
      });
      began.wait();
      gate.open();
      other.join();
      CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    }
  });
}

TEST(synchronous_copies_do_not_wait_for_created_streams) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    char value = 1;
    void* block = device_block(32);
    CHECK_EQ(aclrtMemcpy(block, 1, &value, 1, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    gate.open();
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
  });
}

TEST(memory_is_had_and_given_back_by_many_threads) {
  on_device([] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([i] {
        CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
        for (int round = 0; round < 200; ++round) {
          const size_t size = static_cast<size_t>(1 + (i * 37 + round * 101) % 5000);
          std::vector<char> in(size, static_cast<char>(i)), out(size, 0);
          void* block = device_block(size);
          CHECK_EQ(aclrtMemcpy(block, size, in.data(), size, ACL_MEMCPY_HOST_TO_DEVICE),
                   ACL_SUCCESS);
          CHECK_EQ(aclrtMemcpy(out.data(), size, block, size, ACL_MEMCPY_DEVICE_TO_HOST),
                   ACL_SUCCESS);
          CHECK(in == out);
          CHECK_EQ(aclrtFree(block), ACL_SUCCESS);
        }
        CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
      });
    }
    for (auto& thread : threads) thread.join();
  });
}

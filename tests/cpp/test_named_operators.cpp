// Operators called by name: the checks of a call, its copies, and its outputs.
// (tests/test_named_operators.py tests their values.)
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "acl/acl_op_compiler.h"
#include "runtime_support.h"

namespace {

// A tensor of a call: its description and its buffer, in device memory unless it is in host memory.
struct Operand {
  template <class T>
  Operand(aclDataType type, const std::vector<int64_t>& dims, const std::vector<T>& values,
          bool on_host = false)
      : desc(aclCreateTensorDesc(type, static_cast<int>(dims.size()), dims.data(), ACL_FORMAT_ND)),
        size(values.size() * sizeof(T)),
        on_host(on_host) {
    if (on_host) {
      memory = ::operator new(size);
      std::memcpy(memory, values.data(), size);
      CHECK_EQ(aclSetTensorPlaceMent(desc, ACL_MEMTYPE_HOST), ACL_SUCCESS);
    } else {
      CHECK_EQ(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
      CHECK_EQ(aclrtMemcpy(memory, size, values.data(), size, ACL_MEMCPY_HOST_TO_DEVICE),
               ACL_SUCCESS);
    }
    buffer = aclCreateDataBuffer(memory, size);
  }
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;
  ~Operand() {
    aclDestroyTensorDesc(desc);
    aclDestroyDataBuffer(buffer);
    if (on_host) {
      ::operator delete(memory);
    } else {
      aclrtFree(memory);
    }
  }

  template <class T>
  std::vector<T> values() const {
    std::vector<T> copy(size / sizeof(T));
    CHECK_EQ(aclrtMemcpy(copy.data(), size, memory, size, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    return copy;
  }

  aclTensorDesc* desc;
  size_t size;
  bool on_host;
  void* memory = nullptr;
  aclDataBuffer* buffer;
};

using Operands = std::vector<const Operand*>;

aclError call(const char* type, const Operands& inputs, const Operands& outputs,
              const aclopAttr* attr = nullptr, aclrtStream stream = nullptr) {
  std::vector<const aclTensorDesc*> in_descs, out_descs;
  std::vector<const aclDataBuffer*> in;
  std::vector<aclDataBuffer*> out;
  for (const Operand* each : inputs) in_descs.push_back(each->desc), in.push_back(each->buffer);
  for (const Operand* each : outputs) out_descs.push_back(each->desc), out.push_back(each->buffer);
  return aclopCompileAndExecute(type, static_cast<int>(in.size()), in_descs.data(), in.data(),
                                static_cast<int>(out.size()), out_descs.data(), out.data(), attr,
                                ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, stream);
}

// Runs the body on device 0, and checks that it destroys its objects.
void on_device(const std::function<void()>& body) {
  CHECK_EQ(aclInit(nullptr), ACL_SUCCESS);
  CHECK_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  leaves_nothing(body);
  CHECK_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  CHECK_EQ(aclFinalize(), ACL_SUCCESS);
}

// A 2 x 3 matrix in FRACTAL_NZ: one block of 16 rows of 16.
std::vector<float> in_blocks() {
  std::vector<float> blocks(256, 0);
  for (int i = 0; i < 6; ++i) blocks[static_cast<size_t>(i / 3 * 16 + i % 3)] = float(i + 1);
  return blocks;
}

void set_blocks(const Operand& operand) {
  const int64_t dims[] = {1, 1, 16, 16};
  CHECK_EQ(aclSetTensorFormat(operand.desc, ACL_FORMAT_FRACTAL_NZ), ACL_SUCCESS);
  CHECK_EQ(aclSetTensorShape(operand.desc, 4, dims), ACL_SUCCESS);
}

}  // namespace

TEST(identity_casts_formats) {
  on_device([] {
    const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
    const Operand plain(ACL_FLOAT, {2, 3}, numbers);
    const Operand blocked(ACL_FLOAT, {2, 3}, std::vector<float>(256, -1));
    const Operand back(ACL_FLOAT, {2, 3}, std::vector<float>(6, -1));
    set_blocks(blocked);
    CHECK_EQ(call("Identity", {&plain}, {&blocked}), ACL_SUCCESS);
    CHECK(blocked.values<float>() == in_blocks());
    CHECK_EQ(call("Identity", {&blocked}, {&back}), ACL_SUCCESS);
    CHECK(back.values<float>() == numbers);
  });
}

TEST(any_operator_reads_and_writes_private_formats) {
  on_device([] {
    const Operand blocked(ACL_FLOAT, {2, 3}, in_blocks());
    const Operand row(ACL_FLOAT, {3}, std::vector<float>{10, 20, 30});
    const Operand sum(ACL_FLOAT, {2, 3}, std::vector<float>(6, 0));
    set_blocks(blocked);
    CHECK_EQ(call("Add", {&blocked, &row}, {&sum}), ACL_SUCCESS);
    CHECK(sum.values<float>() == (std::vector<float>{11, 22, 33, 14, 25, 36}));
  });
}

TEST(a_call_is_a_task_of_its_stream) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    const Operand x(ACL_FLOAT, {2}, std::vector<float>{-1, 2});
    const Operand y(ACL_FLOAT, {2}, std::vector<float>{7, 7});
    CHECK_EQ(call("Relu", {&x}, {&y}, nullptr, stream), ACL_SUCCESS);
    CHECK(y.values<float>() == (std::vector<float>{7, 7}));
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK(y.values<float>() == (std::vector<float>{0, 2}));
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(values_in_host_memory_are_copied_by_the_call) {
  on_device([] {
    Gate gate;
    const aclrtStream stream = gated_stream(gate);
    const Operand x(ACL_FLOAT, {2}, std::vector<float>{1, 2});
    const Operand y(ACL_FLOAT, {2}, std::vector<float>{0, 0});
    {
      const Operand factor(ACL_FLOAT, {}, std::vector<float>{3}, /*on_host=*/true);
      CHECK_EQ(call("Mul", {&x, &factor}, {&y}, nullptr, stream), ACL_SUCCESS);
      *static_cast<float*>(factor.memory) = 100;
    }
    gate.open();
    CHECK_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK(y.values<float>() == (std::vector<float>{3, 6}));
    CHECK_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(axes_come_from_host_memory_or_a_constant) {
  on_device([] {
    const Operand x(ACL_FLOAT, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
    const Operand y(ACL_FLOAT, {2}, std::vector<float>{0, 0});
    const Operand axes(ACL_INT64, {1}, std::vector<int64_t>{1}, /*on_host=*/true);
    CHECK_EQ(call("ReduceSum", {&x, &axes}, {&y}), ACL_SUCCESS);
    CHECK(y.values<float>() == (std::vector<float>{6, 15}));

    const Operand on_device_axes(ACL_INT32, {1}, std::vector<int32_t>{0});
    CHECK_EQ(call("ReduceSum", {&x, &on_device_axes}, {&y}), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "aclop ReduceSum: axes is in device memory"));
    int32_t axis = 1;
    CHECK_EQ(aclSetTensorConst(on_device_axes.desc, &axis, sizeof(axis)), ACL_SUCCESS);
    CHECK_EQ(call("ReduceSum", {&x, &on_device_axes}, {&y}), ACL_SUCCESS);

    const Operand nowhere(ACL_INT32, {1}, std::vector<int32_t>{1}, /*on_host=*/true);
    CHECK_EQ(aclUpdateDataBuffer(nowhere.buffer, nullptr, sizeof(axis)), ACL_SUCCESS);
    CHECK_EQ(call("ReduceSum", {&x, &nowhere}, {&y}), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "axes has 1 values at a null address"));
  });
}

TEST(attributes_are_found_by_name) {
  on_device([] {
    const Operand x(ACL_FLOAT, {3}, std::vector<float>{-2, 0, 2});
    const Operand y(ACL_FLOAT, {3}, std::vector<float>{0, 0, 0});
    aclopAttr* const attr = aclopCreateAttr();
    CHECK_EQ(aclopSetAttrFloat(attr, "negative_slope", 0.5F), ACL_SUCCESS);
    CHECK_EQ(aclopSetAttrInt(attr, "_of_the_compiler", 1), ACL_SUCCESS);
    CHECK_EQ(call("LeakyRelu", {&x}, {&y}, attr), ACL_SUCCESS);
    CHECK(y.values<float>() == (std::vector<float>{-1, 0, 2}));
    CHECK_EQ(aclopSetAttrString(attr, "negative_slope", "steep"), ACL_SUCCESS);
    CHECK_EQ(call("LeakyRelu", {&x}, {&y}, attr), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "attribute negative_slope is a text or a list"));
    CHECK_EQ(aclopSetAttrFloat(attr, "negative_slope", 0.5F), ACL_SUCCESS);
    CHECK_EQ(aclopSetAttrInt(attr, "unknown", 1), ACL_SUCCESS);
    CHECK_EQ(call("LeakyRelu", {&x}, {&y}, attr), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "does not know attribute unknown of this operator"));
    aclopDestroyAttr(attr);
  });
}

TEST(views_are_copied_by_their_strides) {
  on_device([] {
    const Operand x(ACL_INT32, {6}, std::vector<int32_t>{0, 1, 2, 3, 4, 5});
    const Operand y(ACL_INT32, {2, 2}, std::vector<int32_t>(4, -1));
    const Operand size(ACL_INT64, {2}, std::vector<int64_t>{2, 2}, true);
    const Operand stride(ACL_INT64, {2}, std::vector<int64_t>{1, 2}, true);
    const Operand offset(ACL_INT64, {}, std::vector<int64_t>{1}, true);
    CHECK_EQ(call("AsStrided", {&x, &size, &stride, &offset}, {&y}), ACL_SUCCESS);
    CHECK(y.values<int32_t>() == (std::vector<int32_t>{1, 3, 2, 4}));

    const Operand whole(ACL_INT64, {2}, std::vector<int64_t>{2, 1}, true);
    const Operand none(ACL_INT64, {}, std::vector<int64_t>{0}, true);
    CHECK_EQ(call("ViewCopy", {&x, &size, &stride, &offset, &y, &size, &whole, &none}, {&x}),
             ACL_SUCCESS);
    CHECK(x.values<int32_t>() == (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));

    const Operand far(ACL_INT64, {2}, std::vector<int64_t>{1, 1 << 20}, true);
    CHECK_EQ(call("AsStrided", {&x, &size, &far, &offset}, {&y}), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "aclop AsStrided"));
  });
}

TEST(a_waiting_call_writes_the_shape_that_depended_on_the_data) {
  on_device([] {
    const Operand x(ACL_FLOAT, {4}, std::vector<float>{0, 5, 0, 6});
    const Operand y(ACL_INT64, {4, 1}, std::vector<int64_t>(4, -1));
    aclTensorDesc* in_desc[] = {x.desc};
    aclDataBuffer* in[] = {x.buffer};
    aclTensorDesc* out_desc[] = {y.desc};
    aclDataBuffer* out[] = {y.buffer};
    CHECK_EQ(aclopCompileAndExecuteV2("NonZero", 1, in_desc, in, 1, out_desc, out, nullptr,
                                      ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, nullptr),
             ACL_SUCCESS);
    int64_t rows = 0;
    CHECK_EQ(aclGetTensorDescDimV2(y.desc, 0, &rows), ACL_SUCCESS);
    CHECK_EQ(rows, 2);
    CHECK(y.values<int64_t>() == (std::vector<int64_t>{1, 3, -1, -1}));
  });
}

TEST(an_absent_input_is_one_of_no_type) {
  on_device([] {
    const Operand a(ACL_FLOAT, {1, 2}, std::vector<float>{1, 2});
    const Operand b(ACL_FLOAT, {2, 1}, std::vector<float>{3, 4});
    const Operand y(ACL_FLOAT, {1, 1}, std::vector<float>{0});
    const Operand none(ACL_DT_UNDEFINED, {}, std::vector<float>{0});
    CHECK_EQ(call("MatMul", {&a, &b, &none}, {&y}), ACL_SUCCESS);
    CHECK(y.values<float>() == (std::vector<float>{11}));
    CHECK_EQ(call("MatMul", {&a, &none}, {&y}), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "x2 is null"));
  });
}

TEST(mistakes_are_refused) {
  on_device([] {
    const Operand x(ACL_FLOAT, {2}, std::vector<float>{1, 2});
    const Operand y(ACL_FLOAT, {2}, std::vector<float>{0, 0});
    const Operand long_one(ACL_FLOAT, {3}, std::vector<float>{0, 0, 0});
    CHECK_EQ(call("Relu", {&x, &x}, {&y}), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "aclop Relu: the call has 2 inputs, expected at most 1"));
    CHECK_EQ(call("Relu", {&x}, {&y, &y}), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "2 outputs"));
    CHECK_EQ(call("Relu", {&x}, {&long_one}), ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "expected [2], the shape of the result"));
    CHECK_EQ(call("Relu", {}, {&y}), ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(call("Relu", {&x}, {&y}, nullptr, const_cast<Operand*>(&x)), ACL_ERROR_INTERNAL_ERROR);
    // The buffer is too small for the description.
    CHECK_EQ(aclUpdateDataBuffer(x.buffer, x.memory, 4), ACL_SUCCESS);
    CHECK_EQ(call("Relu", {&x}, {&long_one}), ACL_ERROR_INVALID_PARAM);
    CHECK(y.values<float>() == (std::vector<float>{0, 0}));

    const aclTensorDesc* const descs[] = {nullptr};
    const aclDataBuffer* const buffers[] = {x.buffer};
    CHECK_EQ(aclopCompileAndExecute("Relu", 1, descs, buffers, 0, nullptr, nullptr, nullptr,
                                    ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, nullptr),
             ACL_ERROR_INVALID_PARAM);
    CHECK(contains(messages(), "inputDesc[0]"));
    CHECK_EQ(aclopCompileAndExecute(nullptr, 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr,
                                    ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, nullptr),
             ACL_ERROR_INVALID_PARAM);
    CHECK_EQ(aclopCompileAndExecute("Relu", -1, nullptr, nullptr, 0, nullptr, nullptr, nullptr,
                                    ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, nullptr),
             ACL_ERROR_INVALID_PARAM);
  });
}

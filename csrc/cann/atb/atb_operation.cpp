// How every operation of ATB is checked, prepared and run. Its calls are the host CANN's: executors
// that a stream runs.
#include "cann/atb/atb_operation.h"

#include <array>
#include <cstring>
#include <new>

#include "acl/acl_rt.h"
#include "cann/rows/engine/reasons.h"
#include "host_cann/arguments/aten.h"
#include "host_cann/arguments/packed_elements.h"
#include "host_cann/descriptors/containers.h"
#include "host_cann/descriptors/executor.h"
#include "host_cann/descriptors/executor_table.h"
#include "host_cann/descriptors/tensor.h"
#include "host_cann/runtime/error_messages.h"

namespace aclnn_host {

void refuse_as(atb::Status status, std::initializer_list<Part> parts,
               std::source_location location) {
  const std::string text = text_of(parts);
  note_refusal(location, text);
  throw AtbRefusal(status, text);
}

void refuse_parameters(const char* operation, std::initializer_list<Part> parts,
                       std::source_location location) {
  const std::string text = text_of(parts);
  note_refusal(location, text);
  throw std::runtime_error(std::string(operation) + ": " + text +
                           ", which the host CANN does not compute; call an operator of CANN "
                           "instead, or run this on an NPU with NNAL");
}

AtbDesc described(aclDataType dtype, c10::IntArrayRef shape) {
  AtbDesc desc;
  desc.dtype = dtype;
  desc.format = ACL_FORMAT_ND;
  desc.shape.dimNum = shape.size();
  std::ranges::copy(shape, desc.shape.dims);
  return desc;
}

size_t AtbInputs::index(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &AtbTensor::name);
  return static_cast<size_t>(found - tensors.begin());
}

const std::vector<int64_t>* AtbInputs::list(std::string_view name) const {
  const auto& list = values[index(name)];
  return list ? &*list : nullptr;
}

void expect_rank(const AtbInputs& in, const char* name, std::initializer_list<uint64_t> ranks) {
  std::vector<std::string> texts;
  for (const uint64_t rank : ranks) texts.push_back(std::to_string(rank));
  const uint64_t rank = in[name].shape.dimNum;
  EXPECT_OR(ERROR_INVALID_TENSOR_DIM_NUM, std::ranges::count(ranks, rank) > 0, name, " has ", rank,
            " dimensions, expected ", alternatives(texts));
}

void expect_size(const AtbInputs& in, const char* name, size_t dim, int64_t expected,
                 const char* reason) {
  const c10::IntArrayRef shape = in.shape(name);
  EXPECT_OR(ERROR_INVALID_TENSOR_DIM, shape[dim] == expected, name, " has shape ", shape,
            ", expected ", expected, " in dimension ", dim, ", ", reason);
}

void expect_dtypes(const AtbInputs& in, std::initializer_list<AtbDtypes> rows) {
  AtbDtypes given;  // ACL_DT_UNDEFINED for an absent tensor, which has any
  std::string text;
  for (size_t i = 0; i < in.descs.size(); ++i) {
    if (in.tensors[i].place == AtbTensor::kHost) continue;
    given.push_back(in.is_on_device(i) ? in.descs[i].dtype : ACL_DT_UNDEFINED);
    if (!in.is_on_device(i)) continue;
    text += std::string(text.empty() ? "" : ", ") + in.tensors[i].name + " " +
            dtype_name(in.descs[i].dtype);
  }
  const auto fits = [&](const AtbDtypes& row) {
    return std::ranges::equal(given, row, [](aclDataType of_tensor, aclDataType of_row) {
      return of_tensor == of_row || of_tensor == ACL_DT_UNDEFINED;
    });
  };
  if (std::ranges::any_of(rows, fits)) return;
  std::string expected;
  for (const AtbDtypes& row : rows) {
    expected += expected.empty() ? "" : "; ";
    const char* separator = "";
    for (const aclDataType dtype : row) {
      expected += std::string(separator) + dtype_name(dtype);
      separator = ", ";
    }
  }
  refuse_as(atb::ERROR_INVALID_TENSOR_INI_MATCH,
            {"the dtypes are ", text, ", expected one of: ", expected, "; cast the tensors"});
}

const at::Tensor& AtbTensors::replacing(std::string_view name, size_t output) const {
  const at::Tensor& before = (*this)[name];
  const at::Tensor& out = outputs[output];
  if (out.data_ptr() != before.data_ptr()) out.copy_(before);
  return out;
}

namespace {

// Runs the body of a function of ATB. A refusal becomes its status, with a text.
template <class Body>
atb::Status guarded_call(const char* name, const Body& body) noexcept {
  try {
    return body();
  } catch (const AtbRefusal& refusal) {
    return fail(refusal.status, "%s: %s", name, refusal.what());
  } catch (...) {
    return fail_with_exception(
        {atb::ERROR_OUT_OF_HOST_MEMORY, atb::ERROR_INTERNAL_ERROR, atb::ERROR_INTERNAL_ERROR},
        name);
  }
}

// Checks what every tensor must be: ATB has no empty tensors and no dimension of 0.
void check_desc(const char* name, const AtbDesc& desc, AtbTensor::Place place) {
  if (AtbInputs::is_absent(desc) && place == AtbTensor::kMayBeAbsent) return;
  const uint64_t rank = desc.shape.dimNum;
  EXPECT_OR(ERROR_INVALID_TENSOR_DIM_NUM, rank >= 1 && rank <= atb::MAX_DIM, name, " has ", rank,
            " dimensions, expected 1 to ", atb::MAX_DIM);
  const c10::IntArrayRef shape = shape_of(desc);
  EXPECT_OR(ERROR_INVALID_TENSOR_DIM,
            std::ranges::all_of(shape, [](int64_t size) { return size > 0; }), name, " has shape ",
            shape, ", expected sizes of 1 or more");
  EXPECT_OR(ERROR_INVALID_TENSOR_DIM, atb::Utils::GetTensorSize(desc) != 0, name, " has shape ",
            shape, " and dtype ", dtype_name(desc.dtype), ", whose number of bytes is not known");
}

// The integers of an input in host memory.
std::vector<int64_t> integers_of(const char* name, const atb::Tensor& tensor) {
  EXPECT_OR(ERROR_INVALID_PARAM, tensor.hostData != nullptr, name,
            " has no hostData, expected its values in host memory; pass a tensor of the CPU");
  const aclDataType dtype = tensor.desc.dtype;
  EXPECT_OR(ERROR_INVALID_TENSOR_INI_MATCH, dtype == ACL_INT32 || dtype == ACL_UINT32, name,
            " has dtype ", dtype_name(dtype), ", expected INT32 or UINT32");
  EXPECT_OR(ERROR_INVALID_PARAM, tensor.dataSize == atb::Utils::GetTensorSize(tensor), name,
            " has a dataSize of ", tensor.dataSize, ", expected ",
            atb::Utils::GetTensorSize(tensor));
  std::vector<int64_t> values;
  for (uint64_t i = 0; i < atb::Utils::GetTensorNumel(tensor); ++i) {
    int32_t value;
    std::memcpy(&value, static_cast<const char*>(tensor.hostData) + i * sizeof value, sizeof value);
    values.push_back(dtype == ACL_UINT32 ? static_cast<int64_t>(static_cast<uint32_t>(value))
                                         : value);
  }
  return values;
}

// Checks descriptions of inputs as such. Formats that are not private count as ND.
AtbInputs inputs_of(const AtbKernel& kernel, std::vector<AtbDesc> descs) {
  EXPECT_OR(ERROR_INVALID_IN_TENSOR_NUM, descs.size() == kernel.inputs.size(), "the call has ",
            descs.size(), " inputs, expected ", kernel.inputs.size());
  for (size_t i = 0; i < descs.size(); ++i) {
    check_desc(kernel.inputs[i].name, descs[i], kernel.inputs[i].place);
  }
  AtbInputs in{kernel.inputs, std::move(descs), {}};
  in.values.resize(in.descs.size());
  return in;
}

// A checked call, the task of a stream. `tensors` are those in device memory.
struct AtbPlan {
  static constexpr size_t kMaxTensors = 16;

  AtbPlan(std::shared_ptr<const AtbKernel> kernel, AtbInputs in)
      : kernel(std::move(kernel)), in(std::move(in)) {}

  void add_input(const TensorView& view) {
    tensors[tensor_count++] = view;
    input_count = tensor_count;
  }
  void add_output(const TensorView& view) { tensors[tensor_count++] = view; }
  bool is_input(size_t i) const { return i < input_count; }
  bool is_output(size_t i) const { return !is_input(i); }

  aclnnStatus compute(void* /*workspace*/) {
    try {
      const AtenScope scope;
      std::vector<at::Tensor> inputs, outputs;
      size_t taken = 0;
      for (size_t i = 0; i < in.descs.size(); ++i) {
        inputs.push_back(in.is_on_device(i) ? aten_tensor(tensors[taken++]) : at::Tensor());
      }
      while (taken < tensor_count) outputs.push_back(aten_tensor(tensors[taken++]));
      kernel->compute({in, inputs, outputs});
      return OK;
    } catch (const std::exception& error) {
      return fail(ACL_ERROR_RT_AICORE_EXCEPTION, "%s: the computation failed: %s", kernel->name,
                  reason_of(error, "the values do not fit").c_str());
    }
  }

  std::shared_ptr<const AtbKernel> kernel;
  AtbInputs in;
  std::array<TensorView, kMaxTensors> tensors;
  size_t input_count = 0;
  size_t tensor_count = 0;
};

// The memory of a tensor, contiguous. A tensor in a private format has the shape of its blocks.
TensorView view_of(const char* name, const atb::Tensor& tensor) {
  const uint64_t size = atb::Utils::GetTensorSize(tensor);
  EXPECT_OR(ERROR_INVALID_PARAM, tensor.dataSize == size, name, " has a dataSize of ",
            tensor.dataSize, ", expected ", size);
  EXPECT_OR(ERROR_INVALID_PARAM, tensor.deviceData != nullptr, name,
            " has no deviceData, expected an address of the device");
  const int64_t* const shape = tensor.desc.shape.dims;
  const uint64_t rank = tensor.desc.shape.dimNum;
  Dims strides;
  set_contiguous_strides({shape, rank}, strides);
  const std::unique_ptr<const aclTensor, DestroyElement> made(
      aclCreateTensor(shape, rank, tensor.desc.dtype, strides.begin(), 0, ACL_FORMAT_ND, shape,
                      rank, tensor.deviceData));
  if (made == nullptr) throw std::bad_alloc();
  return made->view;
}

class HostOperation final : public atb::Operation {
 public:
  explicit HostOperation(std::shared_ptr<const AtbKernel> kernel) : kernel_(std::move(kernel)) {}

  // After a refused Setup, with its reason: torch_npu's message has the name and no status.
  std::string GetName() const override { return kernel_->name + reason_; }
  uint32_t GetInputNum() const override { return static_cast<uint32_t>(kernel_->inputs.size()); }
  uint32_t GetOutputNum() const override { return static_cast<uint32_t>(kernel_->outputs.size()); }

  atb::Status InferShape(const atb::SVector<AtbDesc>& in_descs,
                         atb::SVector<AtbDesc>& out_descs) const override {
    return guarded_call(kernel_->name, [&] {
      const std::vector<AtbDesc> found =
          kernel_->infer(inputs_of(*kernel_, {in_descs.begin(), in_descs.end()}));
      out_descs.resize(found.size());
      std::ranges::copy(found, out_descs.begin());
      return atb::NO_ERROR;
    });
  }

  atb::Status Setup(const atb::VariantPack& pack, uint64_t& workspace_size,
                    atb::Context* context) override {
    reason_.clear();
    return guarded_call(kernel_->name, [&] {
      try {
        EXPECT_OR(ERROR_INVALID_PARAM, context != nullptr, "context is null");
        checked(pack);
      } catch (const AtbRefusal& refusal) {
        reason_ = std::string(": ") + refusal.what() + ";";
        throw;
      }
      workspace_size = 0;
      prepared_ = pack;
      return atb::NO_ERROR;
    });
  }

  // A pack without tensors stands for that of Setup.
  atb::Status Execute(const atb::VariantPack& given, uint8_t* workspace, uint64_t workspace_size,
                      atb::Context* context) override {
    return guarded_call(kernel_->name, [&] {
      EXPECT_OR(ERROR_INVALID_PARAM, context != nullptr, "context is null");
      EXPECT_OR(ERROR_OPERATION_NULL_RUNNER, prepared_.has_value(),
                "Execute comes before Setup; call Setup first");
      const bool is_empty = given.inTensors.empty() && given.outTensors.empty();
      const atb::VariantPack& pack = is_empty ? *prepared_ : given;
      AtbPlan plan(kernel_, checked(pack));
      for (size_t i = 0; i < kernel_->inputs.size(); ++i) {
        if (!plan.in.is_on_device(i)) continue;
        plan.add_input(view_of(kernel_->inputs[i].name, pack.inTensors.at(i)));
      }
      for (size_t i = 0; i < kernel_->outputs.size(); ++i) {
        plan.add_output(view_of(kernel_->outputs[i], pack.outTensors.at(i)));
      }
      const char* const name = kernel_->name;
      aclOpExecutor* const executor =
          hand_out(std::make_unique<ExecutorOf<AtbPlan>>(name, 0, std::move(plan)));
      switch (launch(name, workspace, workspace_size, executor, context->GetExecuteStream())) {
        case OK: return atb::NO_ERROR;
        case ACLNN_ERR_PARAM_NULLPTR:
        case ACLNN_ERR_PARAM_INVALID: return atb::ERROR_INVALID_TENSOR_ADDR;
        default: return atb::ERROR_RT_FAIL;
      }
    });
  }

 private:
  // Checks the tensors of a call.
  AtbInputs checked(const atb::VariantPack& pack) const {
    std::vector<AtbDesc> descs;
    for (const atb::Tensor& tensor : pack.inTensors) descs.push_back(tensor.desc);
    AtbInputs in = inputs_of(*kernel_, std::move(descs));
    for (size_t i = 0; i < in.descs.size(); ++i) {
      const AtbTensor& input = kernel_->inputs[i];
      if (input.place == AtbTensor::kHost) {
        in.values[i] = integers_of(input.name, pack.inTensors.at(i));
      }
    }
    const std::vector<AtbDesc> expected = kernel_->infer(in);
    EXPECT_OR(ERROR_INVALID_IN_TENSOR_NUM, pack.outTensors.size() == expected.size(),
              "the call has ", pack.outTensors.size(), " outputs, expected ", expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const AtbDesc& out = pack.outTensors.at(i).desc;
      const char* const name = kernel_->outputs[i];
      check_desc(name, out, AtbTensor::kDevice);
      EXPECT_OR(ERROR_INVALID_TENSOR_INI_MATCH, out.dtype == expected[i].dtype, name, " has dtype ",
                dtype_name(out.dtype), ", expected ", dtype_name(expected[i].dtype));
      EXPECT_OR(ERROR_INVALID_TENSOR_DIM, shape_of(out) == shape_of(expected[i]), name,
                " has shape ", shape_of(out), ", expected ", shape_of(expected[i]));
    }
    return in;
  }

  std::shared_ptr<const AtbKernel> kernel_;
  std::string reason_;
  std::optional<atb::VariantPack> prepared_;
};

}  // namespace

atb::Status create_operation(const char* name, MakeKernel make, const void* parameters,
                             std::span<const uint8_t> reserved, atb::Operation** operation) {
  std::shared_ptr<const AtbKernel> kernel;
  try {
    EXPECT_OR(ERROR_INVALID_PARAM, operation != nullptr, "operation is null");
    EXPECT_OR(ERROR_INVALID_PARAM,
              std::ranges::all_of(reserved, [](uint8_t byte) { return byte == 0; }),
              "reserved bytes of the parameters are not 0; compile the program with the headers of "
              "this library");
    *operation = new HostOperation(make(parameters));
    return atb::NO_ERROR;
  } catch (const AtbRefusal& refusal) {
    return fail(refusal.status, "%s: %s", name, refusal.what());
  }
}

namespace {

atb::Tensor atb_tensor(const AtbArgument& argument) {
  atb::Tensor converted;
  if (argument.tensor == nullptr) return converted;
  EXPECT_OR(ERROR_INVALID_PARAM, argument.tensor->is_alive(), argument.name,
            " is not a tensor, or was destroyed");
  const TensorView& view = argument.tensor->view;
  EXPECT_OR(ERROR_INVALID_TENSOR_DIM_NUM, view.shape.size() <= atb::MAX_DIM, argument.name, " has ",
            view.shape.size(), " dimensions, expected at most ", atb::MAX_DIM);
  EXPECT_OR(ERROR_INVALID_TENSOR_DIM, is_contiguous(view), argument.name,
            " is not contiguous; ATB reads and writes contiguous tensors");
  converted.desc = described(view.dtype, {view.shape.begin(), view.shape.size()});
  converted.deviceData = view.data();
  converted.dataSize = atb::Utils::GetTensorSize(converted);
  return converted;
}

}  // namespace

atb::Status prepare(const char* function, const MakeOperation& make,
                    std::span<const AtbArgument> inputs, std::span<const AtbArgument> outputs,
                    uint64_t* workspace_size, atb::Operation** operation, atb::Context* context) {
  return guarded_call(function, [&] {
    EXPECT_OR(ERROR_INVALID_OPERATION_ADDR, operation != nullptr, "op is null");
    EXPECT_OR(ERROR_INVALID_PARAM, workspace_size != nullptr, "workspaceSize is null");
    atb::VariantPack pack;
    for (const AtbArgument& input : inputs) pack.inTensors.push_back(atb_tensor(input));
    for (const AtbArgument& output : outputs) pack.outTensors.push_back(atb_tensor(output));
    if (*operation == nullptr) {
      if (const atb::Status status = make(operation)) return status;
    }
    return (*operation)->Setup(pack, *workspace_size, context);
  });
}

atb::Status execute(const char* function, void* workspace, uint64_t workspace_size,
                    atb::Operation* operation, atb::Context* context) {
  return guarded_call(function, [&] {
    EXPECT_OR(ERROR_INVALID_OPERATION_ADDR, operation != nullptr, "op is null");
    return operation->Execute({}, static_cast<uint8_t*>(workspace), workspace_size, context);
  });
}

}  // namespace aclnn_host

using namespace aclnn_host;

atb::Status atb::DestroyOperation(Operation* operation) {
  delete operation;
  return NO_ERROR;
}

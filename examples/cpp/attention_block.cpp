// A small transformer: three blocks of RMS norm, rotary embedding, causal attention and SwiGLU,
// with residuals, computed by 42 calls on one stream. Meanwhile a second stream copies the weights
// of the next block; events signal that they have arrived, and that their memory is free again. The
// result is compared with plain loops in double. For the host CANN and for an Ascend machine.
#include <algorithm>
#include <random>

#include "aclnn_raii.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_flash_attention_score.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_rotary_position_embedding.h"
#include "aclnnop/aclnn_swi_glu.h"

namespace {

constexpr int64_t kTokens = 24, kHeads = 4, kHeadSize = 16, kWidth = kHeads * kHeadSize,
                  kInner = 96;
constexpr int kBlocks = 3;
constexpr double kEpsilon = 1e-6;

using Numbers = std::vector<float>;

// The weights of a block, contiguous in memory.
enum Weight { kNorm1, kQuery, kKey, kValue, kOutput, kNorm2, kGateUp, kDown, kWeights };
const Shape kShapes[kWeights] = {
    {kWidth},         {kWidth, kWidth}, {kWidth, kWidth},     {kWidth, kWidth},
    {kWidth, kWidth}, {kWidth},         {kWidth, 2 * kInner}, {kInner, kWidth}};

// Device memory for the weights of one block, and the events that guard it.
struct Place {
  Place() {
    for (const Shape& shape : kShapes) {
      memory.emplace_back(elements(shape) * sizeof(float));
    }
    check(aclrtCreateEvent(&filled), "aclrtCreateEvent");
    check(aclrtCreateEvent(&used), "aclrtCreateEvent");
  }
  ~Place() {
    aclrtDestroyEvent(filled);
    aclrtDestroyEvent(used);
  }
  std::vector<Memory> memory;
  aclrtEvent filled = nullptr;  // the weights have arrived
  aclrtEvent used = nullptr;    // the block has been computed
};

// Intermediate tensors of a block.
struct Buffers {
  static size_t bytes(int64_t width) {
    return static_cast<size_t>(kTokens * width) * sizeof(float);
  }
  static constexpr size_t kStatistics = kHeads * kTokens * 8 * sizeof(float);

  explicit Buffers(const Numbers& input) : x(input) {}

  Memory x, normed{bytes(kWidth)}, rstd{bytes(1)}, query{bytes(kWidth)}, key{bytes(kWidth)},
      value{bytes(kWidth)}, turned_query{bytes(kWidth)}, turned_key{bytes(kWidth)},
      attended{bytes(kWidth)}, largest{kStatistics}, sums{kStatistics}, added{bytes(kWidth)},
      sum{bytes(kWidth)}, gate_up{bytes(2 * kInner)}, inner{bytes(kInner)};
};

void multiply(Stream& stream, const Memory& a, const Memory& weight, const Shape& shape,
              const Memory& out) {
  const View left = view(a, {kTokens, shape[0]}), right = view(weight, shape),
             result = view(out, {kTokens, shape[1]});
  stream.call(ACLNN(aclnnMatmul), left, right, result, int8_t{0});
}

void add(Stream& stream, const Memory& a, const Memory& b, const Memory& out) {
  const Shape shape = {kTokens, kWidth};
  const View left = view(a, shape), right = view(b, shape), result = view(out, shape);
  stream.call(ACLNN(aclnnAdd), left, right, scalar(1), result);
}

void normalize(Stream& stream, const Memory& x, const Memory& weight, const Buffers& buffers) {
  const View in = view(x, {kTokens, kWidth}), gamma = view(weight, {kWidth}),
             out = view(buffers.normed, {kTokens, kWidth}), rstd = view(buffers.rstd, {kTokens, 1});
  stream.call(ACLNN(aclnnRmsNorm), in, gamma, kEpsilon, out, rstd);
}

// The angles of the positions, and the attention mask.
struct Positions {
  Memory cos, sin, mask;
};

void turn(Stream& stream, const Memory& x, const Positions& positions, const Memory& out) {
  const Shape heads = {1, kTokens, kHeads, kHeadSize}, angles = {1, kTokens, 1, kHeadSize};
  const View in = view(x, heads), cos = view(positions.cos, angles),
             sin = view(positions.sin, angles), result = view(out, heads);
  stream.call(ACLNN(aclnnRotaryPositionEmbedding), in, cos, sin, int64_t{0}, result);
}

void attend(Stream& stream, const Positions& positions, const Buffers& buffers) {
  const Shape heads = {1, kTokens, kHeads, kHeadSize}, statistics = {1, kHeads, kTokens, 8};
  const View query = view(buffers.turned_query, heads), key = view(buffers.turned_key, heads),
             value = view(buffers.value, heads),
             mask = view(positions.mask, {kTokens, kTokens}, ACL_BOOL),
             largest = view(buffers.largest, statistics), sums = view(buffers.sums, statistics),
             out = view(buffers.attended, heads);
  char layout[] = "BSND";
  const double scale = 1 / std::sqrt(static_cast<double>(kHeadSize));
  stream.call(ACLNN(aclnnFlashAttentionScore), query, key, value, nullptr, nullptr, nullptr, mask,
              nullptr, scale, 1.0, kTokens, kTokens, kHeads, layout, int64_t{0}, int64_t{0},
              largest, sums, nullptr, out);
}

// Computes a block: buffers.x becomes the next block's input.
void block(Stream& stream, const std::vector<Memory>& weights, const Positions& positions,
           const Buffers& b) {
  normalize(stream, b.x, weights[kNorm1], b);
  multiply(stream, b.normed, weights[kQuery], kShapes[kQuery], b.query);
  multiply(stream, b.normed, weights[kKey], kShapes[kKey], b.key);
  multiply(stream, b.normed, weights[kValue], kShapes[kValue], b.value);
  turn(stream, b.query, positions, b.turned_query);
  turn(stream, b.key, positions, b.turned_key);
  attend(stream, positions, b);
  multiply(stream, b.attended, weights[kOutput], kShapes[kOutput], b.added);
  add(stream, b.x, b.added, b.sum);
  normalize(stream, b.sum, weights[kNorm2], b);
  multiply(stream, b.normed, weights[kGateUp], kShapes[kGateUp], b.gate_up);
  const View gate_up = view(b.gate_up, {kTokens, 2 * kInner}),
             inner = view(b.inner, {kTokens, kInner});
  stream.call(ACLNN(aclnnSwiGlu), gate_up, int64_t{-1}, inner);
  multiply(stream, b.inner, weights[kDown], kShapes[kDown], b.added);
  add(stream, b.sum, b.added, b.x);
}

// ---- The same in plain loops

using Doubles = std::vector<double>;

Doubles product(const Doubles& a, const Numbers& weight, const Shape& shape) {
  const auto depth = static_cast<size_t>(shape[0]), width = static_cast<size_t>(shape[1]);
  Doubles out(static_cast<size_t>(kTokens) * width);
  for (size_t i = 0; i < static_cast<size_t>(kTokens); ++i) {
    for (size_t k = 0; k < depth; ++k) {
      for (size_t j = 0; j < width; ++j)
        out[i * width + j] += a[i * depth + k] * weight[k * width + j];
    }
  }
  return out;
}

Doubles normalized(const Doubles& x, const Numbers& weight) {
  Doubles out(x.size());
  for (size_t i = 0; i < x.size(); i += kWidth) {
    double squares = 0;
    for (size_t j = 0; j < kWidth; ++j) squares += x[i + j] * x[i + j];
    const double rstd = 1 / std::sqrt(squares / kWidth + kEpsilon);
    for (size_t j = 0; j < kWidth; ++j) out[i + j] = x[i + j] * rstd * weight[j];
  }
  return out;
}

// The first half of each head combined with the second, rotated by the angle of the position.
Doubles turned(const Doubles& x, const Numbers& cos, const Numbers& sin) {
  constexpr size_t kHalf = kHeadSize / 2;
  Doubles out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t token = i / kWidth, j = i % kHeadSize, angle = token * kHeadSize + j;
    const double other = j < kHalf ? -x[i + kHalf] : x[i - kHalf];
    out[i] = x[i] * cos[angle] + other * sin[angle];
  }
  return out;
}

Doubles attention(const Doubles& query, const Doubles& key, const Doubles& value) {
  Doubles out(query.size());
  for (size_t head = 0; head < kHeads; ++head) {
    for (size_t i = 0; i < kTokens; ++i) {
      const size_t row = i * kWidth + head * kHeadSize;
      Doubles scores(i + 1);
      for (size_t k = 0; k <= i; ++k) {
        for (size_t j = 0; j < kHeadSize; ++j)
          scores[k] += query[row + j] * key[k * kWidth + head * kHeadSize + j];
        scores[k] /= std::sqrt(static_cast<double>(kHeadSize));
      }
      const double largest = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - largest);
      for (size_t k = 0; k <= i; ++k) {
        for (size_t j = 0; j < kHeadSize; ++j) {
          out[row + j] += scores[k] / sum * value[k * kWidth + head * kHeadSize + j];
        }
      }
    }
  }
  return out;
}

void block_in_loops(const Numbers* weights, const Numbers& cos, const Numbers& sin, Doubles& x) {
  Doubles normed = normalized(x, weights[kNorm1]);
  const Doubles query = turned(product(normed, weights[kQuery], kShapes[kQuery]), cos, sin);
  const Doubles key = turned(product(normed, weights[kKey], kShapes[kKey]), cos, sin);
  const Doubles value = product(normed, weights[kValue], kShapes[kValue]);
  const Doubles attended =
      product(attention(query, key, value), weights[kOutput], kShapes[kOutput]);
  for (size_t i = 0; i < x.size(); ++i) x[i] += attended[i];
  normed = normalized(x, weights[kNorm2]);
  const Doubles gate_up = product(normed, weights[kGateUp], kShapes[kGateUp]);
  Doubles inner(static_cast<size_t>(kTokens * kInner));
  for (size_t i = 0; i < inner.size(); ++i) {
    const double gate = gate_up[i / kInner * 2 * kInner + i % kInner];
    inner[i] =
        gate / (1 + std::exp(-gate)) * gate_up[i / kInner * 2 * kInner + kInner + i % kInner];
  }
  const Doubles down = product(inner, weights[kDown], kShapes[kDown]);
  for (size_t i = 0; i < x.size(); ++i) x[i] += down[i];
}

// ---- Numbers

Numbers random_numbers(size_t count, double scale, double mean = 0) {
  static std::mt19937 generator(7);
  Numbers values(count);
  for (float& value : values) {
    value = static_cast<float>(mean + scale * (2.0 * generator() / std::mt19937::max() - 1));
  }
  return values;
}

std::vector<Numbers> random_weights() {
  std::vector<Numbers> weights;
  for (const Shape& shape : kShapes) {
    const bool is_norm = shape.size() == 1;
    weights.push_back(random_numbers(
        elements(shape), is_norm ? 0.2 : 1.5 / std::sqrt(1.0 * shape[0]), is_norm ? 1 : 0));
  }
  return weights;
}

// Copies weights to the device, after the block that still reads the previous ones.
void send(const std::vector<Numbers>& weights, const Place& place, bool is_in_use,
          aclrtStream stream) {
  if (is_in_use) check(aclrtStreamWaitEvent(stream, place.used), "aclrtStreamWaitEvent");
  for (size_t i = 0; i < weights.size(); ++i) {
    const Memory& to = place.memory[i];
    check(aclrtMemcpyAsync(to.address(), to.bytes(), weights[i].data(), to.bytes(),
                           ACL_MEMCPY_HOST_TO_DEVICE, stream),
          "aclrtMemcpyAsync");
  }
  check(aclrtRecordEvent(place.filled, stream), "aclrtRecordEvent");
}

bool attention_block(Stream& computing) {
  std::vector<std::vector<Numbers>> weights;
  for (int i = 0; i < kBlocks; ++i) weights.push_back(random_weights());
  const Numbers input = random_numbers(static_cast<size_t>(kTokens * kWidth), 1);
  Numbers cos(static_cast<size_t>(kTokens * kHeadSize)), sin(cos.size());
  for (size_t i = 0; i < cos.size(); ++i) {
    const double frequency =
        std::pow(10000.0, -2.0 * static_cast<double>(i % (kHeadSize / 2)) / kHeadSize);
    cos[i] = static_cast<float>(std::cos(static_cast<double>(i / kHeadSize) * frequency));
    sin[i] = static_cast<float>(std::sin(static_cast<double>(i / kHeadSize) * frequency));
  }
  std::vector<uint8_t> hidden(kTokens * kTokens);  // true for later positions
  for (size_t i = 0; i < hidden.size(); ++i) hidden[i] = i % kTokens > i / kTokens;

  const Positions positions = {Memory(cos), Memory(sin), Memory(hidden)};
  const Buffers buffers(input);
  const Place places[2];
  Stream copying;
  send(weights[0], places[0], false, copying);
  for (int i = 0; i < kBlocks; ++i) {
    const Place& place = places[i % 2];
    if (i + 1 < kBlocks)
      send(weights[static_cast<size_t>(i) + 1], places[(i + 1) % 2], i > 0, copying);
    check(aclrtStreamWaitEvent(computing, place.filled), "aclrtStreamWaitEvent");
    block(computing, place.memory, positions, buffers);
    check(aclrtRecordEvent(place.used, computing), "aclrtRecordEvent");
  }
  copying.synchronize();
  computing.synchronize();
  const Numbers output = buffers.x.read<float>();
  std::printf("%d calls in %d blocks\n", computing.calls(), kBlocks);

  Doubles expected(input.begin(), input.end());
  for (const auto& each : weights) block_in_loops(each.data(), cos, sin, expected);
  double largest = 0, difference = 0;
  for (size_t i = 0; i < output.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(output[i] - expected[i]));
  }
  // One rounding error is 6e-8, and each number passed through about thirty operators.
  const bool is_right = difference < 2e-6 * largest;
  if (!is_right)
    std::printf("the largest difference is %g of the largest element\n", difference / largest);
  return is_right;
}

}  // namespace

int main() {
  return run(attention_block);
}

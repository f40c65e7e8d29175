#include "tests/golden/plain_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "loaders/gguf.h"
#include "ops/dequantize.h"

namespace weft {
namespace {

using Row = std::vector<double>;

struct Matrix {
  size_t columns = 0;
  Row numbers;
  size_t rows() const { return numbers.size() / columns; }
};

class Model {
 public:
  explicit Model(const std::string& path) : file_(Open(path)) {
    name_ = *file_.GetString("general.architecture");
    d_ = Key("embedding_length");
    heads_ = Key("attention.head_count");
    epsilon_ = Key("attention.layer_norm_rms_epsilon",
                   Key("attention.layer_norm_epsilon", 0));
    blocks_ = Key("block_count");
    gemma_ = name_.rfind("gemma", 0) == 0;
  }

  std::vector<float> Logits(const std::vector<int32_t>& tokens) {
    std::vector<float> result;
    keys_.resize(blocks_);
    values_.resize(blocks_);
    for (size_t t = 0; t < tokens.size(); ++t) {
      for (double logit : Step(tokens[t], t)) {
        result.push_back(static_cast<float>(logit));
      }
    }
    return result;
  }

 private:
  static GgufFile Open(const std::string& path) {
    auto file = GgufFile::Open(path);
    if (!file.ok()) {
      std::fprintf(stderr, "%s\n", file.status().ToString().c_str());
      std::abort();
    }
    return *std::move(file);
  }

  double Key(const std::string& key, double otherwise = NAN) const {
    const GgufValue* value = file_.FindValue(name_ + "." + key);
    if (value == nullptr) return otherwise;
    if (value->ToBool().has_value()) return *value->ToBool();
    return *value->ToDouble();
  }

  // Of keys that may have a number for each block.
  double Key(const std::string& key, int block, double otherwise) const {
    const GgufValue* value = file_.FindValue(name_ + "." + key);
    if (value == nullptr || !value->is_array()) return Key(key, otherwise);
    double number = NAN;
    value->ForEach([&](const GgufValue& element) {
      number = element.ToBool().has_value() ? *element.ToBool()
                                            : *element.ToDouble();
      return block-- > 0;
    });
    return number;
  }

  size_t KvHeads(int block) const {
    return Key("attention.head_count_kv", block, heads_);
  }
  size_t Head(int block) const {
    const double head = Key("attention.key_length", d_ / heads_);
    return Slides(block) ? Key("attention.key_length_swa", head) : head;
  }
  double Turned(int block) const {
    if (name_ != "gemma4") return Key("rope.dimension_count", Head(block));
    return Slides(block) ? Key("rope.dimension_count_swa", Head(block))
                         : Key("rope.dimension_count", Head(block));
  }

  bool Has(const std::string& tensor) const {
    return file_.FindTensor(tensor) != nullptr;
  }

  const Matrix& Tensor(const std::string& name) {
    Matrix& matrix = tensors_[name];
    if (matrix.columns > 0) return matrix;
    const GgufTensor* tensor = file_.FindTensor(name);
    if (tensor == nullptr) {
      std::fprintf(stderr, "no tensor %s\n", name.c_str());
      std::abort();
    }
    const int64_t columns = tensor->dims[0];
    std::vector<float> floats(columns);
    for (int64_t r = 0; r < tensor->elements() / columns; ++r) {
      DequantizeRow(tensor->type,
                    tensor->data.data() + r * RowBytes(tensor->type, columns),
                    floats.data(), columns);
      matrix.numbers.insert(matrix.numbers.end(), floats.begin(), floats.end());
    }
    matrix.columns = columns;
    return matrix;
  }

  Row Times(const std::string& name, const Row& x) {
    return TimesRows(name, x, 0, Tensor(name + ".weight").rows());
  }

  // By rows [begin, begin + count) only.
  Row TimesRows(const std::string& name, const Row& x, size_t begin,
                size_t count) {
    const Matrix& w = Tensor(name + ".weight");
    Row y(count);
    for (size_t n = 0; n < count; ++n) {
      for (size_t k = 0; k < x.size(); ++k) {
        y[n] += w.numbers[(begin + n) * w.columns + k] * x[k];
      }
      if (Has(name + ".bias")) {
        y[n] += Tensor(name + ".bias").numbers[begin + n];
      }
    }
    return y;
  }

  // In place, elements [begin, begin + n), weights from `at` on.
  void NormPart(const std::string& name, size_t begin, size_t n, size_t at,
                Row* x) {
    const bool layer =
        !std::isnan(Key("attention.layer_norm_epsilon")) || name_ == "phimoe";
    double mean = 0, square = 0;
    for (size_t i = 0; i < n && layer; ++i) mean += (*x)[begin + i] / n;
    for (size_t i = 0; i < n; ++i) {
      square += std::pow((*x)[begin + i] - mean, 2) / n;
    }
    for (size_t i = 0; i < n; ++i) {
      double& e = (*x)[begin + i];
      e = (e - mean) / std::sqrt(square + epsilon_) *
          Tensor(name + ".weight").numbers[at + i];
      if (Has(name + ".bias")) e += Tensor(name + ".bias").numbers[at + i];
    }
  }

  Row Norm(const std::string& name, Row x) {
    NormPart(name, 0, x.size(), 0, &x);
    return x;
  }

  // Queries or keys: by head, each with its own weights or all with the same,
  // or the whole row.
  void NormHeads(const std::string& name, size_t head, Row* x) {
    if (!Has(name + ".weight")) return;
    const size_t weights = Tensor(name + ".weight").numbers.size();
    const bool whole = name_ == "olmo2" || name_ == "olmoe";
    const size_t part = whole ? x->size() : head;
    for (size_t begin = 0; begin < x->size(); begin += part) {
      NormPart(name, begin, part, weights > part ? begin : 0, x);
    }
  }

  // How many radians pair i turns per position.
  double Frequency(size_t i, int block) {
    const bool slides = Slides(block);
    const double turned = Turned(block);
    const double original =
        Key("rope.scaling.original_context_length", Key("context_length"));
    double base = Key("rope.freq_base", 10000);
    double factor = Key("rope.scaling.factor", 1);
    if ((name_ == "gemma3" || name_ == "gemma4") && slides) {
      base = 10000;
      factor = 1;
    }
    double frequency = std::pow(base, -2.0 * i / turned);
    if (name_ == "gemma4" && slides) return frequency;
    for (const char* table :
         {"rope_freqs.weight", "rope_factors_short.weight"}) {
      if (Has(table)) frequency /= Tensor(table).numbers[i];
    }
    if (!Yarn()) return frequency / factor;
    // Turns within the original context: from 32 on as it was, below 1 scaled.
    const auto pair = [&](double turns) {
      return turned * std::log(original / (turns * 2 * M_PI)) /
             (2 * std::log(base));
    };
    const double low = std::max(0.0, std::floor(pair(32)));
    const double high = std::min(turned - 1.0, std::ceil(pair(1)));
    const double kept =
        1 - std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0);
    return frequency / factor * (1 - kept) + frequency * kept;
  }

  bool Yarn() const {
    const auto type = file_.OptionalString(name_ + ".rope.scaling.type");
    return type.ok() && type->value_or("") == "yarn";
  }

  double Magnitude() const {
    const double factor = Key("rope.scaling.attn_factor", 1);
    if (!Yarn()) return factor;
    const double log = 0.1 * std::log(Key("rope.scaling.factor"));
    return factor * (1 + log) /
           (1 + Key("rope.scaling.yarn_log_multiplier", 0) * log);
  }

  // Blocks that know no positions.
  bool Turns(int block) const {
    if (name_ == "smollm3") return block % 4 != 3;
    if (name_ == "llama4") return block % 4 != 3;
    if (name_ == "cohere2") return Slides(block);
    if (name_ == "exaone4") {
      return Slides(block) || std::isnan(Key("attention.sliding_window"));
    }
    return name_ != "gpt2";
  }

  void Turn(size_t position, int block, Row* x) {
    if (!Turns(block)) return;
    const bool neighbours = name_ == "llama" || name_ == "granite" ||
                            name_ == "llama4" || name_ == "granitemoe" ||
                            name_.rfind("ernie", 0) == 0 ||
                            name_ == "mistral3" || name_ == "smollm3" ||
                            name_ == "cohere2" || name_ == "glm4";
    const size_t half = Turned(block) / 2;
    for (size_t begin = 0; begin < x->size(); begin += Head(block)) {
      for (size_t i = 0; i < half; ++i) {
        double& a = (*x)[begin + (neighbours ? 2 * i : i)];
        double& b = (*x)[begin + (neighbours ? 2 * i + 1 : i + half)];
        const double angle = position * Frequency(i, block);
        const double turned =
            Magnitude() * (a * std::cos(angle) - b * std::sin(angle));
        b = Magnitude() * (a * std::sin(angle) + b * std::cos(angle));
        a = turned;
      }
    }
  }

  bool Slides(int block) const {
    if (name_ == "gemma2") return block % 2 == 0;
    if (name_ == "gemma3") return block % 6 != 5;
    if (name_ == "gemma4") {
      const double period = Key("attention.sliding_window_pattern", block, 0);
      return period > 1 ? block % static_cast<int>(period) != period - 1
                        : period == 1;
    }
    if (name_ == "cohere2" || name_ == "exaone4") {
      return block % 4 != 3 && !std::isnan(Key("attention.sliding_window"));
    }
    if (name_ == "gpt-oss") return block % 2 == 0;
    return name_ == "phi3";
  }

  double ScoreScale(size_t position, int block) const {
    if (name_.rfind("granite", 0) == 0) return Key("attention.scale");
    if (name_ == "llama4" && !Turns(block)) {
      return (1 + 0.1 * std::log(1 + (position + 1) / 8192)) /
             std::sqrt(Head(block));
    }
    if (name_ == "gemma4") return 1;
    if (name_ == "mistral3") {
      const double original =
          Key("rope.scaling.original_context_length", Key("context_length"));
      return (1 + Key("attention.temperature_scale", 0) *
                      std::log(1 + std::floor(position / original))) /
             std::sqrt(Head(block));
    }
    const bool largest = (name_ == "gemma2" && blocks_ == 46) ||
                         (name_ == "gemma3" && blocks_ == 62);
    return 1 / std::sqrt(largest ? d_ / heads_ : Head(block));
  }

  Row Attention(int block, size_t position, const Row& x) {
    const std::string blk = absl::StrCat("blk.", block, ".");
    const size_t head = Head(block), heads = heads_, kv_heads = KvHeads(block);
    const int cache = CacheOf(block);
    Row q, k, v;
    if (Has(blk + "attn_qkv.weight")) {
      const Row all = Times(blk + "attn_qkv", x);
      q.assign(all.begin(), all.begin() + heads * head);
      k.assign(all.begin() + q.size(), all.end() - kv_heads * head);
      v.assign(all.end() - kv_heads * head, all.end());
    } else {
      q = Times(blk + "attn_q", x);
      if (cache == block) {
        k = Times(blk + "attn_k", x);
        v = Has(blk + "attn_v.weight") ? Times(blk + "attn_v", x) : k;
      }
    }
    const auto turn = [&](const char* norm, Row* x) {
      const bool turns_first = name_.rfind("hunyuan", 0) == 0;
      if (!turns_first) NormHeads(blk + norm, head, x);
      Turn(position, block, x);
      if (turns_first) NormHeads(blk + norm, head, x);
      if (name_ == "llama4" && Turns(block) && Key("expert_count") != 128) {
        *x = UnitHeads(*x, head);
      }
    };
    turn("attn_q_norm", &q);
    if (cache == block) {
      turn("attn_k_norm", &k);
      if (name_ == "gemma4") v = UnitHeads(v, head);
      keys_[block].push_back(k);
      values_[block].push_back(v);
    }
    const double cap = Key("attn_logit_softcapping", 0);
    const size_t window =
        Slides(block) ? Key("attention.sliding_window", 1e9) : 1e9;
    const double chunk = name_ == "llama4" && Turns(block)
                             ? Key("attention.sliding_window", 8192)
                             : 1e9;
    Row mixed(heads * head);
    for (size_t h = 0; h < heads; ++h) {
      const size_t at = h / (heads / kv_heads) * head;
      Row weights(position + 1);
      double sum = 0;
      if (Has(blk + "attn_sinks.weight")) {
        sum = std::exp(Tensor(blk + "attn_sinks.weight").numbers[h]);
      }
      for (size_t p = 0; p <= position; ++p) {
        if (position - p >= window) continue;
        if (std::floor(position / chunk) != std::floor(p / chunk)) continue;
        double score = 0;
        for (size_t i = 0; i < head; ++i) {
          score += q[h * head + i] * keys_[cache][p][at + i];
        }
        score *= ScoreScale(position, block);
        if (cap > 0) score = cap * std::tanh(score / cap);
        sum += weights[p] = std::exp(score);
      }
      for (size_t p = 0; p <= position; ++p) {
        for (size_t i = 0; i < head; ++i) {
          mixed[h * head + i] += weights[p] / sum * values_[cache][p][at + i];
        }
      }
    }
    return Times(blk + "attn_output", mixed);
  }

  // The block whose keys and values this one reads: the last of its kind that
  // has its own.
  int CacheOf(int block) const {
    const int own = blocks_ - Key("attention.shared_kv_layers", 0);
    if (block < own) return block;
    int cache = own - 1;
    while (Slides(cache) != Slides(block)) --cache;
    return cache;
  }

  // Each part of so many elements divided by its root mean square.
  Row UnitHeads(Row x, size_t part) const {
    for (size_t begin = 0; begin < x.size(); begin += part) {
      double square = 0;
      for (size_t i = 0; i < part; ++i) {
        square += x[begin + i] * x[begin + i] / part;
      }
      for (size_t i = 0; i < part; ++i) {
        x[begin + i] /= std::sqrt(square + epsilon_);
      }
    }
    return x;
  }

  double Activate(double x) const {
    if (!gemma_ && name_ != "gpt2") return x / (1 + std::exp(-x));
    const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    return x / 2 * (1 + std::tanh(inner));
  }

  Row FeedForward(const std::string& blk, const Row& x) {
    if (Has(blk + "ffn_gate_inp.weight") && !gemma_) return Mixture(blk, x);
    Row up = Times(blk + "ffn_up", x);
    if (name_ == "gpt2") {
      for (double& e : up) e = Activate(e);
    } else if (name_ == "phi3" || name_ == "glm4") {
      const size_t half = up.size() / 2;
      for (size_t i = 0; i < half; ++i) up[i] = Activate(up[i]) * up[half + i];
      up.resize(half);
    } else {
      const Row gate = Times(blk + "ffn_gate", x);
      for (size_t i = 0; i < up.size(); ++i) up[i] *= Activate(gate[i]);
    }
    return Times(blk + "ffn_down", up);
  }

  // Gemma 4's, beside the network.
  Row GemmaExperts(const std::string& blk, const Row& x) {
    Row routed = UnitHeads(x, x.size());
    const Row& scale = Tensor(blk + "ffn_gate_inp.scale").numbers;
    for (size_t i = 0; i < routed.size(); ++i) {
      routed[i] *= scale[i] / std::sqrt(d_);
    }
    Row p = Times(blk + "ffn_gate_inp", routed);
    for (double& e : p) e = std::exp(e);
    std::vector<size_t> order(p.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return p[a] > p[b]; });
    order.resize(Key("expert_used_count"));
    double sum = 0;
    for (size_t e : order) sum += p[e];
    const Row normed = Norm(blk + "pre_ffw_norm_2", x);
    Row result(x.size());
    for (size_t e : order) {
      const Row y = Expert(blk, e, normed);
      const double weight =
          p[e] / sum * Tensor(blk + "ffn_down_exps.scale").numbers[e];
      for (size_t i = 0; i < y.size(); ++i) result[i] += weight * y[i];
    }
    return result;
  }

  // Gate and up of an expert, and what it makes of x.
  Row Expert(const std::string& blk, size_t e, const Row& x) {
    const size_t n = Key("expert_count");
    Row gate, up;
    if (Has(blk + "ffn_gate_up_exps.weight")) {
      const std::string both = blk + "ffn_gate_up_exps";
      const size_t f = Tensor(both + ".weight").rows() / n / 2;
      gate = TimesRows(both, x, 2 * e * f, f);
      up = TimesRows(both, x, (2 * e + 1) * f, f);
    } else {
      const size_t f = Tensor(blk + "ffn_up_exps.weight").rows() / n;
      gate = TimesRows(blk + "ffn_gate_exps", x, e * f, f);
      up = TimesRows(blk + "ffn_up_exps", x, e * f, f);
    }
    for (size_t i = 0; i < up.size(); ++i) {
      if (name_ == "gpt-oss") {
        const double g = std::min(gate[i], 7.0);
        up[i] =
            g / (1 + std::exp(-1.702 * g)) * (std::clamp(up[i], -7.0, 7.0) + 1);
      } else {
        up[i] *= Activate(gate[i]);
      }
    }
    return TimesRows(blk + "ffn_down_exps", up, e * d_, d_);
  }

  // Places and weights of the chosen, by their scores.
  std::vector<std::pair<size_t, double>> Choose(const std::string& blk,
                                                const Row& logits) {
    const size_t n = logits.size();
    const size_t used = Key("expert_used_count");
    const bool sigmoid = Key("expert_gating_func", 1) == 2;
    const bool after =
        name_ == "gpt-oss" || name_ == "llama4" || name_ == "phimoe";
    Row scores = logits;
    double sum = 0;
    for (double logit : logits) sum += std::exp(logit);
    for (double& score : scores) {
      if (sigmoid) score = 1 / (1 + std::exp(-score));
      if (!sigmoid && !after) score = std::exp(score) / sum;
    }
    Row by = scores;
    if (Has(blk + "exp_probs_b.bias")) {
      for (size_t e = 0; e < n; ++e) {
        by[e] += Tensor(blk + "exp_probs_b.bias").numbers[e];
      }
    }
    const size_t groups = std::max(1.0, Key("expert_group_count", 1));
    const size_t size = n / groups;
    std::vector<std::pair<double, size_t>> best;
    for (size_t g = 0; g < groups; ++g) {
      Row group(by.begin() + g * size, by.begin() + (g + 1) * size);
      std::sort(group.rbegin(), group.rend());
      best.push_back({group[0] + (size > 1 ? group[1] : 0), g});
    }
    std::sort(best.rbegin(), best.rend());
    for (size_t g = Key("expert_group_used_count", groups); g < groups; ++g) {
      std::fill_n(by.begin() + best[g].second * size, size, -1e300);
    }
    std::vector<std::pair<size_t, double>> chosen;
    sum = 0;
    for (size_t i = 0; i < used; ++i) {
      const size_t e = std::max_element(by.begin(), by.end()) - by.begin();
      double weight = scores[e];
      if (name_ == "gpt-oss") weight = std::exp(weight);
      if (name_ == "llama4") weight = 1 / (1 + std::exp(-weight));
      if (name_ == "phimoe") {
        double near = 0;
        for (size_t o = 0; o < n; ++o) {
          if (by[o] == -1e300) continue;
          const double gap = (scores[e] - scores[o]) /
                             std::max(std::fabs(scores[o]), scores[e]);
          if (!(gap > 0.02)) near += std::exp(scores[o] - scores[e]);
        }
        weight = 1 / near;
      }
      by[e] = -1e300;
      chosen.push_back({e, weight});
      sum += weight;
    }
    bool divides = name_ == "gpt-oss";
    for (const char* family : {"llama", "qwen3moe", "qwen3vlmoe", "granitemoe",
                               "ernie4_5-moe", "hunyuan-moe", "gpt-oss"}) {
      divides |= name_ == family;
    }
    divides = Key("expert_weights_norm", divides) != 0;
    for (auto& [e, weight] : chosen) {
      if (divides) weight /= sum;
      weight *= Key("expert_weights_scale", 1);
    }
    return chosen;
  }

  Row Mixture(const std::string& blk, const Row& x) {
    Row y(x.size());
    for (const auto& [e, weight] :
         Choose(blk, Times(blk + "ffn_gate_inp", x))) {
      Row in = x;
      const bool before = name_ == "llama4";
      for (double& number : in) number *= before ? weight : 1;
      const Row out = Expert(blk, e, in);
      for (size_t i = 0; i < y.size(); ++i) {
        y[i] += (before ? 1 : weight) * out[i];
      }
    }
    if (!Has(blk + "ffn_up_shexp.weight")) return y;
    Row up = Times(blk + "ffn_up_shexp", x);
    const Row gate = Times(blk + "ffn_gate_shexp", x);
    for (size_t i = 0; i < up.size(); ++i) up[i] *= Activate(gate[i]);
    const Row out = Times(blk + "ffn_down_shexp", up);
    double share = 1;
    if (Has(blk + "ffn_gate_inp_shexp.weight")) {
      share = 1 / (1 + std::exp(-Times(blk + "ffn_gate_inp_shexp", x)[0]));
    }
    for (size_t i = 0; i < y.size(); ++i) y[i] += share * out[i];
    return y;
  }

  // Adds what a part of a block gives, through the norm behind it.
  void AddTo(Row* x, const std::string& post_norm, Row y) {
    if (Has(post_norm + ".weight")) y = Norm(post_norm, y);
    const double scale = Key("residual_scale", 1);
    for (size_t i = 0; i < y.size(); ++i) (*x)[i] += scale * y[i];
  }

  // What Gemma's smaller models tell each block of a token.
  Row TokenPerBlock(int32_t token, const Row& x) {
    const size_t n = Key("embedding_length_per_layer_input", 0);
    if (n == 0) return {};
    Row told = Times("per_layer_model_proj", x);
    for (size_t i = 0; i < told.size(); ++i) told[i] /= std::sqrt(d_);
    for (size_t at = 0; at < told.size(); at += n) {
      NormPart("per_layer_proj_norm", at, n, 0, &told);
    }
    const Matrix& table = Tensor("per_layer_token_embd.weight");
    for (size_t i = 0; i < told.size(); ++i) {
      told[i] += table.numbers[token * told.size() + i] * std::sqrt(n);
      told[i] /= std::sqrt(2);
    }
    return told;
  }

  void AddToken(int block, const Row& told, Row* x) {
    if (told.empty()) return;
    const std::string blk = absl::StrCat("blk.", block, ".");
    Row gate = Times(blk + "inp_gate", *x);
    for (size_t i = 0; i < gate.size(); ++i) {
      gate[i] = Activate(gate[i]) * told[block * gate.size() + i];
    }
    AddTo(x, blk + "post_norm", Times(blk + "proj", gate));
  }

  Row Step(int32_t token, size_t position) {
    Row x(d_);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = Tensor("token_embd.weight").numbers[token * x.size() + i];
      x[i] *= gemma_ ? std::sqrt(d_) : Key("embedding_scale", 1);
      if (name_ == "gpt2") {
        x[i] += Tensor("position_embd.weight").numbers[position * x.size() + i];
      }
    }
    const Row told = TokenPerBlock(token, x);
    for (int block = 0; block < blocks_; ++block) {
      const std::string blk = absl::StrCat("blk.", block, ".");
      // The name that these files have for the norm before the network.
      const bool misnamed = name_ == "seed_oss" || name_ == "gpt-oss";
      const Row before =
          Has(blk + "attn_norm.weight") ? Norm(blk + "attn_norm", x) : x;
      AddTo(&x, misnamed ? "" : blk + "post_attention_norm",
            Attention(block, position, before));
      Row between = before;  // of the parallel residual
      if (Has(blk + "ffn_norm.weight")) between = Norm(blk + "ffn_norm", x);
      if (misnamed) between = Norm(blk + "post_attention_norm", x);
      if (name_ == "olmo2" || name_ == "exaone4") between = x;
      Row fed = FeedForward(blk, between);
      if (Has(blk + "ffn_gate_inp.weight") && gemma_) {
        fed = Norm(blk + "post_ffw_norm_1", fed);
        const Row chosen = Norm(blk + "post_ffw_norm_2", GemmaExperts(blk, x));
        for (size_t i = 0; i < fed.size(); ++i) fed[i] += chosen[i];
      }
      AddTo(&x, blk + "post_ffw_norm", fed);
      AddToken(block, told, &x);
      if (Has(blk + "layer_output_scale.weight")) {
        for (double& e : x) {
          e *= Tensor(blk + "layer_output_scale.weight").numbers[0];
        }
      }
    }
    Row logits = Times(Has("output.weight") ? "output" : "token_embd",
                       Norm("output_norm", x));
    const double cap =
        Key("final_logit_softcapping", name_ == "gemma4" ? 30 : 0);
    const double scale = Key("logit_scale", 1);
    for (double& logit : logits) {
      logit *= name_ == "cohere2" ? scale : 1 / scale;
      if (cap > 0) logit = cap * std::tanh(logit / cap);
    }
    return logits;
  }

  const GgufFile file_;
  std::string name_;
  double d_, heads_, epsilon_, blocks_;
  bool gemma_;
  std::map<std::string, Matrix> tensors_;
  // [block][position]
  std::vector<std::vector<Row>> keys_, values_;
};

}  // namespace

std::vector<float> PlainLogits(const std::string& path,
                               const std::vector<int32_t>& tokens) {
  return Model(path).Logits(tokens);
}

}  // namespace weft

#include "tests/loaders/convert/published_folder.h"

#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "loaders/gguf.h"
#include "tests/loaders/safetensors/safetensors_file.h"

namespace weft {
namespace {

using nlohmann::json;

// A tensor of a file as the published one: outermost dimension first.
TestTensor AsPublished(const GgufTensor& tensor) {
  TestTensor made;
  made.type = UpperName(tensor.type);
  made.shape.assign(tensor.dims.rbegin(), tensor.dims.rend());
  made.bytes.assign(reinterpret_cast<const char*>(tensor.data.data()),
                    tensor.data.size());
  return made;
}

size_t ElementBytes(const TestTensor& tensor) {
  return tensor.type == "F32" ? 4 : 2;
}

// Rows, or elements of a vector.
size_t RowBytesOf(const TestTensor& tensor) {
  return tensor.shape.size() == 1
             ? ElementBytes(tensor)
             : ElementBytes(tensor) * static_cast<size_t>(tensor.shape.back());
}

// transformers' rotate_half: the first half of a head turns with the second.
void HalvesOfHeads(int64_t heads, TestTensor* tensor) {
  const size_t row = RowBytesOf(*tensor);
  const size_t rows = tensor->bytes.size() / row;
  const size_t length = rows / heads;
  std::string made(tensor->bytes.size(), '\0');
  for (size_t head = 0; head < static_cast<size_t>(heads); ++head) {
    for (size_t pair = 0; pair < length / 2; ++pair) {
      for (size_t half = 0; half < 2; ++half) {
        std::memcpy(
            made.data() + (head * length + half * length / 2 + pair) * row,
            tensor->bytes.data() + (head * length + 2 * pair + half) * row,
            row);
      }
    }
  }
  tensor->bytes = std::move(made);
}

void WithoutOne(TestTensor* tensor) {
  for (size_t i = 0; i < tensor->bytes.size(); i += sizeof(float)) {
    float x;
    std::memcpy(&x, tensor->bytes.data() + i, sizeof(x));
    x -= 1.0f;
    std::memcpy(tensor->bytes.data() + i, &x, sizeof(x));
  }
}

// The matrices of a stack, one after the other.
std::vector<TestTensor> Unstacked(const TestTensor& tensor) {
  std::vector<TestTensor> parts;
  const size_t count = static_cast<size_t>(tensor.shape[0]);
  const size_t size = tensor.bytes.size() / count;
  for (size_t i = 0; i < count; ++i) {
    TestTensor part = tensor;
    part.shape.erase(part.shape.begin());
    part.bytes = tensor.bytes.substr(i * size, size);
    parts.push_back(std::move(part));
  }
  return parts;
}

// Two stacks of matrices (or of vectors) as one: row by row in turn, or all of
// `a` above all of `b`.
TestTensor JoinedRows(const TestTensor& a, const TestTensor& b, bool in_turn,
                      size_t row) {
  TestTensor made = a;
  const size_t matrices = a.shape.size() == 1 ? 1 : a.shape[0];
  const size_t size = a.bytes.size() / matrices;
  made.bytes.clear();
  for (size_t i = 0; i < matrices; ++i) {
    const std::string x = a.bytes.substr(i * size, size);
    const std::string y = b.bytes.substr(i * size, size);
    if (!in_turn) {
      made.bytes += x + y;
      continue;
    }
    for (size_t at = 0; at < size; at += row) {
      made.bytes += x.substr(at, row) + y.substr(at, row);
    }
  }
  return made;
}

TestTensor Transposed(const TestTensor& tensor) {
  TestTensor made = tensor;
  const size_t n = tensor.shape.size(), element = ElementBytes(tensor);
  std::swap(made.shape[n - 1], made.shape[n - 2]);
  const size_t rows = tensor.shape[n - 2], columns = tensor.shape[n - 1];
  const size_t size = rows * columns * element;
  for (size_t first = 0; first < tensor.bytes.size(); first += size) {
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns; ++c) {
        std::memcpy(made.bytes.data() + first + (c * rows + r) * element,
                    tensor.bytes.data() + first + (r * columns + c) * element,
                    element);
      }
    }
  }
  return made;
}

// Blocks of MXFP4 in a file, 17 bytes each, as published: scales apart, and
// neighbours in one byte.
void Unpack(const TestTensor& tensor, TestTensor* blocks, TestTensor* scales) {
  *blocks = tensor;
  blocks->type = "U8";
  blocks->shape.back() /= 32;
  *scales = *blocks;
  blocks->shape.push_back(16);
  blocks->bytes.clear();
  scales->bytes.clear();
  for (size_t at = 0; at < tensor.bytes.size(); at += 17) {
    scales->bytes += tensor.bytes[at];
    const auto number = [&](int i) {
      const uint8_t byte = static_cast<uint8_t>(tensor.bytes[at + 1 + i % 16]);
      return i < 16 ? byte & 15 : byte >> 4;
    };
    for (int i = 0; i < 32; i += 2) {
      blocks->bytes += static_cast<char>(number(i) | number(i + 1) << 4);
    }
  }
}

class FolderWriter {
 public:
  FolderWriter(const GgufFile& file, const PublishedOptions& options)
      : file_(file), options_(options) {
    architecture_ = *file.GetString("general.architecture");
    heads_ = Number("attention.head_count", 0);
    heads_kv_ = Number("attention.head_count_kv", heads_);
  }

  std::vector<TestTensor> Tensors() {
    for (const GgufTensor& tensor : file_.tensors()) Add(tensor);
    for (auto& [block, gate] : gates_) JoinExperts(block);
    return std::move(tensors_);
  }

  json Config() const {
    json config = {
        {"architectures", {options_.class_name}},
        {"tie_word_embeddings", file_.FindTensor("output.weight") == nullptr},
        {"torch_dtype", "float32"}};
    const std::pair<const char*, const char*> kKeys[] = {
        {"block_count", "num_hidden_layers"},
        {"embedding_length", "hidden_size"},
        {"feed_forward_length", "intermediate_size"},
        {"context_length", "max_position_embeddings"},
        {"attention.head_count", "num_attention_heads"},
        {"attention.head_count_kv", "num_key_value_heads"},
        {"attention.key_length", "head_dim"},
        {"expert_used_count", "num_experts_per_tok"},
    };
    for (const auto& [gguf, name] : kKeys) {
      const int64_t value = Number(gguf, -1);
      if (value >= 0) config[name] = value;
    }
    const std::pair<const char*, const char*> kFloats[] = {
        {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
        {"attention.layer_norm_epsilon", "layer_norm_eps"},
        {"rope.freq_base", "rope_theta"},
    };
    for (const auto& [gguf, name] : kFloats) {
      const auto value = file_.OptionalFloat(architecture_ + "." + gguf);
      if (value.ok() && value->has_value()) config[name] = **value;
    }
    config["vocab_size"] = file_.FindTensor("token_embd.weight")->dims[1];
    config.update(options_.config);
    return config;
  }

 private:
  int64_t Number(const std::string& key, int64_t otherwise) const {
    const auto value = file_.OptionalInt(architecture_ + "." + key);
    return value.ok() ? value->value_or(otherwise) : otherwise;
  }

  std::string NameInBlock(const std::string& stem) const {
    if (options_.names.contains(stem)) return options_.names[stem];
    const std::map<std::string, std::string> kNames = {
        {"attn_norm", "input_layernorm"},
        {"attn_q", "self_attn.q_proj"},
        {"attn_k", "self_attn.k_proj"},
        {"attn_v", "self_attn.v_proj"},
        {"attn_qkv", "self_attn.qkv_proj"},
        {"attn_output", "self_attn.o_proj"},
        {"attn_q_norm", "self_attn.q_norm"},
        {"attn_k_norm", "self_attn.k_norm"},
        {"ffn_norm", "post_attention_layernorm"},
        {"ffn_gate", "mlp.gate_proj"},
        {"ffn_up", "mlp.up_proj"},
        {"ffn_down", "mlp.down_proj"},
        {"ffn_gate_inp", "mlp.gate"},
        {"ffn_gate_exps", "mlp.experts.{e}.gate_proj"},
        {"ffn_up_exps", "mlp.experts.{e}.up_proj"},
        {"ffn_down_exps", "mlp.experts.{e}.down_proj"},
        {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
        {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
        {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
        {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
    };
    const auto found = kNames.find(stem);
    EXPECT_NE(found, kNames.end()) << stem;
    return found == kNames.end() ? stem : found->second;
  }

  void Put(std::string name, TestTensor tensor) {
    tensor.name = std::move(name);
    tensors_.push_back(std::move(tensor));
  }

  void Add(const GgufTensor& source) {
    TestTensor tensor = AsPublished(source);
    const std::string& name = source.name;
    if (options_.norms_lack_one && absl::EndsWith(name, "_norm.weight")) {
      WithoutOne(&tensor);
    }
    if (!absl::StartsWith(name, "blk.")) {
      const std::map<std::string, std::string> kNames = {
          {"token_embd.weight", "embed_tokens.weight"},
          {"output_norm.weight", "norm.weight"},
          {"output_norm.bias", "norm.bias"},
      };
      if (absl::StartsWith(name, "rope_")) return;  // follows from config.json
      if (name == "output.weight") return Put("lm_head.weight", tensor);
      if (options_.names.contains(name)) {
        return Put(options_.names[name], tensor);
      }
      ASSERT_EQ(kNames.count(name), 1u) << name;
      return Put(options_.prefix + kNames.at(name), tensor);
    }
    const std::vector<std::string> parts = absl::StrSplit(name, '.');
    ASSERT_EQ(parts.size(), 4u) << name;
    const std::string& block = parts[1];
    const std::string& stem = parts[2];
    const std::string ending = "." + parts[3];
    if (options_.pairs && stem == "attn_q") HalvesOfHeads(heads_, &tensor);
    if (options_.pairs && stem == "attn_k") HalvesOfHeads(heads_kv_, &tensor);
    const std::string base =
        absl::StrCat(options_.prefix, options_.layers, block, ".");
    if (options_.experts != "one" && absl::EndsWith(stem, "_exps")) {
      gates_[block][stem + ending] = tensor;
      return;
    }
    if (options_.experts == "joined" &&
        (stem == "ffn_gate_shexp" || stem == "ffn_up_shexp") &&
        options_.names.contains("shared_joined")) {
      gates_[block][stem + ending] = tensor;
      return;
    }
    const std::string target = NameInBlock(stem);
    if (absl::StrContains(target, "{e}")) {
      const std::vector<TestTensor> all = Unstacked(tensor);
      // The last first: order in the file is no order.
      for (size_t i = all.size(); i-- > 0;) {
        const std::pair<std::string, std::string> around =
            absl::StrSplit(target, absl::MaxSplits("{e}", 1));
        Put(absl::StrCat(base, around.first, i, around.second, ending), all[i]);
      }
      return;
    }
    // "name!": without an ending.
    const bool bare = absl::EndsWith(target, "!");
    Put(base + (bare ? target.substr(0, target.size() - 1) : target + ending),
        tensor);
  }

  void JoinExperts(const std::string& block) {
    std::map<std::string, TestTensor>& all = gates_[block];
    const std::string base =
        absl::StrCat(options_.prefix, options_.layers, block, ".");
    if (options_.experts == "joined") {
      const auto join = [&](const std::string& kind,
                            const std::string& target) {
        const TestTensor& gate = all.at("ffn_gate_" + kind + ".weight");
        TestTensor made =
            JoinedRows(gate, all.at("ffn_up_" + kind + ".weight"), false, 0);
        // A shared expert is one matrix: there is one of it to join.
        made.shape[made.shape.size() - 2] *= 2;
        if (gate.shape.size() == 2) {
          made.bytes = gate.bytes + all.at("ffn_up_" + kind + ".weight").bytes;
        }
        Put(base + target, made);
      };
      join("exps", options_.names["joined"]);
      if (all.count("ffn_gate_shexp.weight") > 0) {
        join("shexp", options_.names["shared_joined"]);
      }
      Put(base + std::string(options_.names["ffn_down_exps"]),
          all.at("ffn_down_exps.weight"));
      return;
    }
    const std::string experts = base + "mlp.experts.";
    TestTensor bias =
        JoinedRows(all.at("ffn_gate_exps.bias"), all.at("ffn_up_exps.bias"),
                   true, ElementBytes(all.at("ffn_gate_exps.bias")));
    bias.shape.back() *= 2;
    Put(experts + "gate_up_proj_bias", bias);
    Put(experts + "down_proj_bias", all.at("ffn_down_exps.bias"));
    const TestTensor& gate = all.at("ffn_gate_exps.weight");
    const TestTensor& down = all.at("ffn_down_exps.weight");
    const bool packed = gate.type == "MXFP4";
    const size_t row = packed ? static_cast<size_t>(gate.shape.back()) / 32 * 17
                              : RowBytesOf(gate);
    TestTensor both = JoinedRows(gate, all.at("ffn_up_exps.weight"), true, row);
    both.shape[1] *= 2;
    if (!packed) {
      Put(experts + "gate_up_proj", Transposed(both));
      Put(experts + "down_proj", Transposed(down));
      return;
    }
    TestTensor blocks, scales;
    Unpack(both, &blocks, &scales);
    // Scales first: neither order is promised.
    Put(experts + "gate_up_proj_scales", scales);
    Put(experts + "gate_up_proj_blocks", blocks);
    Unpack(down, &blocks, &scales);
    Put(experts + "down_proj_blocks", blocks);
    Put(experts + "down_proj_scales", scales);
  }

  const GgufFile& file_;
  const PublishedOptions& options_;
  std::string architecture_;
  int64_t heads_ = 0, heads_kv_ = 0;
  std::vector<TestTensor> tensors_;
  std::map<std::string, std::map<std::string, TestTensor>> gates_;
};

}  // namespace

json SentencePieceTokenizer(int size) {
  json vocabulary = json::object(), merges = json::array();
  int id = 0;
  for (const char* control : {"<unk>", "<s>", "</s>"}) {
    vocabulary[control] = id++;
  }
  const char* const digits = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[absl::StrCat("<0x", std::string(1, digits[byte / 16]),
                            std::string(1, digits[byte % 16]), ">")] = id++;
  }
  const std::string space = "\xe2\x96\x81";
  const auto merge = [&](const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    vocabulary[left + right] = id++;
  };
  merge(space, "a");
  merge(space + "a", "b");
  merge("a", "b");
  for (const std::string& letter :
       {space, std::string("a"), std::string("b")}) {
    vocabulary[letter] = id++;
  }
  for (char c = 'c'; id < size && c <= 'z'; ++c) {
    vocabulary[std::string(1, c)] = id++;
  }
  const auto control = [](int number, const char* text) {
    return json{{"id", number}, {"content", text}, {"special", true}};
  };
  return {{"added_tokens",
           {control(0, "<unk>"), control(1, "<s>"), control(2, "</s>")}},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "Prepend"}, {"prepend", space}},
              {{"type", "Replace"},
               {"pattern", {{"String", " "}}},
               {"content", space}}}}}},
          {"pre_tokenizer", nullptr},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single",
             {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"byte_fallback", true},
            {"vocab", vocabulary},
            {"merges", merges}}}};
}

void WritePublishedFolder(const std::string& gguf_path,
                          const std::string& folder,
                          const PublishedOptions& options) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto file = GgufFile::Open(gguf_path);
  ASSERT_TRUE(file.ok()) << file.status();
  FolderWriter writer(*file, options);
  const std::vector<TestTensor> tensors = writer.Tensors();
  WriteFileBytes(folder + "/config.json", writer.Config().dump(2));
  const bool given = options.tokenizer.is_object();
  WriteFileBytes(
      folder + "/tokenizer.json",
      (given ? options.tokenizer : SentencePieceTokenizer(320)).dump());
  WriteFileBytes(folder + "/tokenizer_config.json",
                 given
                     ? R"({"cls_token": "[CLS]", "sep_token": "[SEP]"})"
                     : R"({"bos_token": "<s>", "eos_token": {"content": "</s>"},
                  "unk_token": "<unk>", "add_bos_token": true,
                  "chat_template": "{{ messages[0].content }}"})");
  if (options.parts == 1) {
    WriteFileBytes(folder + "/model.safetensors", SafetensorsBytes(tensors));
    return;
  }
  json map = json::object();
  std::vector<std::vector<TestTensor>> parts(options.parts);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t part = i % options.parts;
    parts[part].push_back(tensors[i]);
    map[tensors[i].name] = absl::StrCat("model-", part, ".safetensors");
  }
  for (int i = 0; i < options.parts; ++i) {
    WriteFileBytes(absl::StrCat(folder, "/model-", i, ".safetensors"),
                   SafetensorsBytes(parts[i]));
  }
  WriteFileBytes(folder + "/model.safetensors.index.json",
                 json({{"weight_map", map}}).dump());
}

}  // namespace weft

// Every file of tests/data/malformed has the outcome that its manifest states,
// and its message names what is wrong.
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/loaders/llama_check.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr char kFolder[] = "tests/data/malformed/";

struct Expectation {
  // Parts of the message, besides the path.
  std::vector<std::string> message;
};

// One row for each file that must fail.
const std::map<std::string, Expectation>& Expectations() {
  static const auto* const rows = new std::map<std::string, Expectation>{
      {"01-dim-zero.gguf", {{"blk.0.ffn_gate.weight", "dimension 1 is 0"}}},
      {"02-dim-product-wraps.gguf", {{"token_embd.weight", "4194305"}}},
      {"03-ndims-5.gguf", {{"token_embd.weight", "5 dimensions"}}},
      {"04-ndims-ffffffff.gguf",
       {{"token_embd.weight", "4294967295 dimensions"}}},
      {"07-scores-arr-u8.gguf",
       {{"tokenizer.ggml.scores", "array of 36 u8", "array of f32"}}},
      {"09-tokens-arr-u32.gguf",
       {{"tokenizer.ggml.tokens", "array of 36 u32", "array of strings"}}},
      {"10-scores-35-of-36.gguf", {{"tokenizer.ggml.scores", "35", "36"}}},
      {"11-arr-bytes-wrap.gguf", {{"x.big", "2305843009213693953"}}},
      {"15-align-0.gguf", {{"general.alignment is 0", "power of two"}}},
      {"16-align-24.gguf", {{"general.alignment is 24", "power of two"}}},
      {"17-align-string.gguf",
       {{"general.alignment is string '32'", "integer"}}},
      {"19-offset-unaligned.gguf",
       {{"output_norm.weight", "7044", "alignment 32"}}},
      {"23-magic-ggml.gguf", {{"not a GGUF file", "lmgg"}}},
      {"24-big-endian-v3.gguf", {{"byte order", "big-endian"}}},
      {"25-v1.gguf", {{"version 1 is not supported"}}},
      {"27-v4.gguf", {{"version 4 is not supported"}}},
      {"32-empty-file.gguf", {{"empty"}}},
      {"33-magic-only.gguf", {{"cut off", "header"}}},
      {"34-header-only.gguf", {{"general.architecture"}}},
      {"35-cut-in-tokens.gguf", {{"tokenizer.ggml.tokens", "byte 615"}}},
      {"36-cut-data-4.gguf",
       {{"cut off", "output_norm.weight", "64 bytes", "60 are present"}}},
      {"37-cut-data-half.gguf",
       {{"cut off", "blk.0.attn_k.weight", "512 bytes", "432 are present"}}},
      {"40-heads-0.gguf", {{"llama.attention.head_count is 0"}}},
      {"41-blocks-0.gguf", {{"llama.block_count is 0"}}},
      {"42-heads-3.gguf", {{"llama.attention.head_count is 3", "16"}}},
      {"43-blocks-2.gguf", {{"missing tensor 'blk.1.attn_norm.weight'"}}},
      {"44-blocks-2e31.gguf", {{"llama.block_count is 2147483648"}}},
      {"45-no-arch.gguf", {{"general.architecture is not there"}}},
      {"46-no-block-count.gguf", {{"llama.block_count is not there"}}},
      {"47-no-rms-eps.gguf",
       {{"llama.attention.layer_norm_rms_epsilon is not there"}}},
      {"54-no-output-norm.gguf", {{"missing tensor 'output_norm.weight'"}}},
      {"55-extra-tensor.gguf", {{"unused tensor 'blk.0.extra.weight'"}}},
      {"56-norm-15.gguf", {{"blk.0.attn_norm.weight", "[15]", "[16]"}}},
      {"61-n-kv-2e40.gguf", {{"1099511627776 metadata keys"}}},
      {"62-n-tensors-2e63.gguf", {{"9223372036854775808 tensors"}}},
      {"63-key-len-2e60.gguf", {{"cut off", "metadata key 0"}}},
      {"68-q4_k-row-16.gguf",
       {{"blk.0.attn_q.weight", "16 elements", "256", "Q4_K"}}},
  };
  return *rows;
}

nlohmann::json Manifest() {
  std::ifstream stream(std::string(kFolder) + "manifest.json");
  return nlohmann::json::parse(stream);
}

TEST(MalformedFiles, HaveTheOutcomeOfTheManifest) {
  const nlohmann::json manifest = Manifest();
  ASSERT_GE(manifest.size(), 40u);
  std::set<std::string> failed;
  for (const auto& entry : manifest) {
    const std::string name = entry["file"];
    SCOPED_TRACE(name);
    const absl::Status status = CheckLlamaModel(GgufFile::Open(kFolder + name));
    // Of these files 08 loads, since its integers are converted one by one; 49
    // and 55 do as stated.
    const bool may_load = !entry["strict"].get<bool>();
    const std::string expected = entry["expected"];
    if (status.ok()) {
      EXPECT_TRUE(expected == "ok" || may_load);
      continue;
    }
    EXPECT_TRUE(expected == "error") << status;
    failed.insert(name);
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr(name));
    EXPECT_EQ(message.find('\n'), std::string::npos);
    const auto row = Expectations().find(name);
    ASSERT_NE(row, Expectations().end()) << message;
    for (const std::string& part : row->second.message) {
      EXPECT_THAT(message, HasSubstr(part));
    }
  }
  EXPECT_EQ(failed.size(), Expectations().size());
}

TEST(MalformedFiles, ATruncatedFileNeverLoads) {
  std::ifstream stream(std::string(kFolder) + "00b-valid-micro.gguf",
                       std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  ASSERT_EQ(bytes.size(), 9280u);
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A block of its own, so that a sanitizer sees a read past the end.
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + size);
    const auto file = GgufFile::FromFile(
        MappedFile::FromStatic(absl::MakeConstSpan(cut), "cut"));
    ASSERT_FALSE(CheckLlamaModel(file).ok()) << size;
  }
}

// Room was made for a download that never came.
TEST(MalformedFiles, ZerosBehindTheMagicAreNoByteOrder) {
  std::vector<uint8_t> bytes(4096);
  std::memcpy(bytes.data(), "GGUF", 4);
  absl::Status status =
      GgufFile::FromFile(
          MappedFile::FromStatic(absl::MakeConstSpan(bytes), "zeros"))
          .status();
  EXPECT_NE(status.message().find("empty after the magic"), std::string::npos)
      << status;
  bytes[7] = 3;  // version 3 of a machine with the other byte order
  status = GgufFile::FromFile(
               MappedFile::FromStatic(absl::MakeConstSpan(bytes), "swapped"))
               .status();
  EXPECT_NE(status.message().find("big-endian"), std::string::npos) << status;
}

TEST(MalformedFiles, BigContextIsRead) {
  auto file = GgufFile::Open(std::string(kFolder) + "49-ctx-4294967295.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  auto config = ReadModelConfig(*file);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->context_length, 4294967295);
}

TEST(MalformedFiles, AbsentKeyValueHeadsAreAllHeads) {
  auto file = GgufFile::Open(std::string(kFolder) + "48-no-kv-heads-mha.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  auto config = ReadModelConfig(*file);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head_count, 2);
  EXPECT_EQ(config->head_count_kv, 2);
}

TEST(MalformedFiles, AlignmentOf64ShiftsNoWeights) {
  auto plain = GgufFile::Open(std::string(kFolder) + "00b-valid-micro.gguf");
  auto aligned = GgufFile::Open(std::string(kFolder) + "18-align-64.gguf");
  auto version2 = GgufFile::Open(std::string(kFolder) + "26-v2.gguf");
  ASSERT_TRUE(plain.ok() && aligned.ok() && version2.ok());
  EXPECT_EQ(version2->version(), 2u);
  ASSERT_EQ(plain->tensors().size(), 11u);
  for (const GgufTensor& tensor : plain->tensors()) {
    for (const auto* other : {&aligned, &version2}) {
      const GgufTensor* same = (*other)->FindTensor(tensor.name);
      ASSERT_NE(same, nullptr) << tensor.name;
      EXPECT_EQ(same->data, tensor.data) << tensor.name;
    }
  }
}

}  // namespace
}  // namespace weft

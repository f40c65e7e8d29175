#include "loaders/weights.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/gguf_writer.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class WeightReaderTest : public ::testing::Test {
 protected:
  GgufFile FileWith(const std::vector<std::string>& names) {
    GgufWriter writer;
    const std::vector<uint8_t> data(4 * 6);
    for (const std::string& name : names) {
      writer.AddTensor(name, DType::kF32, {3, 2}, data);
    }
    const std::string path =
        absl::StrCat(::testing::TempDir(), "/", getpid(), "-weights.gguf");
    EXPECT_TRUE(writer.WriteTo(path).ok());
    auto file = GgufFile::Open(path);
    unlink(path.c_str());
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
};

std::string ErrorOf(const absl::Status& status) {
  return std::string(status.message());
}

TEST_F(WeightReaderTest, GivesTensorsOfTheRightShape) {
  const GgufFile file = FileWith({"a", "b"});
  WeightReader weights(file);
  auto a = weights.Require("a", {3, 2});
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ((*a)->name, "a");
  EXPECT_TRUE(weights.Optional("b", {3, 2, 1}).ok());
  EXPECT_EQ(*weights.Optional("c", {3, 2}), nullptr);
  // Again, as a tied embedding does.
  EXPECT_EQ(*weights.Require("a", {3, 2}), *a);
  EXPECT_TRUE(weights.CheckAllUsed().ok());
}

TEST_F(WeightReaderTest, NamesWhatIsMissingOrOfAnotherShape) {
  const GgufFile file = FileWith({"a"});
  WeightReader weights(file);
  EXPECT_THAT(ErrorOf(weights.Require("b", {7}).status()),
              AllOf(HasSubstr("missing tensor 'b'"), HasSubstr("[7]")));
  // Transposed, a prefix, an extension: none is right.
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
           {2, 3}, {3}, {3, 2, 2}, {6}, {1, 3, 2}, {}}) {
    EXPECT_THAT(
        ErrorOf(weights.Require("a", absl::MakeConstSpan(dims)).status()),
        AllOf(HasSubstr("'a'"), HasSubstr("[3, 2]"),
              HasSubstr(GgufShapeText(dims))));
    EXPECT_FALSE(weights.Optional("a", absl::MakeConstSpan(dims)).ok());
  }
  EXPECT_FALSE(weights.CheckAllUsed().ok());
}

TEST_F(WeightReaderTest, NamesTheFirstTensorThatNobodyTook) {
  const GgufFile file = FileWith({"a", "b", "c"});
  WeightReader weights(file);
  ASSERT_TRUE(weights.Require("a", {3, 2}).ok());
  ASSERT_TRUE(weights.Require("c", {3, 2}).ok());
  EXPECT_THAT(ErrorOf(weights.CheckAllUsed()), HasSubstr("unused tensor 'b'"));
}

TEST_F(WeightReaderTest, NamesTheOtherFormOfWhatIsMissing) {
  const GgufFile file =
      FileWith({"blk.1.attn_qkv.weight", "blk.1.ffn_gate_up_exps.weight",
                "blk.1.attn_v_b.weight"});
  WeightReader weights(file);
  for (const auto& [name, other] :
       {std::pair<const char*, const char*>{"attn_k", "attn_qkv"},
        {"ffn_up_exps", "ffn_gate_up_exps"},
        {"attn_kv_b", "attn_v_b"}}) {
    EXPECT_THAT(
        ErrorOf(weights.Require(absl::StrCat("blk.1.", name, ".weight"), {3, 2})
                    .status()),
        AllOf(HasSubstr(absl::StrCat("it has 'blk.1.", other, ".weight' in")),
              HasSubstr("form that is not supported")));
  }
  EXPECT_THAT(ErrorOf(weights.Require("blk.0.attn_k.weight", {3, 2}).status()),
              HasSubstr("missing tensor 'blk.0.attn_k.weight'"));
}

TEST_F(WeightReaderTest, OnlyImpliedTablesAndEncodersOfPicturesMayBeLeft) {
  const GgufFile implied =
      FileWith({"blk.0.attn_rot_embd", "blk.3.attn_rot_embd.weight",
                "model.layers.0.self_attn.rotary_emb.inv_freq"});
  EXPECT_TRUE(WeightReader(implied).CheckAllUsed().ok());
  const GgufFile pictures =
      FileWith({"v.blk.0.attn_q.weight", "mm.input_projection.weight"});
  EXPECT_TRUE(WeightReader(pictures).CheckAllUsed().ok());
  // These change the result.
  for (const char* name :
       {"rope_freqs.weight", "rope_factors_long.weight", "blk.0.attn_q.bias",
        "blk.0.attn_rot_embd.bias", "vision.weight", "v"}) {
    const GgufFile file = FileWith({name});
    EXPECT_THAT(ErrorOf(WeightReader(file).CheckAllUsed()), HasSubstr(name));
  }
}

}  // namespace
}  // namespace weft

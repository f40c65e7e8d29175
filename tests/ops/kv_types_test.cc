#include "ops/kv_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "graph/text_format.h"
#include "ops/op_table.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

KvTypes ParseOrDie(const std::string& text) {
  absl::StatusOr<KvTypes> types = KvTypes::Parse(text);
  EXPECT_TRUE(types.ok()) << text << ": " << types.status();
  return types.ok() ? *std::move(types) : KvTypes();
}

TEST(KvTypes, OneTypeIsOfAllBlocks) {
  EXPECT_EQ(KvTypes().OfBlock(7), DType::kF16);
  EXPECT_EQ(KvTypes(DType::kBF16).OfBlock(0), DType::kBF16);
  EXPECT_EQ(ParseOrDie("Q8_0").OfBlock(3), DType::kQ8_0);
  EXPECT_EQ(ParseOrDie("f32").last_block(), -1);
}

TEST(KvTypes, BlocksHaveTheirOwn) {
  const KvTypes types = ParseOrDie("q8_0,21=f32,0-1=f16");
  EXPECT_EQ(types.OfBlock(0), DType::kF16);
  EXPECT_EQ(types.OfBlock(1), DType::kF16);
  EXPECT_EQ(types.OfBlock(2), DType::kQ8_0);
  EXPECT_EQ(types.OfBlock(20), DType::kQ8_0);
  EXPECT_EQ(types.OfBlock(21), DType::kF32);
  EXPECT_EQ(types.OfBlock(22), DType::kQ8_0);
  EXPECT_EQ(types.last_block(), 21);
  // Without a type for all, it is what it would be without the flag.
  EXPECT_EQ(ParseOrDie("3=f32").OfBlock(3), DType::kF32);
  EXPECT_EQ(ParseOrDie("3=f32").OfBlock(4), DType::kF16);
}

TEST(KvTypes, WritesWhatItReads) {
  EXPECT_EQ(ParseOrDie("Q8_0,21=F32,0-1=f16").ToString(),
            "q8_0,0-1=f16,21=f32");
  for (const char* text :
       {"f16", "bf16", "q8_0,0-1=f16,21=f32", "f32,5=q8_0"}) {
    EXPECT_EQ(ParseOrDie(text).ToString(), text);
  }
  EXPECT_TRUE(ParseOrDie("f16,2=f32") == ParseOrDie("2=f32"));
  EXPECT_FALSE(ParseOrDie("f16,2=f32") == ParseOrDie("f16"));
}

TEST(KvTypes, WhatCannotBeReadIsNamed) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "unknown type ''"},
      {"q2_k", "unknown type 'q2_k'"},
      {"q4_0", "unknown type 'q4_0'"},
      {"f16,", "cannot read ''"},
      {"f16,f32", "cannot read 'f32'"},
      {"0=f16,f32", "cannot read 'f32'"},
      {"f16,0=", "unknown type ''"},
      {"f16,=f32", "'' is neither"},
      {"f16,a=f32", "'a' is neither"},
      {"f16,-1=f32", "'-1' is neither"},
      {"f16,2-1=f32", "'2-1' is neither"},
      {"f16,1-2-3=f32", "'1-2-3' is neither"},
      {"f16,0=f32=f16", "cannot read"},
      {"f16,4096=f32", "'4096' is neither"},
      {"f16,99999999999999999999=f32", "is neither"},
      {"f16,0-4=f32,3-9=bf16", "block 3 has two types"},
      {"f16,5=f32,5=f32", "block 5 has two types"},
  };
  for (const auto& [text, why] : wrong) {
    const absl::StatusOr<KvTypes> types = KvTypes::Parse(text);
    EXPECT_FALSE(types.ok()) << text;
    EXPECT_THAT(std::string(types.status().message()), HasSubstr(why)) << text;
  }
}

TEST(KvTypes, LongTextsAreRefusedUnread) {
  const absl::StatusOr<KvTypes> types =
      KvTypes::Parse("f16," + std::string(1 << 20, '='));
  EXPECT_THAT(std::string(types.status().message()), HasSubstr("at most"));
}

TEST(KvTypes, AreReadFromAGraph) {
  std::string text = "graph t tokens<=4 rows<=4 context<=64\n";
  const char* const types[] = {"f16", "f16", "q8_0", "f32", "q8_0"};
  for (int block = 0; block < 5; ++block) {
    const std::string b = std::to_string(block);
    text += "%" + b + " = state blk." + b + ".keys " + types[block] +
            "[S,1,32]{keys}\n";
  }
  absl::StatusOr<Graph> graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(KvTypes::Of(*graph).ToString(), "q8_0,0-1=f16,3=f32");
  EXPECT_EQ(KvTypes::Of(Graph()).ToString(), "f16");
}

}  // namespace
}  // namespace weft

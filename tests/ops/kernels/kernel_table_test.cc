#include "ops/kernels/kernel_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/text_format.h"
#include "ops/op_table.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr Isa kCaps[] = {Isa::kRef,        Isa::kAvx2,       Isa::kAvx512,
                         Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAvx512Amx,
                         Isa::kNeon,       Isa::kNeonDot,    Isa::kNeonI8mm};

// What adds the int8 dot product.
#if defined(__aarch64__)
constexpr Isa kDot = Isa::kNeonDot;
#else
constexpr Isa kDot = Isa::kAvx512Vnni;
#endif

bool HasKernels() {
  return FindKernel(absl::StrCat("attention_f16_64_", Name(kLeastIsa))) !=
         nullptr;
}

// A product of x by a weight of this type and layout.
Graph Product(DType weight, const std::string& layout, const char* x,
              int64_t tokens = 64) {
  std::string nodes = "%0 = embed(%ids, $table)  f32[T,256]\n";
  if (std::string(x) == "q8r") {
    nodes += "%1 = quantize_rows(%0)  q8r[T,256]\n%2 = matmul(%1, $w)";
  } else {
    nodes += "%2 = matmul(%0, $w)";
  }
  absl::StatusOr<Graph> graph = ParseGraph(absl::StrCat(
      "graph t tokens<=", tokens, " rows<=", tokens,
      " context<=64\n$table = weight f32[10,256]\n$w = weight ",
      Info(weight).name, "[48,256]",
      layout.empty() ? "" : absl::StrCat("{", layout, "}"),
      "\n%ids = input ids i32[T]\n", nodes, " f32[T,48]\noutput y = %2\n"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  const absl::Status legal = VerifyGraph(*graph);
  EXPECT_TRUE(legal.ok()) << legal;
  return *std::move(graph);
}

KernelChoice Choose(const Graph& graph, Isa cap,
                    KernelPreference preference = KernelPreference::kBest) {
  const Node& node = graph.node(graph.order().back());
  return ChooseKernel({graph, node, {cap}}, preference);
}

TEST(KernelTable, EveryOpButViewsHasAReferenceRowThatStandsLast) {
  std::set<std::string> seen;
  bool references = false;
  for (const auto& row : AllKernels()) {
    const bool reference = row->name() == row->op() + "_ref";
    EXPECT_TRUE(reference || !references)
        << row->name() << " behind references";
    references |= reference;
    if (reference) seen.insert(row->op());
  }
  for (const OpDef* op : AllOps()) {
    EXPECT_EQ(seen.count(op->name), op->view ? 0u : 1u) << op->name;
  }
}

TEST(KernelTable, NamesAreUniqueAndSayOpAndInstructionSet) {
  std::set<std::string> names;
  for (const auto& row : AllKernels()) {
    EXPECT_TRUE(names.insert(row->name()).second) << row->name();
    EXPECT_EQ(FindKernel(row->name()), row.get());
    EXPECT_NE(FindOp(row->op()), nullptr) << row->name();
    EXPECT_TRUE(absl::StartsWith(row->name(), row->op() + "_")) << row->name();
    // Kernels of a library end with its name, those of plain C++ for every
    // machine with what they read.
    const std::string last =
        std::vector<std::string>(absl::StrSplit(row->name(), '_')).back();
    if (last != "onednn" && !absl::EndsWith(row->name(), "_any_row")) {
      EXPECT_EQ(last, Name(row->isa())) << row->name();
    }
    EXPECT_NE(FindWeightLayout(row->weight_layout()), nullptr) << row->name();
    EXPECT_FALSE(row->summation().empty()) << row->name();
  }
  EXPECT_EQ(FindKernel("matmul"), nullptr);
  EXPECT_EQ(FindKernel(""), nullptr);
}

TEST(KernelTable, CapIsKept) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.quantized) continue;
    for (const char* layout : {"", "panel16"}) {
      const Graph graph = Product(info.type, layout, "q8r");
      for (Isa cap : kCaps) {
        const KernelChoice choice = Choose(graph, cap);
        ASSERT_NE(choice.entry, nullptr);
        EXPECT_TRUE(Includes(cap, choice.entry->isa()))
            << choice.entry->name() << " under " << Name(cap);
      }
      EXPECT_EQ(Choose(graph, Isa::kRef).entry->name(), "matmul_ref");
    }
  }
}

TEST(KernelTable, EveryWeightTypeHasAKernelOfItsOwn) {
  if (!HasKernels()) GTEST_SKIP() << "kernels of another processor";
  for (const DTypeInfo& info : AllDTypes()) {
    const DType type = info.type;
    if (type == DType::kI32 || type == DType::kQ8Rows) continue;
    for (const char* layout : {"", "panel16"}) {
      for (const char* x : {"f32", "q8r"}) {
        if (!info.quantized && std::string(x) == "q8r") continue;
        for (int64_t tokens : {1, 8, 512}) {
          const KernelChoice choice =
              Choose(Product(type, layout, x, tokens), kLeastIsa);
          // Floats meet panels of block types in no kernel: nothing lays such
          // weights out.
          const bool none = info.quantized && std::string(layout) != "" &&
                            std::string(x) == "f32";
          EXPECT_EQ(choice.entry->isa(), none ? Isa::kRef : kLeastIsa)
              << info.name << " " << layout << " " << x << " " << tokens;
        }
      }
    }
  }
}

#if defined(__x86_64__)
TEST(KernelTable, ProductsOfTilesAreForManyRowsOfTypesWithOneScalePer32) {
  const auto chosen = [](DType type, int64_t tokens, Isa cap) {
    return Choose(Product(type, "panel16", "q8r", tokens), cap).entry->isa();
  };
  for (DType type : {DType::kQ4_0, DType::kQ8_0, DType::kQ4_K}) {
    EXPECT_EQ(chosen(type, 64, Isa::kAvx512Amx), Isa::kAvx512Amx);
    EXPECT_EQ(chosen(type, 32, Isa::kAvx512Amx), Isa::kAvx512Vnni);
    EXPECT_EQ(chosen(type, 64, Isa::kAvx512Bf16), Isa::kAvx512Vnni);
  }
  EXPECT_EQ(chosen(DType::kQ6_K, 64, Isa::kAvx512Amx), Isa::kAvx512Vnni);
}
#endif

TEST(KernelTable, RefusalsSayWhy) {
  if (!HasKernels()) GTEST_SKIP() << "kernels of another processor";
  const Graph graph = Product(DType::kQ4_0, "panel16", "q8r", 512);
  const KernelChoice choice = Choose(graph, kLeastIsa);
  ASSERT_FALSE(choice.refused.empty());
  std::set<std::string> reasons;
  for (const auto& [row, why] : choice.refused) {
    EXPECT_EQ(row->op(), "matmul");
    EXPECT_FALSE(why.empty()) << row->name();
    reasons.insert(why);
  }
  const std::string all = absl::StrJoin(reasons, "; ");
  EXPECT_THAT(all, HasSubstr(absl::StrCat("needs ", Name(kDot))));
  EXPECT_THAT(all, HasSubstr("is for 1 to "));
  // Rows that stand before the chosen one, in the table's order.
  size_t at = 0;
  for (const auto& row : AllKernels()) {
    if (row.get() == choice.entry) break;
    if (at < choice.refused.size() && choice.refused[at].first == row.get()) {
      ++at;
    }
  }
  EXPECT_EQ(at, choice.refused.size());

  std::string others;
  for (const auto& [row, why] :
       Choose(Product(DType::kQ8_0, "", "f32"), Isa::kRef).refused) {
    absl::StrAppend(&others, why, "; ");
  }
  EXPECT_THAT(others, HasSubstr(absl::StrCat("needs ", Name(kLeastIsa))));
  std::string layouts;
  for (const auto& [row, why] :
       Choose(Product(DType::kQ8_0, "", "q8r"), kDot).refused) {
    absl::StrAppend(&layouts, why, "; ");
  }
  EXPECT_THAT(layouts, HasSubstr("reads weights in panel16"));
  EXPECT_THAT(layouts, HasSubstr("multiplies Q4_0"));
}

// What runs with choose-kernels switched off must give the same bits.
TEST(KernelTable, PlainestSumsInTheOrderOfTheBest) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (info.type == DType::kI32 || info.type == DType::kQ8Rows) continue;
    for (const char* layout : {"", "panel16"}) {
      for (const char* x : {"f32", "q8r"}) {
        if (!info.quantized && std::string(x) == "q8r") continue;
        for (int64_t tokens : {1, 512}) {
          const Graph graph = Product(info.type, layout, x, tokens);
          for (Isa cap : kCaps) {
            const KernelEntry* best = Choose(graph, cap).entry;
            const KernelEntry* plainest =
                Choose(graph, cap, KernelPreference::kPlainest).entry;
            EXPECT_EQ(best->summation(), plainest->summation())
                << best->name() << " and " << plainest->name();
            EXPECT_TRUE(Includes(cap, plainest->isa()));
          }
        }
      }
    }
  }
}

// Or results would depend on how many tokens a step has.
TEST(KernelTable, AllTokenCountsSumInOneOrder) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (info.type == DType::kI32 || info.type == DType::kQ8Rows) continue;
    for (const char* layout : {"", "panel16"}) {
      for (const char* x : {"f32", "q8r"}) {
        if (!info.quantized && std::string(x) == "q8r") continue;
        for (Isa cap : kCaps) {
          std::set<std::string> orders;
          for (int64_t tokens : {1, 2, 8, 24, 25, 64, 512, 4096}) {
            orders.insert(Choose(Product(info.type, layout, x, tokens), cap)
                              .entry->summation());
          }
          EXPECT_EQ(orders.size(), 1u)
              << info.name << " " << layout << " " << x << " " << Name(cap);
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft

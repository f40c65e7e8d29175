#include "runtime/execution/graph_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/allocation_counter.h"
#include "graph/text_format.h"
#include "ops/build.h"
#include "ops/op_table.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Graph ParseOrDie(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::vector<float> Random(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(n);
  for (float& x : numbers) x = float(random() % 2001) / 1000.0f - 1.0f;
  return numbers;
}

WeightData Weight(DType type, int64_t columns,
                  const std::vector<float>& numbers) {
  absl::StatusOr<WeightData> data = EncodeWeight(type, columns, numbers);
  EXPECT_TRUE(data.ok()) << data.status();
  return *std::move(data);
}

GraphRunnerOptions Options(int threads) {
  GraphRunnerOptions options;
  options.threads = threads;
  return options;
}

std::unique_ptr<GraphRunner> Make(const std::string& text,
                                  const NamedWeights& weights,
                                  int threads = 1) {
  absl::StatusOr<std::unique_ptr<GraphRunner>> runner =
      GraphRunner::Create(ParseOrDie(text), weights, Options(threads));
  EXPECT_TRUE(runner.ok()) << runner.status();
  return runner.ok() ? *std::move(runner) : nullptr;
}

// A two-layer perceptron: gelu(x w1^T + b1) w2^T + b2.
std::string Perceptron(const std::string& type) {
  return absl::StrCat(
      "graph perceptron tokens<=70 rows<=70 context<=1\n"
      "$w1 = weight ",
      type,
      "[96,64]\n"
      "$b1 = weight f32[96]\n"
      "$w2 = weight ",
      type,
      "[10,96]\n"
      "$b2 = weight f32[10]\n"
      "%0 = input x  f32[T,64]\n"
      "%1 = matmul(%0, $w1)  f32[T,96]\n"
      "%2 = add(%1, $b1)  f32[T,96]\n"
      "%3 = gelu(%2) approximation=\"none\"  f32[T,96]\n"
      "%4 = matmul(%3, $w2)  f32[T,10]\n"
      "%5 = add(%4, $b2)  f32[T,10]\n"
      "output classes = %5\noutput hidden = %3\n");
}

NamedWeights PerceptronWeights(DType type) {
  return {{"w1", Weight(type, 64, Random(96 * 64, 1))},
          {"b1", Weight(DType::kF32, 96, Random(96, 2))},
          {"w2", Weight(type, 96, Random(10 * 96, 3))},
          {"b2", Weight(DType::kF32, 10, Random(10, 4))}};
}

TEST(GraphRunner, ComputesWhatTheGraphSays) {
  const auto runner =
      Make(Perceptron("f32"), PerceptronWeights(DType::kF32), 2);
  ASSERT_NE(runner, nullptr);
  ASSERT_EQ(runner->inputs().size(), 1u);
  EXPECT_EQ(runner->inputs()[0].type.ToString(), "f32[T,64]");
  ASSERT_EQ(runner->outputs().size(), 2u);
  const std::vector<float> w1 = Random(96 * 64, 1), b1 = Random(96, 2),
                           w2 = Random(10 * 96, 3), b2 = Random(10, 4);
  for (int rows : {1, 3, 70}) {
    const std::vector<float> x = Random(rows * 64, 7);
    std::vector<float> y(rows * 10), h(rows * 96);
    const absl::Status s = runner->Run(
        {{"x", absl::MakeConstSpan(x)}},
        {{"hidden", absl::MakeSpan(h)}, {"classes", absl::MakeSpan(y)}});
    ASSERT_TRUE(s.ok()) << s;
    for (int t = 0; t < rows; ++t) {
      std::vector<double> hidden(96);
      for (int i = 0; i < 96; ++i) {
        double sum = b1[i];
        for (int k = 0; k < 64; ++k)
          sum += double(x[t * 64 + k]) * w1[i * 64 + k];
        hidden[i] = 0.5 * sum * (1 + std::erf(sum / std::sqrt(2.0)));
        EXPECT_NEAR(h[t * 96 + i], hidden[i], 1e-4);
      }
      for (int c = 0; c < 10; ++c) {
        double sum = b2[c];
        for (int k = 0; k < 96; ++k) sum += hidden[k] * w2[c * 96 + k];
        EXPECT_NEAR(y[t * 10 + c], sum, 1e-4) << t << " " << c;
      }
    }
  }
}

TEST(GraphRunner, OneRowIsTheSameBitsHoweverManyAreRun) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kQ8_0}) {
    const std::string text = Perceptron(Info(type).name);
    const NamedWeights weights = PerceptronWeights(type);
    const auto one = Make(text, weights, 1), two = Make(text, weights, 2);
    ASSERT_TRUE(one && two);
    const std::vector<float> x = Random(70 * 64, 9);
    std::vector<float> all(70 * 10), h(70 * 96);
    ASSERT_TRUE(two->Run({{"x", absl::MakeConstSpan(x)}},
                         {{"classes", absl::MakeSpan(all)},
                          {"hidden", absl::MakeSpan(h)}})
                    .ok());
    for (int t = 0; t < 70; ++t) {
      std::vector<float> row(10), hidden(96);
      ASSERT_TRUE(one->Run({{"x", absl::MakeConstSpan(x).subspan(t * 64, 64)}},
                           {{"classes", absl::MakeSpan(row)},
                            {"hidden", absl::MakeSpan(hidden)}})
                      .ok());
      EXPECT_EQ(std::memcmp(row.data(), all.data() + t * 10, 40), 0)
          << Info(type).name << " row " << t;
    }
  }
}

// Windows into inputs, weights and outputs; T and R apart; several inputs.
constexpr char kWindows[] =
    "graph windows tokens<=8 rows<=8 context<=1\n"
    "$w = weight f32[3,4]\n"
    "%0 = input x  f32[T,4]\n"
    "%1 = input rows  i32[R]\n"
    "%2 = slice(%0) begin=1 size=2  f32[T,2]\n"
    "%3 = slice(%0) begin=2 size=2  f32[T,2]\n"
    "%4 = add(%2, %3)  f32[T,2]\n"
    "%5 = take_rows(%4, %1)  f32[R,2]\n"
    "%6 = slice($w) begin=3 size=1  f32[3,1]\n"
    "%7 = silu(%6)  f32[3,1]\n"
    "%8 = mul(%0, %0)  f32[T,4]\n"
    "%9 = slice(%8) begin=1 size=3  f32[T,3]\n"
    "%10 = add(%9, %9)  f32[T,3]\n"
    "output sums = %5\noutput last = %7\noutput squares = %8\n"
    "output twice = %10\n";

TEST(GraphRunner, WindowsLookIntoAllKindsOfMemory) {
  const auto runner = Make(
      kWindows, {{"w", Weight(DType::kF32, 4,
                              {1, 2, 3, 0, 5, 6, 7, 100, 9, 10, 11, -100})}});
  ASSERT_NE(runner, nullptr);
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<int32_t> rows = {1};
  std::vector<float> sums(2), last(3), squares(8), twice(6);
  const absl::Status s = runner->Run(
      {{"rows", absl::MakeConstSpan(rows)}, {"x", absl::MakeConstSpan(x)}},
      {{"sums", absl::MakeSpan(sums)},
       {"last", absl::MakeSpan(last)},
       {"squares", absl::MakeSpan(squares)},
       {"twice", absl::MakeSpan(twice)}});
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_THAT(sums, ElementsAre(13, 15));
  EXPECT_FLOAT_EQ(last[1], 100);
  EXPECT_NEAR(last[2], 0, 1e-6);
  EXPECT_THAT(squares, ElementsAre(1, 4, 9, 16, 25, 36, 49, 64));
  EXPECT_THAT(twice, ElementsAre(8, 18, 32, 72, 98, 128));
}

// A product's second operand need not be a weight.
TEST(GraphRunner, MultipliesInputsAndResults) {
  const auto runner = Make(
      "graph t tokens<=40 rows<=40 context<=1\n%0 = input x  f32[T,33]\n"
      "%1 = input w  f32[5,33]\n%2 = mul(%1, %1)  f32[5,33]\n"
      "%3 = matmul(%0, %1)  f32[T,5]\n%4 = matmul(%0, %2)  f32[T,5]\n"
      "output y = %3\noutput z = %4\n",
      {}, 2);
  ASSERT_NE(runner, nullptr);
  const std::vector<float> w = Random(5 * 33, 2);
  for (int rows : {1, 40}) {
    const std::vector<float> x = Random(rows * 33, 1);
    std::vector<float> y(rows * 5), z(rows * 5);
    const absl::Status s = runner->Run(
        {{"x", absl::MakeConstSpan(x)}, {"w", absl::MakeConstSpan(w)}},
        {{"y", absl::MakeSpan(y)}, {"z", absl::MakeSpan(z)}});
    ASSERT_TRUE(s.ok()) << s;
    for (int t = 0; t < rows; ++t) {
      for (int i = 0; i < 5; ++i) {
        double sum = 0, squares = 0;
        for (int k = 0; k < 33; ++k) {
          const double wk = w[i * 33 + k];
          sum += x[t * 33 + k] * wk;
          squares += x[t * 33 + k] * wk * wk;
        }
        EXPECT_NEAR(y[t * 5 + i], sum, 1e-5);
        EXPECT_NEAR(z[t * 5 + i], squares, 1e-5);
      }
    }
  }
}

constexpr char kTaste[] =
    "graph taste tokens<=8 rows<=8 context<=1\n"
    "$users = weight f32[5,4]\n$items = weight f32[7,4]\n"
    "%0 = input user  i32[T]\n%1 = input item  i32[T]\n"
    "%2 = embed(%0, $users)  f32[T,4]\n%3 = embed(%1, $items)  f32[T,4]\n"
    "%4 = mul(%2, %3)  f32[T,4]\noutput y = %4\n";

NamedWeights TasteWeights() {
  return {{"users", Weight(DType::kF32, 4, Random(20, 1))},
          {"items", Weight(DType::kF32, 4, Random(28, 2))}};
}

TEST(GraphRunner, IndicesBeyondTheirTableAreRefused) {
  const auto runner = Make(kTaste, TasteWeights());
  ASSERT_NE(runner, nullptr);
  std::vector<float> y(8);
  const auto run = [&](std::vector<int32_t> user, std::vector<int32_t> item) {
    return std::string(runner
                           ->Run({{"user", absl::MakeConstSpan(user)},
                                  {"item", absl::MakeConstSpan(item)}},
                                 {{"y", absl::MakeSpan(y)}})
                           .message());
  };
  EXPECT_EQ(run({0, 4}, {6, 0}), "");
  EXPECT_THAT(run({0, 5}, {6, 0}), HasSubstr("user: 5: want 0 to 4"));
  EXPECT_THAT(run({0, 4}, {7, 0}), HasSubstr("item: 7: want 0 to 6"));
  EXPECT_THAT(run({-1, 4}, {6, 0}), HasSubstr("user: -1"));
}

TEST(GraphRunner, RowsOfTheStepBoundTheirIndices) {
  const auto runner =
      Make(kWindows, {{"w", Weight(DType::kF32, 4, Random(12, 1))}});
  ASSERT_NE(runner, nullptr);
  const std::vector<float> x = Random(8, 1);
  const std::vector<int32_t> rows = {2};
  std::vector<float> sums(2), last(3), squares(8), twice(6);
  EXPECT_THAT(std::string(runner
                              ->Run({{"rows", absl::MakeConstSpan(rows)},
                                     {"x", absl::MakeConstSpan(x)}},
                                    {{"sums", absl::MakeSpan(sums)},
                                     {"last", absl::MakeSpan(last)},
                                     {"squares", absl::MakeSpan(squares)},
                                     {"twice", absl::MakeSpan(twice)}})
                              .message()),
              HasSubstr("rows: 2: want 0 to 1"));
}

TEST(GraphRunner, WrongInputsAndOutputsAreNamed) {
  const auto runner = Make(Perceptron("f32"), PerceptronWeights(DType::kF32));
  ASSERT_NE(runner, nullptr);
  const std::vector<float> x(71 * 64);
  const std::vector<int32_t> integers(64);
  std::vector<float> y(71 * 10), h(71 * 96);
  const auto numbers = [&](size_t n) {
    return absl::MakeConstSpan(x).subspan(0, n);
  };
  const auto run = [&](std::vector<InputNumbers> inputs,
                       std::vector<OutputNumbers> outputs) {
    return std::string(
        runner->Run(absl::MakeConstSpan(inputs), absl::MakeConstSpan(outputs))
            .message());
  };
  const OutputNumbers classes = {"classes", absl::MakeSpan(y).subspan(0, 10)},
                      hidden = {"hidden", absl::MakeSpan(h).subspan(0, 96)};
  EXPECT_EQ(run({{"x", numbers(64)}}, {classes, hidden}), "");
  EXPECT_THAT(run({}, {classes, hidden}), HasSubstr("x: input is missing"));
  EXPECT_THAT(run({{"z", numbers(64)}}, {classes, hidden}),
              HasSubstr("z: the graph has no such input"));
  EXPECT_THAT(run({{"x", numbers(64)}, {"x", numbers(64)}}, {classes, hidden}),
              HasSubstr("x: is given twice"));
  EXPECT_THAT(run({{"x", absl::MakeConstSpan(integers)}}, {classes, hidden}),
              HasSubstr("x: wants f32, found i32"));
  for (size_t n : {0, 1, 63, 65}) {
    EXPECT_THAT(run({{"x", numbers(n)}}, {classes, hidden}),
                HasSubstr(absl::StrCat(n, " numbers for f32[T,64]")));
  }
  EXPECT_THAT(run({{"x", numbers(71 * 64)}}, {classes, hidden}),
              HasSubstr("x: 71 rows: the graph is planned for 70"));
  EXPECT_THAT(run({{"x", numbers(64)}}, {classes}),
              HasSubstr("hidden: output is missing"));
  EXPECT_THAT(run({{"x", numbers(64)}}, {classes, classes, hidden}),
              HasSubstr("classes: is given twice"));
  EXPECT_THAT(run({{"x", numbers(128)}}, {classes, hidden}),
              AllOf(HasSubstr("classes: room for 10 numbers"),
                    HasSubstr("has 20 in this step")));
  EXPECT_THAT(
      run({{"x", numbers(64)}}, {{"z", absl::MakeSpan(y)}, classes, hidden}),
      HasSubstr("z: the graph has no such output"));
}

TEST(GraphRunner, InputsMustAgreeOnTheirRows) {
  const auto runner = Make(kTaste, TasteWeights());
  ASSERT_NE(runner, nullptr);
  const std::vector<int32_t> user = {0, 1, 2}, item = {0, 1};
  std::vector<float> y(12);
  EXPECT_THAT(std::string(runner
                              ->Run({{"user", absl::MakeConstSpan(user)},
                                     {"item", absl::MakeConstSpan(item)}},
                                    {{"y", absl::MakeSpan(y)}})
                              .message()),
              HasSubstr("item: 2 numbers for i32[T]: want 3"));
}

std::string CreateError(const std::string& text, const NamedWeights& weights) {
  return std::string(GraphRunner::Create(ParseOrDie(text), weights, Options(1))
                         .status()
                         .message());
}

TEST(GraphRunner, WeightsAreChecked) {
  NamedWeights weights = TasteWeights();
  weights.erase("items");
  EXPECT_THAT(CreateError(kTaste, weights),
              HasSubstr("items: weight is missing"));
  weights = TasteWeights();
  weights["more"] = weights["items"];
  EXPECT_THAT(CreateError(kTaste, weights),
              HasSubstr("more: the graph has no weight of this name"));
  weights = TasteWeights();
  weights["items"] = Weight(DType::kF32, 4, Random(24, 2));
  EXPECT_THAT(CreateError(kTaste, weights),
              HasSubstr("items: weight of 96 bytes: f32[7,4] takes 112"));
  // Of another type: it has another size.
  weights["items"] = Weight(DType::kF16, 4, Random(28, 2));
  EXPECT_THAT(CreateError(kTaste, weights), HasSubstr("takes 112"));
  weights = TasteWeights();
  const std::vector<uint8_t> odd(200);
  weights["items"] = WeightData();
  weights["items"].bytes = absl::MakeConstSpan(odd).subspan(1, 112);
  EXPECT_THAT(CreateError(kTaste, weights), HasSubstr("aligned to 4"));
  EXPECT_FALSE(EncodeWeight(DType::kQ8_0, 33, Random(66, 1)).ok());
  EXPECT_FALSE(EncodeWeight(DType::kF32, 4, Random(5, 1)).ok());
  EXPECT_FALSE(EncodeWeight(DType::kF32, 0, {}).ok());
}

TEST(GraphRunner, GraphsThatItCannotRunAreRefused) {
  const std::string head = "graph t tokens<=8 rows<=8 context<=64\n";
  const std::string x = head + "%0 = input x  f32[T,32]\n";
  EXPECT_THAT(CreateError(x + "%1 = silu(%0)  f32[T,31]\noutput y = %1\n", {}),
              HasSubstr("illegal graph"));
  EXPECT_THAT(CreateError(x + "output y = %0\n", {}),
              HasSubstr("y: no node writes it"));
  EXPECT_THAT(
      CreateError(
          x + "%1 = slice(%0) begin=0 size=2  f32[T,2]\noutput y = %1\n", {}),
      HasSubstr("y: no node writes it"));
  EXPECT_THAT(
      CreateError(
          x + "%1 = silu(%0)  f32[T,32]\noutput y = %1\noutput z = %1\n", {}),
      HasSubstr("z: is another output too"));
  EXPECT_THAT(
      CreateError(x + "%1 = quantize_rows(%0)  q8r[T,32]\noutput y = %1\n", {}),
      HasSubstr("y: output is q8r[T,32]"));
  EXPECT_THAT(
      CreateError(head + "%0 = input x  f32[T,T]\n%1 = silu(%0)  f32[T,T]\n"
                         "output y = %1\n",
                  {}),
      HasSubstr("x: is f32[T,T]"));
  EXPECT_THAT(
      CreateError(head + "%0 = input x  f16[T,32]\n%1 = input z  f32[T,32]\n"
                         "%2 = silu(%1)  f32[T,32]\noutput y = %2\n",
                  {}),
      HasSubstr("x: input is f16[T,32]"));
  EXPECT_THAT(
      CreateError(x + "%1 = state k  f16[S,1,32]{keys}\n%2 = input p  i32[T]\n"
                      "%3 = input s  i32[T]\n"
                      "%4 = kv_write(%1, %0, %2, %3)  f16[S,1,32]{keys}\n"
                      "output k = %4\n",
                  {}),
      HasSubstr("k: is a state"));
  EXPECT_THAT(CreateError("graph t tokens<=100000 rows<=8 context<=64\n"
                          "%0 = input x  f32[T,32]\n%1 = silu(%0)  f32[T,32]\n"
                          "output y = %1\n",
                          {}),
              HasSubstr("tokens<=100000"));
}

TEST(GraphRunner, AnInputThatNothingReadsIsStillChecked) {
  const auto runner = Make(
      "graph t tokens<=8 rows<=8 context<=64\n%0 = input x  f32[T,2]\n"
      "%1 = input unused  f32[3]\n%2 = silu(%0)  f32[T,2]\noutput y = %2\n",
      {});
  ASSERT_NE(runner, nullptr);
  const std::vector<float> x = {0, 0};
  std::vector<float> y(2, 1.0f);
  EXPECT_THAT(std::string(runner
                              ->Run({{"x", absl::MakeConstSpan(x)},
                                     {"unused", absl::MakeConstSpan(x)}},
                                    {{"y", absl::MakeSpan(y)}})
                              .message()),
              HasSubstr("unused: 2 numbers for f32[3]: want 3"));
}

TEST(GraphRunner, TakesGraphsOfTheBuilder) {
  Graph graph;
  graph.name = "built";
  graph.bounds = {4, 4, 1};
  GraphBuilder b(&graph);
  const ValueId x =
      graph.AddInput("x", {DType::kF32, {Dim::Tokens(), Dim::Number(2)}, ""});
  const ValueId w =
      graph.AddWeight("w", {DType::kF32, {Dim::Number(1), Dim::Number(2)}, ""},
                      Weight(DType::kF32, 2, {3, -1}));
  graph.AddOutput("y", b.Matmul(x, w));
  ASSERT_TRUE(b.status().ok()) << b.status();
  auto runner = GraphRunner::Create(std::move(graph), {}, Options(1));
  ASSERT_TRUE(runner.ok()) << runner.status();
  const std::vector<float> numbers = {1, 2, 3, 4};
  std::vector<float> y(2);
  ASSERT_TRUE((*runner)
                  ->Run({{"x", absl::MakeConstSpan(numbers)}},
                        {{"y", absl::MakeSpan(y)}})
                  .ok());
  EXPECT_THAT(y, ElementsAre(1, 5));
}

TEST(GraphRunner, AStepTakesNoMemory) {
  const auto runner =
      Make(Perceptron("q8_0"), PerceptronWeights(DType::kQ8_0), 2);
  ASSERT_NE(runner, nullptr);
  const std::vector<float> x = Random(9 * 64, 1);
  std::vector<float> y(9 * 10), h(9 * 96);
  int64_t before = 0;
  for (int step = 0; step < 20; ++step) {
    if (step == 1) before = AllocationCount();
    const int64_t rows = step % 2 == 0 ? 9 : 2;
    const absl::Status s =
        runner->Run({{"x", absl::MakeConstSpan(x).subspan(0, rows * 64)}},
                    {{"classes", absl::MakeSpan(y).subspan(0, rows * 10)},
                     {"hidden", absl::MakeSpan(h).subspan(0, rows * 96)}});
    ASSERT_TRUE(s.ok()) << s;
  }
  EXPECT_EQ(AllocationCount() - before, 0);
}

}  // namespace
}  // namespace weft

// Adapters through the C interface.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "runtime/c/weft.h"
#include "tests/loaders/adapter_file.h"

namespace weft {
namespace {

constexpr char kModel[] = "tests/data/golden/arch/llama-gqa.gguf";

void Collect(const weft_event* event, void* user) {
  auto* tokens = static_cast<std::vector<int32_t>*>(user);
  tokens->insert(tokens->end(), event->tokens,
                 event->tokens + event->token_count);
}

class CAdapters : public testing::Test {
 protected:
  void SetUp() override {
    const auto model = GgufFile::Open(kModel);
    ASSERT_TRUE(model.ok()) << model.status();
    path_ = testing::TempDir() + "/c.gguf";
    WriteAdapter(*model, {}, path_);
    scaled_ = path_ + "=0";
    weft_options_init(&options_, sizeof options_);
    weft_request_init(&request_, sizeof request_);
    request_.tokens = kPrompt;
    request_.token_count = 3;
    request_.max_tokens = 8;
    request_.temperature = 0;
    request_.ignore_end_of_text = 1;
  }
  void TearDown() override { weft_free(engine_); }

  std::vector<int32_t> Tokens(std::vector<float> scales) {
    request_.adapter_scales = scales.empty() ? nullptr : scales.data();
    request_.adapter_scale_count = scales.size();
    std::vector<int32_t> tokens;
    code_ = weft_generate(engine_, &request_, Collect, &tokens);
    return tokens;
  }

  static constexpr int32_t kPrompt[] = {1, 42, 77};
  std::string path_, scaled_;
  weft_options options_;
  weft_request request_;
  weft_engine* engine_ = nullptr;
  weft_code code_ = WEFT_OK;
};

TEST_F(CAdapters, AreOfTheEngineAndChosenByTheRequest) {
  const char* const lora[] = {path_.c_str(), scaled_.c_str()};
  options_.lora = lora;
  options_.lora_count = 2;
  ASSERT_EQ(weft_load(kModel, &options_, &engine_), WEFT_OK) << weft_error();
  const std::vector<int32_t> first = Tokens({1, 0});
  EXPECT_EQ(first.size(), 8u);
  EXPECT_EQ(Tokens({}), first);
  EXPECT_EQ(Tokens({0, 1}), first);
  EXPECT_NE(Tokens({0, 0}), first);
  Tokens({1});
  EXPECT_EQ(code_, WEFT_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(weft_error(), "each of the 2 adapters"))
      << weft_error();
}

TEST_F(CAdapters, ThatCannotBeAreRefused) {
  const char* lora[] = {nullptr, scaled_.c_str()};
  options_.lora_count = 2;
  EXPECT_EQ(weft_load(kModel, &options_, &engine_), WEFT_INVALID_ARGUMENT);
  options_.lora = lora;
  EXPECT_EQ(weft_load(kModel, &options_, &engine_), WEFT_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(weft_error(), "lora[0]")) << weft_error();
  lora[0] = "none.gguf";
  EXPECT_EQ(weft_load(kModel, &options_, &engine_), WEFT_NOT_FOUND);
  lora[0] = kModel;
  EXPECT_EQ(weft_load(kModel, &options_, &engine_), WEFT_INVALID_ARGUMENT);
  EXPECT_EQ(engine_, nullptr);
}

}  // namespace
}  // namespace weft

#include "runtime/generation/constraint_cache.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/text/test_vocabulary.h"
#include "text/grammar/syntax.h"

namespace weft {
namespace {

class ConstraintCacheTest : public ::testing::Test {
 protected:
  ConstraintCacheTest() : tokenizer_(MakeTokenizer(BpeVocabulary("gpt-2"))) {}

  bool Allows(const absl::StatusOr<std::unique_ptr<TokenConstraint>>& made,
              int32_t token) {
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) return false;
    std::vector<uint64_t> mask(MaskWords(tokenizer_->vocabulary_size()));
    EXPECT_TRUE((*made)->Mask(absl::MakeSpan(mask)).ok());
    return (mask[token / 64] >> (token % 64) & 1) != 0;
  }

  const std::unique_ptr<const Tokenizer> tokenizer_;
};

// A source of 60 bytes and a grammar of megabytes.
std::string Large(int i) {
  return absl::StrCat("root ::= [a-b]{40000} [a-c]{40000} \"", i, "\"");
}

TEST_F(ConstraintCacheTest, AKindAndATextAreCompiledOnce) {
  ConstraintCache cache(tokenizer_.get());
  int made = 0;
  const auto make = [&]() -> absl::StatusOr<grammar::Syntax> {
    ++made;
    grammar::Syntax syntax;
    syntax.rules.push_back({"root", grammar::Literal("ab")});
    return syntax;
  };
  const auto first = cache.Of("kind", "text", make);
  const auto second = cache.Of("kind", "text", make);
  EXPECT_EQ(made, 1);
  // Each begins at the beginning.
  EXPECT_TRUE((*first)->Accept('a').ok());
  EXPECT_TRUE(Allows(second, 'a'));
  EXPECT_TRUE(Allows(first, 'b'));
  EXPECT_TRUE(cache.Of("other kind", "text", make).ok());
  EXPECT_TRUE(cache.Of("kind", "other text", make).ok());
  EXPECT_EQ(made, 3);
}

TEST_F(ConstraintCacheTest, KnowsGrammarsAndSchemas) {
  ConstraintCache cache(tokenizer_.get());
  EXPECT_TRUE(Allows(cache.OfGrammar("root ::= \"x\""), 'x'));
  EXPECT_TRUE(Allows(cache.OfJsonSchema(R"({"type": "boolean"})"), 't'));
  EXPECT_TRUE(Allows(cache.OfAnyJson(), '{'));
  EXPECT_FALSE(Allows(cache.OfAnyJson(), 't'));
  for (const auto& made :
       {cache.OfGrammar("root ::= ("), cache.OfGrammar("{}"),
        cache.OfJsonSchema("root ::= \"x\""), cache.OfJsonSchema("{"),
        cache.OfJsonSchema(R"({"type": "thing"})")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(made.status())) << made.status();
  }
}

TEST_F(ConstraintCacheTest, WhatIsKeptIsBoundedInBytes) {
  ConstraintCache::Limits limits;
  limits.kept_bytes = 20 << 20;
  ConstraintCache cache(tokenizer_.get(), limits);
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(cache.OfGrammar(Large(i)).ok()) << i;
    EXPECT_LE(cache.kept_bytes(), limits.kept_bytes);
    EXPECT_GT(cache.kept_bytes(), 0);
    // Nobody uses those that are not kept.
    EXPECT_LE(cache.alive_bytes(), cache.kept_bytes());
  }
}

TEST_F(ConstraintCacheTest, WhatIsAliveIsBoundedInBytes) {
  ConstraintCache::Limits limits;
  limits.alive_bytes = 40 << 20;
  ConstraintCache cache(tokenizer_.get(), limits);
  std::vector<std::unique_ptr<TokenConstraint>> used;
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) {
    auto made = cache.OfGrammar(Large(i));
    status = made.status();
    if (made.ok()) used.push_back(*std::move(made));
    EXPECT_LE(cache.alive_bytes(), limits.alive_bytes);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_GT(used.size(), 0u);
  // Those that are there already cost nothing more, and others go on when some
  // have ended.
  EXPECT_TRUE(cache.OfGrammar(Large(0)).ok());
  used.clear();
  EXPECT_TRUE(cache.OfGrammar(Large(100)).ok());
}

TEST_F(ConstraintCacheTest, ManyThreadsAskAtOnce) {
  ConstraintCache cache(tokenizer_.get());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const auto made =
            cache.OfGrammar(absl::StrCat("root ::= \"x", (i + t) % 5, "\""));
        EXPECT_TRUE(Allows(made, 'x'));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace weft

// Whether a text is one of a grammar's.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "text/grammar/automaton.h"
#include "text/grammar/compiled.h"
#include "text/grammar/gbnf.h"

namespace weft::grammar {

class Matcher {
 public:
  explicit Matcher(const absl::StatusOr<Syntax>& syntax) {
    EXPECT_TRUE(syntax.ok()) << syntax.status();
    if (!syntax.ok()) return;
    auto compiled = Compiled::Create(*syntax);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (!compiled.ok()) return;
    compiled_ = std::make_unique<const Compiled>(*std::move(compiled));
    automaton_ = std::make_unique<Automaton>(compiled_.get());
  }

  bool operator()(absl::string_view text) {
    if (automaton_ == nullptr) return false;
    int32_t set = automaton_->SetAt({compiled_->start(), 0});
    int64_t needed = 0;
    for (const char c : text) {
      set = automaton_->Step(set, static_cast<uint8_t>(c));
      // As constraints do, if less often: sets are only kept for speed.
      if (automaton_->bytes() > needed + kMaxSetBytes) {
        set = automaton_->ForgetAllBut(set);
        needed = automaton_->bytes();
      }
    }
    EXPECT_FALSE(automaton_->too_ambiguous());
    return automaton_->ended(set);
  }

 private:
  static constexpr int64_t kMaxSetBytes = int64_t{8} << 20;

  std::unique_ptr<const Compiled> compiled_;
  std::unique_ptr<Automaton> automaton_;
};

// Why a grammar is refused; empty if it is not.
inline std::string Refusal(const absl::StatusOr<Syntax>& syntax) {
  if (!syntax.ok()) return std::string(syntax.status().message());
  return std::string(Compiled::Create(*syntax).status().message());
}

}  // namespace weft::grammar

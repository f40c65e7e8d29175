#include "runtime/generation/stop_strings.h"

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

struct Outcome {
  int found = -1;
  std::string text;
};

// Byte by byte, with no memory of what came before: the stop string that ends
// first, the longest of those that end there.
Outcome Expected(const std::vector<std::string>& stops,
                 const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    int found = -1;
    for (size_t i = 0; i < stops.size(); ++i) {
      const std::string& stop = stops[i];
      if (stop.size() <= end &&
          text.compare(end - stop.size(), stop.size(), stop) == 0 &&
          (found < 0 || stop.size() > stops[found].size())) {
        found = static_cast<int>(i);
      }
    }
    if (found >= 0) return {found, text.substr(0, end - stops[found].size())};
  }
  return {-1, text};
}

TEST(StopStringsTest, HoldsBackOnlyWhatMayBecomeOne) {
  StopStrings stops({"</s>", "abab"});
  std::string out;
  EXPECT_EQ(stops.Push("x<", &out), -1);
  EXPECT_EQ(out, "x");
  EXPECT_EQ(stops.Push("/", &out), -1);
  EXPECT_EQ(out, "x");
  EXPECT_EQ(stops.Push("b", &out), -1);
  EXPECT_EQ(out, "x</b");
  EXPECT_EQ(stops.Push("aba", &out), -1);
  EXPECT_EQ(out, "x</b");
  EXPECT_EQ(stops.held_bytes(), 3);
  EXPECT_EQ(stops.Push("", &out), -1);
  EXPECT_EQ(stops.Push("aba", &out), -1);
  EXPECT_EQ(out, "x</baba");
  EXPECT_EQ(stops.Push("b and more", &out), 1);
  EXPECT_EQ(out, "x</baba");
}

TEST(StopStringsTest, FlushGivesTheRest) {
  StopStrings stops({"stop"});
  std::string out;
  EXPECT_EQ(stops.Push("sto", &out), -1);
  EXPECT_EQ(out, "");
  stops.Flush(&out);
  EXPECT_EQ(out, "sto");
}

TEST(StopStringsTest, AnyCutOfAnyTextGivesTheSame) {
  std::mt19937 random(3);
  const auto random_text = [&](size_t size) {
    std::string text(size, ' ');
    for (char& byte : text) byte = "ab"[random() % 2];
    return text;
  };
  int found = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = 0; i < random() % 4; ++i) {
      stops.push_back(random_text(1 + random() % 9));
    }
    const std::string text = random_text(random() % 40);
    const Outcome expected = Expected(stops, text);
    StopStrings matcher(stops);
    Outcome outcome;
    size_t begin = 0;
    while (begin < text.size() && outcome.found < 0) {
      const size_t size = random() % 5;
      outcome.found = matcher.Push(absl::string_view(text).substr(begin, size),
                                   &outcome.text);
      begin += size;
      ASSERT_LE(outcome.text.size(), expected.text.size());
    }
    if (outcome.found < 0) matcher.Flush(&outcome.text);
    ASSERT_EQ(outcome.found, expected.found) << text;
    ASSERT_EQ(outcome.text, expected.text) << text;
    found += outcome.found >= 0;
  }
  EXPECT_GT(found, 1000);
  EXPECT_LT(found, 4500);
}

}  // namespace
}  // namespace weft

#include "cli/line_diff.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr size_t kContext = 3;
constexpr size_t kMostCells = size_t{1} << 28;

// ' ' both, '-' before only, '+' after only.
struct Edit {
  char kind;
  absl::string_view line;
};

using Lines = std::vector<absl::string_view>;

// The edits of what lies between the equal lines at both ends.
void DiffMiddle(const Lines& a, const Lines& b, std::vector<Edit>* edits) {
  const size_t n = a.size(), m = b.size();
  if (n > 0 && m > kMostCells / n) {
    for (absl::string_view line : a) edits->push_back({'-', line});
    for (absl::string_view line : b) edits->push_back({'+', line});
    return;
  }
  // For every pair of suffixes: does the longest common subsequence take both
  // lines (' '), or leave out the one of a ('-') or of b ('+')?
  std::vector<char> step((n + 1) * (m + 1), 0);
  std::vector<int32_t> next(m + 1, 0), row(m + 1, 0);
  for (size_t i = n; i-- > 0;) {
    row[m] = 0;
    for (size_t j = m; j-- > 0;) {
      char& s = step[i * (m + 1) + j];
      if (a[i] == b[j]) {
        s = ' ';
        row[j] = next[j + 1] + 1;
      } else if (next[j] >= row[j + 1]) {
        s = '-';
        row[j] = next[j];
      } else {
        s = '+';
        row[j] = row[j + 1];
      }
    }
    std::swap(next, row);
  }
  size_t i = 0, j = 0;
  while (i < n || j < m) {
    const char s = i == n ? '+' : j == m ? '-' : step[i * (m + 1) + j];
    edits->push_back({s, s == '+' ? b[j] : a[i]});
    if (s != '+') ++i;
    if (s != '-') ++j;
  }
}

std::string Range(size_t first, size_t count) {
  // An empty range names the line before it.
  const size_t shown = count == 0 ? first : first + 1;
  return count == 1 ? absl::StrCat(shown) : absl::StrCat(shown, ",", count);
}

}  // namespace

std::string UnifiedDiff(const Lines& before, const Lines& after,
                        absl::string_view before_label,
                        absl::string_view after_label) {
  const size_t least = std::min(before.size(), after.size());
  size_t head = 0, tail = 0;
  while (head < least && before[head] == after[head]) ++head;
  while (tail < least - head &&
         before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) {
    ++tail;
  }
  std::vector<Edit> edits;
  for (size_t i = 0; i < head; ++i) edits.push_back({' ', before[i]});
  DiffMiddle(Lines(before.begin() + head, before.end() - tail),
             Lines(after.begin() + head, after.end() - tail), &edits);
  for (size_t i = 0; i < tail; ++i) {
    edits.push_back({' ', before[before.size() - tail + i]});
  }

  std::string text;
  size_t a = 0, b = 0;  // lines of each side before edits[i]
  for (size_t i = 0; i < edits.size();) {
    if (edits[i].kind == ' ') {
      ++i, ++a, ++b;
      continue;
    }
    // A hunk: until more than twice the context is equal.
    const size_t begin = i - std::min(i, kContext);
    size_t end = i, equal = 0;
    for (size_t k = i; k < edits.size() && equal <= 2 * kContext; ++k) {
      equal = edits[k].kind == ' ' ? equal + 1 : 0;
      if (equal == 0) end = k + 1;
    }
    end = std::min(edits.size(), end + kContext);
    const size_t first_a = a - (i - begin), first_b = b - (i - begin);
    std::string lines;
    size_t count_a = 0, count_b = 0;
    for (size_t k = begin; k < end; ++k) {
      absl::StrAppend(&lines, std::string(1, edits[k].kind), edits[k].line,
                      "\n");
      if (edits[k].kind != '+') ++count_a;
      if (edits[k].kind != '-') ++count_b;
    }
    if (text.empty()) {
      text = absl::StrCat("--- ", before_label, "\n+++ ", after_label, "\n");
    }
    absl::StrAppend(&text, "@@ -", Range(first_a, count_a), " +",
                    Range(first_b, count_b), " @@\n", lines);
    a = first_a + count_a;
    b = first_b + count_b;
    i = end;
  }
  return text;
}

}  // namespace weft

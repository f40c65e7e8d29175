#include "chat/transcript.h"

#include <algorithm>

#include "chat/terminal_text.h"

namespace weft::chat {
namespace {

constexpr int kIndent = 2;

}  // namespace

void Transcript::Add(Kind kind, absl::string_view text) {
  items_.push_back({kind, std::string(text)});
}

size_t Transcript::NewestAnswer() const {
  const auto newest =
      std::find_if(items_.rbegin(), items_.rend(),
                   [](const Item& item) { return item.kind == kAssistant; });
  return newest == items_.rend() ? items_.size()
                                 : newest.base() - items_.begin() - 1;
}

void Transcript::Append(absl::string_view text) {
  const size_t answer = NewestAnswer();
  if (answer == items_.size() || text.empty()) return;
  items_[answer].text.append(text.data(), text.size());
  laid_out_ = std::min(laid_out_, answer);
}

void Transcript::RemoveAnswer() {
  items_.erase(items_.begin() + NewestAnswer(), items_.end());
  laid_out_ = std::min(laid_out_, items_.size());
}

void Transcript::Clear() {
  items_.clear();
  laid_out_ = 0;
}

const std::vector<Span>& Transcript::Rows(int columns) {
  if (columns != columns_) {
    columns_ = columns;
    laid_out_ = 0;
  }
  rows_.resize(laid_out_ == 0 ? 0 : items_[laid_out_ - 1].end_row);
  for (; laid_out_ < items_.size(); ++laid_out_) {
    AddRows(items_[laid_out_]);
    items_[laid_out_].end_row = rows_.size();
  }
  return rows_;
}

void Transcript::AddRows(const Item& item) {
  const bool spoken = item.kind == kUser || item.kind == kAssistant;
  const bool after_notice =
      !rows_.empty() && (rows_.back().style == Style::kNotice ||
                         rows_.back().style == Style::kError);
  if (!rows_.empty() && (spoken || !after_notice)) rows_.emplace_back();
  if (item.kind == kUser) rows_.push_back({"You", Style::kUser});
  if (item.kind == kAssistant) {
    rows_.push_back({FitLine(name_, columns_), Style::kAssistant});
  }
  const Style style = item.kind == kNotice  ? Style::kNotice
                      : item.kind == kError ? Style::kError
                                            : Style::kPlain;
  for (std::string& line : WrapText(item.text, columns_ - kIndent)) {
    rows_.push_back(
        {line.empty() ? line : std::string(kIndent, ' ') + line, style});
  }
}

}  // namespace weft::chat

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

void Transcript::Append(absl::string_view text) {
  if (!items_.empty()) items_.back().text.append(text.data(), text.size());
}

void Transcript::RemoveAnswer() {
  const auto newest =
      std::find_if(items_.rbegin(), items_.rend(),
                   [](const Item& item) { return item.kind == kAssistant; });
  if (newest == items_.rend()) return;
  items_.erase(newest.base() - 1, items_.end());
  columns_ = 0;
}

void Transcript::Clear() {
  items_.clear();
  columns_ = 0;
}

const std::vector<Span>& Transcript::Rows(int columns) {
  if (columns != columns_) {
    columns_ = columns;
    finished_items_ = finished_rows_ = 0;
  }
  rows_.resize(finished_rows_);
  for (size_t i = finished_items_; i < items_.size(); ++i) {
    finished_items_ = i;
    finished_rows_ = rows_.size();
    AddRows(items_[i]);
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

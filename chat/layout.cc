#include "chat/layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "chat/terminal_text.h"

namespace weft::chat {
namespace {

constexpr int kPrompt = 2;  // columns before the message
// Heights from which there is room for more.
constexpr int kHeightForSettings = 12;
constexpr int kHeightForLog = 10;
constexpr int kMostInputRows = 8;

// `left` and `right` on one row of exactly `columns`; what is on the right goes
// first when there is no room.
std::vector<Span> Bar(const std::string& left, const std::string& right,
                      int columns, Style style) {
  std::string text = FitLine(absl::StrCat(" ", left), columns);
  const int room = columns - Columns(text);
  const std::string end = absl::StrCat(right, " ");
  const int width = Columns(end);
  if (right.empty() || width + 1 > room) {
    text.append(room, ' ');
  } else {
    text.append(room - width, ' ');
    text += end;
  }
  return {{text, style}};
}

// As many of the numbers as fit beside the state.
std::string Numbers(const ScreenContent& content, int columns) {
  const int room = columns - Columns(content.state) - 3;
  std::string text;
  for (const std::string& number : content.numbers) {
    std::string longer =
        text.empty() ? number : absl::StrCat(text, " · ", number);
    if (Columns(longer) > room) break;
    text = std::move(longer);
  }
  return text;
}

std::vector<Span> Rule(const std::string& title, int columns) {
  std::string text = title.empty() ? "" : absl::StrCat("── ", title, " ");
  if (Columns(text) > columns) text.clear();
  for (int i = Columns(text); i < columns; ++i) text += "─";
  return {{text, Style::kFaint}};
}

class Builder {
 public:
  Builder(int columns, int rows) : columns_(columns), rows_(rows) {}

  void Add(std::vector<Span> row) { frame_.rows.push_back(std::move(row)); }
  int used() const { return static_cast<int>(frame_.rows.size()); }

  void Conversation(Transcript* transcript, Scroll* scroll, int height) {
    // The last column stays free for the mark of how far it is.
    const std::vector<Span>& all = transcript->Rows(std::max(columns_ - 1, 1));
    scroll->rows = static_cast<int>(all.size());
    scroll->visible = height;
    const int last_top = std::max(scroll->rows - height, 0);
    if (scroll->top >= last_top) scroll->follow = true;
    const int top = scroll->follow ? last_top : std::max(scroll->top, 0);
    scroll->top = top;
    for (int i = top; i < top + height; ++i) {
      if (i >= scroll->rows) {
        Add({});
      } else {
        Span span = all[i];
        span.text = FitLine(span.text, columns_);
        Add({span});
      }
    }
  }

  void Log(const std::vector<std::string>& log, int height) {
    Add(Rule("log", columns_));
    --height;
    const int size = static_cast<int>(log.size());
    const int first = std::max(size - height, 0);
    for (int i = first; i < first + height; ++i) {
      if (i < size) {
        Add({{FitLine(log[i], columns_), Style::kFaint}});
      } else {
        Add({});
      }
    }
  }

  void Input(const LineEditor::Rows& input, int height) {
    // Scrolled so that the cursor is seen.
    const int first = std::max(input.cursor_row - height + 1, 0);
    const bool narrow = columns_ < 2 * kPrompt;
    const int indent = narrow ? 0 : kPrompt;
    for (int i = first; i < first + height; ++i) {
      std::vector<Span> row;
      if (!narrow) row.push_back({i == 0 ? "> " : "  ", Style::kUser});
      if (i < static_cast<int>(input.rows.size())) {
        row.push_back({FitLine(input.rows[i], columns_ - indent)});
      }
      if (i == input.cursor_row) {
        frame_.cursor_row = used();
        frame_.cursor_column =
            std::min(indent + input.cursor_column, columns_ - 1);
      }
      Add(std::move(row));
    }
  }

  Frame Finish() {
    frame_.rows.resize(rows_);
    frame_.cursor_row = std::min(frame_.cursor_row, rows_ - 1);
    return std::move(frame_);
  }

 private:
  const int columns_, rows_;
  Frame frame_;
};

}  // namespace

void Scroll::Move(int by) {
  const int last_top = std::max(rows - visible, 0);
  top = std::clamp(top + by, 0, last_top);
  follow = top == last_top;
}

Frame LayOut(const ScreenContent& content, const LineEditor& editor,
             Transcript* transcript, Scroll* scroll, int columns, int rows) {
  const LineEditor::Rows input = editor.Layout(std::max(columns - kPrompt, 2));
  // What is always there is the message; then bars, from 4 rows on.
  const bool bars = rows >= 4;
  const bool settings = rows >= kHeightForSettings;
  const bool rules = rows >= 8;
  const int fixed = (bars ? 2 : 0) + (settings ? 1 : 0) + (rules ? 1 : 0);
  const int most_input = std::clamp((rows - fixed) / 2, 1, kMostInputRows);
  const int input_height =
      std::clamp(static_cast<int>(input.rows.size()), 1, most_input);
  const int log_height =
      content.show_log && rows >= kHeightForLog ? std::max(rows / 4, 3) : 0;
  const int conversation = rows - fixed - input_height - log_height;

  Builder builder(columns, rows);
  if (bars) {
    builder.Add(
        Bar(content.title, content.title_details, columns, Style::kBar));
  }
  if (settings) {
    builder.Add(Bar(content.settings, "", columns, Style::kFaint));
  }
  builder.Conversation(transcript, scroll, std::max(conversation, 0));
  if (log_height > 0) builder.Log(content.log, log_height);
  if (rules) {
    const int below = scroll->rows - scroll->top - scroll->visible;
    builder.Add(Rule(below > 0 ? absl::StrCat(below, " rows below: PgDn") : "",
                     columns));
  }
  builder.Input(input, input_height);
  if (bars) {
    builder.Add(
        Bar(Numbers(content, columns), content.state, columns, Style::kBar));
  }
  return builder.Finish();
}

}  // namespace weft::chat

// Where everything is on the screen: from top to bottom a bar about the model,
// the conversation, the log if it is shown, the message that is being written,
// and a bar of numbers. A small screen loses the least needed first.
#pragma once

#include <string>
#include <vector>

#include "chat/frame.h"
#include "chat/line_editor.h"
#include "chat/transcript.h"

namespace weft::chat {

// What is shown. Texts are a line each.
struct ScreenContent {
  std::string title, title_details;  // left and right in the upper bar
  std::string settings;              // below it
  // Left and right in the lower bar. Where there is no room, the last numbers
  // go.
  std::vector<std::string> numbers;
  std::string state;
  std::vector<std::string> log;  // oldest first
  bool show_log = false;
};

// Rows of the conversation that are shown: the last ones, or from a row on.
struct Scroll {
  bool follow = true;
  int top = 0;  // when not following

  // Set by LayOut.
  int rows = 0;     // of the conversation
  int visible = 0;  // that there is room for

  // By whole rows, negative is up; at the end it follows again.
  void Move(int by);
};

// For a screen of this size, both at least 1.
Frame LayOut(const ScreenContent& content, const LineEditor& editor,
             Transcript* transcript, Scroll* scroll, int columns, int rows);

}  // namespace weft::chat

#include "text/jinja/print.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft::jinja {
namespace {

void AppendReprOfText(const Text& value, Text& text) {
  const auto has = [&](char32_t wanted) {
    return std::any_of(value.begin(), value.end(),
                       [&](char32_t c) { return CodePoint(c) == wanted; });
  };
  const char32_t quote = has('\'') && !has('"') ? '"' : '\'';
  text.push_back(quote);
  for (const char32_t character : value) {
    const char32_t c = CodePoint(character), mark = character & kMark;
    const auto escape = [&](absl::string_view letters) {
      for (const char letter : letters) {
        text.push_back(static_cast<unsigned char>(letter) | mark);
      }
    };
    if (c == quote || c == '\\') {
      escape("\\");
      text.push_back(character);
    } else if (c == '\n') {
      escape("\\n");
    } else if (c == '\r') {
      escape("\\r");
    } else if (c == '\t') {
      escape("\\t");
    } else if (IsPrintable(character)) {
      text.push_back(character);
    } else if (c < 0x100) {
      escape(absl::StrFormat("\\x%02x", c));
    } else if (c < 0x10000) {
      escape(absl::StrFormat("\\u%04x", c));
    } else {
      escape(absl::StrFormat("\\U%08x", c));
    }
  }
  text.push_back(quote);
}

void AppendJsonOfText(const Text& value, bool ascii_only, Text& text) {
  text.push_back('"');
  for (const char32_t character : value) {
    const char32_t c = CodePoint(character), mark = character & kMark;
    static constexpr absl::string_view kNames = "\"\\nrtbf";
    static constexpr absl::string_view kMeant = "\"\\\n\r\t\b\f";
    const size_t place =
        c < 0x80 ? kMeant.find(static_cast<char>(c)) : kMeant.npos;
    const auto escape = [&](char32_t code) {
      for (const char letter : absl::StrFormat("\\u%04x", code)) {
        text.push_back(static_cast<unsigned char>(letter) | mark);
      }
    };
    if (place != kMeant.npos) {
      text.push_back('\\' | mark);
      text.push_back(static_cast<unsigned char>(kNames[place]) | mark);
    } else if (c < 0x20 || (ascii_only && c > 0x7E && c < 0x10000)) {
      escape(c);
    } else if (ascii_only && c >= 0x10000) {
      escape(0xD800 + ((c - 0x10000) >> 10));
      escape(0xDC00 + ((c - 0x10000) & 0x3FF));
    } else {
      text.push_back(character);
    }
  }
  text.push_back('"');
}

class JsonWriter {
 public:
  JsonWriter(Context& context, const JsonStyle& style, Text& text)
      : context_(context), style_(style), text_(text) {
    AppendAscii(style.indent.has_value() ? "," : ", ", comma_);
    AppendAscii(": ", colon_);
    if (style.item_separator.has_value()) comma_ = *style.item_separator;
    if (style.key_separator.has_value()) colon_ = *style.key_separator;
  }

  void Write(const Value& value) {
    if (!context_.Spend(1)) return;
    switch (value.kind()) {
      case Value::Kind::kNone:
        return AppendAscii("null", text_);
      case Value::Kind::kBool:
        return AppendAscii(value.Truth() ? "true" : "false", text_);
      case Value::Kind::kInt:
        return AppendAscii(WholeText(value.whole()), text_);
      case Value::Kind::kFloat:
        return value.spelling().empty() ? WriteFloat(value.number())
                                        : AppendAscii(value.spelling(), text_);
      case Value::Kind::kString:
        return WriteText(value.text());
      case Value::Kind::kList:
      case Value::Kind::kTuple:
        return WriteList(value.items());
      case Value::Kind::kMapping:
        return WriteMapping(value.entries());
      case Value::Kind::kUndefined:
        context_.Fail(absl::StrCat("tojson: ", value.why_undefined()));
        return;
      default:
        context_.Fail(absl::StrCat("tojson: a value of type ", value.TypeName(),
                                   " cannot be written as JSON"));
    }
  }

 private:
  void WriteFloat(double value) {
    if (std::isnan(value)) return AppendAscii("NaN", text_);
    if (std::isinf(value)) {
      return AppendAscii(value < 0 ? "-Infinity" : "Infinity", text_);
    }
    AppendAscii(FloatText(value), text_);
  }

  void WriteText(const Text& value) {
    if (!context_.Spend(static_cast<int64_t>(value.size()))) return;
    AppendJsonOfText(value, style_.ascii_only, text_);
  }

  void NewLine() {
    if (!style_.indent.has_value()) return;
    text_.push_back('\n');
    if (!context_.Spend(level_ * static_cast<int64_t>(style_.indent->size()))) {
      return;
    }
    for (int i = 0; i < level_; ++i) text_ += *style_.indent;
  }

  void WriteList(const std::vector<Value>& items) {
    if (items.empty()) return AppendAscii("[]", text_);
    text_.push_back('[');
    ++level_;
    for (size_t i = 0; i < items.size() && !context_.failed(); ++i) {
      if (i > 0) text_ += comma_;
      NewLine();
      Write(items[i]);
    }
    --level_;
    NewLine();
    text_.push_back(']');
  }

  void WriteMapping(const Entries& entries) {
    if (entries.empty()) return AppendAscii("{}", text_);
    std::vector<const std::pair<Value, Value>*> order;
    for (const auto& entry : entries) order.push_back(&entry);
    if (style_.sort_keys) {
      for (const auto* entry : order) {
        if (entry->first.is_string()) continue;
        context_.Fail("tojson: only keys that are strings can be sorted");
        return;
      }
      std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) {
        return CompareText(a->first.text(), b->first.text()) < 0;
      });
    }
    text_.push_back('{');
    ++level_;
    for (size_t i = 0; i < order.size() && !context_.failed(); ++i) {
      if (i > 0) text_ += comma_;
      NewLine();
      WriteKey(order[i]->first);
      text_ += colon_;
      Write(order[i]->second);
    }
    --level_;
    NewLine();
    text_.push_back('}');
  }

  void WriteKey(const Value& key) {
    if (key.is_string()) return WriteText(key.text());
    text_.push_back('"');
    Write(key);
    text_.push_back('"');
  }

  Context& context_;
  const JsonStyle& style_;
  Text& text_;
  Text comma_, colon_;
  int level_ = 0;
};

}  // namespace

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char digits[64];
  const double size = std::fabs(value);
  const bool scientific = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto end = std::to_chars(
      digits, digits + sizeof(digits), value,
      scientific ? std::chars_format::scientific : std::chars_format::fixed);
  std::string text(digits, end.ptr);
  if (!scientific && text.find('.') == text.npos) text += ".0";
  return text;
}

void AppendRepr(Context& context, const Value& value, Text& text) {
  if (!context.Spend(4)) return;
  switch (value.kind()) {
    case Value::Kind::kString:
      if (!context.Spend(static_cast<int64_t>(value.text().size()))) return;
      return AppendReprOfText(value.text(), text);
    case Value::Kind::kUndefined:
      return AppendAscii("Undefined", text);
    case Value::Kind::kList:
    case Value::Kind::kTuple: {
      const bool tuple = value.is(Value::Kind::kTuple);
      const std::vector<Value>& items = value.items();
      text.push_back(tuple ? '(' : '[');
      for (size_t i = 0; i < items.size() && !context.failed(); ++i) {
        if (i > 0) AppendAscii(", ", text);
        AppendRepr(context, items[i], text);
      }
      if (tuple && items.size() == 1) text.push_back(',');
      text.push_back(tuple ? ')' : ']');
      return;
    }
    case Value::Kind::kMapping: {
      text.push_back('{');
      bool first = true;
      for (const auto& [key, item] : value.entries()) {
        if (context.failed()) return;
        if (!first) AppendAscii(", ", text);
        first = false;
        AppendRepr(context, key, text);
        AppendAscii(": ", text);
        AppendRepr(context, item, text);
      }
      text.push_back('}');
      return;
    }
    default:
      AppendPrinted(context, value, text);
  }
}

void AppendPrinted(Context& context, const Value& value, Text& text) {
  if (!context.Spend(4)) return;
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return;
    case Value::Kind::kNone:
      return AppendAscii("None", text);
    case Value::Kind::kBool:
      return AppendAscii(value.Truth() ? "True" : "False", text);
    case Value::Kind::kInt:
      return AppendAscii(WholeText(value.whole()), text);
    case Value::Kind::kFloat:
      return AppendAscii(value.spelling().empty() ? FloatText(value.number())
                                                  : value.spelling(),
                         text);
    case Value::Kind::kString:
      if (!context.Spend(static_cast<int64_t>(value.text().size()))) return;
      text += value.text();
      return;
    case Value::Kind::kList:
    case Value::Kind::kTuple:
    case Value::Kind::kMapping:
      return AppendRepr(context, value, text);
    default:
      AppendAscii(absl::StrCat("<", value.TypeName(), ">"), text);
  }
}

Text Printed(Context& context, const Value& value) {
  Text text;
  AppendPrinted(context, value, text);
  return text;
}

void AppendJson(Context& context, const Value& value, const JsonStyle& style,
                Text& text) {
  JsonWriter(context, style, text).Write(value);
}

}  // namespace weft::jinja

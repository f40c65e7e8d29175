// A tiny model that says a given text whatever it is asked, so that what is
// made of answers is tested without a trained model.
#pragma once

#include <string>
#include <vector>

namespace weft {

// Writes it and returns its path. It says `text`, then ends. Where `control`
// tokens stand in the text or at the end of what the template prints, they are
// meant. The template must end with "<|go|>", a control token, too.
std::string ScriptedModel(const std::string& file_name, const std::string& text,
                          const std::string& chat_template,
                          const std::vector<std::string>& control = {});

}  // namespace weft

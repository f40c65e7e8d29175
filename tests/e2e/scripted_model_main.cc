// Writes a model that says standard input and ends (scripted_model.h), for
// pictures: scripted_model_main FILE_NAME, in the folder TEST_TMPDIR.
#include <iostream>
#include <iterator>

#include "tests/e2e/scripted_model.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: scripted_model_main FILE_NAME < TEXT\n";
    return 2;
  }
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  std::cout << weft::ScriptedModel(
                   argv[1], text,
                   "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
                   "{% if m.reasoning_content %}<think></think>{% endif %}"
                   "{% endfor %}<|go|>")
            << "\n";
  return 0;
}

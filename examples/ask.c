/* weft in a C program: the text that goes on from a prompt, as it comes.
 *   bazel run //examples:ask -- "It is a truth" [MODEL.gguf]
 */
#include <stdio.h>

#include "runtime/c/weft.h"

static void Print(const weft_event* event, void* user) {
  (void)user;
  fwrite(event->text, 1, event->text_size, stdout);
  fflush(stdout);
  if (event->finished && event->reason == WEFT_FAILED) {
    fprintf(stderr, "%s\n", event->error);
  }
}

int main(int argc, char** argv) {
  weft_engine* engine;
  if (weft_load(argc > 2 ? argv[2] : NULL, NULL, &engine) != WEFT_OK) {
    fprintf(stderr, "%s\n", weft_error());
    return 1;
  }
  weft_request request;
  weft_request_init(&request, sizeof request);
  request.text = argc > 1 ? argv[1] : "It is a truth";
  request.temperature = 0;
  request.max_tokens = 20;
  weft_code code = weft_generate(engine, &request, Print, NULL);
  if (code != WEFT_OK) fprintf(stderr, "%s\n", weft_error());
  printf("\n");
  weft_free(engine);
  return code != WEFT_OK;
}

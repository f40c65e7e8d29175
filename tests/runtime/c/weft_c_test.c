/* The C interface from a C program: what it gives, and what it does with calls
 * that are wrong. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/c/weft.h"

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      fprintf(stderr, "%s:%d: %s does not hold; last error: %s\n", __FILE__, \
              __LINE__, #condition, weft_error());                           \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

enum { kMost = 256 };

/* What came of one request. */
typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t ended;
  char text[4096];
  size_t text_size;
  int32_t tokens[kMost];
  double logprobs[kMost];
  size_t token_count;
  weft_reason reason;
  int finished, last;
  int64_t cached_tokens, completion_tokens;
} Result;

static void Begin(Result* result) {
  memset(result, 0, sizeof *result);
  pthread_mutex_init(&result->mutex, NULL);
  pthread_cond_init(&result->ended, NULL);
}

static void Take(const weft_event* event, void* user) {
  Result* result = user;
  pthread_mutex_lock(&result->mutex);
  CHECK(event->struct_size >= sizeof *event);
  CHECK(!result->last);
  CHECK(strlen(event->text) == event->text_size);
  CHECK(result->text_size + event->text_size < sizeof result->text);
  CHECK(result->token_count + event->token_count <= kMost);
  memcpy(result->text + result->text_size, event->text, event->text_size);
  result->text_size += event->text_size;
  for (size_t i = 0; i < event->token_count; ++i) {
    if (event->logprobs != NULL) {
      result->logprobs[result->token_count] = event->logprobs[i];
    }
    result->tokens[result->token_count++] = event->tokens[i];
  }
  result->finished += event->finished;
  if (event->finished) result->reason = event->reason;
  result->last = event->last;
  result->cached_tokens = event->cached_tokens;
  result->completion_tokens = event->completion_tokens;
  if (event->last) pthread_cond_signal(&result->ended);
  pthread_mutex_unlock(&result->mutex);
}

static void Wait(Result* result) {
  pthread_mutex_lock(&result->mutex);
  while (!result->last) pthread_cond_wait(&result->ended, &result->mutex);
  pthread_mutex_unlock(&result->mutex);
}

static int SameResult(const Result* a, const Result* b) {
  return a->token_count == b->token_count && strcmp(a->text, b->text) == 0 &&
         memcmp(a->tokens, b->tokens, sizeof a->tokens) == 0 &&
         memcmp(a->logprobs, b->logprobs, sizeof a->logprobs) == 0;
}

static weft_request Greedy(const char* text, int64_t max_tokens) {
  weft_request request;
  CHECK(weft_request_init(&request, sizeof request) == WEFT_OK);
  request.text = text;
  request.max_tokens = max_tokens;
  request.temperature = 0;
  request.ignore_end_of_text = 1;
  request.logprobs = 1;
  return request;
}

static void TestDefaults(void) {
  CHECK(weft_abi_version() == WEFT_ABI_VERSION);
  weft_options options;
  CHECK(weft_options_init(&options, sizeof options) == WEFT_OK);
  CHECK(options.struct_size == sizeof options);
  CHECK(options.slots == 4 && options.prefix_cache == 1);
  weft_request request;
  CHECK(weft_request_init(&request, sizeof request) == WEFT_OK);
  CHECK(request.choices == 1 && request.max_tokens == 100);
  CHECK(request.text_size == SIZE_MAX);
  CHECK(request.speculate == 1);
}

static void TestLoadErrors(void) {
  weft_engine* engine = (weft_engine*)&engine;
  CHECK(weft_load("nowhere.gguf", NULL, &engine) == WEFT_NOT_FOUND);
  CHECK(engine == NULL);
  CHECK(strstr(weft_error(), "nowhere.gguf") != NULL);
  CHECK(weft_load(NULL, NULL, NULL) == WEFT_INVALID_ARGUMENT);
  weft_options options;
  weft_options_init(&options, sizeof options);
  options.kv_type = "f17";
  CHECK(weft_load(NULL, &options, &engine) == WEFT_INVALID_ARGUMENT);
  CHECK(strstr(weft_error(), "f17") != NULL);
  weft_options_init(&options, sizeof options);
  options.speculate = "guess";
  CHECK(weft_load(NULL, &options, &engine) == WEFT_INVALID_ARGUMENT);
  CHECK(strstr(weft_error(), "weft_options.speculate") != NULL);
  weft_options_init(&options, sizeof options);
  options.slots = 0;
  CHECK(weft_load(NULL, &options, &engine) == WEFT_INVALID_ARGUMENT);
  memset(&options, 0, sizeof options);
  CHECK(weft_load(NULL, &options, &engine) == WEFT_INVALID_ARGUMENT);
  CHECK(strstr(weft_error(), "struct_size") != NULL);
  weft_free(NULL);
}

static void TestTokens(weft_engine* engine) {
  const char text[] = "It is a truth";
  int32_t tokens[64];
  size_t count = 0;
  CHECK(weft_tokenize(engine, text, strlen(text), 1, 0, NULL, 0, &count) ==
        WEFT_BUFFER_TOO_SMALL);
  CHECK(count > 1 && count <= 64);
  const size_t needed = count;
  CHECK(weft_tokenize(engine, text, strlen(text), 1, 0, tokens, 64, &count) ==
        WEFT_OK);
  CHECK(count == needed);
  char back[64];
  size_t size = 0;
  CHECK(weft_detokenize(engine, tokens, count, back, 3, &size) ==
        WEFT_BUFFER_TOO_SMALL);
  CHECK(size == strlen(text));
  CHECK(weft_detokenize(engine, tokens, count, back, sizeof back, &size) ==
        WEFT_OK);
  CHECK(size == strlen(text) && memcmp(back, text, size) == 0);
  tokens[0] = weft_vocabulary_size(engine);
  CHECK(weft_detokenize(engine, tokens, 1, back, sizeof back, &size) !=
        WEFT_OK);
  CHECK(weft_tokenize(NULL, text, 1, 1, 0, tokens, 64, &count) ==
        WEFT_INVALID_ARGUMENT);
  CHECK(!weft_is_end_of_text(engine, -1));
}

/* Requests beside each other give what each gives alone, to the bit. */
static void TestSideBySide(weft_engine* engine) {
  const char* prompts[3] = {"It is a truth universally acknowledged, that",
                            "She was", "Mr. Darcy looked at the window and"};
  static Result alone[3], beside[3];
  for (int i = 0; i < 3; ++i) {
    Begin(&alone[i]);
    const weft_request request = Greedy(prompts[i], 24);
    CHECK(weft_generate(engine, &request, Take, &alone[i]) == WEFT_OK);
    CHECK(alone[i].last && alone[i].finished == 1);
    CHECK(alone[i].reason == WEFT_LENGTH);
    CHECK(alone[i].token_count == 24 && alone[i].completion_tokens == 24);
    CHECK(alone[i].logprobs[0] < 0);
  }
  for (int i = 0; i < 3; ++i) {
    Begin(&beside[i]);
    const weft_request request = Greedy(prompts[i], 24);
    int64_t id = 0;
    CHECK(weft_submit(engine, &request, Take, &beside[i], &id) == WEFT_OK);
    CHECK(id > 0);
  }
  for (int i = 0; i < 3; ++i) {
    Wait(&beside[i]);
    CHECK(SameResult(&alone[i], &beside[i]));
  }
}

static void TestTokensAsPrompt(weft_engine* engine) {
  int32_t tokens[64];
  size_t count;
  CHECK(weft_tokenize(engine, "She was", 7, 1, 0, tokens, 64, &count) ==
        WEFT_OK);
  static Result from_text, from_tokens;
  Begin(&from_text);
  Begin(&from_tokens);
  weft_request request = Greedy("She was", 8);
  CHECK(weft_generate(engine, &request, Take, &from_text) == WEFT_OK);
  request.tokens = tokens;
  request.token_count = count;
  CHECK(weft_generate(engine, &request, Take, &from_tokens) == WEFT_OK);
  CHECK(SameResult(&from_text, &from_tokens));
}

static void TestStopAndChoices(weft_engine* engine) {
  static Result whole, stopped, choices;
  Begin(&whole);
  weft_request request = Greedy("It is a truth", 24);
  CHECK(weft_generate(engine, &request, Take, &whole) == WEFT_OK);
  const char* space = strchr(whole.text + 4, ' ');
  CHECK(space != NULL);
  Begin(&stopped);
  const char* stops[1] = {" "};
  request.stop = stops;
  request.stop_count = 1;
  CHECK(weft_generate(engine, &request, Take, &stopped) == WEFT_OK);
  CHECK(stopped.reason == WEFT_STOP);
  CHECK(strchr(stopped.text, ' ') == NULL);
  CHECK(strncmp(whole.text, stopped.text, stopped.text_size) == 0);

  Begin(&choices);
  request = Greedy("It is a truth", 4);
  request.choices = 3;
  request.temperature = 1;
  CHECK(weft_generate(engine, &request, Take, &choices) == WEFT_OK);
  CHECK(choices.finished == 3 && choices.completion_tokens == 12);
}

static void TestCancelAndErrors(weft_engine* engine) {
  static Result result;
  Begin(&result);
  weft_request request = Greedy("It is a truth", 200);
  int64_t id;
  CHECK(weft_submit(engine, &request, Take, &result, &id) == WEFT_OK);
  CHECK(weft_cancel(engine, id) == WEFT_OK);
  Wait(&result);
  CHECK(result.reason == WEFT_CANCELLED);
  CHECK(weft_cancel(engine, 1 << 30) == WEFT_NOT_FOUND);

  CHECK(weft_generate(engine, NULL, Take, NULL) == WEFT_INVALID_ARGUMENT);
  CHECK(weft_generate(engine, &request, NULL, NULL) == WEFT_INVALID_ARGUMENT);
  request.temperature = -1;
  CHECK(weft_generate(engine, &request, Take, NULL) == WEFT_INVALID_ARGUMENT);
  CHECK(strstr(weft_error(), "temperature") != NULL);
  request = Greedy(NULL, 4);
  CHECK(weft_generate(engine, &request, Take, NULL) == WEFT_INVALID_ARGUMENT);
  int32_t* many = calloc(weft_capacity(engine) + 1, sizeof *many);
  CHECK(many != NULL);
  request.tokens = many;
  request.token_count = weft_capacity(engine) + 1;
  CHECK(weft_generate(engine, &request, Take, NULL) == WEFT_OUT_OF_RANGE);
  free(many);
}

typedef struct {
  weft_engine* engine;
  int refused;
} Caller;

static void CallBack(const weft_event* event, void* user) {
  Caller* caller = user;
  if (!event->last) return;
  const weft_request request = Greedy("She was", 1);
  caller->refused += weft_generate(caller->engine, &request, CallBack, user) ==
                     WEFT_INVALID_ARGUMENT;
  caller->refused += weft_drain(caller->engine, 1) == WEFT_INVALID_ARGUMENT;
  caller->refused += weft_free(caller->engine) == WEFT_INVALID_ARGUMENT;
}

/* What would wait for itself is an error; so are sizes that cannot be. */
static void TestMisuse(weft_engine* engine) {
  Caller caller = {engine, 0};
  weft_request request = Greedy("She was", 1);
  CHECK(weft_generate(engine, &request, CallBack, &caller) == WEFT_OK);
  CHECK(caller.refused == 3);
  int32_t tokens[16];
  size_t count = 0, zero_ended = 0;
  CHECK(weft_tokenize(engine, "She was", 7, 1, 0, tokens, 16, &count) ==
        WEFT_OK);
  CHECK(weft_tokenize(engine, "She was", SIZE_MAX, 1, 0, tokens, 16,
                      &zero_ended) == WEFT_OK);
  CHECK(count == zero_ended);
  CHECK(weft_tokenize(engine, "She was", SIZE_MAX - 1, 1, 0, tokens, 16,
                      &count) == WEFT_INVALID_ARGUMENT);
  request.text_size = SIZE_MAX - 1;
  CHECK(weft_generate(engine, &request, Take, NULL) == WEFT_INVALID_ARGUMENT);
  request = Greedy(NULL, 1);
  request.tokens = tokens;
  request.token_count = SIZE_MAX;
  CHECK(weft_generate(engine, &request, Take, NULL) == WEFT_INVALID_ARGUMENT);
  request = Greedy("She was", 1);
  request.stop_count = 2;
  CHECK(weft_generate(engine, &request, Take, NULL) == WEFT_INVALID_ARGUMENT);
}

static void TestForms(weft_engine* engine) {
  static Result result;
  Begin(&result);
  weft_request request = Greedy("The answer:", 40);
  request.ignore_end_of_text = 0;
  request.grammar = "root ::= \"yes\" | \"no\"";
  CHECK(weft_generate(engine, &request, Take, &result) == WEFT_OK);
  CHECK(strcmp(result.text, "yes") == 0 || strcmp(result.text, "no") == 0);
  CHECK(result.reason == WEFT_END_OF_TEXT);
  Begin(&result);
  request.grammar = NULL;
  request.json_schema = "{\"enum\": [17, 18]}";
  CHECK(weft_generate(engine, &request, Take, &result) == WEFT_OK);
  CHECK(strcmp(result.text, "17") == 0 || strcmp(result.text, "18") == 0);
  request.grammar = "root ::= \"a\"";
  CHECK(weft_generate(engine, &request, Take, NULL) == WEFT_INVALID_ARGUMENT);
  request.grammar = NULL;
  request.json_schema = "{";
  CHECK(weft_generate(engine, &request, Take, NULL) == WEFT_INVALID_ARGUMENT);
  CHECK(strstr(weft_error(), "json_schema") != NULL);
  request.json_schema = NULL;
  request.grammar = "root ::= missing";
  CHECK(weft_generate(engine, &request, Take, NULL) == WEFT_INVALID_ARGUMENT);
  CHECK(strstr(weft_error(), "missing") != NULL);
}

static void TestChatPrompt(weft_engine* engine) {
  const char messages[] = "[{\"role\":\"user\",\"content\":\"Hello\"}]";
  int32_t tokens[64];
  size_t count = 0;
  CHECK(weft_chat_prompt(engine, messages, strlen(messages), tokens, 64,
                         &count) == WEFT_OK);
  char text[256];
  size_t size = 0;
  CHECK(weft_detokenize(engine, tokens, count, text, sizeof text - 1, &size) ==
        WEFT_OK);
  text[size] = 0;
  CHECK(strstr(text, "Hello") != NULL);
  CHECK(weft_chat_prompt(engine, messages, strlen(messages), NULL, 0, &count) ==
        WEFT_BUFFER_TOO_SMALL);
  CHECK(weft_chat_prompt(engine, "{}", 2, tokens, 64, &count) ==
        WEFT_INVALID_ARGUMENT);
  CHECK(weft_chat_prompt(engine, "[", 1, tokens, 64, &count) ==
        WEFT_INVALID_ARGUMENT);
}

/* A program from before the last fields, and one from after them. */
static void TestStructSizes(weft_engine* engine) {
  static Result now, older;
  Begin(&now);
  Begin(&older);
  weft_request request = Greedy("She was", 4);
  CHECK(weft_generate(engine, &request, Take, &now) == WEFT_OK);
  request.struct_size = offsetof(weft_request, logprobs);
  request.timeout_seconds = -1; /* not seen */
  CHECK(weft_generate(engine, &request, Take, &older) == WEFT_OK);
  CHECK(strcmp(now.text, older.text) == 0);
  CHECK(now.logprobs[0] != 0 && older.logprobs[0] == 0);

  struct {
    weft_request known;
    int64_t unknown;
  } newer;
  CHECK(weft_request_init(&newer.known, sizeof newer) == WEFT_OK);
  CHECK(newer.known.struct_size == sizeof newer && newer.unknown == 0);
  newer.known.text = "She was";
  newer.known.max_tokens = 1;
  Begin(&now);
  CHECK(weft_generate(engine, &newer.known, Take, &now) == WEFT_OK);
  newer.unknown = 1;
  CHECK(weft_generate(engine, &newer.known, Take, NULL) == WEFT_UNSUPPORTED);
}

int main(void) {
  TestDefaults();
  TestLoadErrors();
  weft_options options;
  weft_options_init(&options, sizeof options);
  options.context = 256;
  weft_engine* engine;
  CHECK(weft_load(NULL, &options, &engine) == WEFT_OK);
  CHECK(weft_capacity(engine) == 256);
  TestTokens(engine);
  TestSideBySide(engine);
  TestTokensAsPrompt(engine);
  TestStopAndChoices(engine);
  TestCancelAndErrors(engine);
  TestMisuse(engine);
  TestForms(engine);
  TestChatPrompt(engine);
  TestStructSizes(engine);
  CHECK(weft_drain(engine, 10) == WEFT_OK);
  const weft_request late = Greedy("She was", 4);
  CHECK(weft_generate(engine, &late, Take, NULL) == WEFT_UNAVAILABLE);
  weft_free(engine);
  printf("PASSED\n");
  return 0;
}

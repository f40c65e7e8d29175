/* weft for C, and for whatever calls C: many requests at once on one model, in
 * the caller's process.
 *
 *   weft_engine* engine = NULL;
 *   if (weft_load("model.gguf", NULL, &engine) != WEFT_OK) {
 *     fprintf(stderr, "%s\n", weft_error());
 *   }
 *   weft_request request;
 *   weft_request_init(&request, sizeof request);
 *   request.text = "It is a truth";
 *   weft_generate(engine, &request, print, NULL);  // void print(event, user)
 *   weft_free(engine);
 *
 * Errors: a function that can fail returns a weft_code; weft_error() then has
 * one line that says what, where and what to do. No C++ exception leaves the
 * library.
 *
 * Threads: every function may be called from any thread at any time, but for
 * weft_free, which must be the last one called with its engine.
 *
 * Stability: within one WEFT_ABI_VERSION functions keep their meaning, numbers
 * keep theirs, and structs only grow at their end. The caller says how large
 * its structs are (struct_size, which the _init functions set), so a program
 * works with every later library of the same version. Events come from the
 * library: a field is there if `struct_size` reaches beyond it.
 *
 * Text is UTF-8. Sizes are in bytes; texts that are given with a size need no
 * zero at their end, and for those that have one the size may be SIZE_MAX.
 * Results are the same to the bit whatever else runs beside a request.
 */
#ifndef WEFT_RUNTIME_C_WEFT_H_
#define WEFT_RUNTIME_C_WEFT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ABI_VERSION 1
#define WEFT_API __attribute__((visibility("default")))

/* That of the library; compare it with WEFT_ABI_VERSION. */
WEFT_API int32_t weft_abi_version(void);

typedef int32_t weft_code;
enum {
  WEFT_OK = 0,
  WEFT_INVALID_ARGUMENT = 1,   /* a field is out of range, a file is broken */
  WEFT_NOT_FOUND = 2,          /* no such file */
  WEFT_OUT_OF_RANGE = 3,       /* the prompt does not fit the context */
  WEFT_RESOURCE_EXHAUSTED = 4, /* memory, or the queue is full */
  WEFT_UNAVAILABLE = 5,        /* weft_drain has begun */
  WEFT_UNSUPPORTED = 6,        /* a model, type or processor */
  WEFT_BUFFER_TOO_SMALL = 7,   /* the size that is needed has been told */
  WEFT_INTERNAL = 8            /* anything else */
};

/* Of the last call on this thread that failed; "" before. Valid until the next
 * call on this thread. */
WEFT_API const char* weft_error(void);

/* ---- A model ------------------------------------------------------------- */

typedef struct weft_engine weft_engine;

typedef struct weft_options {
  size_t struct_size;
  int32_t threads;     /* 0: the physical cores that the process may use */
  int32_t context;     /* positions of a sequence; 0: the model's, up to 4096 */
  int32_t slots;       /* for sequences that run at the same time; 4 */
  int32_t queue_limit; /* sequences that may wait; 1024 */
  int32_t prefill_tokens; /* of prompts in one step beside running texts; 64 */
  int32_t prefix_cache;   /* 0 or 1; 1 */
  int32_t huge_pages;     /* ask for transparent ones; 0 or 1; 1 */
  int32_t force;          /* load although memory does not suffice; 0 */
  const char* kv_type;    /* "f16", "f32", "bf16", "q8_0"; NULL: "f16" */
  const char* isa;        /* the most of the processor to use; NULL: all */
  /* Who guesses tokens, so that several run in one step where that is faster:
   * "off"; "lookup": how the text went on before; "mtp": the model's own
   * next-token block, where its file has one; or "draft:" and the path of a
   * smaller model with the same vocabulary. Changes no bit. NULL: "off" */
  const char* speculate;
  /* LoRA adapters beside the weights, "FILE" or "FILE=SCALE" each: the scale is
   * for requests that do not say, 1 where it is left out. */
  const char* const* lora; /* NULL */
  size_t lora_count;       /* 0 */
} weft_options;

/* Defaults. `struct_size` is sizeof(weft_options) of the caller. */
WEFT_API weft_code weft_options_init(weft_options* options, size_t struct_size);

/* A .gguf file or a .weft plan; a path of NULL or "" is the default model that
 * the library holds. `options` may be NULL for defaults. What is given need not
 * outlive the call. */
WEFT_API weft_code weft_load(const char* path, const weft_options* options,
                             weft_engine** engine);

/* Cancels what runs; its callbacks have been called when this returns. Not from
 * a callback. NULL is allowed. */
WEFT_API weft_code weft_free(weft_engine* engine);

WEFT_API int32_t weft_vocabulary_size(const weft_engine* engine);
/* The most tokens that can be run of a prompt and its text together. */
WEFT_API int64_t weft_capacity(const weft_engine* engine);
WEFT_API int32_t weft_is_end_of_text(const weft_engine* engine, int32_t token);

/* ---- Tokens -------------------------------------------------------------- */

/* `*count` becomes the number of tokens. They are written only if `capacity`
 * is enough; else the result is WEFT_BUFFER_TOO_SMALL. `add_special`: BOS and
 * EOS as the vocabulary wants them. `parse_special`: control tokens written in
 * the text are meant; 0 for text that users wrote. */
WEFT_API weft_code weft_tokenize(const weft_engine* engine, const char* text,
                                 size_t text_size, int32_t add_special,
                                 int32_t parse_special, int32_t* tokens,
                                 size_t capacity, size_t* count);

/* `*text_size` becomes the size of the text, which gets no zero at its end. */
WEFT_API weft_code weft_detokenize(const weft_engine* engine,
                                   const int32_t* tokens, size_t count,
                                   char* text, size_t capacity,
                                   size_t* text_size);

/* The tokens of a conversation in the model's own chat template, up to where
 * the assistant answers. `messages` is a JSON array of objects with "role" and
 * "content". What they hold is never taken for control tokens. Sizes as above.
 */
WEFT_API weft_code weft_chat_prompt(weft_engine* engine, const char* messages,
                                    size_t messages_size, int32_t* tokens,
                                    size_t capacity, size_t* count);

/* ---- Requests ------------------------------------------------------------ */

typedef struct weft_request {
  size_t struct_size;
  /* The prompt: tokens, or text if `tokens` is NULL. `text_size` is
   * SIZE_MAX by default. */
  const int32_t* tokens;
  size_t token_count;
  const char* text;
  size_t text_size;
  int32_t parse_special;      /* of `text`; 0 */
  int32_t choices;            /* texts side by side; 1 */
  int64_t max_tokens;         /* below 0: until the context is full; 100 */
  int64_t min_tokens;         /* 0 */
  float temperature;          /* 0: greedy; 0.8 */
  int32_t top_k;              /* 0: off; 50 */
  float top_p;                /* 1: off; 0.9 */
  float min_p;                /* 0: off; 0 */
  float repeat_penalty;       /* 1: off; 1.1 */
  int32_t repeat_window;      /* tokens; 64 */
  float frequency_penalty;    /* 0 */
  float presence_penalty;     /* 0 */
  uint64_t seed;              /* 0 */
  int32_t ignore_end_of_text; /* 0 */
  int32_t logprobs;           /* 1: tell log-probabilities; 0 */
  const char* const* stop;    /* texts that end the text; NULL */
  size_t stop_count;
  double timeout_seconds; /* 0: none */
  /* What the text must be, at most one of the two: a grammar in GBNF, or a JSON
   * schema ("{}": any value). NULL: anything. */
  const char* grammar;
  const char* json_schema;
  /* What becomes of a text that fills the context: it ends (0), or its first
   * `shift_keep` tokens and the newest half of the rest go on (1). */
  int32_t context_shift; /* 0 */
  int64_t shift_keep;    /* 4 */
  /* Added to the logits of `bias_tokens`; -INFINITY forbids a token. */
  const int32_t* bias_tokens; /* NULL */
  const float* biases;        /* NULL */
  size_t bias_count;          /* 0 */
  int32_t speculate;          /* tokens may be guessed, see weft_options; 1 */
  /* How much the text has of each adapter that the engine was loaded with, as
   * many numbers as there are; 0: nothing of it. NULL: as loaded. */
  const float* adapter_scales; /* NULL */
  size_t adapter_scale_count;  /* 0 */
} weft_request;

WEFT_API weft_code weft_request_init(weft_request* request, size_t struct_size);

typedef int32_t weft_reason;
enum {
  WEFT_END_OF_TEXT = 0,
  WEFT_STOP = 1,    /* one of weft_request.stop */
  WEFT_LENGTH = 2,  /* max_tokens */
  WEFT_CONTEXT = 3, /* the context is full */
  WEFT_DEADLINE = 4,
  WEFT_CANCELLED = 5,
  WEFT_FAILED = 6 /* `error` says why */
};

/* News of one choice of one request; valid during the callback. */
typedef struct weft_event {
  size_t struct_size;
  int64_t request;
  int32_t choice;
  int32_t finished; /* the choice's last event: `reason` is meant */
  weft_reason reason;
  int32_t last;     /* the request's last event */
  const char* text; /* whole characters, a zero at their end */
  size_t text_size;
  const int32_t* tokens;
  const double* logprobs; /* of the tokens; NULL unless asked for */
  size_t token_count;
  const char* error;     /* with WEFT_FAILED; else "" */
  int64_t prompt_tokens; /* of the request so far, all choices together */
  int64_t cached_tokens;
  int64_t completion_tokens;
  int64_t drafted_tokens;  /* guessed and tried */
  int64_t accepted_tokens; /* of them, those that came true */
} weft_event;

/* Called on the engine's thread, never two at a time: others wait meanwhile. It
 * may call every function but weft_generate, weft_drain and weft_free. */
typedef void (*weft_callback)(const weft_event* event, void* user);

/* Returns at once. A request that is accepted ends with exactly one event that
 * is `last`; it may come before this returns. `id` may be NULL. */
WEFT_API weft_code weft_submit(weft_engine* engine, const weft_request* request,
                               weft_callback callback, void* user, int64_t* id);

/* The same, and returns after the last event. */
WEFT_API weft_code weft_generate(weft_engine* engine,
                                 const weft_request* request,
                                 weft_callback callback, void* user);

/* Ends a request soon, with WEFT_CANCELLED. WEFT_NOT_FOUND: it has ended, or
 * there never was one of this number. */
WEFT_API weft_code weft_cancel(weft_engine* engine, int64_t id);

/* Accepts no more requests and waits until those that run have ended; after
 * `timeout_seconds` they are cancelled. Not from a callback. */
WEFT_API weft_code weft_drain(weft_engine* engine, double timeout_seconds);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_RUNTIME_C_WEFT_H_ */

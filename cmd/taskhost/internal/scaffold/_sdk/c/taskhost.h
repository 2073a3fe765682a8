/* taskhost.h: write taskhost handlers in C or C++. One header, nothing to link, no libc needed.
 *
 *     #include "taskhost.h"
 *
 *     TASKHOST_HANDLER {
 *         char buf[256];
 *         int64_t n = taskhost_input_read(0, buf, sizeof buf);
 *         if (n == 0) return taskhost_fail_text(TASKHOST_PERMANENT, TASKHOST_BY_POLICY, "payload is empty");
 *         taskhost_output_write(buf, (uint32_t)n);
 *         return TASKHOST_DONE;
 *     }
 *
 * Build it as a reactor:
 *
 *     clang --target=wasm32-wasi -mexec-model=reactor -O2 -o handler.wasm handler.c
 *
 * or without a libc: add -nostdlib -Wl,--no-entry. The contract behind it is abi/SPEC.md of the taskhost repository. A command
 * (a program with main, payload on stdin, result on stdout) needs no header at all, but may use these calls too. */
#ifndef TASKHOST_H
#define TASKHOST_H

#include <stdint.h>

#ifdef __cplusplus
#define TASKHOST_C extern "C"
#else
#define TASKHOST_C extern
#endif

/* What a handler returns. */
enum {
    TASKHOST_DONE = 0,
    TASKHOST_RETRY = 1,     /* counts an attempt */
    TASKHOST_PERMANENT = 2, /* the job is dead */
    TASKHOST_DEFER = 3      /* run me again after the delay given to fail; 0 = yield; counts no attempt */
};

/* Negative answers of host calls. */
enum {
    TASKHOST_ERR_DENIED = -1,
    TASKHOST_ERR_NOT_FOUND = -2,
    TASKHOST_ERR_INVALID = -3,
    TASKHOST_ERR_TOO_LARGE = -4,
    TASKHOST_ERR_LIMIT = -5,
    TASKHOST_ERR_CANCELLED = -6,
    TASKHOST_ERR_UNAVAILABLE = -7,
    TASKHOST_ERR_UNSUPPORTED = -8
};

/* Levels of log lines. */
enum { TASKHOST_DEBUG = 0, TASKHOST_INFO = 1, TASKHOST_WARN = 2, TASKHOST_ERROR = 3 };

/* As retry_after_ms: leave the delay to the job's retry policy. */
#define TASKHOST_BY_POLICY ((int64_t)-1)

#define TASKHOST_IMPORT(name) __attribute__((import_module("taskhost_v1"), import_name(#name))) TASKHOST_C

/* Calls with (buf, cap) copy at most cap bytes and return the full length, or a negative error. */
TASKHOST_IMPORT(input_len) int64_t taskhost_input_len(void);
TASKHOST_IMPORT(input_read) int64_t taskhost_input_read(int64_t off, void *buf, uint32_t cap); /* bytes copied, 0 at the end */
TASKHOST_IMPORT(output_write) int64_t taskhost_output_write(const void *p, uint32_t len);      /* new length of the result */
TASKHOST_IMPORT(fail) int32_t taskhost_fail(int32_t kind, int64_t retry_after_ms, const char *msg, uint32_t len);
TASKHOST_IMPORT(log) int32_t taskhost_log(int32_t level, const char *msg, uint32_t len);
TASKHOST_IMPORT(progress) int32_t taskhost_progress(int64_t done, int64_t total, const char *msg, uint32_t len);
TASKHOST_IMPORT(checkpoint_put) int32_t taskhost_checkpoint_put(const void *p, uint32_t len);
TASKHOST_IMPORT(checkpoint_get) int64_t taskhost_checkpoint_get(void *buf, uint32_t cap);
TASKHOST_IMPORT(meta_get) int64_t taskhost_meta_get(const char *key, uint32_t key_len, char *buf, uint32_t cap);
TASKHOST_IMPORT(config_get) int64_t taskhost_config_get(const char *key, uint32_t key_len, char *buf, uint32_t cap);
TASKHOST_IMPORT(should_stop) int32_t taskhost_should_stop(void);
TASKHOST_IMPORT(deadline_ms) int64_t taskhost_deadline_ms(void);
TASKHOST_IMPORT(host_has) int32_t taskhost_host_has(const char *name, uint32_t len);

static inline uint32_t taskhost_text_len(const char *s) {
    uint32_t n = 0;
    while (s[n] != 0) n++;
    return n;
}

/* The same for text that ends in a zero byte. fail_text returns its kind, to be returned from the handler. */
static inline int32_t taskhost_fail_text(int32_t kind, int64_t retry_after_ms, const char *msg) {
    taskhost_fail(kind, retry_after_ms, msg, taskhost_text_len(msg));
    return kind;
}

static inline void taskhost_log_text(int32_t level, const char *msg) { taskhost_log(level, msg, taskhost_text_len(msg)); }

static inline int64_t taskhost_meta_text(const char *key, char *buf, uint32_t cap) {
    return taskhost_meta_get(key, taskhost_text_len(key), buf, cap);
}

static inline int64_t taskhost_config_text(const char *key, char *buf, uint32_t cap) {
    return taskhost_config_get(key, taskhost_text_len(key), buf, cap);
}

/* TASKHOST_HANDLER { ... } defines the handler and the exports the host looks for; use it once. */
#define TASKHOST_HANDLER                                                                          \
    __attribute__((export_name("taskhost_abi_v1"))) TASKHOST_C void taskhost_abi_v1(void);        \
    void taskhost_abi_v1(void) {}                                                                 \
    __attribute__((export_name("taskhost_handle"))) TASKHOST_C int32_t taskhost_handle(void);     \
    int32_t taskhost_handle(void)

#endif

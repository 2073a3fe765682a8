/* samples.c: the three sample handlers of `taskhost dev` in one module; the job's type chooses.
 *
 *     hello  {"name":"Ada"}  greets; without a name it greets the world
 *     sleep  {"ms":500}      waits, reports progress every tenth, stops when asked to
 *     flaky  {"fail":2}      fails that many attempts, then succeeds with {"attempts":3}
 *
 * No libc: the module is a few kilobytes. */
#include "json.h"
#include "taskhost.h"

enum { PAYLOAD_MAX = 64 * 1024, MS_MAX = 3600 * 1000, FAIL_MAX = 1000 };

static uint8_t payload[PAYLOAD_MAX];

static int permanent(const char *why) { return taskhost_fail_text(TASKHOST_PERMANENT, TASKHOST_BY_POLICY, why); }

/* A line of text under construction. Callers keep it short of its size. */
typedef struct {
    char text[160];
    uint32_t len;
} line;

static void add(line *l, const char *s) {
    while (*s != 0 && l->len < sizeof l->text) l->text[l->len++] = *s++;
}

static void add_number(line *l, int64_t n) {
    char digits[20], *p = digits + sizeof digits;
    *--p = 0;
    do *--p = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    add(l, p);
}

static void write_text(const char *s) { taskhost_output_write(s, taskhost_text_len(s)); }

/* read_payload reads the whole payload; an empty one is an empty object. It returns 0 when it is too large. */
static int read_payload(json_text *t) {
    int64_t len = taskhost_input_len(), n = 0, got;
    if (len > PAYLOAD_MAX) return 0;
    while (n < len && (got = taskhost_input_read(n, payload + n, (uint32_t)(len - n))) > 0) n += got;
    if (n == 0) payload[n++] = '{', payload[n++] = '}';
    t->at = payload;
    t->end = payload + n;
    return 1;
}

static int hello(json_text t) {
    json_value name;
    int found = json_member(t, "name", &name);
    if (found < 0) return permanent("payload must be a JSON object such as {\"name\":\"Ada\"}");
    if (found && name.kind == JSON_NULL) found = 0;
    if (found && name.kind != JSON_STRING) return permanent("name must be a string");
    write_text("{\"greeting\":\"Hello, ");
    if (found) taskhost_output_write(name.from, (uint32_t)(name.to - name.from)); /* valid JSON text as it is */
    else write_text("world");
    write_text("\"}");
    return TASKHOST_DONE;
}

/* integer reads member name between 0 and most, fallback when it is absent. It returns 0 when it is something else. */
static int integer(json_text t, const char *name, int64_t fallback, int64_t most, int64_t *n) {
    json_value v;
    int found = json_member(t, name, &v);
    *n = fallback;
    if (found == 0) return 1;
    return found > 0 && json_integer(v, n) && *n >= 0 && *n <= most;
}

/* WASI preview 1: one subscription to the monotonic clock. */
typedef struct {
    uint64_t userdata;
    uint8_t tag;
    _Alignas(8) uint32_t clock;
    uint64_t timeout_ns, precision_ns;
    uint16_t flags;
} subscription;

typedef struct {
    uint64_t userdata;
    uint16_t error;
    uint8_t type;
    uint64_t nbytes;
    uint16_t flags;
} event;

_Static_assert(sizeof(subscription) == 48 && sizeof(event) == 32, "layout of wasi_snapshot_preview1");

__attribute__((import_module("wasi_snapshot_preview1"), import_name("poll_oneoff"))) int32_t
poll_oneoff(const subscription *in, event *out, uint32_t count, uint32_t *happened);

static void wait_ms(int64_t ms) {
    subscription s = {.clock = 1, .timeout_ns = (uint64_t)ms * 1000000};
    event e;
    uint32_t happened;
    poll_oneoff(&s, &e, 1, &happened);
}

static int sleep_for(json_text t) {
    int64_t ms;
    if (!integer(t, "ms", 1000, MS_MAX, &ms)) {
        return permanent("payload must be a JSON object such as {\"ms\":500}, ms from 0 to 3600000");
    }
    /* Tenths; a long tenth in slices, so that a stop is noticed within a tenth of a second. */
    int64_t slept = 0;
    for (int64_t tenth = 1; tenth <= 10; tenth++) {
        int64_t until = ms * tenth / 10;
        while (slept < until) {
            if (taskhost_should_stop()) return taskhost_fail_text(TASKHOST_RETRY, TASKHOST_BY_POLICY, "asked to stop");
            int64_t slice = until - slept < 100 ? until - slept : 100;
            wait_ms(slice);
            slept += slice;
        }
        taskhost_progress(until, ms, "ms slept", 8);
    }
    line l;
    l.len = 0;
    add(&l, "{\"slept_ms\":");
    add_number(&l, slept);
    add(&l, "}");
    taskhost_output_write(l.text, l.len);
    return TASKHOST_DONE;
}

static int64_t attempt_number(void) {
    char text[20];
    int64_t n = 0, len = taskhost_meta_text("attempt", text, sizeof text);
    for (int64_t i = 0; i < len && i < (int64_t)sizeof text; i++) n = n * 10 + (text[i] - '0');
    return n;
}

static int flaky(json_text t) {
    int64_t fail, attempt = attempt_number();
    if (!integer(t, "fail", 1, FAIL_MAX, &fail)) {
        return permanent("payload must be a JSON object such as {\"fail\":2}, fail from 0 to 1000");
    }
    line l;
    l.len = 0;
    add(&l, "attempt ");
    add_number(&l, attempt);
    if (attempt <= fail) {
        add(&l, " fails, as asked for the first ");
        add_number(&l, fail);
        taskhost_log(TASKHOST_WARN, l.text, l.len);
        taskhost_fail(TASKHOST_RETRY, TASKHOST_BY_POLICY, l.text, l.len);
        return TASKHOST_RETRY;
    }
    add(&l, " succeeds");
    taskhost_log(TASKHOST_INFO, l.text, l.len);
    l.len = 0;
    add(&l, "{\"attempts\":");
    add_number(&l, attempt);
    add(&l, "}");
    taskhost_output_write(l.text, l.len);
    return TASKHOST_DONE;
}

static int is(const char *text, int64_t len, const char *word) {
    if (len != (int64_t)taskhost_text_len(word)) return 0;
    for (int64_t i = 0; i < len; i++) {
        if (text[i] != word[i]) return 0;
    }
    return 1;
}

TASKHOST_HANDLER {
    char type[16];
    int64_t len = taskhost_meta_text("type", type, sizeof type);
    json_text t;
    if (!read_payload(&t)) return permanent("payload is over 65536 bytes");
    if (is(type, len, "hello")) return hello(t);
    if (is(type, len, "sleep")) return sleep_for(t);
    if (is(type, len, "flaky")) return flaky(t);
    return permanent("this module serves the types hello, sleep and flaky");
}
